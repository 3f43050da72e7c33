"""Runs on a cluster: what can go wrong before one is reached."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from sottovoce.errors import InvalidInput, MissingExtra
from sottovoce.lab.experiments.cluster import computed
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.runner import run_all, run_one
from sottovoce.lab.experiments.store import Store
from sottovoce.lab.experiments.tasks import Task
from sottovoce.lab.problems import problem_named

CONFIG = RunConfig("branin", "ts", 2, 1, runs=1)


def task(folder: Path) -> Task:
    store = Store(folder, CONFIG.study(), CONFIG.problem, CONFIG.seed, None)
    return Task(store, problem_named("branin"), 0)


def test_a_machine_with_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"every machine must have sottovoce 0\.0\.0, one has"):
        computed(task(tmp_path), "0.0.0", [])


def test_a_machine_computes_what_this_process_would_and_writes_nothing(tmp_path: Path) -> None:
    from sottovoce import __version__

    one = task(tmp_path)
    result = computed(one, __version__, [])
    assert np.array_equal(result.points, run_one(CONFIG, 0).points)
    assert one.store.missing(1) == [0]


def test_without_ray_it_is_said_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match="rehearsal"):
        run_all(CONFIG, tmp_path, cluster="127.0.0.1:1")
