"""The figure of growth."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.lab.peers.growth import draw_growth, levels
from sottovoce.lab.peers.sections import tasks_of
from sottovoce.lab.peers.together import Curve, TogetherTask


def test_regret_is_a_share_of_that_of_going_alone(tmp_path: Path) -> None:
    for section in ("growth-10", "growth-30"):
        for task in tasks_of(section, tmp_path):
            assert isinstance(task, TogetherTask)
            if task.run < 2:
                last = {"gp": 0.4, "sottovoce/control": 0.41}.get(task.entry, 0.1 + 0.02 * task.run)
                task.path.parent.mkdir(parents=True, exist_ok=True)
                task.path.write_text(json.dumps(asdict(Curve([1.0, last], 1.0))))
    found = levels(tmp_path, "michalewicz", "sottovoce", 0.3)
    assert set(found) == {10, 30}
    assert found[10].mean == pytest.approx(0.11 / 0.4)
    assert found[10].error == pytest.approx(0.01 / 0.4)
    path = draw_growth(tmp_path, tmp_path / "growth.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_without_runs_there_is_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no runs"):
        draw_growth(tmp_path, tmp_path / "growth.png")
    assert not (tmp_path / "growth.png").exists()
