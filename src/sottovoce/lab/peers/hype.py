"""DP-Hype (PoPETs 2026), from its description: sites vote for parameters, one noised count decides.

There is a public list of as many candidates as a site has trials. Each site tries them all and
votes for its best five. The votes are counted, the counts are released once with Gaussian noise,
and the candidate with the most votes is everybody's. A vote is a vector of zeros and at most five
ones: its norm is at most √5, which is how far the counts move when a site's vote is replaced by
zero (zero-out adjacency). The release and its event are those of `privacy`.

Symbols: N agents, K candidates, D dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import check
from sottovoce.privacy.budget import noise_for
from sottovoce.privacy.events import Event, SubsampledGaussian
from sottovoce.privacy.noise import Seeded
from sottovoce.privacy.release import Mechanism, release
from sottovoce.simulation import Draws
from sottovoce.simulation.problem import Problem

FloatArray = NDArray[np.float64]
VOTES = 5


@dataclass(frozen=True)
class HypeResult:
    """What came of it: each site's regret where all go, (N,), and what was spent."""

    regret: FloatArray
    chosen: FloatArray  # (D,)
    event: Event


def votes(observed: FloatArray, count: int = VOTES) -> FloatArray:
    """Ones for each site's best `count` candidates that did not fail: (N, K) -> (N, K)."""
    known = np.isfinite(observed)
    order = np.argsort(np.where(known, -observed, np.inf), axis=1, kind="stable")
    ballot = np.zeros_like(observed)
    np.put_along_axis(ballot, order[:, :count], 1.0, axis=1)
    return np.asarray(np.where(known, ballot, 0.0))


def mechanism(noise: float) -> Mechanism:
    """Everybody votes; what one moves is at most √5."""
    return Mechanism(clip=math.sqrt(VOTES), participation=1.0, noise=noise)


@lru_cache(maxsize=32)
def noise_within(epsilon: float, delta: float) -> float:
    """The noise with which one release keeps within ε."""
    return noise_for(epsilon, delta, SubsampledGaussian(1.0, 1.0, 2), rounds=1)


def dp_hype(
    problem: Problem, agents: int, candidates: int, noise: float, draws: Draws
) -> HypeResult:
    """One vote of all agents on the candidates that the draws list."""
    check(candidates >= 1, "candidates must be at least 1", candidates=candidates)
    space = problem.setting.space
    objectives = problem.draw(agents, draws.stream("objectives"))
    u = draws.stream("candidates").random((candidates, space.dims))
    points = np.asarray(space.snap(u))
    truth = objectives.values(
        np.ascontiguousarray(np.broadcast_to(points, (agents, *points.shape)))
    )
    error = draws.stream("observation").standard_normal(truth.shape)
    ballots = votes(truth + objectives.noise * error)
    source = Seeded(draws.seed_for("server"))
    published = release(ballots, np.full((1, agents), 1 / agents), mechanism(noise), source)
    best = int(np.argmax(published.vectors[0]))
    regret = objectives.optimum - truth[:, best]
    worst = np.nanmax(objectives.optimum[:, None] - truth)
    return HypeResult(np.where(np.isnan(regret), worst, regret), points[best], published.event)
