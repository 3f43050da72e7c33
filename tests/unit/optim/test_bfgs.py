from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from sottovoce.optim.bfgs import ascend

Floats = NDArray[Any]


def bowl(A: Floats, top: Floats) -> Any:
    """The concave quadratics −½(x − top)ᵀA(x − top), one per leading index."""

    def value_and_gradient(x: Floats) -> tuple[Floats, Floats]:
        away = x - top
        pull = np.matmul(A, away[..., None])[..., 0]
        return -0.5 * np.sum(away * pull, axis=-1), -pull

    return value_and_gradient


def rosenbrock(x: Floats) -> tuple[Floats, Floats]:
    a, b = x[..., 0], x[..., 1]
    slope_a = 2 * (1 - a) + 400 * a * (b - a**2)
    return -((1 - a) ** 2) - 100 * (b - a**2) ** 2, np.stack([slope_a, -200 * (b - a**2)], -1)


def random_bowls(n: int, d: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(1)
    L = rng.standard_normal((n, d, d))
    return L @ L.swapaxes(-1, -2) + 0.1 * np.eye(d), rng.uniform(-1, 2, (n, d))


def test_concave_quadratics_are_solved_with_and_without_active_bounds() -> None:
    A, top = random_bowls(40, 3)
    function = bowl(A, top)
    lower, upper = np.zeros(3), np.ones(3)
    x, value = ascend(function, np.full((40, 3), 0.4), lower, upper, iterations=200)
    held = 0
    for i in range(40):
        best = minimize(
            lambda z, i=i: 0.5 * (z - top[i]) @ A[i] @ (z - top[i]),
            np.full(3, 0.5),
            jac=lambda z, i=i: A[i] @ (z - top[i]),
            bounds=[(0, 1)] * 3,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-12},
        )
        assert abs(value[i] + best.fun) < 1e-7
        held += int(np.sum((x[i] == 0) | (x[i] == 1)))
    assert held > 30  # the bounds did matter
    np.testing.assert_allclose(value, function(x)[0])


def test_rosenbrock_is_climbed_from_many_starts() -> None:
    starts = np.random.default_rng(2).uniform(-2, 2, (30, 2))
    bounds = np.full(2, -2.0), np.full(2, 2.0)
    x, value = ascend(rosenbrock, starts, *bounds, iterations=300, tolerance=1e-14)
    np.testing.assert_allclose(x, 1.0, atol=1e-4)
    assert np.all(value > -1e-9)


def test_a_bound_that_cuts_off_the_top_of_rosenbrock_holds_exactly() -> None:
    lower, upper = np.array([-2.0, -2.0]), np.array([0.5, 2.0])
    x, value = ascend(rosenbrock, np.array([[-1.0, 1.0]]), lower, upper, 300, 1e-14)
    assert x[0, 0] == 0.5
    np.testing.assert_allclose(x[0, 1], 0.25, atol=1e-6)
    np.testing.assert_allclose(value, -0.25, atol=1e-9)


def test_each_problem_keeps_to_its_own_bounds() -> None:
    rng = np.random.default_rng(3)
    lower = rng.uniform(0, 0.4, (2, 5, 2))
    upper = lower + rng.uniform(0, 0.5, (2, 5, 2))
    seen: list[Floats] = []

    def function(x: Floats) -> tuple[Floats, Floats]:
        seen.append(x)
        return np.sum(np.sin(9 * x), axis=-1), 9 * np.cos(9 * x)

    x, value = ascend(function, rng.random((2, 5, 2)), lower, upper)
    assert x.shape == (2, 5, 2)
    assert value.shape == (2, 5)
    for visited in [*seen, x]:
        assert np.all((visited >= lower) & (visited <= upper))


def test_a_batch_of_problems_gives_what_each_gives_alone() -> None:
    A, top = random_bowls(6, 2)
    start = np.random.default_rng(4).random((6, 2))
    bounds = np.zeros(2), np.ones(2)
    # exactly as many steps each: convergence is judged for the batch as a whole
    together, _ = ascend(bowl(A, top), start, *bounds, iterations=4, tolerance=-1.0)
    for i in range(6):
        alone, _ = ascend(
            bowl(A[i : i + 1], top[i : i + 1]), start[i : i + 1], *bounds, 4, tolerance=-1.0
        )
        np.testing.assert_allclose(together[i], alone[0], atol=1e-13)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["value", "gradient", "both"])
def test_values_that_are_not_finite_only_shorten_the_step(bad: float, where: str) -> None:
    def function(x: Floats) -> tuple[Floats, Floats]:
        value = -((x[..., 0] - 0.5) ** 2)
        gradient = -2 * (x - 0.5)
        wall = x[..., 0] > 0.55
        if where != "gradient":
            value = np.where(wall, bad, value)
        if where != "value":
            gradient = np.where(wall[..., None], bad, gradient)
        return value, gradient

    x, value = ascend(function, np.array([[0.0], [0.2]]), np.zeros(1), np.ones(1), radius=0.9)
    np.testing.assert_allclose(x, 0.5, atol=1e-4)
    np.testing.assert_allclose(value, 0.0, atol=1e-8)


def test_a_start_without_a_finite_value_stays_and_harms_no_other() -> None:
    def function(x: Floats) -> tuple[Floats, Floats]:
        hole = np.abs(x[..., 0] - 0.9) < 1e-9
        value = np.where(hole, np.nan, -((x[..., 0] - 0.3) ** 2))
        return value, np.where(hole[..., None], np.nan, -2 * (x - 0.3))

    x, value = ascend(function, np.array([[0.9], [0.1]]), np.zeros(1), np.ones(1))
    assert x[0, 0] == 0.9
    assert np.isnan(value[0])
    np.testing.assert_allclose(x[1], 0.3, atol=1e-4)


def test_no_iterations_return_the_start_moved_inside_the_bounds() -> None:
    x, value = ascend(
        bowl(np.eye(2), np.zeros(2)), np.full((1, 2), 3.0), np.zeros(2), np.ones(2), 0
    )
    np.testing.assert_array_equal(x, np.ones((1, 2)))
    np.testing.assert_allclose(value, -1.0)


def test_the_climb_stops_once_all_have_converged() -> None:
    calls = 0
    quadratic = bowl(np.eye(2), np.full(2, 0.5))

    def function(x: Floats) -> tuple[Floats, Floats]:
        nonlocal calls
        calls += 1
        result: tuple[Floats, Floats] = quadratic(x)
        return result

    ascend(function, np.random.default_rng(5).random((20, 2)), np.zeros(2), np.ones(2), 1000)
    assert calls < 12


def test_a_rule_for_who_still_runs_can_replace_the_tolerance() -> None:
    start = np.array([[0.1, 0.2]])
    args = bowl(np.eye(2), np.full(2, 0.5)), start, np.zeros(2), np.ones(2)
    x, _ = ascend(*args, running=lambda value, promise: promise < 0)
    np.testing.assert_array_equal(x, start)
