"""An agent's moves, for any batch of agents at once: what it says, and what it tries next.

`Agent` calls these with a batch of one, the simulator with all agents of a run; neither has
mathematics of its own. Random draws come in as arguments.

Symbols: B batch (agents), t observations, D dimensions, M shared features, P regions, K points
of a finite space or random candidates, r rank of the exact features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from array_api_compat import device
from numpy.typing import NDArray

from sottovoce.acquisition.maximise import RegionalDraw, over_boxes, over_points
from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import check
from sottovoce.gp import posterior
from sottovoce.gp.features import Features
from sottovoce.gp.kernel import Kernel
from sottovoce.space import Space
from sottovoce.space.regions import Regions


@dataclass(frozen=True)
class History:
    """What B agents have seen: points (B, t, D) in the cube, values (B, t), mask (B, t).

    The mask is false where a trial failed, and the value there is 0; without one, none did. On a
    finite space `index` (B, t) says which of its points each one is.
    """

    points: Array
    values: Array
    mask: Array | None
    index: Array | None = None

    def part(self, some: Array | slice) -> History:
        """Of some of the agents, by mask or slice."""
        parts = (self.points, self.values, self.mask, self.index)
        return History(*(None if part is None else part[some] for part in parts))


def starting_tries(space: Space) -> int:
    """How many uniforms `starting_points` needs for a point: one, unless snapping may move it.

    A discrete value owns at least half of a try's cell inside the region it lies in, so that all
    of the tries fail with a probability below 2⁻⁶⁴.
    """
    return 1 if space.finite or space.continuous else 64


def starting_points(
    space: Space, regions: Regions, boxes: NDArray[np.int64], u: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Uniform points of the space, (B, s, D), each in the box of its agent.

    boxes (B,); u (B, s, tries, D) uniforms in the cube.
    """
    if space.finite:
        return space.points()[starting_rows(space, regions, boxes, u)]
    low, high = (corner[boxes][:, None, None, :] for corner in (regions.lower, regions.upper))
    places = np.asarray(space.snap(low + (high - low) * u))
    inside = regions.index(places) == boxes[:, None, None]
    check(bool(np.all(np.any(inside, axis=-1))), "each region must hold a point of the space")
    first = np.argmax(inside, axis=-1)[..., None, None]
    return np.take_along_axis(places, first, axis=2)[:, :, 0, :]


def starting_rows(
    space: Space, regions: Regions, boxes: NDArray[np.int64], u: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The same on a finite space, as rows of its list of points, (B, s)."""
    box_of_point = regions.index(space.points())
    chosen = np.empty(u.shape[:2], dtype=np.int64)
    for box in np.unique(boxes):
        inside = np.flatnonzero(box_of_point == box)
        check(len(inside) > 0, "each region must hold a point of the space", region=int(box))
        own = boxes == box
        chosen[own] = inside[(u[own, :, 0, 0] * len(inside)).astype(np.int64)]
    return chosen


def modelled(raw: Array, standardise: bool) -> tuple[Array, Array]:
    """Values (B, t) as a belief takes them, and the mask (B, t) of those that there are.

    raw (B, t) is NaN where a trial failed; the value there becomes 0.
    """
    xp = array_namespace(raw)
    mask = xp.isfinite(raw)
    if standardise:
        return standardised(raw, mask), mask
    return xp.where(mask, raw, xp.zeros_like(raw)), mask


def standardised(values: Array, mask: Array, count: int | None = None) -> Array:
    """Each agent's values (B, t), their first `count` (or all) with mean 0 and variance 1.

    Zero where the mask (B, t) is false.
    """
    xp = array_namespace(values)
    first, known = values[:, :count], mask[:, :count]
    apart = xp.where(mask, values - mean_of(first, known)[:, None], xp.zeros_like(values))
    return apart / spread_of(first, known)[..., None]


def spread_of(raw: Array, mask: Array) -> Array:
    """The standard deviation of each agent's values, (B,), or 1 where they do not differ."""
    xp = array_namespace(raw)
    spread = xp.sqrt(variance_of(raw, mask))
    return xp.where(spread > 0, spread, xp.ones_like(spread))


def variance_of(raw: Array, mask: Array) -> Array:
    """The variance of each agent's values, (B,), where the mask (B, t) is true."""
    return mean_of((raw - mean_of(raw, mask)[:, None]) ** 2, mask)


def mean_of(values: Array, mask: Array) -> Array:
    """The mean of each agent's values, (B,), where the mask (B, t) is true, or 0."""
    xp = array_namespace(values)
    count = xp.sum(xp.astype(mask, values.dtype), axis=-1)
    count = xp.where(count > 0, count, xp.ones_like(count))
    return xp.sum(xp.where(mask, values, xp.zeros_like(values)), axis=-1) / count


def due_fits(initial: int, every: int, fitted_at: int, told: int) -> range:
    """The history lengths at which a kernel is to be fitted, since the last such length.

    They do not depend on when the kernel is needed, so nor does the kernel.
    """
    first = initial if fitted_at < initial else fitted_at + every
    return range(first, told + 1, every)


def message(
    rows: Array,
    values: Array,
    regularisation: float,
    prior: Array,
    noise: Array,
    root: Array | None = None,
) -> Array:
    """ω ~ N(ν, λΣ⁻¹), (B, M): rows (B, t, M) are φ at the history, zero where there is none.

    root (B, t, t), if it has been kept: see `posterior.draw`.
    """
    return posterior.draw(rows, values, regularisation, prior, noise, root=root)


@lru_cache(maxsize=4)
def exact_table(kernel: Kernel, space: Space) -> NDArray[np.float64]:
    """The exact features of a finite space under one kernel, (K, r); a second's work, kept."""
    return posterior.exact_features(kernel, space.points())


def own_point(
    table: Array,
    kernel: Kernel,
    history: History,
    prior: Array,
    noise: Array,
    scale: float,
    root: Array | None = None,
) -> Array:
    """Index of the best point of a finite space under an exact draw of each agent's belief.

    table (K, r) are the exact features of the space; prior (B, r), noise (B, t) normals; root
    (B, t, t), if it has been kept: see `posterior.draw`.
    """
    xp = array_namespace(table)
    rows = masked_rows(table, history)
    weights = posterior.draw(rows, history.values, kernel.noise, prior, noise, scale, root)
    return over_points(xp.matmul(weights, table.T))


def masked_rows(table: Array, history: History) -> Array:
    """The rows of a table over the points of a finite space, at each history: (B, t, columns)."""
    xp = array_namespace(table)
    rows = xp.take(table, xp.reshape(history.index, (-1,)), axis=0)
    rows = xp.reshape(rows, (*history.values.shape, table.shape[1]))
    return rows if history.mask is None else known_rows(rows, history.mask)


def known_rows(rows: Array, mask: Array) -> Array:
    """The rows (B, t, columns), zero where the mask (B, t) is false."""
    xp = array_namespace(rows)
    return xp.where(mask[..., None], rows, xp.zeros_like(rows))


def shared_point(table: Array, box_of_point: Array, vectors: Array) -> Array:
    """Index of the best point of a finite space under broadcasts: vectors (B, P, M) -> (B,).

    table (K, M) is φ at the points; box_of_point (K,) the region each lies in.
    """
    xp = array_namespace(table)
    values = xp.matmul(vectors, table.T)
    boxes = xp.arange(vectors.shape[1], device=device(table))
    own = (box_of_point[None, :] == boxes[:, None])[None, :, :]
    return over_points(xp.sum(xp.where(own, values, xp.zeros_like(values)), axis=1))


@dataclass(frozen=True)
class PathDraws:
    """The standard normals and the uniform candidates of one pathwise Thompson step."""

    frequencies: Array  # (B, F, D)
    amplitudes: Array  # (B, F, 2)
    noise: Array  # (B, t)
    candidates: Array  # (B, K, D), uniform in the cube


def own_place(
    kernel: Kernel, history: History, draws: PathDraws, everywhere: Regions, scale: float
) -> Array:
    """The maximiser, (B, D), of a pathwise draw of each agent's belief over the whole cube."""
    drawn = posterior.pathwise_draw(
        kernel,
        history.points,
        history.values,
        history.mask,
        draws.frequencies,
        draws.amplitudes,
        draws.noise,
        scale,
    )
    return over_boxes(drawn, draws.candidates, everywhere)[0]


def shared_place(features: Features, regions: Regions, vectors: Array, candidates: Array) -> Array:
    """The maximiser, (B, D), of φ(x)ᵀω^(i[x]) over all boxes: vectors (B, P, M)."""
    return over_boxes(RegionalDraw(features, regions, vectors), candidates, regions)[0]


def repeated(tried: Array, chosen: Array) -> Array:
    """Which agents have tried what they chose before, (B,).

    tried (B, t, D) and chosen (B, D) are points; or (B, t) and (B,), rows of a finite space.
    """
    xp = array_namespace(tried)
    same = tried == chosen[:, None]
    return xp.any(xp.all(same, axis=-1) if same.ndim == 3 else same, axis=-1)


def untried_row(tried: Array, u: Array) -> Array:
    """A uniform row of those that an agent has not tried, or of all once none is left: (B,).

    tried (B, t) are rows of a finite space of K points, u (B, K) uniforms in [0, 1).
    """
    xp = array_namespace(tried, u)
    every = xp.arange(u.shape[1], dtype=tried.dtype, device=device(tried))
    known = xp.zeros_like(u, dtype=xp.bool)
    for k in range(tried.shape[1]):  # no (B, t, K) array is ever made
        known = known | (tried[:, k : k + 1] == every)
    return over_points(u - xp.astype(known, u.dtype))
