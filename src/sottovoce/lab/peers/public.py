"""A public warm start: what other families' functions teach of a space that they never saw.

Nothing is sent, ε = 0. The functions of the suite's DESIGN families are public. Each, on its own
space, is fitted by main effects and pairs (`gp.effects`), after its agents' values are standardised
and meaned. For a space that is new, all that carries over is what parameters of a kind have in
common: numbers, numbers on a log scale, choices. So the weight of a wave of order k of such a
parameter, or of a pair, has the mean and the variance that it has over families, for all
parameters of that kind alike; a choice's columns have a mean of 0, as their order says nothing.
This stands where the broadcasts would: agents trust it as far as their own values bear it out. It
knows that edges are seldom best and that low orders weigh more; it cannot know which
parameter matters, nor where. The family that is searched is left out.

Symbols: M features, F families.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.device import NUMPY, Device
from sottovoce.federation.methods import GP, Method
from sottovoce.federation.parts.shared_models import SHARED_MODELS, ConsensusModel
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.consensus import State
from sottovoce.gp.effects import Effects
from sottovoce.gp.quasirandom import quasirandom_points
from sottovoce.gp.warp import warped
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.suite import problems
from sottovoce.simulation import Draws
from sottovoce.space import Category, Space

POINTS = 512
AGENTS = 16
RIDGE = 1.0  # in units of one point: functions have more than main effects and pairs
USUAL = 2.0  # families that the model's own prior counts as

Kind: TypeAlias = tuple[tuple[str, int], ...]  # of a feature: its factors' kinds and orders
Weights: TypeAlias = dict[Kind, list[float]]


def kinds_of(space: Space, effects: Effects) -> list[Kind]:
    """Which kind each feature is of, (M,)."""
    kinds = list[str]()
    for p in space.parameters:
        word = "choice" if isinstance(p, Category) else "log" if p.log else "number"
        kinds += [word] * p.width
    waves = [
        (kinds[at], int(k)) for at, k in zip(effects.wave.tolist(), effects.order, strict=True)
    ]
    none = len(waves)
    pairs = zip(effects.first.tolist(), effects.second.tolist(), strict=True)
    return [tuple(sorted(waves[i] for i in pair if i != none)) for pair in pairs]


def fitted_weights(problem: str) -> tuple[list[Kind], FloatArray]:
    """The weights (M,) with which a family's function is a sum of its effects, and their kinds."""
    space = problem_named(problem).setting.space
    study = FederatedStudy(space, GP, agents=1, rounds=1)
    objectives = problem_named(problem).draw(AGENTS, Draws(0, 0).stream("objectives"))
    u = quasirandom_points(b"sottovoce/public/v1", POINTS, space.dims)
    points = np.asarray(space.snap(u))
    values = objectives.values(np.ascontiguousarray(np.broadcast_to(points, (AGENTS, *u.shape))))
    mask = np.isfinite(values)
    y = np.asarray(warped(values, mask))
    count = mask.sum(axis=0)
    mean = np.where(mask, y, 0.0).sum(axis=0) / np.maximum(count, 1)
    rows = np.asarray(study.effects(points))[count > 0]
    gram = rows.T @ rows + RIDGE * np.eye(rows.shape[1])
    return kinds_of(space, study.effects), np.linalg.solve(gram, rows.T @ mean[count > 0])


@lru_cache(maxsize=32)
def known_weights(family: str) -> Weights:
    """What all DESIGN families but one have had as weights, by kind: a mean of each family's."""
    found = defaultdict[Kind, list[float]](list)
    second = defaultdict[Kind, list[float]](list)
    for problem in problems("design"):
        if problem.partition(":")[0] == family:
            continue
        kinds, weights = fitted_weights(problem)
        for kind in set(kinds):
            own = weights[[k == kind for k in kinds]]
            even = any(name == "choice" for name, _ in kind)
            found[kind].append(0.0 if even else float(own.mean()))
            second[kind].append(float(np.mean(own**2)))
    return {kind: [float(np.mean(found[kind])), *second[kind]] for kind in found}


def public_state(study: FederatedStudy, family: str) -> State:
    """What may be taken for likely of the effects of that study's space, (M,) and (M, M)."""
    known, usual = known_weights(family), study.method.shared_variance
    mean, variance = list[float](), list[float]()
    for kind in kinds_of(study.space, study.effects):
        centre, *squares = known.get(kind, [0.0])
        mean.append(centre * len(squares) / (len(squares) + USUAL))
        spread = sum(squares) - len(squares) * centre**2 + USUAL * usual
        variance.append(max(spread, 0.0) / (len(squares) + USUAL))
    count = len(mean)
    nothing_told = np.zeros((count, count)), np.zeros(count)
    return State(np.asarray(mean), np.diag(variance), *nothing_told)


class PublicModel(ConsensusModel):
    """A consensus that was there before anybody spoke, and stays."""

    exchanges = False
    summed = False
    family = ""

    def __init__(self, study: FederatedStudy, device: Device = NUMPY) -> None:
        super().__init__(study, device)
        self._public = public_state(study, self.family)
        self._vectors = np.zeros((1, study.method.features))  # as if it had been heard

    def state(self, releases: int | None = None) -> State:
        """The same for ever."""
        return self._public


def public_model(problem: str) -> str:
    """The name of the shared model that knows nothing of that problem's family."""
    family = problem.partition(":")[0]
    name = f"public, without {family}"
    if name not in SHARED_MODELS.names:
        SHARED_MODELS.register(name)(type("PublicModel", (PublicModel,), {"family": family}))
    return name


def warm_started(method: Method, problem: str) -> Method:
    """The method with what is public in place of what agents would send."""
    return replace(
        method, name=f"{method.name}-public", shared_model=public_model(problem), mechanism=None
    )
