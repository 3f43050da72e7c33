"""The P sub-regions of the unit cube, and who explores which.

Symbols: P regions, N agents, D dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import device

from sottovoce.arrays import Array, FloatArray, IntArray, array_namespace
from sottovoce.errors import check


@dataclass(frozen=True)
class Regions:
    """Equal boxes that tile the unit cube: `splits[d]` slices along dimension d.

    Boxes are numbered with the first dimension slowest, as in the paper: for P = 4, D = 2 they
    are (low, low), (low, high), (high, low), (high, high).
    """

    splits: tuple[int, ...]

    @property
    def count(self) -> int:
        """P, the number of boxes."""
        return math.prod(self.splits)

    @property
    def lower(self) -> FloatArray:
        """Lower corners, (P, D)."""
        return np.asarray(self._corner_index() / np.asarray(self.splits))

    @property
    def upper(self) -> FloatArray:
        """Upper corners, (P, D): the largest float inside, as boxes are half-open below 1."""
        corners = (self._corner_index() + 1) / np.asarray(self.splits)
        return np.where(corners < 1, np.nextafter(corners, 0), 1.0)

    def _corner_index(self) -> FloatArray:
        grid = np.indices(self.splits).reshape(len(self.splits), -1)
        return grid.T.astype(float)

    def index(self, x: Array) -> Array:
        """The box each point lies in: (..., D) -> (...) of integers."""
        xp = array_namespace(x)
        box = xp.zeros(x.shape[:-1], dtype=xp.int64, device=device(x))
        for d, slices in enumerate(self.splits):
            if slices > 1:
                # counted against the corners themselves, so that a corner is never on two sides
                inside = xp.zeros_like(box)
                for edge in range(1, slices):
                    inside = inside + xp.astype(x[..., d] >= edge / slices, xp.int64)
                box = box * slices + inside
        return box


def equal_boxes(count: int, dims: int, splittable: Sequence[int] | None = None) -> Regions:
    """P equal boxes in D dimensions.

    The prime factors of P, largest first, each go to the dimension with the fewest slices so far
    (the first of them on a tie): P = 4 halves the first two dimensions, P = 6 makes 3 × 2.
    `splittable` names the dimensions that may be cut; a category's should not be.
    """
    allowed = list(range(dims)) if splittable is None else list(splittable)
    check(count >= 1, "regions must be at least 1", regions=count)
    check(
        count == 1 or bool(allowed), "more than one region needs a numeric parameter", regions=count
    )
    splits = [1] * dims
    for prime in _prime_factors(count):
        d = min(allowed, key=lambda k: splits[k])
        splits[d] *= prime
    return Regions(tuple(splits))


def _prime_factors(n: int) -> list[int]:
    factors, divisor = [], 2
    while n > 1:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    return factors[::-1]


def assigned(agents: int, count: int) -> IntArray:
    """The region each agent explores at first: n mod P, (N,)."""
    check(agents >= count, "regions must not outnumber agents", regions=count, agents=agents)
    return np.arange(agents) % count
