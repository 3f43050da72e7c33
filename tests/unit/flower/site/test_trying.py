"""A site's trials side by side: how many at once, what the search knows, what a kill leaves."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.trial import Trial, TrialState
from tests.unit.flower.site.test_site import FILE, call, killed, next_call, quadratic, trials

from sottovoce.errors import InvalidInput
from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import SOTTOVOCE, Method, method_named
from sottovoce.federation.searcher import Searcher
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.site.memory import ATTEMPTS, Memory
from sottovoce.flower.site.site import Site
from sottovoce.flower.site.trying import OTHERWISE
from sottovoce.flower.studyfile import StudyFile
from sottovoce.privacy.budget import Budget
from sottovoce.privacy.release import Mechanism
from sottovoce.space import Float, Space

INITIAL, ROUNDS = 6, 8
SPACE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
STUDY = FederatedStudy(
    SPACE,
    replace(SOTTOVOCE, initial=INITIAL, mechanism=Mechanism(clip=1.0, noise=5.0)),
    agents=2,
    rounds=ROUNDS,
)
MANY = StudyFile(STUDY, 5.0, 1e-5, direction="minimize")


class Counting:
    """An objective that notes how many of it ran at the same time.

    together: the first trials wait for as many to have begun.
    """

    def __init__(self, together: int = 1, first: int = 0) -> None:
        self._met, self._first = threading.Barrier(together), first
        self._lock, self._now = threading.Lock(), 0
        self.most, self.threads = 0, set[str]()

    def __call__(self, trial: Trial) -> float:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.threads.add(threading.current_thread().name)
        values = [trial.suggest_float(p.name, 0.0, 1.0) for p in SPACE.parameters]
        if trial.number < self._first:
            self._met.wait(60)
        with self._lock:
            self._now -= 1
        return float(np.sum((np.asarray(values) - 0.3) ** 2))


def through(folder: Path, objective: Any, storage: str, workers: int) -> Site:
    """A site that has gone through the whole study, alone."""
    server = Server(STUDY, folder / "ledger.db", Budget(1e5, 1e-5, "moments"))
    site = Site(MANY, objective, folder / "site", storage=storage, workers=workers)
    for step in MANY.steps:
        reply = site.answer(next_call(server, MANY))
        if step.round == ROUNDS:
            assert reply.answer == "done", reply.reason
            break
        assert reply.answer == "vector", reply.reason
        server.open_round()
        server.submit(reply.message)
        server.close_round()
    server.close()
    return site


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
def test_as_many_trials_run_side_by_side_as_there_are_workers(tmp_path: Path, storage: str) -> None:
    objective = Counting(together=3, first=INITIAL)
    through(tmp_path, objective, storage, workers=3)
    assert objective.most == 3
    found = trials(tmp_path / "site", storage)
    assert [trial.state for trial in found] == [TrialState.COMPLETE] * (INITIAL + ROUNDS)
    rounds = sorted(trial.user_attrs["round"] for trial in found)
    assert rounds == [0] * INITIAL + [2, 2, 4, 4, 6, 6, 8, 8]
    design = {tuple(np.round(point, 9)) for point in STUDY.latin_design[0]}
    first = {tuple(np.round(list(trial.params.values()), 9)) for trial in found[:INITIAL]}
    assert first == design  # each initial point once, whichever ended first
    assert len({tuple(trial.params.values()) for trial in found}) == len(found)


def test_one_worker_runs_its_trials_in_the_main_thread(tmp_path: Path) -> None:
    """Some objectives need it: those that set signal handlers, for one."""
    objective = Counting()
    Site(MANY, objective, tmp_path).answer(call(0, file=MANY))
    assert objective.threads == {"MainThread"}


def test_the_search_is_told_which_trials_are_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = Searcher.ask, []

    def ask(self: Searcher, running: Any = ()) -> dict[str, Any]:
        seen.append(len(running))
        return real(self, running)

    monkeypatch.setattr(Searcher, "ask", ask)
    through(tmp_path, Counting(together=2, first=INITIAL + ROUNDS), "journal", workers=2)
    assert len(seen) == INITIAL + ROUNDS
    assert set(seen) == {0, 1}
    for first in (0, INITIAL):  # both of a pair begin before either can end
        assert seen[first : first + 2] == [0, 1]


@pytest.mark.parametrize("method", ["sottovoce", "gp", "ts"])
def test_queries_asked_for_at_once_differ(method: str) -> None:
    study = FederatedStudy(SPACE, _few(method_named(method)), agents=2, rounds=5)
    agent, running = Agent(study, 0, seed=0), list[dict[str, Any]]()
    for _ in range(INITIAL):
        running.append(agent.ask(running))
    assert len({json.dumps(params) for params in running}) == INITIAL
    for params in running:
        agent.tell(params, -(params["x"] ** 2))
    running = []
    for _ in range(4):
        running.append(agent.ask(running))
    assert len({json.dumps(params) for params in running}) == 4


def _few(method: Method) -> Method:
    mechanism = method.mechanism and Mechanism(clip=1.0, noise=5.0)
    return replace(method, initial=INITIAL, mechanism=mechanism)


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
def test_what_ran_when_the_process_was_killed_is_tried_again_one_by_one(
    tmp_path: Path, storage: str
) -> None:
    together = threading.Barrier(3)

    def deadly(trial: Trial) -> float:
        quadratic(trial)
        together.wait(60)
        if trial.number == 0:
            killed()
        time.sleep(60)
        return 0.0

    _die(tmp_path, deadly, storage)
    running = []

    def alone(trial: Trial) -> float:
        states = [each.state for each in trials(tmp_path, storage)]
        running.append(states.count(TrialState.RUNNING))
        return quadratic(trial)

    again = Site(FILE, alone, tmp_path, storage=storage, workers=3)
    assert again.answer(call(0)).answer == "vector"
    assert running == [1, 1, 1]
    found = trials(tmp_path, storage)
    lost, mended = found[:3], found[3:]
    assert all(trial.user_attrs["lost"] for trial in lost)
    assert [t.user_attrs["asked"] for t in mended] == [t.user_attrs["asked"] for t in lost]
    assert {t.user_attrs["attempt"] for t in mended} == {2}


def test_a_trial_that_kills_its_process_takes_no_other_with_it_for_good(tmp_path: Path) -> None:
    def deadly(trial: Trial) -> float:
        first = trials(tmp_path)[0].user_attrs["asked"]
        value = quadratic(trial)
        return killed() if trial.params["x"] == first["x"] else value

    for _ in range(ATTEMPTS):
        _die(tmp_path, deadly, "sqlite")
    reply = Site(FILE, deadly, tmp_path, workers=3).answer(call(0))
    assert reply.answer == "vector"
    with Memory(tmp_path, "sqlite", FILE.study, FILE.direction) as memory:
        values = [told.value for told in memory.told]
    assert len(values) == 3
    assert values.count(None) == 1


def test_a_mistake_in_one_is_said_when_all_have_ended(tmp_path: Path) -> None:
    def mistaken(trial: Trial) -> float:
        if trial.number == 0:
            return trial.suggest_float("x", 0.0, 2.0)
        time.sleep(0.3)
        return quadratic(trial)

    reply = Site(FILE, mistaken, tmp_path, workers=2).answer(call(0))
    assert reply.reason == f"SpaceError: {OTHERWISE}"
    states = [trial.state for trial in trials(tmp_path)]
    assert states == [TrialState.FAIL, TrialState.COMPLETE]
    assert Site(FILE, quadratic, tmp_path, workers=2).answer(call(0)).answer == "vector"
    assert len(trials(tmp_path)) == 1 + 3


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_workers_must_be_a_whole_number_above_0(tmp_path: Path, workers: Any) -> None:
    with pytest.raises(InvalidInput, match="workers must be a whole number above 0"):
        Site(FILE, quadratic, tmp_path, workers=workers)


def _die(folder: Path, objective: Any, storage: str) -> None:
    child = os.fork()
    if child == 0:
        try:
            Site(FILE, objective, folder, storage=storage, workers=3).answer(call(0))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
