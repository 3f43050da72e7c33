"""What agents have observed, as models take it.

Symbols: B batch (agents), t observations, D dimensions, K points of a finite space.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import device

from sottovoce.arrays import Array, array_namespace


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


def modelled(raw: Array, standardise: bool) -> tuple[Array, Array]:
    """Values (B, t) as a surrogate takes them, and the mask (B, t) of those that there are.

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
    return apart / deviation_of(first, known)[..., None]


def deviation_of(raw: Array, mask: Array) -> Array:
    """The standard deviation of each agent's values, (B,), or 1 where they do not differ."""
    xp = array_namespace(raw)
    deviation = xp.sqrt(variance_of(raw, mask))
    return xp.where(deviation > 0, deviation, xp.ones_like(deviation))


def variance_of(raw: Array, mask: Array) -> Array:
    """The variance of each agent's values, (B,), where the mask (B, t) is true."""
    return mean_of((raw - mean_of(raw, mask)[:, None]) ** 2, mask)


def mean_of(values: Array, mask: Array) -> Array:
    """The mean of each agent's values, (B,), where the mask (B, t) is true, or 0."""
    xp = array_namespace(values)
    count = xp.sum(xp.astype(mask, values.dtype), axis=-1)
    count = xp.where(count > 0, count, xp.ones_like(count))
    return xp.sum(xp.where(mask, values, xp.zeros_like(values)), axis=-1) / count


def informative(raw: Array, most: int) -> Array:
    """Of each agent's trials (B, t) at most that many, by number, (B, most): the best, the latest.

    raw is NaN where a trial failed. In ascending order; half are the best values, half the last
    trials that are not among them.
    """
    xp = array_namespace(raw)
    t = raw.shape[1]
    numbers = xp.broadcast_to(xp.arange(t, device=device(raw)), raw.shape)
    if t <= most:
        return numbers
    falling = xp.argsort(xp.where(xp.isfinite(raw), -raw, xp.inf), axis=-1)
    rank = xp.argsort(falling, axis=-1)
    priority = xp.where(rank < most // 2, t + most - rank, numbers)
    return xp.sort(xp.argsort(-priority, axis=-1)[:, :most], axis=-1)


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
