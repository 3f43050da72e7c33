"""`sottovoce import`, as a site's operator types it."""

from __future__ import annotations

import json
from pathlib import Path

import optuna
import pytest
from tests.terminal import exit_status, in_project

SPACE: dict[str, optuna.distributions.BaseDistribution] = {
    "penalty": optuna.distributions.FloatDistribution(1e-4, 100.0, log=True),
    "width": optuna.distributions.FloatDistribution(0.2, 5.0),
}


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of before, and a new project to take part in."""
    in_project(tmp_path, monkeypatch)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "old.log"))
    storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(storage=storage, study_name="[old] tuning")
    study.optimize(lambda trial: trial.suggest_float("other", 0, 1), 1)
    for _ in range(3):
        study.tell(study.ask(SPACE), 0.5)
    return tmp_path / "old.log"


def test_import_says_what_it_took_and_what_not(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(monkeypatch, "import", str(old)) == 0
    out = capsys.readouterr().out
    assert "3 trials of study '[old] tuning' are known to this site now: site/study.db" in out
    assert "Left out: 1 with parameters that the space does not have" in out
    assert Path("site").stat().st_mode & 0o777 == 0o700
    assert Path("site/study.db").stat().st_mode & 0o777 == 0o600


def test_import_prints_one_object(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--study", "[old] tuning", "--journal", "--json")
    assert exit_status(monkeypatch, "import", str(old), *words) == 0
    assert json.loads(capsys.readouterr().out) == {
        "study": "[old] tuning",
        "taken": 3,
        "left_out": {"with parameters that the space does not have": 1},
        "memory": "site/study.journal",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere.db",), "a storage must be a file that is there, or a URL"),
        (("OLD", "--study", "new"), "no study 'new' is in the storage"),
        (("OLD", "--project", ".."), "study.toml"),
    ],
)
def test_what_cannot_be_imported_is_one_line_and_status_2(
    old: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    typed = [str(old) if word == "OLD" else word for word in words]
    assert exit_status(monkeypatch, "import", *typed) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err
    assert not list(Path().glob("site/study.*"))


def test_a_second_import_is_refused(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(monkeypatch, "import", str(old)) == 0
    capsys.readouterr()
    assert exit_status(monkeypatch, "import", str(old)) == 2
    assert "this site has imported 3 trials already" in capsys.readouterr().err
