from __future__ import annotations

from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.files import locked
from sottovoce.flower.deploy.project import make_project
from sottovoce.flower.deploy.rehearsal import rehearse


def test_a_second_rehearsal_of_a_project_is_refused_and_makes_nothing(tmp_path: Path) -> None:
    make_project(tmp_path / "study", agents=2, rounds=2, epsilon=2.0)
    with locked(tmp_path / "study"), pytest.raises(InvalidInput, match="study is running"):
        rehearse(tmp_path / "study")
    assert not (tmp_path / "study" / "rehearsal").exists()
