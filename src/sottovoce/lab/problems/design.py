"""Which points of the cube a table knows.

A parameter whose range spans orders of magnitude on a linear scale (a penalty from 1e-4 to 10,
say) acts mostly near its lower end, and the best values lie there. So points are spread evenly
not over the coordinates u but over v with u = v³ for such parameters, u = v for others: a
quarter of them below u = 0.016.

Optima often lie on the boundary, and nothing must be guessed beyond the outermost points. So a
table has the corners of the cube, and as many points on its edges and faces as makes them lie as
densely there as inside.

Symbols: D dimensions; K points of the design, H held out; u points of the cube, v where they are
spread evenly, powers p (D,) with u = v^p.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.errors import check
from sottovoce.space import Space
from sottovoce.space.parameters import Category

SEED = 20211206
POWER = 3.0
WIDE = 100  # a range whose ends are that many times apart is spread by the power
ON_A_SIDE = 4  # of so many held-out points, one lies on a face of the cube


def powers_of(space: Space) -> FloatArray:
    """The power for each coordinate, (D,)."""
    powers = list[float]()
    for p in space.parameters:
        if isinstance(p, Category):
            check(False, "a table's parameters must all be numbers", parameter=p.name)
            continue
        wide = p.low >= 0 and p.high >= WIDE * p.low and not p.log
        powers.append(POWER if wide else 1.0)
    return np.asarray(powers)


def design(space: Space, inside: int) -> FloatArray:
    """Points inside the cube, `inside` of them, and on all its faces, edges and corners, (K, D)."""
    check(inside >= 1, "points must be at least 1", points=inside)
    powers = powers_of(space)
    random, dims, groups = np.random.default_rng(SEED), space.dims, list[FloatArray]()
    # each coordinate is at its lower end, at its upper end, or free: inside the cube all are
    for ends in sorted(product((0.0, 1.0, np.nan), repeat=dims), key=lambda e: -np.isnan(e).sum()):
        free = np.isnan(ends)
        count = round(inside ** (free.sum() / dims))
        v = np.tile(ends, (count, 1))
        v[:, free] = _spread(count, int(free.sum()), random)
        groups.append(v)
    return _storable(space, np.concatenate(groups) ** powers)


def held_out_design(space: Space, count: int) -> FloatArray:
    """Other points, at random, to test with, some on the faces of the cube: (H, D).

    One half is spread evenly over u, as random queries are, the other over v.
    """
    check(count >= 1, "held-out points must be at least 1", held_out=count)
    random = np.random.default_rng([SEED, 1])
    points = random.random((count, space.dims))
    points[1::2] **= powers_of(space)
    sides = np.arange(count) // 2 % ON_A_SIDE == 0
    where = np.flatnonzero(sides), random.integers(space.dims, size=sides.sum())
    points[where] = random.integers(2, size=sides.sum())
    return _storable(space, points)


def _spread(count: int, dims: int, random: np.random.Generator) -> FloatArray:
    """Scrambled Sobol points, (count, dims)."""
    if dims == 0:
        return np.empty((count, 0))
    from scipy.stats import qmc  # it takes a while

    doublings = int(np.ceil(np.log2(count)))
    points = qmc.Sobol(dims, scramble=True, seed=random).random_base2(doublings)
    return np.asarray(points[:count], dtype=np.float64)


def _storable(space: Space, points: FloatArray) -> FloatArray:
    """Points of the space, each once, that a small file keeps exactly.

    It keeps them in single precision, which is far finer than the design.
    """
    snapped = np.asarray(space.snap(points))
    single = snapped.astype(np.float32).astype(np.float64)
    _, first = np.unique(single, axis=0, return_index=True)
    return np.asarray(single[np.sort(first)])
