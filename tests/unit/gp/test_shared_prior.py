"""What a model takes from all functions: `SharedPrior` of a prediction, `Shared` of a fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.acquisition.improvement import LogImprovement
from sottovoce.gp.effects import effects
from sottovoce.gp.matern import Coordinates, Matern, Shared, bumps, fit_map, log_posterior
from sottovoce.gp.predictive import Predictive, SharedPrior

Floats = NDArray[Any]
# two numbers and a choice of three
MIXED = Coordinates((0, 1, 2, 2, 2), (1.0, 1.0, 0.5, 0.5, 0.5))
BASIS = effects(MIXED)
M = BASIS.count
B, T = 3, 8


def points(count: int, seed: int) -> Floats:
    random = np.random.default_rng(seed)
    choice = np.eye(3)[random.integers(3, size=(B, count))]
    return np.concatenate([random.random((B, count, 2)), choice], axis=-1)


def prior(trust: float | None = None) -> SharedPrior:
    random = np.random.default_rng(1)
    root = random.standard_normal((M, M)) / np.sqrt(M)
    each = None if trust is None else trust * np.array([1.0, 0.5, 2.0])
    return SharedPrior(BASIS, random.standard_normal(M), root, 0.3, each)


def kernel() -> Matern:
    random = np.random.default_rng(2)
    sizes = random.uniform(0.3, 0.9, (B, 3)), random.uniform(0.5, 1.5, B)
    return Matern(MIXED, *sizes, np.array([1e-3, 1e-2, 1e-1]))


def model(shared: SharedPrior | None, missing: bool = False) -> Predictive:
    y, known = np.random.default_rng(3).standard_normal((B, T)), np.ones((B, T), bool)
    if missing:
        known[1, [2, 5]] = False
    present = np.ones_like(known) if missing else None
    return Predictive(kernel(), points(T, 4), y, known, present, shared)


def dense(b: int, of: Predictive, x: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation at x of a plain GP whose kernel is the sum, by a solver."""
    shared = of.prior
    assert shared is not None
    trust = 1.0 if shared.trust is None else float(shared.trust[b])
    rates = of.kernel.rates[b]

    def k(a: Floats, c: Floats) -> Floats:
        apart = np.sum((a[:, None] * rates - c[None] * rates) ** 2, axis=-1)
        common = BASIS(a) @ shared.root @ shared.root.T @ BASIS(c).T
        own = of.kernel.variance[b] * bumps(apart)[0]
        return np.asarray(own + trust**2 * common + shared.level)

    def m(a: Floats) -> Floats:
        return np.asarray(trust * BASIS(a) @ shared.mean)

    known, there = of.known[b], of.known[b] if of.present is None else of.present[b]
    at, y = of.points[b][known], of.y[b][known]
    K = k(at, at) + of.kernel.noise[b] * np.eye(len(at))
    mean = m(x) + k(x, at) @ np.linalg.solve(K, y - m(at))
    at = of.points[b][there]
    K, near = k(at, at) + of.kernel.noise[b] * np.eye(len(at)), k(x, at)
    variance = np.diag(k(x, x)) - np.sum(near * np.linalg.solve(K, near.T).T, axis=1)
    return np.asarray(mean), np.sqrt(variance)


@pytest.mark.parametrize("missing", [False, True], ids=["all known", "some unknown"])
@pytest.mark.parametrize("trust", [None, 0.7])
def test_a_prediction_is_that_of_a_gp_whose_kernel_is_the_sum(
    trust: float | None, missing: bool
) -> None:
    of, x = model(prior(trust), missing), points(6, 5)
    mean, deviation = of.moments(x)
    for b in range(B):
        wanted = dense(b, of, x[b])
        np.testing.assert_allclose(mean[b], wanted[0], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(deviation[b], wanted[1], rtol=1e-6)


def test_without_trust_and_level_a_prior_changes_nothing() -> None:
    x = points(6, 6)
    none, little = model(None), model(replace(prior(1e-9), level=0.0))
    for one, two in zip(none.moments(x), little.moments(x), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("missing", [False, True], ids=["all known", "some unknown"])
@pytest.mark.parametrize("trust", [None, 0.7])
def test_the_slope_of_the_improvement_is_its_gradient_with_a_prior(
    trust: float | None, missing: bool
) -> None:
    of = model(prior(trust), missing)
    improvement = LogImprovement(of, ~of.known if missing else None)
    x = points(5, 7)
    value, slope = improvement.values_and_gradients(x)
    np.testing.assert_allclose(value, improvement.values(x), rtol=1e-9)
    for d in (0, 1):  # a choice is not moved by gradients
        step = 1e-6 * np.eye(5)[d]
        wanted = (improvement.values(x + step) - improvement.values(x - step)) / 2e-6
        np.testing.assert_allclose(slope[..., d], wanted, rtol=1e-4, atol=1e-5)


def test_a_part_of_the_batch_predicts_as_the_whole_does() -> None:
    of, x = model(prior(0.7), missing=True), points(6, 8)
    part = of.part(slice(1, 3))
    for one, two in zip(of.moments(x), part.moments(x[1:3]), strict=True):
        np.testing.assert_allclose(two, one[1:3], rtol=1e-12)


# the fit


def common(at: Floats, weights: Floats, doubt: float = 0.05) -> Shared:
    rows = BASIS(at)
    return Shared(rows @ weights, doubt * rows @ np.swapaxes(rows, -1, -2))


def test_the_slope_of_the_density_is_its_gradient_with_what_is_shared() -> None:
    random, at = np.random.default_rng(9), points(9, 9)
    mask = np.ones((B, 9), bool)
    mask[1, [0, 4]] = False
    y = np.where(mask, random.standard_normal((B, 9)), 0.0)
    squares, theta = MIXED.squares(at), random.uniform(-1.5, 0.5, (B, 6))
    shared = common(at, random.standard_normal(M))
    _, gradient = log_posterior(squares, y, mask, theta, shared)
    assert gradient.shape == theta.shape
    for i in range(6):
        step = 1e-5 * np.eye(6)[i]
        above, below = (
            log_posterior(squares, y, mask, theta + sign * step, shared)[0] for sign in (1, -1)
        )
        np.testing.assert_allclose(gradient[:, i], (above - below) / 2e-5, rtol=1e-5, atol=1e-7)


def standard(values: Floats) -> Floats:
    centred = values - values.mean(axis=-1, keepdims=True)
    return np.asarray(centred / centred.std(axis=-1, keepdims=True))


def test_who_follows_the_shared_function_trusts_it_more_than_who_does_not() -> None:
    random, at = np.random.default_rng(10), points(12, 10)
    weights = 2.0 * random.standard_normal(M)
    mask, shared = np.ones((B, 12), bool), common(at, weights)
    like = standard(BASIS(at) @ weights + 0.1 * random.standard_normal((B, 12)))
    other = standard(BASIS(at) @ (-weights) + 0.1 * random.standard_normal((B, 12)))
    (_, trusting), (_, doubting) = (fit_map(MIXED, at, y, mask, shared) for y in (like, other))
    assert trusting is not None
    assert doubting is not None
    assert np.all(trusting > 2 * doubting)
    assert np.all(doubting < 0.2)


def test_a_missing_trial_changes_nothing_of_the_trust() -> None:
    random, at = np.random.default_rng(11), points(9, 11)
    y, mask = random.standard_normal((B, 9)), np.ones((B, 9), bool)
    mask[:, 5] = False
    shared = common(at, random.standard_normal(M))
    rest = np.delete(at, 5, 1)
    less = Shared(np.delete(shared.mean, 5, 1), np.delete(np.delete(shared.covariance, 5, 1), 5, 2))
    _, whole = fit_map(MIXED, at, np.where(mask, y, 0.0), mask, shared)
    _, without = fit_map(MIXED, rest, np.delete(y, 5, 1), np.delete(mask, 5, 1), less)
    np.testing.assert_allclose(np.asarray(whole), np.asarray(without), rtol=1e-5)


def test_what_values_do_not_bear_out_is_left_and_the_kernel_is_that_of_who_is_alone() -> None:
    random, at = np.random.default_rng(12), points(25, 12)
    mask, shared = np.ones((B, 25), bool), common(at, 2.0 * random.standard_normal(M))
    y = standard(np.sin(7 * at[..., 0]) + 0.05 * random.standard_normal((B, 25)))
    kernel, trust = fit_map(MIXED, at, y, mask, shared)
    alone, none = fit_map(MIXED, at, y, mask)
    assert none is None
    np.testing.assert_array_equal(np.asarray(trust), 0.0)
    np.testing.assert_array_equal(kernel.lengthscale, alone.lengthscale)
    np.testing.assert_array_equal(kernel.noise, alone.noise)
