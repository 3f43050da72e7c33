"""Where a drawn function is largest: over a finite set, a box, or the boxes of the regions.

Symbols: B batch, K candidates, S starts, D dimensions, M features, P regions; φ features of unit
norm, ω^(i) weights of region i, i[x] the region x lies in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from array_api_compat import device

from sottovoce.arrays import Array, array_namespace
from sottovoce.gp.features import Features, cosine, cosine_and_sine, in_blocks
from sottovoce.optim.bfgs import ascend
from sottovoce.space.regions import Regions

_ITERATIONS = 60
# in units of the spread of the candidates' values
_TOLERANCE = 1e-9
_LEVEL = 1e-7


class Drawn(Protocol):
    """A function drawn for each batch entry, with its gradient."""

    def values(self, x: Array) -> Array:
        """(B, K, D) -> (B, K)."""

    def values_and_gradients(self, x: Array) -> tuple[Array, Array]:
        """(B, K, D) -> (B, K) and (B, K, D)."""


def over_points(values: Array) -> Array:
    """The index of the largest value, the first of them on a tie: (..., K) -> (...)."""
    xp = array_namespace(values)
    return xp.argmax(values, axis=-1)


@dataclass(frozen=True)
class RegionalDraw:
    """The broadcast as a function of x: φ(x)ᵀω^(i[x]).

    weights ω: (B, P, M), or (P, M) where the whole batch shares them.
    """

    features: Features
    regions: Regions
    weights: Array
    _parts: tuple[Array, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        w = self.weights
        xp = array_namespace(w)
        frequencies = xp.asarray(self.features.frequencies, dtype=w.dtype, device=device(w))
        phases = xp.asarray(self.features.phases, dtype=w.dtype, device=device(w))
        parts = (0.5 * frequencies.T, 0.5 * phases, frequencies, xp.matrix_transpose(w))
        object.__setattr__(self, "_parts", parts)

    def values(self, x: Array) -> Array:
        """The function at x: (B, K, D) -> (B, K)."""
        xp = array_namespace(x)
        every = in_blocks(self._part, x)
        if self.regions.count > 1:
            every = xp.take_along_axis(every, self.regions.index(x)[..., None], axis=2)
        return every[..., 0]

    def _part(self, entries: slice) -> Callable[[Array], Array]:
        """For some entries of the batch, φ(x)ᵀω^(i) for every i: (b, K, D) -> (b, K, P)."""
        half_frequencies, half_phases, _, weights = self._parts
        xp = array_namespace(weights)
        own = weights if weights.ndim == 2 else weights[entries]

        def values(x: Array) -> Array:
            half = xp.matmul(x, half_frequencies)
            half += half_phases
            wave = cosine(half, xp)
            return xp.matmul(wave, own) / _norm(wave, xp)[..., None]

        return values

    def values_and_gradients(self, x: Array) -> tuple[Array, Array]:
        """The function and its gradient inside each point's region: (B, K), (B, K, D)."""
        return self.inside(self.regions.index(x))(x)

    def inside(self, region: Array) -> Callable[[Array], tuple[Array, Array]]:
        """`values_and_gradients` for points known to lie in these regions, (B, K)."""
        w = self.weights
        if self.regions.count == 1:
            return partial(self._smooth, w)
        xp = array_namespace(w)
        if w.ndim == 3:
            # the batch's (B, P, M) as one table of B·P rows
            entries = xp.arange(w.shape[0], dtype=region.dtype, device=device(region))
            region = region + self.regions.count * entries[:, None]
        return partial(self._smooth, _rows(xp.reshape(w, (-1, w.shape[-1])), region, xp))

    def _smooth(self, w: Array, x: Array) -> tuple[Array, Array]:
        """φ(x)ᵀw and its gradient; w (B, K, M) or with 1 for B or K."""
        xp = array_namespace(x)
        half_frequencies, half_phases, frequencies, _ = self._parts
        half = xp.matmul(x, half_frequencies)
        half += half_phases
        wave, sine = cosine_and_sine(half, xp)
        norm = _norm(wave, xp)[..., None]
        wave /= norm
        value = xp.vecdot(w, wave)
        # with c̄ = cos/‖cos‖ the gradient is −Σ_j (w_j − (w·c̄) c̄_j) sin_j s_j / ‖cos‖
        sine *= w - value[..., None] * wave
        return value, xp.matmul(sine, frequencies) / -norm


@dataclass(frozen=True)
class JointDraw:
    """An agent's own part plus a factor (B,) times a shared function."""

    own: Drawn
    shared: Drawn
    factor: Array

    def values(self, x: Array) -> Array:
        """(B, K, D) -> (B, K)."""
        return self.own.values(x) + self.factor[:, None] * self.shared.values(x)

    def values_and_gradients(self, x: Array) -> tuple[Array, Array]:
        """(B, K, D) -> (B, K) and (B, K, D)."""
        value, slope = self.own.values_and_gradients(x)
        other, towards = self.shared.values_and_gradients(x)
        factor = self.factor[:, None]
        return value + factor * other, slope + factor[..., None] * towards


def _norm(wave: Array, xp: Any) -> Array:
    """‖wave‖, (..., M) -> (...), or 1 in the case, never met by chance, that it is zero."""
    square = xp.vecdot(wave, wave)
    return xp.sqrt(xp.where(square > 0, square, 1.0))


def _rows(table: Array, index: Array, xp: Any) -> Array:
    """table[index]: (R, n) and (...) -> (..., n)."""
    flat = xp.take(table, xp.reshape(index, (-1,)), axis=0)
    return xp.reshape(flat, (*index.shape, table.shape[-1]))


def over_boxes(
    function: Drawn, candidates: Array, regions: Regions, starts: int = 20
) -> tuple[Array, Array]:
    """The maximiser x (B, D) and its value (B,) of each batch entry's function.

    Starts are the best `starts` of the candidates (B, K, D), points of the unit cube; and, as
    those may all stand on one hill, the best in each of about as many cells of the cube. Each
    climbs without leaving its region's box (Regions((1,) * D): the whole cube). Never below the
    best candidate.
    """
    xp = array_namespace(candidates)
    _, K, D = candidates.shape
    values = function.values(candidates)
    chosen = xp.argsort(-values, axis=-1)[:, : min(starts, K)]
    spread_out = _best_of_each(_cells(regions, starts), candidates, values)
    chosen = xp.concat([chosen, spread_out], axis=1)
    start = xp.take_along_axis(candidates, chosen[..., None], axis=1)
    region = regions.index(start)
    lower, upper = (
        _rows(xp.asarray(corner, dtype=start.dtype, device=device(start)), region, xp)
        for corner in (regions.lower, regions.upper)
    )
    climb: Callable[[Array], tuple[Array, Array]] = function.values_and_gradients
    if isinstance(function, RegionalDraw) and function.regions == regions:
        climb = function.inside(region)
    spread = xp.max(values, axis=-1, keepdims=True) - xp.min(values, axis=-1, keepdims=True)
    x, value = ascend(
        climb,
        start,
        lower,
        upper,
        iterations=_ITERATIONS,
        radius=K ** (-1.0 / D),  # about the distance from a point to the nearest of K others
        running=partial(_could_win, xp, spread),
    )
    best = xp.argmax(value, axis=-1)[:, None]
    x = xp.take_along_axis(x, best[..., None], axis=1)[:, 0, :]
    return x, xp.take_along_axis(value, best, axis=1)[:, 0]


def _cells(regions: Regions, count: int) -> Regions:
    """The regions, cut further into at most `count` equal cells as cubic as can be."""
    splits = list(regions.splits)
    while 2 * math.prod(splits) <= count:
        splits[splits.index(min(splits))] *= 2
    return Regions(tuple(splits))


def _best_of_each(cells: Regions, candidates: Array, values: Array) -> Array:
    """The index of every cell's best candidate: (B, K, D) and (B, K) -> (B, cells).

    A cell without candidates gets the first of all, which does no harm.
    """
    xp = array_namespace(values)
    cell = cells.index(candidates)
    each = xp.arange(cells.count, dtype=cell.dtype, device=device(cell))
    inside = cell[:, None, :] == each[:, None]
    return xp.argmax(xp.where(inside, values[:, None, :], -xp.inf), axis=-1)


def _could_win(xp: Any, spread: Array, value: Array, promise: Array) -> Array:
    """Which climbs (B, S) still matter: they may gain, and may yet overtake the best.

    A quadratic hill is half the promised gain high. So a rival that would not pass the best with
    eight times that is given up, as is one that would only just draw level: it climbs the same
    hill.
    """
    best = xp.max(value, axis=-1, keepdims=True)
    return (promise > _TOLERANCE * spread) & (value + 4.0 * promise >= best + _LEVEL * spread)
