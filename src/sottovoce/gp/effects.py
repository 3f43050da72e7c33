"""Main effects and pairs: a small basis in which a function of few of its parameters is short.

Symbols: D coordinates, A parameters, M features, G traits, B batch, S points. A number x in [0, 1]
has waves √2 cos(πkx), k = 1, 2, ...; a choice among K has K columns (K·1[it is j] − 1)/√(K − 1).
All have mean 0 and variance 1 over the cube. A feature is a wave or column of one parameter (a main
effect), or a product of two of different parameters (a pair), times the root of the variance that
is expected of it: e_k = 1/k² of a main effect, but 4⁴/k⁶ from order 4 on, 0.35 e_k e_l of a pair,
1/K for a column in place of e_k. All variances add up to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from array_api_compat import device
from numpy.typing import NDArray

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import check
from sottovoce.gp.matern import Coordinates

_PAIRS = 0.35  # variance of a pair, in units of that of two main effects
_ORDERS = ((4, 2), (4, 1), (4, 0), (3, 0), (2, 0), (1, 0))  # of main effects, of pairs
MOST = 256  # features, as long as one of each parameter fits
_COARSE, _FALL = 4, 4  # waves above that order have less variance, by that power
_FINE = ((6, 4), (6, 3), (5, 3), (4, 3))
_MOST_FINE = 48  # features, to be finer than usual: each is one more to be told through noise


@dataclass(frozen=True)
class Effects:
    """The map φ. Each feature is a product of two waves or columns; the empty one is 1.

    wave (W,) is a coordinate for each, order (W,) its k, or 0 for a choice's column; W is
    the number of waves and columns, and number W is the empty one; parameter (W,) is whose it is.
    first, second (M,) are the two factors of each feature, variance (M,) what is expected of it.
    """

    wave: NDArray[np.int64]
    parameter: NDArray[np.int64]
    order: NDArray[np.int64]
    choices: NDArray[np.int64]  # (W,) K, of a column
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    variance: NDArray[np.float64]

    @property
    def count(self) -> int:
        """M, the number of features."""
        return len(self.variance)

    @cached_property
    def traits(self) -> NDArray[np.float64]:
        """How often each feature has what its variance may depend on, (G, M).

        A row for each parameter that it may be of; one for pairs; one for each order above 1.
        """
        of, order = np.append(self.parameter, -1), np.append(self.order, -1)
        rows = [of == a for a in range(of.max() + 1)] + [of >= 0]
        rows += [order == k for k in range(2, order.max() + 1)]
        each = np.asarray(rows, dtype=np.float64)
        counts = each[:, self.first] + each[:, self.second]
        counts[of.max() + 1] -= 1.0  # every feature has one factor, a pair another
        return counts

    def __call__(self, x: Array) -> Array:
        """φ(x): (..., D) -> (..., M)."""
        return self.at(x).values

    def at(self, x: Array) -> EffectsAt:
        """φ at x (..., D), and what its gradient is made of."""
        xp, held = array_namespace(x), self._held_for(x)
        at = xp.take(x, held.wave, axis=-1)
        angle = held.rate * at
        values = math.sqrt(2.0) * xp.cos(angle)
        if held.choices is not None:
            column = (held.choices * at - 1.0) / held.width
            values = xp.where(held.rate > 0, values, column)
        factor = xp.concat([values, xp.ones_like(x[..., :1])], axis=-1)
        first, second = (xp.take(factor, part, axis=-1) for part in (held.first, held.second))
        return EffectsAt(held, angle, first, second)

    def _held_for(self, x: Array) -> _Held:
        """Its constants as arrays of x's kind, made once for each: x may be climbed for long."""
        key = type(x), x.dtype, device(x)
        if key not in self._made:
            self._made[key] = _Held.of(self, x)
        return self._made[key]

    @cached_property
    def _made(self) -> dict[Any, _Held]:
        return {}

    @cached_property
    def owners(self) -> NDArray[np.float64]:
        """Which wave is the first, and the second, of each feature: (2, M, W) of 0 and 1."""
        every = np.arange(len(self.wave))
        return np.stack([(each[:, None] == every) * 1.0 for each in (self.first, self.second)])

    @cached_property
    def coordinates(self) -> NDArray[np.float64]:
        """Which coordinate each wave is of: (W, D) of 0 and 1."""
        return np.asarray((self.wave[:, None] == np.arange(self.wave.max() + 1)) * 1.0)


@dataclass(frozen=True, eq=False)
class _Held:
    """The constants of a basis, on one device; rate is πk of a wave, 0 of a column."""

    wave: Array
    first: Array
    second: Array
    rate: Array
    choices: Array | None  # None: there are none
    width: Array  # √(K − 1) of a column
    root: Array
    owners: Array
    coordinates: Array

    @classmethod
    def of(cls, basis: Effects, like: Array) -> _Held:
        """As arrays like that one."""
        xp = array_namespace(like)

        def held(values: Any) -> Array:
            return xp.asarray(values, dtype=like.dtype, device=device(like))

        indices = (basis.wave, basis.first, basis.second)
        wave, first, second = (xp.asarray(each, device=device(like)) for each in indices)
        some = bool(np.any(basis.order == 0))
        return cls(
            wave=wave,
            first=first,
            second=second,
            rate=held(math.pi * basis.order),
            choices=held(basis.choices) if some else None,
            width=held(np.sqrt(np.maximum(basis.choices - 1.0, 1.0))),
            root=held(np.sqrt(basis.variance)),
            owners=held(basis.owners),
            coordinates=held(basis.coordinates),
        )


@dataclass(frozen=True, eq=False)
class EffectsAt:
    """φ at points (..., D), kept for its gradient: each is first · second · root.

    angle (..., W) of each wave; first, second (..., M).
    """

    held: _Held
    angle: Array
    first: Array
    second: Array

    @property
    def values(self) -> Array:
        """φ(x), (..., M)."""
        return self.first * self.second * self.held.root

    def pull(self, weights: Array) -> Array:
        """The gradient of φ(x)ᵀw in x: w (..., M) -> (..., D).

        In the numbers alone: a choice is not moved by gradients.
        """
        xp, held = array_namespace(weights), self.held
        weighed = weights * held.root
        by_wave = xp.matmul(weighed * self.second, held.owners[0])
        by_wave = by_wave + xp.matmul(weighed * self.first, held.owners[1])
        slope = -math.sqrt(2.0) * held.rate * xp.sin(self.angle)
        return xp.matmul(by_wave * slope, held.coordinates)


def effects(coordinates: Coordinates, fine: bool = False) -> Effects:
    """As many main effects and pairs of the parameters as there is room for.

    fine: what many agents know together has more detail, where there are few parameters.
    """
    widths = [coordinates.owner.count(a) for a in range(coordinates.parameters)]
    check(len(widths) >= 1, "a basis needs a parameter")
    ladder = [(orders, MOST) for orders in _ORDERS]
    for orders, most in [(orders, _MOST_FINE) for orders in _FINE] * fine + ladder:
        found = _listed(widths, *orders)
        if found.count <= most:
            break
    return found


def _expected(order: int) -> float:
    """Of a wave's variance, beside that of the first: what has much detail is rare."""
    return float(min(1.0, (_COARSE / order) ** _FALL) / order**2)


def _listed(widths: list[int], highest: int, together: int) -> Effects:
    wave: list[tuple[int, int, int, int]] = []  # coordinate, parameter, order, choices
    size: list[float] = []
    mine: list[list[int]] = []  # of each parameter, its waves and columns
    start = 0
    for a, width in enumerate(widths):
        numbers = range(1, highest + 1) if width == 1 else [0] * width
        own = [(start + (j if width > 1 else 0), a, k, width) for j, k in enumerate(numbers)]
        mine.append(list(range(len(wave), len(wave) + len(own))))
        wave += own
        size += [_expected(k) if k else 1.0 / width for *_, k, _ in own]
        start += width
    none = len(wave)
    features = [(i, none, size[i]) for own in mine for i in own]
    low = [[i for i in own if wave[i][2] <= together] for own in mine]
    for one, other in combinations(low if together else [], 2):
        features += [(i, j, _PAIRS * size[i] * size[j]) for i in one for j in other]
    variance = np.asarray([v for *_, v in features])
    at, parameter, order, choices = (np.asarray(c, dtype=np.int64) for c in zip(*wave, strict=True))
    first, second = (np.asarray([f[k] for f in features], dtype=np.int64) for k in (0, 1))
    return Effects(at, parameter, order, choices, first, second, variance / variance.sum())
