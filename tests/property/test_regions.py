from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.federation.weights import REAL_WORLD, Weights
from sottovoce.space.regions import assigned, equal_boxes

counts = st.integers(1, 40)
dimensions = st.integers(1, 5)
unit = st.floats(0, 1)


@given(counts, dimensions)
def test_boxes_tile_the_cube_with_equal_volumes(count: int, dims: int) -> None:
    boxes = equal_boxes(count, dims)
    assert boxes.count == count
    assert boxes.lower.shape == boxes.upper.shape == (count, dims)
    # every combination of one slice a dimension occurs once, and each slice is 1/splits wide
    corners = {
        tuple(Fraction(low).limit_denominator(count) for low in row) for row in boxes.lower.tolist()
    }
    assert len(corners) == count
    for corner in corners:
        for low, slices in zip(corner, boxes.splits, strict=True):
            assert (low * slices).denominator == 1
            assert 0 <= low < 1
    volumes = np.prod(boxes.upper - boxes.lower, axis=1)
    assert np.allclose(volumes, 1 / count, rtol=1e-13)


@given(counts, dimensions, st.data())
def test_a_point_lies_between_the_corners_of_its_box_and_of_no_other(
    count: int, dims: int, data: st.DataObject
) -> None:
    boxes = equal_boxes(count, dims)
    x = np.asarray(data.draw(st.lists(unit, min_size=dims, max_size=dims)))
    inside = np.all((boxes.lower <= x) & (x <= boxes.upper), axis=1)
    assert np.flatnonzero(inside).tolist() == [int(boxes.index(x))]


@given(counts, dimensions)
def test_both_corners_of_a_box_are_in_it_and_the_next_float_is_not(count: int, dims: int) -> None:
    boxes = equal_boxes(count, dims)
    numbers = np.arange(count)
    assert np.array_equal(boxes.index(boxes.lower), numbers)
    assert np.array_equal(boxes.index(boxes.upper), numbers)
    for d in range(dims):
        beyond = boxes.upper.copy()
        beyond[:, d] = np.nextafter(beyond[:, d], 2)
        inner = boxes.upper[:, d] < 1
        assert np.all(boxes.index(beyond)[inner] != numbers[inner])
        assert np.all(boxes.upper[~inner, d] == 1)


@given(counts, dimensions, st.data())
def test_dimensions_that_may_not_be_cut_stay_whole(
    count: int, dims: int, data: st.DataObject
) -> None:
    allowed = data.draw(st.sets(st.integers(0, dims - 1), min_size=1))
    splits = equal_boxes(count, dims, sorted(allowed)).splits
    assert math.prod(splits) == count
    assert all(slices == 1 for d, slices in enumerate(splits) if d not in allowed)


@given(
    st.sampled_from([Weights(), REAL_WORLD, Weights("ratio", 1000.0), Weights("square", 40.0)]),
    st.integers(0, 60),
    st.integers(1, 8),
    st.integers(0, 30),
)
def test_weights_sum_to_one_and_prefer_their_own(
    weights: Weights, t: int, count: int, more: int
) -> None:
    assignment = assigned(count + more, count)
    phi = weights(t, assignment, count)
    assert np.allclose(phi.sum(axis=1), 1.0, rtol=0, atol=1e-13)
    for i, row in enumerate(phi):
        own, others = row[assignment == i], row[assignment != i]
        assert others.size == 0 or own.min() >= others.max()
