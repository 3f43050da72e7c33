"""Trials: models trained when they are asked for, each within a time limit.

What the cache on disk knows is not trained again. A trial that raises, takes too long, kills its
process or has no score in [0, 1] has failed: its score is NaN, the reason is kept, and the others
go on.

Symbols: N agents, D dimensions, s trials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.device import device_named
from sottovoce.errors import check
from sottovoce.lab.problems.training import Trainer
from sottovoce.lab.problems.trialcache import Key, TrialCache, trial_key
from sottovoce.lab.problems.workers import Bench, Workers
from sottovoce.space import Space

if TYPE_CHECKING:  # it is made of what is here
    from sottovoce.lab.problems.real import RealProblem

Advance = Callable[[int, int], object]  # trials done, and how many there are


@dataclass(frozen=True)
class Failure:
    """A trial without a score, and why."""

    agent: int
    parameters: dict[str, Any]
    reason: str


class Trials:
    """Scores of trials, from the cache or else from the bench.

    trained: how many models were trained. failures: the trials that have no score.
    """

    def __init__(self, space: Space, cache: TrialCache, bench: Bench) -> None:
        self._space, self._cache, self._bench = space, cache, bench
        self.trained, self.failures = 0, list[Failure]()

    def scores(
        self, agents: IntArray, points: FloatArray, advance: Advance | None = None
    ) -> FloatArray:
        """What is to be maximised, NaN where a trial failed: (s,) and (s, D) -> (s,)."""
        points = np.asarray(self._space.snap(points))
        settings = [self._space.decode(point) for point in points]
        keys = [trial_key(agent, each) for agent, each in zip(agents, settings, strict=True)]
        known = self._cache.get(keys)
        row = {key: k for k, key in enumerate(keys) if key not in known}  # each of them once
        missing = np.fromiter(row.values(), dtype=np.int64, count=len(row))
        if advance is not None:
            advance(len(keys) - missing.size, len(keys))
        done = len(keys) - missing.size
        for part, outcome in self._bench.trained(agents[missing], points[missing]):
            fresh = dict[Key, float]()
            for place, k in enumerate(missing[part]):
                reason = outcome if isinstance(outcome, str) else _doubt(outcome[place])
                if reason is None:
                    fresh[keys[k]] = float(outcome[place])
                else:
                    self.failures.append(Failure(int(agents[k]), settings[k], reason))
            self._cache.put(fresh)
            known.update(fresh)
            self.trained += part.size
            done += part.size
            if advance is not None:
                advance(done, len(keys))
        return np.asarray([known.get(key, np.nan) for key in keys])

    def close(self) -> None:
        """End the bench, and let go of the cache."""
        self._bench.close()
        self._cache.close()


def _doubt(score: float) -> str | None:
    """What is wrong with a score."""
    return None if 0 <= score <= 1 else f"its score must be in [0, 1], got {score:g}"


def cached_as(problem: RealProblem, trainer: Trainer) -> str:
    """What scores are kept under: each training of a model that has chance in it by itself."""
    name = trainer.fingerprint
    return name if problem.training is None else f"{name}-{problem.training}"


class LiveObjectives:
    """The objectives of the first N agents; each value asked for is a model trained."""

    noise = 0.0

    def __init__(
        self,
        problem: RealProblem,
        agents: int,
        workers: int | None = None,
        cache: Path | None = None,
    ) -> None:
        trainer = problem.trainer(device_named(None))
        self._agents = agents
        self.trials = Trials(
            problem.setting.space,
            TrialCache(cached_as(problem, trainer), cache),
            Workers(problem, trainer.batch, workers),
        )

    @property
    def optimum(self) -> FloatArray:
        """No score is above 1."""
        return np.ones(self._agents)

    @property
    def failures(self) -> list[Failure]:
        """The trials that have failed so far."""
        return self.trials.failures

    def values(self, points: FloatArray) -> FloatArray:
        """The scores at the points, NaN where a trial failed: (N, s, D) -> (N, s)."""
        count, each = points.shape[:2]
        check(count == self._agents, f"points must be for {self._agents} agents", agents=count)
        agents = np.repeat(np.arange(count), each)
        return self.trials.scores(agents, points.reshape(count * each, -1)).reshape(count, each)

    def close(self) -> None:
        """Stop the workers."""
        self.trials.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
