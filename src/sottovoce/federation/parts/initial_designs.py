"""Where agents try their first points.

An initial design is a function of a batch that gives each agent's N_init points of the cube,
(n, N_init, D), as NumPy's: ``@INITIAL_DESIGNS.register("name")``.

Symbols: n agents of the batch, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.errors import check
from sottovoce.federation import draws
from sottovoce.federation.parts.registry import Registry
from sottovoce.space import Regions, Space

if TYPE_CHECKING:
    from sottovoce.federation.batch import Batch

InitialDesign = Callable[["Batch"], FloatArray]
INITIAL_DESIGNS = Registry[InitialDesign]("initial_design")


@INITIAL_DESIGNS.register("uniform")
def uniform(batch: Batch) -> FloatArray:
    """Uniform points of the whole space."""
    space = batch.study.space
    nowhere_else = np.zeros(batch.size, dtype=np.int64)
    return _drawn(batch, Regions((1,) * space.dims), nowhere_else)


@INITIAL_DESIGNS.register("region")
def region(batch: Batch) -> FloatArray:
    """Uniform points of the region that each agent explores at first (distributed exploration)."""
    return _drawn(batch, batch.study.regions, batch.study.assignment[batch.agents])


@INITIAL_DESIGNS.register("public")
def public(batch: Batch) -> FloatArray:
    """The points of a public quasi-random design, dealt out among all agents."""
    return np.asarray(batch.study.public_design[batch.agents])


@INITIAL_DESIGNS.register("latin")
def latin(batch: Batch) -> FloatArray:
    """A Latin hypercube for each agent: public, and good for each by itself."""
    return np.asarray(batch.study.latin_design[batch.agents])


def _drawn(batch: Batch, regions: Regions, boxes: IntArray) -> FloatArray:
    space, count = batch.study.space, batch.study.method.initial
    shape = (count, _tries(space), space.dims)
    (u,) = batch.draw(draws.START, 0, lambda random, n: (random.random((n, *shape)),))
    return uniform_points(space, regions, boxes, batch.device.numpy(u))


def _tries(space: Space) -> int:
    """How many uniforms a point needs: one, unless snapping may move it.

    A discrete value owns at least half of a try's cell inside the region it lies in, so that all
    of the tries fail with a probability below 2⁻⁶⁴.
    """
    return 1 if space.finite or space.continuous else 64


def uniform_points(space: Space, regions: Regions, boxes: IntArray, u: FloatArray) -> FloatArray:
    """Uniform points of the space, (n, s, D), each in the box of its agent.

    boxes (n,); u (n, s, tries, D) uniforms in the cube.
    """
    if space.finite:
        return space.points()[_uniform_rows(space, regions, boxes, u)]
    low, high = (corner[boxes][:, None, None, :] for corner in (regions.lower, regions.upper))
    tried = np.asarray(space.snap(low + (high - low) * u))
    inside = regions.index(tried) == boxes[:, None, None]
    check(bool(np.all(np.any(inside, axis=-1))), "each region must hold a point of the space")
    first = np.argmax(inside, axis=-1)[..., None, None]
    return np.take_along_axis(tried, first, axis=2)[:, :, 0, :]


def _uniform_rows(space: Space, regions: Regions, boxes: IntArray, u: FloatArray) -> IntArray:
    """The same on a finite space, as rows of its list of points, (n, s)."""
    box_of_point = regions.index(space.points())
    chosen = np.empty(u.shape[:2], dtype=np.int64)
    for box in np.unique(boxes):
        inside = np.flatnonzero(box_of_point == box)
        check(len(inside) > 0, "each region must hold a point of the space", region=int(box))
        own = boxes == box
        chosen[own] = inside[(u[own, :, 0, 0] * len(inside)).astype(np.int64)]
    return chosen
