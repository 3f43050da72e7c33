from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.gp.matern import Coordinates, Matern, bumps, fit_map, log_posterior, walked

Floats = NDArray[Any]

# two numbers and a choice of three
MIXED = Coordinates((0, 1, 2, 2, 2), (1.0, 1.0, 0.5, 0.5, 0.5))
PLANE = Coordinates((0, 1), (1.0, 1.0))


def mixed_points(agents: int, t: int, seed: int = 0) -> Floats:
    random = np.random.default_rng(seed)
    choice = np.eye(3)[random.integers(3, size=(agents, t))]
    return np.concatenate([random.random((agents, t, 2)), choice], axis=-1)


def fitted(coordinates: Coordinates, points: Floats, y: Floats, mask: Floats) -> Matern:
    """The kernel of a history that knows of no other."""
    kernel, trust = fit_map(coordinates, points, y, mask)
    assert trust is None
    return kernel


def test_two_choices_are_one_apart_and_a_choice_is_none_from_itself() -> None:
    points = np.concatenate([np.zeros((1, 3, 2)), np.eye(3)[None]], axis=-1)
    np.testing.assert_allclose(MIXED.squares(points)[0, 2], 1.0 - np.eye(3))
    np.testing.assert_allclose(MIXED.squares(points)[0, :2], 0.0)


def test_the_kernel_is_the_matern_of_five_halves() -> None:
    sklearn = pytest.importorskip("sklearn.gaussian_process.kernels")
    points = np.random.default_rng(0).random((1, 7, 2))
    ell = np.array([[0.3, 0.8]])
    kernel = Matern(PLANE, ell, np.array([1.0]), np.array([0.1]))
    scaled = points * kernel.rates
    square = np.sum((scaled[0, :, None] - scaled[0, None]) ** 2, axis=-1)
    np.testing.assert_allclose(
        bumps(square)[0], sklearn.Matern(length_scale=ell[0], nu=2.5)(points[0]), rtol=1e-12
    )


def test_the_slope_of_the_density_is_its_gradient_also_where_trials_are_missing() -> None:
    random = np.random.default_rng(1)
    points, mask = mixed_points(3, 9), np.ones((3, 9), bool)
    mask[1, [0, 4]] = False
    y = np.where(mask, random.standard_normal((3, 9)), 0.0)
    squares, theta = MIXED.squares(points), random.uniform(-1.5, 0.5, (3, 5))
    _, gradient = log_posterior(squares, y, mask, theta)
    for i in range(5):
        step = 1e-5 * np.eye(5)[i]
        above = log_posterior(squares, y, mask, theta + step)[0]
        below = log_posterior(squares, y, mask, theta - step)[0]
        np.testing.assert_allclose(gradient[:, i], (above - below) / 2e-5, rtol=1e-5, atol=1e-7)


def test_a_missing_trial_changes_nothing() -> None:
    points, random = mixed_points(1, 8), np.random.default_rng(2)
    y, mask = random.standard_normal((1, 8)), np.ones((1, 8), bool)
    mask[0, 5] = False
    without = fitted(MIXED, np.delete(points, 5, 1), np.delete(y, 5, 1), np.delete(mask, 5, 1))
    kernel = fitted(MIXED, points, np.where(mask, y, 0.0), mask)
    np.testing.assert_allclose(kernel.lengthscale, without.lengthscale, rtol=1e-6)
    np.testing.assert_allclose(kernel.noise, without.noise, rtol=1e-6)


def test_a_parameter_that_does_not_matter_gets_a_long_length_scale() -> None:
    points = np.random.default_rng(3).random((4, 40, 2))
    y = np.sin(9 * points[..., 0])
    kernel = fitted(PLANE, points, y / y.std(), np.ones((4, 40), bool))
    assert np.all(kernel.lengthscale[:, 1] > 4 * kernel.lengthscale[:, 0])
    assert np.all(kernel.noise < 1e-2)


def test_values_of_noise_alone_are_taken_for_noise() -> None:
    random = np.random.default_rng(4)
    points, y = random.random((4, 60, 2)), random.standard_normal((4, 60))
    assert np.all(fitted(PLANE, points, y, np.ones((4, 60), bool)).noise > 0.3)


def test_an_agents_kernel_does_not_depend_on_who_else_is_in_the_batch() -> None:
    random = np.random.default_rng(5)
    points, y, mask = mixed_points(6, 12), random.standard_normal((6, 12)), np.ones((6, 12), bool)
    together = fitted(MIXED, points, y, mask)
    alone = fitted(MIXED, points[2:3], y[2:3], mask[2:3])
    np.testing.assert_allclose(together.lengthscale[2:3], alone.lengthscale, rtol=1e-8)


@pytest.mark.parametrize("values", [np.zeros(6), np.full(6, 1e-300), np.eye(6)[0]])
def test_degenerate_values_and_equal_points_still_give_a_kernel(values: Floats) -> None:
    points = np.full((1, 6, 2), 0.5)
    kernel = fitted(PLANE, points, values[None], np.ones((1, 6), bool))
    for size in (kernel.lengthscale, kernel.variance, kernel.noise):
        assert np.all(np.isfinite(size))
        assert np.all(size > 0)


def walks(points: Floats, y: Floats, stride: float) -> Matern:
    """Forty walks from the kernel of highest density."""
    random = np.random.default_rng(6)
    kernel = fitted(PLANE, points, y, np.ones(y.shape, bool))
    moves = stride * random.standard_normal((200, 40, 4))
    return walked(kernel, points, y, moves, random.random((200, 40)))


def test_walks_without_moves_stay_where_they_are() -> None:
    points = np.random.default_rng(7).random((1, 12, 2))
    y = np.sin(5 * points[..., 0])
    still = walks(points, y / y.std(), 0.0)
    kernel = fitted(PLANE, points, y / y.std(), np.ones((1, 12), bool))
    np.testing.assert_allclose(still.lengthscale, np.repeat(kernel.lengthscale, 40, axis=0))
    np.testing.assert_allclose(still.noise, np.repeat(kernel.noise, 40))


def test_drawn_kernels_differ_the_less_the_more_is_known_and_stay_within_their_bounds() -> None:
    points = np.random.default_rng(8).random((1, 40, 2))
    y = np.sin(5 * points[..., 0])
    y = y / y.std()
    few, many = (walks(points[:, :t], y[:, :t], 0.5) for t in (5, 40))
    spread = [np.std(np.log(each.lengthscale[:, 0])) for each in (few, many)]
    assert spread[0] > 2 * spread[1] > 0.02
    for each in (few, many):
        assert np.all((each.noise >= 1e-6) & (each.noise <= 2.0))


def test_drawn_kernels_have_the_prior_where_the_values_hardly_tell() -> None:
    """One value says nothing of length scales: their logarithms spread as the prior's do."""
    lengths = np.log(walks(np.full((1, 1, 2), 0.5), np.zeros((1, 1)), 0.8).lengthscale)
    assert abs(np.mean(lengths) - np.log(0.25 * np.sqrt(2))) < 0.35
    assert 0.75 < np.std(lengths) < 1.3
