"""How the table of `gp.usual` is made: what the DESIGN families' functions look like, by kind.

Each function, on its own space, is fitted by main effects and pairs, after its agents' values are
standardised and meaned. A family counts once, however many parameters of a kind it has, or
problems; made-up functions count half in all, and models that were trained the other half.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.federation.methods import GP
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.quasirandom import quasirandom_points
from sottovoce.gp.usual import Kind, Table, even, kinds_of
from sottovoce.gp.warp import warped
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.suite import LEARNERS, problems
from sottovoce.simulation import Draws

POINTS = 512
AGENTS = 16
_Found: TypeAlias = dict[str, list[tuple[float, float]]]  # mean and mean square, by family
RIDGE = 1.0  # in units of one point: functions have more than main effects and pairs


def fitted_weights(problem: str) -> tuple[list[Kind], FloatArray]:
    """The weights (M,) with which a problem's function is a sum of its effects, and their kinds."""
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


def table_without(family: str = "", names: Iterable[str] | None = None) -> Table:
    """What DESIGN families have had as weights, by kind; one of them may be left out."""
    found = defaultdict[Kind, _Found](lambda: defaultdict(list))
    for problem in problems("design") if names is None else names:
        one = problem.partition(":")[0]
        if one == family:
            continue
        kinds, weights = fitted_weights(problem)
        for kind in set(kinds):
            own = weights[[k == kind for k in kinds]]
            mean = float(own.mean()) if even(kind) else 0.0
            found[kind][one].append((mean, float(np.mean(own**2))))
    return {kind: (*_mean(of), len(of)) for kind, of in found.items()}


def _mean(found: _Found) -> tuple[float, float]:
    """Over problems, over families, over functions and models."""
    groups: dict[bool, list[FloatArray]] = {}
    for family, pairs in found.items():
        groups.setdefault(family in LEARNERS["design"], []).append(np.mean(pairs, axis=0))
    mean, square = np.mean([np.mean(each, axis=0) for each in groups.values()], axis=0)
    return float(mean), float(square)
