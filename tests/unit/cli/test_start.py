"""`sottovoce start`, and how `serve` ends, with programs in the place of Flower's."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.terminal import exit_status, in_project, write_program

from sottovoce.flower.deploy import superlink

# Keeps its runs in a file; a run is over, as the file `ends` says, when its log has been shown.
FLWR = """\
#!{python}
import json, os, signal, sys
from pathlib import Path

words = sys.argv[1:]
runs = json.loads(Path("runs").read_text())
ends = json.loads(Path("ends").read_text())
answer = {{"success": True}}
if words[0] == "run":
    answer["run-id"] = str(len(runs) + 1)
    runs[answer["run-id"]] = "running"
elif words[0] == "list":
    wanted = [words[words.index("--run-id") + 1]] if "--run-id" in words else list(runs)[::-1]
    answer["runs"] = [
        {{"run-id": run, "status": runs[run], "status-details": "why"}} for run in wanted
    ]
else:
    print(f"log of {{words[1]}}")
    if words[1] not in ends:
        Path("watching").write_text(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    runs[words[1]] = ends[words[1]]
Path("runs").write_text(json.dumps(runs))
if words[0] != "log":
    print(json.dumps(answer))
"""
SITES = '[sites]\na = "1"\nb = "2"\n'
Started = Callable[..., tuple[int, str, str]]


@pytest.fixture
def start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Started:
    """Start with the runs that are there, and how runs will end. Status, output and errors."""
    in_project(tmp_path, monkeypatch, flwr=FLWR.format(python=sys.executable))
    Path("sites.toml").write_text(SITES)
    monkeypatch.setattr(
        superlink, "is_up", lambda link, timeout=1.0: timeout > 1
    )  # as `start` asks

    def started(runs: dict[str, str], ends: dict[str, str], *words: str) -> tuple[int, str, str]:
        Path("runs").write_text(json.dumps(runs))
        Path("ends").write_text(json.dumps(ends))
        status = exit_status(monkeypatch, "start", "--insecure", *words)
        out, err = capfd.readouterr()
        return status, out, " ".join(err.split())

    return started


def runs() -> dict[str, str]:
    return dict(json.loads(Path("runs").read_text()))


WELL, FAILED, STOPPED = "finished:completed", "finished:failed", "finished:stopped"


def test_a_study_that_is_not_running_is_started_and_followed_to_its_end(start: Started) -> None:
    status, out, err = start({"1": FAILED}, {"2": WELL})
    assert (status, out) == (0, "log of 2\n")
    assert "run 2 has started" in err
    assert runs() == {"1": FAILED, "2": WELL}


@pytest.mark.parametrize("state", ["pending", "starting", "running"])
def test_a_study_that_goes_on_already_is_followed_and_no_second_run_submitted(
    start: Started, state: str
) -> None:
    status, out, err = start({"1": FAILED, "2": state}, {"2": WELL})
    assert (status, out) == (0, "log of 2\n")
    assert "run 2 goes on already" in err
    assert list(runs()) == ["1", "2"]


def test_a_study_that_goes_on_already_is_named_to_who_does_not_follow(start: Started) -> None:
    status, out, err = start({"1": "running"}, {}, "--no-follow")
    assert (status, out) == (0, "1\n")
    assert "run 1 goes on already" in err
    assert list(runs()) == ["1"]


def test_an_earlier_run_that_dies_while_it_is_followed_is_followed_by_a_new_one(
    start: Started,
) -> None:
    status, out, err = start({"1": "running"}, {"1": FAILED, "2": WELL})
    assert (status, out) == (0, "log of 1\nlog of 2\n")
    assert "run 1 ended as finished:failed: why" in err
    assert "run 2 has started" in err


def test_a_run_that_somebody_stopped_is_not_started_again(start: Started) -> None:
    status, _, err = start({"1": "running"}, {"1": STOPPED})
    assert status == 1
    assert "ended as finished:stopped: why" in err
    assert list(runs()) == ["1"]


def test_a_run_of_ones_own_that_fails_is_an_error(start: Started) -> None:
    status, _, err = start({}, {"1": FAILED})
    assert status == 1
    assert "ended as finished:failed: why" in err
    assert list(runs()) == ["1"]


def test_who_stops_watching_is_told_how_to_watch_again_and_leaves_no_process(
    start: Started,
) -> None:
    status, _, err = start({}, {})
    assert status == 130
    assert "`sottovoce start` watches it again" in err
    watching = Path(f"/proc/{Path('watching').read_text()}")
    assert not watching.exists()


def test_what_goes_on_is_asked_of_the_link_of_the_project(start: Started) -> None:
    start({}, {"1": WELL})
    assert superlink.unfinished(Path()) is None
    Path("runs").write_text(json.dumps({"1": FAILED, "2": "running", "3": WELL}))
    assert superlink.unfinished(Path()) == "2"


@pytest.fixture
def kept(start: Started) -> Path:
    """A link's database, with a message in it."""
    path = Path("coordinator/superlink.db")
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "CREATE TABLE run (primary_task_id); CREATE TABLE task (task_id, finished_at);"
            "CREATE TABLE objects (content); INSERT INTO objects VALUES ('a vector')"
        )
    return path


def test_what_sites_said_is_removed_when_the_run_is_over(start: Started, kept: Path) -> None:
    assert b"a vector" in kept.read_bytes()
    assert start({}, {"1": WELL})[0] == 0
    assert b"a vector" not in kept.read_bytes()


def test_what_sites_said_is_removed_when_the_run_has_failed(start: Started, kept: Path) -> None:
    assert start({}, {"1": FAILED})[0] == 1
    assert b"a vector" not in kept.read_bytes()


def test_who_stops_watching_takes_nothing_from_the_run(start: Started, kept: Path) -> None:
    assert start({}, {})[0] == 130
    assert b"a vector" in kept.read_bytes()


def test_what_sites_said_is_removed_when_the_link_ends(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path / "bin" / "flower-superlink", "#!/bin/sh\nexit 7\n")
    assert exit_status(monkeypatch, "serve", "--insecure", "--port=1") == 7
    assert b"a vector" not in kept.read_bytes()
