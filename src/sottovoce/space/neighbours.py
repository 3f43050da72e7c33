"""Points that differ in one discrete parameter: where a search over a mixed space may step to.

Symbols: D coordinates, m neighbours; k the place of a value among those of its parameter.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import Array, array_namespace
from sottovoce.space.parameters import Category, Parameter
from sottovoce.space.space import Space

_FARTHEST = 2**10  # places that one step may go


def discrete(space: Space) -> NDArray[np.bool_]:
    """Which coordinates, (D,), take some values only."""
    return np.repeat(
        [p.size is not None for p in space.parameters], [p.width for p in space.parameters]
    )


def neighbours(space: Space, u: Array) -> Array:
    """Of points of the space: (..., D) -> (..., m, D).

    Another choice; or a number 1, 2, 4, ... places further on either side, and the last there is
    where that is beyond. A point may be its own neighbour.
    """
    xp, found = array_namespace(u), []
    for p, at in space.blocks():
        if p.size is not None:
            before, own, behind = u[..., : at.start], u[..., at], u[..., at.stop :]
            found += [
                xp.concat([before, p._place(k), behind], axis=-1)
                for k in _steps(p, p.size, p._index(own))
            ]
    return xp.stack(found, axis=-2)


def _steps(p: Parameter, size: int, k: Array) -> Iterator[Array]:
    xp = array_namespace(k)
    if isinstance(p, Category):
        for step in range(1, size):
            yield xp.remainder(k + step, xp.full_like(k, float(size)))
        return
    step = 1
    while step < min(size, _FARTHEST):
        for to in (k - step, k + step):
            yield xp.minimum(xp.maximum(to, xp.zeros_like(k)), xp.full_like(k, size - 1.0))
        step *= 2
