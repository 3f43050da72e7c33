from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.gp.seen import GRID, history

from sottovoce.acquisition.thompson import (
    PathDraws,
    own_in_box,
    own_in_list,
    shared_in_box,
    shared_in_list,
)
from sottovoce.gp.features import shared_features
from sottovoce.gp.history import History
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.posterior import exact_features
from sottovoce.space.regions import Regions, equal_boxes

RANDOM = np.random.default_rng(3)
KERNEL = Kernel(0.15, 1.0, 0.01)


# what is tried next, on a finite space


def test_an_own_point_without_draws_is_the_best_of_the_exact_gp_mean() -> None:
    seen = history(3, 6)
    table = exact_features(KERNEL, GRID.points())
    prior, noise = np.zeros((3, table.shape[1])), np.zeros((3, 6))
    found = own_in_list(table, KERNEL, seen, prior, noise, 1.0)
    for n in range(3):
        gram = covariance(KERNEL, seen.points[n], seen.points[n]) + 0.01 * np.eye(6)
        across = covariance(KERNEL, GRID.points(), seen.points[n])
        assert int(found[n]) == int(np.argmax(across @ np.linalg.solve(gram, seen.values[n])))


def test_a_larger_scale_explores_more_of_the_space() -> None:
    seen = history(1, 8)
    table = exact_features(KERNEL, GRID.points())
    many = History(
        np.broadcast_to(seen.points, (200, 8, 1)),
        np.broadcast_to(seen.values, (200, 8)),
        np.broadcast_to(np.asarray(seen.mask), (200, 8)),
        np.broadcast_to(np.asarray(seen.index), (200, 8)),
    )
    prior = RANDOM.standard_normal((200, table.shape[1]))
    noise = RANDOM.standard_normal((200, 8))
    spread = [
        len(set(own_in_list(table, KERNEL, many, prior, noise, scale).tolist()))
        for scale in (0.01, 1.0, 10.0)
    ]
    assert spread[0] < spread[1] < spread[2]


@pytest.mark.parametrize("regions", [1, 3])
def test_a_shared_point_is_the_best_by_each_points_own_region(regions: int) -> None:
    features, boxes = shared_features(1, 20, 1, 0.1), equal_boxes(regions, 1)
    points = GRID.points()
    vectors = RANDOM.standard_normal((5, regions, 20))
    found = shared_in_list(features(points), boxes.index(points), vectors)
    for b in range(5):
        heights = [float(features(x) @ vectors[b, int(boxes.index(x))]) for x in points]
        assert int(found[b]) == int(np.argmax(heights))


def test_a_point_of_negative_value_can_still_be_the_best() -> None:
    # a sum over regions must not let the zeros of the others win
    features, boxes = shared_features(1, 1, 1, 10.0), equal_boxes(2, 1)
    table = np.abs(features(GRID.points()))
    assert np.allclose(table, 1)
    vectors = np.asarray([[[-3.0], [-2.0]]])
    found = shared_in_list(table, boxes.index(GRID.points()), vectors)
    assert int(found[0]) == 30


# what is tried next, in the cube


def dense(dims: int, count: int = 201) -> NDArray[np.float64]:
    axes = [np.linspace(0, 1, count)] * dims
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dims)


def test_a_shared_point_in_a_box_is_at_least_as_high_as_any_point_of_a_dense_grid() -> None:
    features, boxes = shared_features(2, 30, 2, 0.2), equal_boxes(4, 2)
    vectors = RANDOM.standard_normal((3, 4, 30))
    places = shared_in_box(features, boxes, vectors, RANDOM.random((3, 1000, 2)))
    grid = dense(2)
    rows, own = features(grid), boxes.index(grid)
    assert places.shape == (3, 2)
    for b in range(3):
        heights = np.einsum("km,km->k", rows, vectors[b][own])
        reached = float(features(places[b]) @ vectors[b, int(boxes.index(places[b]))])
        assert reached >= heights.max() - 1e-9
        assert np.all((places[b] >= 0) & (places[b] <= 1))


def test_an_own_point_in_a_box_with_little_noise_lies_near_the_top_of_a_well_known_function() -> (
    None
):
    axis = np.linspace(0, 1, 9)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(1, -1, 2)
    values = -np.sum((points - np.asarray([0.3, 0.7])) ** 2, axis=-1)
    mask = np.ones(values.shape, dtype=np.bool_)
    seen = History(points, values, mask)
    draws = PathDraws(
        RANDOM.standard_normal((1, 64, 2)),
        RANDOM.standard_normal((1, 64, 2)),
        RANDOM.standard_normal((1, 81)),
        RANDOM.random((1, 500, 2)),
    )
    kernel = Kernel(0.5, 1.0, 1e-6)
    place = own_in_box(kernel, seen, draws, Regions((1, 1)), 1.0)
    assert np.allclose(place, [[0.3, 0.7]], atol=0.03)
