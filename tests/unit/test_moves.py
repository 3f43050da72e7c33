from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.acquisition import moves
from sottovoce.gp.features import shared_features
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.posterior import exact_features
from sottovoce.space import Float, Space
from sottovoce.space.regions import Regions, equal_boxes

RANDOM = np.random.default_rng(3)
GRID = Space([Float("x", 0.0, 1.0, steps=60)])
KERNEL = Kernel(0.15, 1.0, 0.01)


def history(agents: int, t: int, seed: int = 0) -> moves.History:
    random = np.random.default_rng(seed)
    index = random.integers(60, size=(agents, t))
    points = GRID.points()[index]
    values = np.sin(7 * points[..., 0]) + 0.1 * random.standard_normal((agents, t))
    return moves.History(points, values, np.ones((agents, t), dtype=np.bool_), index)


# standardising


def test_standardised_values_have_mean_zero_and_variance_one() -> None:
    values = RANDOM.normal(5.0, 3.0, (4, 9))
    found = moves.standardised(values, np.ones((4, 9), dtype=np.bool_))
    assert np.allclose(found.mean(axis=1), 0, atol=1e-14)
    assert np.allclose(found.std(axis=1), 1)
    assert np.allclose(found[2], (values[2] - values[2].mean()) / values[2].std())


def test_what_is_masked_neither_counts_nor_shows() -> None:
    values = np.asarray([[1.0, 2.0, 6.0, 999.0, math.nan]])
    mask = np.asarray([[True, True, True, False, False]])
    found = moves.standardised(values, mask)
    assert np.allclose(found[:, :3], moves.standardised(values[:, :3], mask[:, :3]))
    assert found[0, 3:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("values", [[[3.0]], [[2.0, 2.0, 2.0]]])
def test_values_without_spread_become_zero(values: list[list[float]]) -> None:
    array = np.asarray(values)
    assert np.all(moves.standardised(array, np.ones(array.shape, dtype=np.bool_)) == 0)


def test_an_empty_history_stays_empty() -> None:
    assert moves.standardised(np.zeros((2, 0)), np.zeros((2, 0), dtype=np.bool_)).shape == (2, 0)
    unseen = moves.standardised(np.ones((2, 3)), np.zeros((2, 3), dtype=np.bool_))
    assert np.all(unseen == 0)


# failed trials


def test_a_failed_trial_is_a_zero_that_the_mask_names() -> None:
    raw = np.asarray([[1.0, math.nan, 3.0], [math.nan] * 3])
    values, mask = moves.modelled(raw, standardise=False)
    assert values.tolist() == [[1.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
    assert mask.tolist() == [[True, False, True], [False] * 3]
    values, same = moves.modelled(raw, standardise=True)
    assert values.tolist() == [[-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert np.array_equal(mask, same)


# what is said


def test_without_draws_the_message_is_the_posterior_mean() -> None:
    features = shared_features(0, 12, 1, 0.1)
    seen = history(3, 5)
    rows = features(seen.points)
    said = moves.message(rows, seen.values, 0.1, np.zeros((3, 12)), np.zeros((3, 5)))
    for n in range(3):
        sigma = rows[n].T @ rows[n] + 0.1 * np.eye(12)
        assert np.allclose(said[n], np.linalg.solve(sigma, rows[n].T @ seen.values[n]))


def test_a_message_is_linear_in_its_draws_with_the_posteriors_covariance() -> None:
    features, lam = shared_features(0, 6, 1, 0.1), 0.3
    rows = features(history(1, 4).points)
    # the images of unit draws are the columns of a square root of the covariance
    zero = moves.message(rows, np.zeros((1, 4)), lam, np.zeros((1, 6)), np.zeros((1, 4)))
    assert np.allclose(zero, 0)
    prior, noise = np.eye(10)[:, :6], np.eye(10)[:, 6:]
    shape = (10, 4)
    root = moves.message(np.broadcast_to(rows, (10, 4, 6)), np.zeros(shape), lam, prior, noise)
    sigma = rows[0].T @ rows[0] + lam * np.eye(6)
    assert np.allclose(root.T @ root, lam * np.linalg.inv(sigma))


def test_rows_that_are_masked_are_zero() -> None:
    seen = history(2, 4)
    mask = np.asarray([[True, True, False, True], [False] * 4])
    table = RANDOM.random((60, 5))
    rows = moves.masked_rows(table, moves.History(seen.points, seen.values, mask, seen.index))
    assert rows.shape == (2, 4, 5)
    assert seen.index is not None
    assert np.array_equal(rows[0, 3], table[seen.index[0, 3]])
    assert np.all(rows[~mask] == 0)


def test_without_a_mask_every_row_is_an_observation() -> None:
    seen, table = history(2, 4), RANDOM.random((60, 5))
    bare = moves.History(None, seen.values, None, seen.index)
    assert np.array_equal(moves.masked_rows(table, bare), moves.masked_rows(table, seen))


def test_starting_rows_are_the_starting_points() -> None:
    boxes, u = np.asarray([0, 1, 2, 1]), RANDOM.random((4, 9, 1, 1))
    rows = moves.starting_rows(GRID, equal_boxes(3, 1), boxes, u)
    points = moves.starting_points(GRID, equal_boxes(3, 1), boxes, u)
    assert np.array_equal(GRID.points()[rows], points)
    assert np.array_equal(equal_boxes(3, 1).index(points), np.repeat(boxes[:, None], 9, axis=1))


# what is tried next, on a finite space


def test_an_own_point_without_draws_is_the_best_of_the_exact_gp_mean() -> None:
    seen = history(3, 6)
    table = exact_features(KERNEL, GRID.points())
    prior, noise = np.zeros((3, table.shape[1])), np.zeros((3, 6))
    found = moves.own_point(table, KERNEL, seen, prior, noise, 1.0)
    for n in range(3):
        gram = covariance(KERNEL, seen.points[n], seen.points[n]) + 0.01 * np.eye(6)
        across = covariance(KERNEL, GRID.points(), seen.points[n])
        assert int(found[n]) == int(np.argmax(across @ np.linalg.solve(gram, seen.values[n])))


def test_a_larger_scale_explores_more_of_the_space() -> None:
    seen = history(1, 8)
    table = exact_features(KERNEL, GRID.points())
    many = moves.History(
        np.broadcast_to(seen.points, (200, 8, 1)),
        np.broadcast_to(seen.values, (200, 8)),
        np.broadcast_to(np.asarray(seen.mask), (200, 8)),
        np.broadcast_to(np.asarray(seen.index), (200, 8)),
    )
    prior = RANDOM.standard_normal((200, table.shape[1]))
    noise = RANDOM.standard_normal((200, 8))
    spread = [
        len(set(moves.own_point(table, KERNEL, many, prior, noise, scale).tolist()))
        for scale in (0.01, 1.0, 10.0)
    ]
    assert spread[0] < spread[1] < spread[2]


@pytest.mark.parametrize("regions", [1, 3])
def test_a_shared_point_is_the_best_by_each_points_own_region(regions: int) -> None:
    features, boxes = shared_features(1, 20, 1, 0.1), equal_boxes(regions, 1)
    points = GRID.points()
    vectors = RANDOM.standard_normal((5, regions, 20))
    found = moves.shared_point(features(points), boxes.index(points), vectors)
    for b in range(5):
        heights = [float(features(x) @ vectors[b, int(boxes.index(x))]) for x in points]
        assert int(found[b]) == int(np.argmax(heights))


def test_a_point_of_negative_value_can_still_be_the_best() -> None:
    # a sum over regions must not let the zeros of the others win
    features, boxes = shared_features(1, 1, 1, 10.0), equal_boxes(2, 1)
    table = np.abs(features(GRID.points()))
    assert np.allclose(table, 1)
    vectors = np.asarray([[[-3.0], [-2.0]]])
    found = moves.shared_point(table, boxes.index(GRID.points()), vectors)
    assert int(found[0]) == 30


# what is tried next, in the cube


def dense(dims: int, count: int = 201) -> NDArray[np.float64]:
    axes = [np.linspace(0, 1, count)] * dims
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dims)


def test_a_shared_place_is_at_least_as_high_as_any_point_of_a_dense_grid() -> None:
    features, boxes = shared_features(2, 30, 2, 0.2), equal_boxes(4, 2)
    vectors = RANDOM.standard_normal((3, 4, 30))
    places = moves.shared_place(features, boxes, vectors, RANDOM.random((3, 1000, 2)))
    grid = dense(2)
    rows, own = features(grid), boxes.index(grid)
    assert places.shape == (3, 2)
    for b in range(3):
        heights = np.einsum("km,km->k", rows, vectors[b][own])
        reached = float(features(places[b]) @ vectors[b, int(boxes.index(places[b]))])
        assert reached >= heights.max() - 1e-9
        assert np.all((places[b] >= 0) & (places[b] <= 1))


def test_an_own_place_with_little_noise_lies_near_the_top_of_a_well_known_function() -> None:
    axis = np.linspace(0, 1, 9)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(1, -1, 2)
    values = -np.sum((points - np.asarray([0.3, 0.7])) ** 2, axis=-1)
    mask = np.ones(values.shape, dtype=np.bool_)
    seen = moves.History(points, values, mask)
    draws = moves.PathDraws(
        RANDOM.standard_normal((1, 64, 2)),
        RANDOM.standard_normal((1, 64, 2)),
        RANDOM.standard_normal((1, 81)),
        RANDOM.random((1, 500, 2)),
    )
    kernel = Kernel(0.5, 1.0, 1e-6)
    place = moves.own_place(kernel, seen, draws, Regions((1, 1)), 1.0)
    assert np.allclose(place, [[0.3, 0.7]], atol=0.03)


# points tried before


def test_a_point_is_repeated_if_all_its_coordinates_are() -> None:
    tried = np.asarray([[[0.0, 1.0], [0.5, 0.5]]] * 4)
    chosen = np.asarray([[0.5, 0.5], [0.5, 1.0], [0.0, 1.0], [0.5, 0.5 + 1e-15]])
    assert moves.repeated(tried, chosen).tolist() == [True, False, True, False]


def test_a_row_is_repeated_if_it_is_among_those_tried() -> None:
    tried = np.asarray([[3, 1], [3, 1], [0, 0]])
    assert moves.repeated(tried, np.asarray([1, 2, 0])).tolist() == [True, False, True]


def test_an_untried_row_is_any_of_those_left() -> None:
    tried = np.broadcast_to(np.asarray([0, 2, 2, 5]), (6000, 4))
    found = moves.untried_row(tried, RANDOM.random((6000, 6)))
    assert np.bincount(found, minlength=6) == pytest.approx([0, 2000, 0, 2000, 2000, 0], rel=0.15)


def test_once_all_rows_are_tried_any_may_come_again() -> None:
    tried = np.broadcast_to(np.arange(4), (4000, 4))
    found = moves.untried_row(tried, RANDOM.random((4000, 4)))
    assert np.bincount(found, minlength=4) == pytest.approx(np.full(4, 1000), rel=0.15)


def test_what_failed_and_what_is_repeated_is_the_same_by_the_bare_array_standard() -> None:
    strict = pytest.importorskip("array_api_strict")
    raw = np.where(RANDOM.random((5, 7)) < 0.4, math.nan, RANDOM.random((5, 7)))
    for standardise in (True, False):
        here, there = (moves.modelled(r, standardise) for r in (raw, strict.asarray(raw)))
        for one, two in zip(here, there, strict=True):
            assert np.array_equal(one, np.asarray(two))
    tried, u = RANDOM.integers(9, size=(5, 4)), RANDOM.random((5, 9))
    rows = moves.untried_row(tried, u)
    abroad = strict.asarray(tried)
    assert np.array_equal(rows, np.asarray(moves.untried_row(abroad, strict.asarray(u))))
    assert not np.any(np.asarray(moves.repeated(abroad, strict.asarray(rows))))
