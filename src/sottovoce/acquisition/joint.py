"""An agent's moves beside a function that all have in common, for any batch of agents at once.

An agent takes its objective to be a multiple of the common function, plus a part of its own (a
draw of its GP), plus a level. How far it trusts the common function it learns from its own values,
which go nowhere. So a common function that says nothing of its objective does it little harm.

Symbols: B batch (agents), t observations, D dimensions, M shared features, K points of a finite
space, r rank of the exact features.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import device

from sottovoce.acquisition.maximise import Joined, RegionalDraw, over_boxes, over_points
from sottovoce.acquisition.moves import (
    History,
    PathDraws,
    known_rows,
    masked_rows,
    spread_of,
    standardised,
    variance_of,
)
from sottovoce.arrays import Array, array_namespace
from sottovoce.gp import posterior
from sottovoce.gp.features import Features
from sottovoce.gp.fit import fit_beside
from sottovoce.gp.kernel import Kernel
from sottovoce.gp.shared import LOUDER
from sottovoce.space.regions import Regions


def sums(rows: Array, raw: Array) -> Array:
    """Φᵀy, (B, M): rows (B, t, M) are φ at the initial points, y their values standardised.

    raw (B, t) values, NaN where a trial failed.
    """
    xp = array_namespace(rows)
    mask = xp.isfinite(raw)
    y = standardised(raw, mask)
    return xp.matmul(xp.matrix_transpose(known_rows(rows, mask)), y[..., None])[..., 0]


def news(rows: Array, raw: Array, heard: Array, initial: int, lam: float) -> Array:
    """What an agent's values tell beyond what all know, (B, M), louder for the clip's sake.

    It takes its values, in the units of its first `initial`, for those of the common function,
    φ(x)ᵀδ with δ ~ N(0, I), a level ~ N(0, 1), and noise of variance λ; this is the mean of δ.
    rows (B, t, M) are φ at all its points, raw (B, t) as in `sums`, heard (B, t) the common
    function there.
    """
    xp = array_namespace(rows)
    mask = xp.isfinite(raw)
    y = standardised(raw, mask, initial)
    level = xp.ones_like(y)[..., None]
    known = known_rows(xp.concat([rows, level], axis=-1), mask)
    left = xp.where(mask, y - heard, xp.zeros_like(y))
    return LOUDER * posterior.mean(known, left, lam)[..., :-1]


@dataclass(frozen=True)
class Heard:
    """What an agent has learnt of the common function: its weights, one for all, (M,)."""

    features: Features
    weights: Array

    def at(self, points: Array) -> Array:
        """The common function: (B, t, D) -> (B, t)."""
        xp = array_namespace(points)
        weights = xp.asarray(self.weights, dtype=points.dtype, device=device(points))
        return xp.matmul(self.features(points), weights)


def fitted(
    points: Array,
    raw: Array,
    heard: Heard,
    start: Kernel | None,
    known: Kernel | None,
) -> Kernel:
    """Each agent's kernel and trust beside the common function, for its values standardised.

    points (B, t, D); raw (B, t) values, NaN where a trial failed; known: the kernel of the raw
    values, if the agents know it.
    """
    xp = array_namespace(points)
    mask = xp.isfinite(raw)
    values = standardised(raw, mask)
    if known is not None:
        unit = spread_of(raw, mask) ** 2
        ones = xp.ones_like(unit)
        sizes = (known.variance / unit, known.noise / unit)
        known = Kernel(known.lengthscale * ones, *sizes)
    return fit_beside(points, values, mask, heard.at(points), start, known)


def likeness(kernel: Kernel, points: Array, raw: Array, heard: Heard) -> Array:
    """How much of its function each agent takes to be common, (B,), from 0 to 1.

    That is s²v / (s²v + σ²), v the variance of the common function at the agent's points, with
    the kernel as it was fitted. points and raw as in `fitted`.
    """
    xp = array_namespace(points)
    mask = xp.isfinite(raw)
    shared = kernel.trust * variance_of(heard.at(points), mask)
    return shared / (shared + kernel.variance)


def place(
    kernel: Kernel,
    history: History,
    draws: PathDraws,
    heard: Heard,
    normals: Array,
    scale: float,
) -> Array:
    """The maximiser, (B, D), of a draw of each agent's belief beside the common function.

    The kernel has a trust; normals (B, 2) as in `posterior.Beside`.
    """
    xp = array_namespace(history.points)
    beside = posterior.Beside(heard.at(history.points), normals)
    path = (draws.frequencies, draws.amplitudes, draws.noise)
    own, factor = posterior.pathwise_beside(
        kernel, history.points, history.values, history.mask, beside, path, scale
    )
    everywhere = Regions((1,) * history.points.shape[-1])
    weights = xp.asarray(heard.weights, dtype=factor.dtype, device=device(factor))[None, :]
    common = RegionalDraw(heard.features, everywhere, weights)
    return over_boxes(Joined(own, common, factor), draws.candidates, everywhere)[0]


def point(
    table: Array,
    common: Array,
    kernel: Kernel,
    history: History,
    draws: tuple[Array, ...],
    scale: float,
) -> Array:
    """Index of the best point of a finite space under a draw beside the common function.

    table (K, r) are exact features of a kernel of variance 1, common (K,) the common function at
    the points; draws: prior (B, r), noise (B, t), normals (B, 2).
    """
    xp = array_namespace(table)
    prior, noise, normals = draws
    own = xp.sqrt(kernel.variance)[:, None, None]
    factor = xp.sqrt(kernel.trust)[:, None, None]
    rows = xp.concat(
        [
            own * masked_rows(table, history),
            factor * masked_rows(common[:, None], history),
            masked_rows(xp.ones_like(common)[:, None], history),
        ],
        axis=-1,
    )
    start = xp.concat([prior, normals], axis=-1)
    weights = posterior.draw(rows, history.values, kernel.noise, start, noise, scale)
    values = own[:, 0] * xp.matmul(weights[:, :-2], table.T)
    return over_points(values + factor[:, 0] * weights[:, -2:-1] * common)
