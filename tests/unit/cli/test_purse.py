"""`sottovoce purse`, and what `join` makes of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.terminal import exit_status, in_project, write_program

from sottovoce import cli
from sottovoce.cli.purse import NONE, default_purse
from sottovoce.flower.deploy.project import make_project
from sottovoce.privacy.pursefile import Purse


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def ran(monkeypatch: pytest.MonkeyPatch, capsys: Any, *words: str) -> tuple[int, str, str]:
    status = exit_status(monkeypatch, *words)
    out, err = capsys.readouterr()
    return status, " ".join(out.split()), " ".join(err.split())


def found(monkeypatch: pytest.MonkeyPatch, capsys: Any, *words: str) -> dict[str, Any]:
    status, out, err = ran(monkeypatch, capsys, "purse", *words, "--json")
    assert (status, err) == (0, "")
    return dict(json.loads(out))


def test_a_purse_is_made_filled_shown_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for name in ("one", "two"):
        make_project(tmp_path / name, agents=2, rounds=4, epsilon=2.0)
    made = found(monkeypatch, capsys, "new", "--epsilon", "2.5", "--data", "a registry")
    assert made["path"] == str(default_purse())
    assert default_purse().stat().st_mode & 0o077 == 0
    first = found(monkeypatch, capsys, "enter", "one")
    assert first["spent"]["epsilon"] == pytest.approx(2.0, abs=1e-3)
    status, _, err = ran(monkeypatch, capsys, "purse", "enter", "two")
    assert status == 2
    assert "would come to 2.95" in err
    assert "the purse allows 2.5" in err
    room = first["room"]
    assert 1.2 < room < 1.5  # not 0.5: what is composed is less than the sum
    closed = found(monkeypatch, capsys, "close", "one")
    assert (closed["spent"]["epsilon"], closed["studies"][0]["open"]) == (0.0, False)
    found(monkeypatch, capsys, "enter", "two")
    status, out, _ = ran(monkeypatch, capsys, "purse", "show", "--holds", first["digest"])
    assert status == 0
    assert "a registry" in out
    assert "ε = 2.00 of 2.5 allowed" in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["show"], "there is no purse"),
        (["enter", "nowhere"], "must be a project"),
        (["new", "--epsilon", "-1"], "epsilon must be finite and above 0"),
        (["new", "--epsilon", "1", "--delta", "2"], "delta must be in (0, 1)"),
        (["new", "missing/purse.db", "--epsilon", "1"], "cannot be read or written"),
        (["moved", "objective.py"], "there is no purse"),
    ],
)
def test_what_a_tired_person_types_gets_one_line(
    words: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    status, out, err = ran(monkeypatch, capsys, "purse", *words)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert complaint in err


def test_a_digest_that_the_purse_does_not_hold_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    found(monkeypatch, capsys, "new", "--epsilon", "1")
    status, _, err = ran(monkeypatch, capsys, "purse", "show", "--holds", "00")
    assert status == 2
    assert "was set back, or is another" in err


def test_a_cap_is_changed_in_what_is_given_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    found(monkeypatch, capsys, "new", "--epsilon", "1", "--replace-one", "3")
    changed = found(monkeypatch, capsys, "cap", "--epsilon", "2")
    assert changed["limits"] == {"epsilon": 2.0, "delta": 1e-5, "replace_one": 3.0}


def test_where_nobody_is_trusted_a_study_is_entered_once_all_keys_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    make_project(tmp_path / "one", agents=5, rounds=4, epsilon=2.0)
    found(monkeypatch, capsys, "new", "--epsilon", "9")
    status, _, err = ran(monkeypatch, capsys, "purse", "enter", "one")
    assert status == 2
    assert "sites.toml" in err


def join(monkeypatch: pytest.MonkeyPatch, capsys: Any, *options: str) -> tuple[int, str]:
    monkeypatch.setattr("sys.argv", ["sottovoce", "join", "localhost:8000", "--insecure", *options])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0), " ".join(capsys.readouterr().err.split())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of two sites with a node that ends at once."""
    programs = in_project(tmp_path, monkeypatch)
    write_program(programs / "flower-supernode", "#!/bin/sh\nexit 0\n")
    return tmp_path / "study"


def test_joining_enters_the_study_in_the_users_own_purse_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    found(monkeypatch, capsys, "new", "--epsilon", "3")
    for _ in range(2):
        status, err = join(monkeypatch, capsys)
        assert status == 0
        assert f"This study is in purse {default_purse()}, which now holds ε = 2.00 of 3" in err
    assert len(Purse(default_purse()).look()[0].stakes) == 1
    status, err = join(monkeypatch, capsys, "--no-purse")
    assert status == 2
    assert "it cannot go on without it" in err


def test_joining_with_a_full_purse_ends_before_anything_starts(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    found(monkeypatch, capsys, "new", "--epsilon", "1")
    status, err = join(monkeypatch, capsys)
    assert status == 2
    assert "the purse allows 1" in err
    status, err = join(monkeypatch, capsys, "--no-purse")
    assert status == 0
    assert NONE in err


def test_joining_with_a_purse_that_is_not_there_is_an_error(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    status, err = join(monkeypatch, capsys, "--purse", "missing.db")
    assert status == 2
    assert "there is no purse" in err
