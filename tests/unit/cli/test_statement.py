"""`sottovoce statement`, and `sottovoce budget` of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.terminal import exit_status

from sottovoce.flower.deploy.project import make_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_project(tmp_path / "trial", agents=4, rounds=4, epsilon=2.0)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "trial"


def test_a_statement_is_written_beside_the_study_in_both_forms(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert exit_status(monkeypatch, "statement", "trial") == 0
    assert capsys.readouterr().out.split() == ["trial/statement.html", "trial/statement.md"]
    assert (project / "statement.md").read_text().startswith("# Privacy statement: trial")
    assert (project / "statement.html").read_text().startswith("<!DOCTYPE html>")
    monkeypatch.chdir(project)
    Path("page").mkdir()
    assert exit_status(monkeypatch, "statement", "--out", "page", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == ["page/statement.html", "page/statement.md"]
    assert found["trust"] == "coordinator"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["statement", "missing"], "missing is not there"),
        (["statement", "trial", "--out", "nowhere"], "nowhere must be a folder"),
        (["budget", "missing.toml"], "missing.toml is not there"),
        (["budget", "trial", "--agents", "3"], "leave out the options"),
        (["budget", "trial", "--unreliable", "3"], "leave out the options"),
        (["budget", "--agents", "3"], "give a study.toml, or all of"),
    ],
)
def test_what_a_tired_person_types_gets_one_line(
    project: Path, words: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert exit_status(monkeypatch, *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1
    assert not list(project.glob("statement*"))


def test_the_budget_of_a_study_is_said_in_sentences_with_its_price(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert exit_status(monkeypatch, "budget", "trial/study.toml") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "To a site:" in text
    assert "Not against: the coordinator" in text
    assert "What a stricter ε costs" in text
    assert exit_status(monkeypatch, "budget", "trial", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["epsilon"] for row in found["stricter"]] == [2.0, 1.0, 0.5]
    assert found["collude"] is None
