from __future__ import annotations

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.parts import INITIAL_DESIGNS
from sottovoce.federation.parts.initial_designs import uniform_points
from sottovoce.space import Category, Float, Integer, Space
from sottovoce.space.regions import equal_boxes

RANDOM = np.random.default_rng(3)
GRID = Space([Float("x", 0.0, 1.0, steps=60)])
MIXED = Space([Float("x", 0.0, 1.0), Integer("n", 1, 3), Category("c", ("a", "b"))])


def test_the_designs_have_these_names() -> None:
    assert INITIAL_DESIGNS.names == ("uniform", "region", "public", "latin")


@pytest.mark.parametrize(("space", "tries"), [(GRID, 1), (MIXED, 64)], ids=["grid", "mixed"])
def test_uniform_points_are_of_the_space_and_each_in_its_agents_box(
    space: Space, tries: int
) -> None:
    boxes, u = np.asarray([0, 1, 2, 1]), RANDOM.random((4, 9, tries, space.dims))
    regions = equal_boxes(3, space.dims, space.splittable)
    points = uniform_points(space, regions, boxes, u)
    assert points.shape == (4, 9, space.dims)
    assert np.array_equal(space.snap(points), points)
    assert np.array_equal(regions.index(points), np.repeat(boxes[:, None], 9, axis=1))


def test_every_point_of_a_listed_box_is_as_likely() -> None:
    boxes, u = np.ones(1, dtype=np.int64), RANDOM.random((1, 20_000, 1, 1))
    points = uniform_points(GRID, equal_boxes(3, 1), boxes, u)
    counts = np.bincount(GRID.index(points)[0], minlength=60)
    assert np.count_nonzero(counts) == 20
    assert counts[20:40] == pytest.approx(np.full(20, 1000), rel=0.15)


def test_a_box_that_holds_no_point_is_refused() -> None:
    space = Space([Integer("n", 1, 2)])
    with pytest.raises(InvalidInput, match="each region must hold a point"):
        uniform_points(space, equal_boxes(3, 1), np.asarray([1]), RANDOM.random((1, 2, 1, 1)))
