"""Which point an agent tries next.

An acquisition is a function of a batch and a query's number t that gives each agent's next query,
in the form of its search domain: ``@ACQUISITIONS.register("name")``.

Symbols: n agents of the batch; p_t chance of searching alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from sottovoce.acquisition.improvement import LogImprovement
from sottovoce.acquisition.joint import shared_fraction
from sottovoce.arrays import Array
from sottovoce.federation import draws
from sottovoce.federation.parts.registry import Registry

if TYPE_CHECKING:
    from sottovoce.federation.batch import Batch

Acquisition = Callable[["Batch", int], Array]
ACQUISITIONS = Registry[Acquisition]("acquisition")

Query = Callable[[Array], Array]  # for the agents that a mask (n,) names


@ACQUISITIONS.register("thompson")
def thompson(batch: Batch, t: int) -> Array:
    """With chance p_t where a draw of the own posterior is largest, else where the shared one is.

    While nothing is shared, always the former. The paper's.
    """
    if not batch.shared.guides(t):
        return batch.domain.own(t, batch.everyone)
    alone = _coins(batch, t) <= batch.study.method.solo_probability(t)
    return _merged(batch, (alone, lambda m: batch.domain.own(t, m)), (~alone, _follow(batch, t)))


@ACQUISITIONS.register("joint-thompson")
def joint_thompson(batch: Batch, t: int) -> Array:
    """With chance p_t alone; else, with equal chances, by the shared posterior or the joint one.

    With a trust gate, who would go by the shared posterior goes alone instead, unless its own
    values bear that function out.
    """
    if not batch.shared.guides(t):
        return batch.domain.own(t, batch.everyone)
    coins, solo = _coins(batch, t), batch.study.method.solo_probability(t)
    near = 0.5 * (1.0 + solo)
    alone, follow = coins <= solo, coins > near
    jointly = ~(alone | follow)
    if batch.study.method.trust_gate and bool(batch.xp.any(follow)):
        opens = coins > _gate(batch, t, near)
        alone, follow = alone | (follow & ~opens), follow & opens
    return _merged(
        batch,
        (alone, lambda m: batch.domain.own(t, m)),
        (follow, _follow(batch, t)),
        (jointly, lambda m: batch.domain.joint(t, m)),
    )


@ACQUISITIONS.register("log-ei")
def log_expected_improvement(batch: Batch, t: int) -> Array:
    """Where the own model expects most improvement over its best posterior mean, by its logarithm.

    The model has a length scale for each parameter, learns from failed trials where not to go, and
    knows of running ones.
    """
    model, failed = batch.predictive()
    improvement = LogImprovement(model, failed)
    return batch.domain.largest(t, improvement, improvement.incumbent)


def _coins(batch: Batch, t: int) -> Array:
    (coins,) = batch.draw(draws.COIN, t, lambda random, n: (random.random(n),))
    return coins


def _follow(batch: Batch, t: int) -> Query:
    return lambda mask: batch.domain.shared(t, batch.shared.weights(batch, t), mask)


def _gate(batch: Batch, t: int, near: float) -> Array:
    """Above which coin each agent goes by the shared posterior, (n,).

    In proportion to how much of its function it takes to be shared; the fewer values it has, the
    less they count: with chance 1/√t at least it follows as if there were no gate.
    """
    shared = batch.shared.mean_function()
    fraction = shared_fraction(batch.joint_kernel(), batch.domain.points(), batch.raw(), shared)
    least = batch.xp.full_like(fraction, 1.0 / math.sqrt(t))
    return 1.0 - (1.0 - near) * batch.xp.maximum(fraction, least)


def _merged(batch: Batch, *queries: tuple[Array, Query]) -> Array:
    """Each agent's query from the one part whose mask names it."""
    chosen = batch.xp.empty_like(batch.trials.where[:, 0])
    for mask, query in queries:
        if bool(batch.xp.any(mask)):
            chosen[mask] = query(mask)
    return chosen
