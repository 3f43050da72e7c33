"""What functions of tuning usually look like, before anybody has tried anything.

Public functions and tables of trained models, the DESIGN families of the suite, were each fitted by
main effects and pairs (`gp.effects`), after standardising. What carries over to a space that is new
is what parameters of a kind have in common: numbers, numbers on a log scale, choices. So a wave of
order k of such a parameter, or a pair, has here the mean and the variance that it had over
families, half of the weight being that of models trained. The mean is 0 where turning a parameter
round would change its sign, and of choices, whose names say nothing. It knows that edges are seldom
best and that low orders weigh more; it cannot know which parameter matters, nor where. These are
constants of the method, the same for everybody, and tell nothing of anybody's data.
`benchmarks/usual.py` makes the table.

Symbols: M features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.errors import check
from sottovoce.gp.effects import Effects
from sottovoce.space import Category, Space

Kind: TypeAlias = tuple[tuple[str, int], ...]  # of a feature: its factors' kinds and orders
Table: TypeAlias = dict[Kind, tuple[float, float, int]]  # mean, mean square, families

FAMILIES = 2.0  # that the flat prior counts as, beside those of the table


class Usual(NamedTuple):
    """Mean and variance of each feature's weight, (M,), before anything is heard."""

    mean: FloatArray
    variance: FloatArray


def flat_weights(count: int, variance: float) -> Usual:
    """Where nothing is known of any."""
    check(0 < variance < np.inf, "the shared prior must be above 0", shared=variance)
    return Usual(np.zeros(count), np.full(count, variance))


def usual_weights(kinds: Sequence[Kind], variance: float, table: Table | None = None) -> Usual:
    """By kind: what the table says, and the flat prior's variance as that of a few families."""
    known = WEIGHTS if table is None else table
    rows = [known.get(kind, (0.0, 0.0, 0)) for kind in kinds]
    mean, square, families = np.asarray(rows, dtype=np.float64).T
    whole = families + FAMILIES
    spread = families * (square - mean**2) + FAMILIES * variance
    return Usual(mean * families / whole, spread / whole)


def kinds_of(space: Space, effects: Effects) -> list[Kind]:
    """Which kind each feature is of, (M,)."""
    words = list[str]()
    for p in space.parameters:
        words += ["choice" if isinstance(p, Category) else "log" if p.log else "number"]
    orders = zip(effects.parameter.tolist(), effects.order.tolist(), strict=True)
    waves = [(words[parameter], order) for parameter, order in orders]
    none = len(waves)
    pairs = zip(effects.first.tolist(), effects.second.tolist(), strict=True)
    return [tuple(sorted(waves[i] for i in pair if i != none)) for pair in pairs]


def even(kind: Kind) -> bool:
    """Whether a feature of that kind stays what it is if its parameters are turned round."""
    return all(order > 0 and order % 2 == 0 for _, order in kind)


WEIGHTS: Table = {
    (("choice", 0),): (0.0, 0.457, 5),
    (("choice", 0), ("choice", 0)): (0.0, 0.16, 4),
    (("choice", 0), ("log", 1)): (0.0, 0.522, 4),
    (("choice", 0), ("log", 2)): (0.0, 0.367, 4),
    (("choice", 0), ("number", 1)): (0.0, 0.04, 3),
    (("choice", 0), ("number", 2)): (0.0, 0.007, 3),
    (("log", 1),): (0.0, 1.483, 10),
    (("log", 1), ("log", 1)): (0.0, 0.756, 6),
    (("log", 1), ("log", 2)): (0.0, 1.057, 6),
    (("log", 1), ("number", 1)): (0.0, 0.512, 8),
    (("log", 1), ("number", 2)): (0.0, 0.235, 8),
    (("log", 2),): (-1.96, 4.851, 10),
    (("log", 2), ("log", 2)): (1.554, 3.1, 6),
    (("log", 2), ("number", 1)): (0.0, 0.374, 8),
    (("log", 2), ("number", 2)): (0.356, 0.41, 8),
    (("log", 3),): (0.0, 0.908, 10),
    (("log", 4),): (-0.306, 1.147, 10),
    (("number", 1),): (0.0, 0.389, 17),
    (("number", 1), ("number", 1)): (0.0, 0.252, 14),
    (("number", 1), ("number", 2)): (0.0, 0.285, 14),
    (("number", 2),): (-0.657, 1.096, 17),
    (("number", 2), ("number", 2)): (0.15, 1.24, 14),
    (("number", 3),): (0.0, 0.392, 17),
    (("number", 4),): (-0.325, 0.682, 17),
}
