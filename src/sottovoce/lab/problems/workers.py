"""Where trials are trained: in this process, or in worker processes with a time limit.

Workers build the problem's trainer once and compute on one thread each. A batch that raises,
takes too long or kills its worker is tried again trial by trial, so that only the guilty fail.

Symbols: D dimensions, s trials.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sottovoce import plugins
from sottovoce.arrays import FloatArray, IntArray
from sottovoce.device import device_named
from sottovoce.errors import MissingExtra, TrialError, check
from sottovoce.lab.problems.training import Trainer

if TYPE_CHECKING:  # it is made of what is here
    from sottovoce.lab.problems.real import RealProblem

Trained = tuple[IntArray, FloatArray | str]  # which trials; their scores, or why they have none

MOST_BREAKDOWNS = 3  # of the pool, one after the other
GRACE = 60.0  # seconds for a worker to start and read its data
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Bench(Protocol):
    """Where trials are trained."""

    def trained(self, agents: IntArray, points: FloatArray) -> Iterator[Trained]:
        """Every trial once, in any order, as they are finished."""

    def close(self) -> None:
        """End what was started for it."""


class Here:
    """Trains in this process, with no time limit; what goes wrong is raised."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def trained(self, agents: IntArray, points: FloatArray) -> Iterator[Trained]:
        """Batch by batch."""
        for part in _parts(agents.size, self._trainer.batch):
            yield part, np.asarray(self._trainer.scores(agents[part], points[part]))

    def close(self) -> None:
        """Nothing was started."""


class Workers:
    """Trains in processes of its own, which end with it.

    A batch that goes wrong is tried again trial by trial, each with the problem's time limit.
    """

    def __init__(self, problem: RealProblem, batch: int, count: int | None = None) -> None:
        self._count = (os.cpu_count() or 1) if count is None else count
        check(self._count >= 1, "workers must be at least 1", workers=count)
        self._problem, self._batch, self._pool = problem, batch, _Pool()
        # before the end of this process waits for theirs, also where it is a worker itself
        multiprocessing.util.Finalize(self, self._pool.stop, exitpriority=10)

    def trained(self, agents: IntArray, points: FloatArray) -> Iterator[Trained]:
        """In batches, or in smaller ones if that gives every worker something to do."""
        size = max(1, min(self._batch, -(-agents.size // self._count)))
        doubtful = list[IntArray]()
        try:
            for part, outcome in self._run(agents, points, _parts(agents.size, size)):
                if isinstance(outcome, str) and part.size > 1:
                    doubtful += list(part[:, None])
                else:
                    yield part, outcome
            yield from self._run(agents, points, doubtful)
        except BaseException:  # interrupted, say, or nobody wants the rest
            self._pool.stop()
            raise

    def close(self) -> None:
        """Stop the processes; they start again if more is asked for."""
        self._pool.stop()

    def _run(
        self, agents: IntArray, points: FloatArray, parts: list[IntArray]
    ) -> Iterator[Trained]:
        """Each part in a worker, a few ahead of the workers."""
        problem, longest = self._problem, max((part.size for part in parts), default=0)
        patience = GRACE + problem.limit * longest
        queue, waiting, breakdowns = list(reversed(parts)), dict[Future[Any], IntArray](), 0
        while queue or waiting:
            while queue and len(waiting) < 2 * self._count:
                part = queue.pop()
                task = partial(_train, problem, agents[part], points[part])
                pool, seconds = self._pool.started(problem, self._count), problem.limit * part.size
                waiting[pool.schedule(task, timeout=seconds)] = part
            finished, _ = wait(waiting, patience, return_when=FIRST_COMPLETED)
            outcomes = {future: _outcome(future, problem) for future in finished}
            for future, outcome in outcomes.items():
                if outcome is not None:
                    breakdowns = 0
                    yield waiting.pop(future), outcome
            if not finished or any(future in waiting for future in finished):
                # the pool broke down: what it had not done is no trial's fault
                self._pool.stop()
                queue += waiting.values()
                waiting.clear()
                breakdowns += 1
                if breakdowns > MOST_BREAKDOWNS:
                    raise TrialError(f"{problem.name}: the worker processes keep dying")


class _Pool:
    """A pool of processes that can be started again."""

    def __init__(self) -> None:
        self._pool: Any = None

    def started(self, problem: RealProblem, count: int) -> Any:
        if self._pool is None or not self._pool.active:
            self.stop()
            try:
                from pebble import ProcessPool
            except ImportError as error:
                raise MissingExtra("training models live", "experiments") from error
            context = multiprocessing.get_context("spawn")  # the same on every system
            # as bytes: the problem's own file, if it comes from one, is to be loaded first
            known = (plugins.all_loaded(), pickle.dumps(problem))
            self._pool = ProcessPool(count, 0, _prepare, known, context)
        return self._pool

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.stop()
            self._pool.join()
            self._pool = None


@dataclass(frozen=True)
class _NoTrainer:
    """A worker's answer when it cannot train anything at all."""

    reason: str


@cache
def _trainer(problem: RealProblem) -> Trainer:
    """In a worker: made once. What it computes with takes one thread, as workers are many."""
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    trainer = problem.trainer(device_named(None))
    with suppress(ImportError):
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        threadpool_limits(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return trainer


def _prepare(known: list[Path | plugins.Offer], problem: bytes) -> None:
    """In a worker, before the clock of its first trial runs."""
    with suppress(Exception):  # raised again, and told, in that trial
        plugins.load_all(known)
        _trainer(pickle.loads(problem))  # noqa: S301, from the process that started this one


def _train(
    problem: RealProblem, agents: IntArray, points: FloatArray
) -> FloatArray | str | _NoTrainer:
    """In a worker: the scores, or why there are none. Errors go as text, which always can."""
    try:
        trainer = _trainer(problem)
    except Exception as error:
        return _NoTrainer(_told(error))
    try:
        scores = np.asarray(trainer.scores(agents, points), dtype=np.float64)
        check(scores.shape == agents.shape, "scores must be one a trial", shape=scores.shape)
    except Exception as error:
        return _told(error)
    return scores


def _outcome(future: Future[Any], problem: RealProblem) -> FloatArray | str | None:
    """The scores, or why there are none; None if the trials never had their chance."""
    from pebble import ProcessExpired

    if not future.done():
        return None
    try:
        outcome: FloatArray | str | _NoTrainer = future.result()
    except BrokenProcessPool:
        return None
    except TimeoutError:
        return f"it took longer than {problem.limit:g} s"
    except ProcessExpired as error:
        return f"its process died with exit code {error.exitcode}"
    except Exception as error:
        return _told(error)
    if isinstance(outcome, _NoTrainer):
        raise TrialError(f"{problem.name}: no model can be trained: {outcome.reason}")
    return outcome


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _parts(count: int, size: int) -> list[IntArray]:
    return [np.arange(k, min(k + size, count)) for k in range(0, count, size)]
