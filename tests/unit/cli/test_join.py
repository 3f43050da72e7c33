"""`sottovoce join`, with a program in the place of Flower's SuperNode."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.terminal import exit_status, in_project, write_program

from sottovoce.cli.purse import NONE
from sottovoce.flower.deploy.rehearsal import free_port
from sottovoce.flower.site import leaving

JOIN = importlib.import_module("sottovoce.cli.join")  # its name in the package is the command's
Joined = Callable[..., tuple[int, str]]


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(JOIN, "time", clock)
    return clock


@pytest.fixture
def join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Joined:
    """Join with a SuperNode that is a shell script; it runs in the project. Status and errors."""
    programs = in_project(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def joined(script: str, *words: str) -> tuple[int, str]:
        node = f'#!/bin/sh\necho "$@" >> started\n{script}\n'
        write_program(programs / "flower-supernode", node)
        here = ("join", "localhost:8000", "--insecure", "--no-trial", "--port", str(free_port()))
        status = exit_status(monkeypatch, *here, *words)
        err = " ".join(capsys.readouterr().err.split())
        before, found, after = err.partition(f"goes to {Path('site/join.log').absolute()}.")
        assert "Nobody answers at localhost:8000 yet" in before
        assert found
        assert NONE in before
        return status, after.strip()

    return joined


def starts() -> list[str]:
    return Path("started").read_text().splitlines()


def test_a_site_taken_to_be_alive_still_tries_again_until_it_is_let_in(
    join: Joined, clock: Clock
) -> None:
    status, err = join("test $(wc -l < started) -gt 3")
    assert status == 0
    assert len(starts()) == 4
    assert set(starts()) == {starts()[0]}
    assert "--superlink localhost:8000 --insecure" in starts()[0]
    assert err.count("did not let this site in") == 3
    assert err.count("Trying again in 10 seconds") == 3
    assert clock.now == 1030


def test_a_site_that_is_never_let_in_gives_up_with_its_nodes_status(
    join: Joined, clock: Clock
) -> None:
    status, err = join("exit 7")
    assert status == 7
    assert 1090 < clock.now <= 1110  # a coordinator needs a minute to notice that a node died
    assert len(starts()) == 1 + err.count("Trying again")


def test_a_site_that_was_in_for_long_does_not_try_again(
    join: Joined, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sottovoce.flower.deploy import processes

    run = processes.run_until_ended

    def long_run(command: list[str], env: dict[str, str], cwd: Path, **named: Any) -> int:
        clock.sleep(3600)
        return run(command, env, cwd, **named)

    monkeypatch.setattr(processes, "run_until_ended", long_run)
    status, err = join("exit 7")
    assert (status, err, len(starts())) == (7, "", 1)


def test_a_site_that_is_interrupted_does_not_try_again(join: Joined, clock: Clock) -> None:
    # the node's parent is its executor, whose parent is join
    join_itself = "$(sed -n 's/^PPid:\\t//p' /proc/$PPID/status)"
    status, err = join(f"kill -INT {join_itself}\nexec sleep 60")
    assert (status, len(starts())) == (130, 1)
    assert err.startswith("Interrupted. Nothing is lost")
    assert clock.now == 1000


def test_workers_are_told_to_the_sites_own_node(join: Joined, clock: Clock) -> None:
    assert join("exit 0", "--workers", "3") == (0, "")
    assert " workers=3 " in starts()[0]


def test_a_site_whose_node_ends_well_does_not_try_again(join: Joined, clock: Clock) -> None:
    assert join("exit 0") == (0, "")
    assert len(starts()) == 1


def test_a_site_that_left_shows_its_error_and_ends_with_status_2(
    join: Joined, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "FAREWELL", 0.5)
    began = time.monotonic()
    status, err = join("mkdir -p site; echo 'ValueError: no data' > site/left.txt; exec sleep 60")
    assert (status, err) == (2, "error: ValueError: no data")
    assert 0.5 < time.monotonic() - began < 30
    assert len(starts()) == 1


def test_a_site_whose_node_ends_after_it_left_does_not_try_again(
    join: Joined, clock: Clock
) -> None:
    status, err = join("mkdir -p site; echo 'ValueError: no data' > site/left.txt; exit 7")
    assert (status, err) == (2, "error: ValueError: no data")
    assert len(starts()) == 1


def test_that_a_site_left_is_forgotten_when_it_joins_again(join: Joined, clock: Clock) -> None:
    Path("site").mkdir()
    leaving.note(Path("site"), "it had no data")
    assert join("exit 0") == (0, "")
    assert leaving.why(Path("site")) is None
