"""Runs as tasks: one at a time, or on several processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sottovoce import plugins
from sottovoce.errors import TrialError, check
from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.experiments.cluster import THREADS, on_cluster
from sottovoce.lab.experiments.store import RunResult, Store
from sottovoce.lab.problems import Problem
from sottovoce.privacy.events import Event
from sottovoce.simulation import Draws, Outcome, simulate

RunCallback = Callable[[int, int, list[Event]], None]  # run, round, what the run has released
Advance = Callable[[int, int, str], None]  # runs done, runs to do, what was just done


def run_study(
    study: FederatedStudy,
    problem: Problem,
    seed: int,
    run: int,
    callback: RunCallback | None = None,
    device: str | None = None,
    starts: int = 1,
) -> RunResult:
    """One run of a study, by its number; a device makes its own draws."""
    began = time.perf_counter()
    watch = None if callback is None else partial(callback, run)
    draws = Draws(seed, run, on_device=device is not None, starts=starts)
    outcome = simulate(study, problem, draws, watch, device=device)
    return _kept(outcome, time.perf_counter() - began)


def _kept(outcome: Outcome, seconds: float) -> RunResult:
    if not np.all(np.isfinite(outcome.simple_regret)):
        raise TrialError("every initial trial of every agent failed: there is nothing to go on")
    return RunResult(
        outcome.simple_regret,
        outcome.points,
        outcome.observed,
        np.asarray([d.clipped for d in outcome.diagnostics]),
        np.asarray([d.signal_to_noise for d in outcome.diagnostics]),
        np.asarray(seconds),
    )


@dataclass(frozen=True)
class Task:
    """One run that is missing. Carries values, not names, so that any method can be run."""

    store: Store
    problem: Problem
    run: int

    def __call__(self) -> str:
        """Run it and keep the result."""
        return self.kept(self.compute())

    def compute(self) -> RunResult:
        """Run it."""
        study, seed = self.store.study, self.store.seed
        device, starts = self.store.device, self.store.starts
        return run_study(study, self.problem, seed, self.run, device=device, starts=starts)

    def kept(self, result: RunResult) -> str:
        """Keep the result, and say whose it is."""
        self.store.write(self.run, result)
        return f"{self.store.study.method.name}, run {self.run + 1}"


def run_tasks(
    tasks: list[Task], jobs: int, advance: Advance | None = None, cluster: str | None = None
) -> None:
    """Run them all, `jobs` at a time, or on a cluster's machines."""
    check(jobs >= 1, "jobs must be at least 1", jobs=jobs)
    if cluster is not None and tasks:
        each = on_cluster(tasks, cluster)
    else:
        each = _one_by_one(tasks) if jobs == 1 or len(tasks) < 2 else _pooled(tasks, jobs)
    for done, said in enumerate(each, 1):
        if advance is not None:
            advance(done, len(tasks), said)


def _one_by_one(tasks: list[Task]) -> Iterator[str]:
    for task in tasks:
        yield task()


def _pooled(tasks: list[Task], jobs: int) -> Iterator[str]:
    context = multiprocessing.get_context("spawn")  # the same on every system
    known = (plugins.all_loaded(),)
    with _single_threaded(), ProcessPoolExecutor(jobs, context, _begin, known) as pool:
        waiting = {pool.submit(task) for task in tasks}
        try:
            while waiting:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(known: list[Path | plugins.Offer]) -> None:
    """In a worker, before its first task, which may be of a plugin's making."""
    _end_with_parent()
    plugins.load_all(known)


def _end_with_parent() -> None:
    """In a worker: a killed command cannot tell its workers, which would wait for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes started meanwhile compute on one thread each, or they would crowd each other."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
