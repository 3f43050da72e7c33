"""Values as a Gaussian process takes them well: bad outliers brought near, then standardised.

What matters is where values are good. One diverged training, a million times worse than the rest,
must not make all others look alike; so what lies far below the median counts by its logarithm.

Symbols: B batch, t trials; q₂₅, q₅₀, q₇₅ quartiles of an agent's values.
"""

from __future__ import annotations

from sottovoce.arrays import Array, array_namespace
from sottovoce.gp.history import standardised

_REACH = 2.0  # so many interquartile ranges below the median values begin to count less


def warped(raw: Array, mask: Array) -> Array:
    """Each agent's values (B, t), to be maximised, with mean 0 and variance 1; 0 off the mask.

    The order is kept. With s = 2 (q₇₅ − q₂₅), a value q₅₀ − s·u with u > 1 becomes
    q₅₀ − s·(1 + log u).
    """
    xp = array_namespace(raw)
    none = ~xp.any(mask, axis=-1, keepdims=True)
    count = xp.sum(xp.astype(mask, xp.int64), axis=-1)
    ordered = xp.where(none, 0.0, xp.sort(xp.where(mask, raw, xp.inf), axis=-1))
    low, middle, high, best = (_quantile(ordered, count, share) for share in (0.25, 0.5, 0.75, 1.0))
    # if half of all are equal, the rest is measured by how far the best lies above them
    reach = xp.where(high > low, _REACH * (high - low), best - middle)
    above = xp.where(mask, xp.where(mask, raw, 0.0) - middle, 0.0)
    far = (above < -reach) & (reach > 0)
    depth = xp.log(xp.where(far, -above, 1.0)) - xp.log(xp.where(far, reach, 1.0))
    return standardised(xp.where(far, -reach * (1.0 + depth), above), mask)


def _quantile(ordered: Array, count: Array, share: float) -> Array:
    """The value below which that share of the first `count` lie, (B, 1)."""
    xp = array_namespace(ordered)
    last = xp.astype(xp.maximum(count, xp.ones_like(count)) - 1, ordered.dtype)
    rank = xp.astype(xp.round(share * last), xp.int64)
    return xp.take_along_axis(ordered, rank[:, None], axis=-1)
