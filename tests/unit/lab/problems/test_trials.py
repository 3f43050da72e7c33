"""Trials in real worker processes.

The problem lives in a module of its own, as workers must be able to import it by name.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sottovoce.device import device_named
from sottovoce.errors import InvalidInput, MissingExtra, TrialError
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.maketable import make_table
from sottovoce.lab.problems.trialcache import DamagedTrial
from sottovoce.lab.problems.trials import LiveObjectives

pytest.importorskip("pebble", reason="live trials need the extra `experiments`")

MODULE = '''
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from sottovoce.federation.surrogate import Surrogate
from sottovoce.simulation.problem import Setting
from sottovoce.lab.problems.real import RealProblem
from sottovoce.lab.problems.trials import LiveObjectives
from sottovoce.space import Float, Integer, Space


class Trainer:
    agents, fingerprint = 6, "made-up"

    def __init__(self, mischief, batch):
        self.mischief, self.batch = mischief, batch

    def scores(self, agents, points):
        if os.environ.get("WATCHED"):
            (Path(os.environ["WATCHED"]) / str(os.getpid())).touch()
        if 3 in agents:
            if self.mischief == "raises":
                raise ZeroDivisionError("no such luck")
            if self.mischief == "hangs":
                time.sleep(600)
            if self.mischief == "dies":
                os._exit(7)
            if self.mischief == "shape":
                return np.zeros((2, 2))
        scores = agents / 10 + points[:, 0] / 10
        if self.mischief == "nan":
            scores[agents == 3] = np.nan
        if self.mischief == "above":
            scores[agents == 3] = 1.5
        return scores


@dataclass(frozen=True)
class MadeUp(RealProblem):
    kind = "made-up"
    mischief: str = ""
    batch: int = 4

    def __post_init__(self):
        pass

    @property
    def setting(self):
        space = Space([Float("x", 0.0, 1.0), Integer("k", 1, 3)])
        return Setting(space, Surrogate(), 6)

    def trainer(self, device):
        if self.mischief == "no data" and os.environ.get("HIDDEN") != str(os.getpid()):
            raise FileNotFoundError("the data are gone")
        if self.mischief == "doomed" and os.environ.get("HIDDEN") != str(os.getpid()):
            os._exit(9)
        return Trainer(self.mischief, self.batch)


def in_a_worker(cache):
    """Live values in a process that was itself started by a pool."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(values_and_go, cache).result()


def values_and_go(cache):
    objectives = LiveObjectives(MadeUp(), 6, 1, Path(cache))
    return objectives.values(np.full((6, 1, 2), 0.5))  # not closed: ends with the process
'''


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, for this process and its workers."""
    name = "made_up_problem"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SOTTOVOCE_CACHE", str(tmp_path / "cache"))
    importlib.invalidate_caches()
    yield importlib.import_module(name)
    del sys.modules[name]


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def points_for(agents: int, each: int = 2) -> Any:
    return np.random.default_rng(0).random((agents, each, 2))


def expected(points: Any) -> Any:
    return (np.arange(len(points))[:, None] + points[..., 0]) / 10


def test_values_are_the_scores_of_trained_models_and_are_paid_for_once(made_up: Any) -> None:
    points = points_for(6)
    with LiveObjectives(made_up.MadeUp(), 6, 2) as objectives:
        np.testing.assert_allclose(objectives.values(points), expected(points), rtol=1e-12)
        assert objectives.trials.trained == 12
        np.testing.assert_allclose(objectives.values(points), expected(points), rtol=1e-12)
        assert objectives.trials.trained == 12
        assert objectives.noise == 0
        np.testing.assert_array_equal(objectives.optimum, np.ones(6))
    with LiveObjectives(made_up.MadeUp(), 3, 1) as later:  # another run, fewer agents
        np.testing.assert_allclose(later.values(points[:3]), expected(points)[:3], rtol=1e-12)
        assert later.trials.trained == 0
        assert multiprocessing.active_children() == []  # nothing to train, nobody started


def test_points_that_decode_to_the_same_parameters_are_one_trial(made_up: Any) -> None:
    points = np.asarray([[[0.5, 0.4], [0.5, 0.5], [0.5, 0.6], [0.5, 0.9]]])
    with LiveObjectives(made_up.MadeUp(), 1, 1) as objectives:
        np.testing.assert_allclose(objectives.values(points), 0.05)
        assert objectives.trials.trained == 2


@pytest.mark.parametrize(
    ("mischief", "reason"),
    [
        ("raises", "ZeroDivisionError: no such luck"),
        ("hangs", "it took longer than 1 s"),
        ("dies", "its process died with exit code 7"),
        ("nan", "its score must be in [0, 1], got nan"),
        ("above", "its score must be in [0, 1], got 1.5"),
        ("shape", "InvalidInput: scores must be one a trial, got shape=(2, 2)"),
    ],
)
def test_only_the_guilty_trial_fails(made_up: Any, mischief: str, reason: str) -> None:
    points = points_for(6, each=1)
    problem = made_up.MadeUp(mischief=mischief, limit=1.0)
    with LiveObjectives(problem, 6, 2) as objectives:
        values = objectives.values(points)
        (failure,) = objectives.failures
        assert (failure.agent, failure.reason) == (3, reason)
        assert failure.parameters == problem.setting.space.decode(points[3, 0])
        wanted = expected(points)
        wanted[3] = np.nan
        np.testing.assert_allclose(values, wanted)
        before = objectives.trials.trained
        objectives.values(points)
        assert objectives.trials.trained == before + 1  # what failed is not kept


def test_a_damaged_entry_of_the_cache_is_trained_again(made_up: Any, tmp_path: Path) -> None:
    points = points_for(6)
    with LiveObjectives(made_up.MadeUp(), 6, 1) as objectives:
        objectives.values(points)
        database = sqlite3.connect(tmp_path / "cache" / "trials.sqlite")
        with database:
            database.execute("UPDATE trials SET score = 0.9 WHERE agent = 2")
        database.close()
        with pytest.warns(DamagedTrial, match="trained again: 2"):
            values = objectives.values(points)
        np.testing.assert_allclose(values, expected(points))
        assert objectives.trials.trained == 14


def test_what_keeps_every_trial_from_being_trained_is_raised(
    made_up: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIDDEN", str(os.getpid()))  # only this process sees the data
    with LiveObjectives(made_up.MadeUp(mischief="no data"), 6, 1) as objectives:
        message = "no model can be trained: FileNotFoundError: the data are gone"
        with pytest.raises(TrialError, match=message):
            objectives.values(points_for(6))


def test_points_for_other_agents_and_no_workers_are_refused(made_up: Any) -> None:
    rule = "points must be for 3 agents, got agents=4"
    with LiveObjectives(made_up.MadeUp(), 3) as live, pytest.raises(InvalidInput, match=rule):
        live.values(points_for(4))
    with pytest.raises(InvalidInput, match="workers must be at least 1, got workers=0"):
        LiveObjectives(made_up.MadeUp(), 3, 0)


def test_without_pebble_the_extra_is_named(made_up: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pebble", None)
    extra = r"sottovoce\[experiments\]"
    with LiveObjectives(made_up.MadeUp(), 6) as live, pytest.raises(MissingExtra, match=extra):
        live.values(points_for(6))


def test_workers_end_with_the_objectives_that_nobody_closed(made_up: Any) -> None:
    objectives = LiveObjectives(made_up.MadeUp(), 6, 1)
    objectives.values(points_for(6))
    assert len(multiprocessing.active_children()) == 1
    del objectives
    assert multiprocessing.active_children() == []


def test_workers_killed_between_two_calls_are_replaced(made_up: Any) -> None:
    points = points_for(6, each=4)
    with LiveObjectives(made_up.MadeUp(), 6, 2) as objectives:
        objectives.values(points[:, :1])
        for worker in multiprocessing.active_children():
            worker.kill()
        np.testing.assert_allclose(objectives.values(points), expected(points))
        assert objectives.failures == []


def test_workers_that_cannot_live_are_given_up(
    made_up: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIDDEN", str(os.getpid()))
    doomed, rule = made_up.MadeUp(mischief="doomed"), "the worker processes keep dying"
    with LiveObjectives(doomed, 6, 1) as live, pytest.raises(TrialError, match=rule):
        live.values(points_for(6))


def test_a_table_is_made_by_workers_and_resumes_for_nothing(made_up: Any) -> None:
    table, again = (
        make_table(made_up.MadeUp(), device_named(None), points=4, held_out=3, jobs=2)
        for _ in range(2)
    )
    wanted = (np.arange(6)[:, None] + table.points[:, 0]) / 10
    np.testing.assert_allclose(table.values, wanted, atol=1e-5)
    assert table.about["trained"] >= 6 * len(table.points)
    assert again.about["trained"] == 0
    np.testing.assert_array_equal(again.held_values, table.held_values)


def test_live_values_come_in_a_process_of_a_pool_and_it_ends(made_up: Any, tmp_path: Path) -> None:
    script = (
        "import sys, made_up_problem\n"
        "if __name__ == '__main__':\n"
        "    print(made_up_problem.in_a_worker(sys.argv[1]).ravel().tolist())\n"
    )
    (tmp_path / "outer.py").write_text(script)
    command = [sys.executable, str(tmp_path / "outer.py"), str(tmp_path / "other.sqlite")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(eval(result.stdout), 0.05 + np.arange(6) / 10)  # noqa: S307


def test_an_interrupt_stops_at_once_and_leaves_no_process(made_up: Any, tmp_path: Path) -> None:
    watched = tmp_path / "watched"
    watched.mkdir()
    script = (
        "import signal, numpy as np, made_up_problem\n"
        "from sottovoce.lab.problems.trials import LiveObjectives\n"
        "if __name__ == '__main__':\n"
        # whoever runs the tests may have it ignored
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    problem = made_up_problem.MadeUp(mischief='hangs', limit=500.0)\n"
        "    LiveObjectives(problem, 6, 2).values(np.full((6, 1, 2), 0.5))\n"
    )
    (tmp_path / "outer.py").write_text(script)
    environment = os.environ | {"WATCHED": str(watched)}
    command = [sys.executable, str(tmp_path / "outer.py")]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(watched.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    workers = [int(file.name) for file in watched.iterdir()]
    assert workers
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_workers_train_a_problem_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOTTOVOCE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "own.py").write_text(MODULE)
    problem: Any = problem_named(f"{tmp_path}/own.py:MadeUp")
    points = points_for(6)
    with LiveObjectives(problem, 6, 2) as objectives:
        np.testing.assert_allclose(objectives.values(points), expected(points), rtol=1e-12)
