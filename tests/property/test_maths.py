"""Laws of the maths core that hold for whatever shapes and values come."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sottovoce.acquisition.maximise import RegionalDraw, over_boxes
from sottovoce.gp.features import shared_features
from sottovoce.gp.fit import fit, log_marginal_likelihood
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.posterior import draw, exact_features, mean, pathwise_draw
from sottovoce.optim.bfgs import ascend
from sottovoce.space.regions import equal_boxes

Floats = NDArray[Any]
seeds = st.integers(0, 2**32 - 1)
few = st.integers(1, 6)
lengths = st.floats(0.02, 5.0)
modest = settings(max_examples=40, deadline=None)


@modest
@given(seeds, st.integers(1, 50), few, lengths)
def test_features_have_unit_norm_everywhere(seed: int, m: int, d: int, length: float) -> None:
    x = np.random.default_rng(seed).random((3, 4, d))
    phi = shared_features(seed, m, d, length)(x)
    np.testing.assert_allclose(np.linalg.norm(phi, axis=-1), 1.0, atol=1e-12)


@modest
@given(seeds, few, st.integers(0, 8), st.integers(1, 12), st.floats(1e-4, 10))
def test_a_draw_minus_the_mean_has_covariance_lambda_sigma_inverse(
    seed: int, d: int, t: int, m: int, lam: float
) -> None:
    rng = np.random.default_rng(seed)
    phi = shared_features(seed, m, d, 0.5)(rng.random((t, d)))
    y, units = rng.standard_normal(t), np.eye(m + t)
    centre = mean(phi, y, lam)
    A = (draw(phi, y, lam, units[:, :m], units[:, m:]) - centre).T
    sigma = phi.T @ phi + lam * np.eye(m)
    np.testing.assert_allclose(A @ A.T, lam * np.linalg.inv(sigma), atol=1e-8)
    np.testing.assert_allclose(sigma @ centre, phi.T @ y, atol=1e-8)


@modest
@given(seeds, st.integers(1, 7), st.integers(0, 5), st.floats(0, 3))
def test_padding_and_order_of_the_history_change_no_draw(
    seed: int, t: int, extra: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    phi, y = rng.standard_normal((t, 9)), rng.standard_normal(t)
    prior, noise = rng.standard_normal(9), rng.standard_normal(t)
    order = rng.permutation(t + extra)
    padded = np.concatenate([phi, np.zeros((extra, 9))])[order]
    padded_y = np.concatenate([y, np.zeros(extra)])[order]
    padded_noise = np.concatenate([noise, rng.standard_normal(extra)])[order]
    np.testing.assert_allclose(
        draw(padded, padded_y, 0.1, prior, padded_noise, scale),
        draw(phi, y, 0.1, prior, noise, scale),
        atol=1e-9,
    )


@modest
@given(seeds, st.integers(1, 30), few, lengths, st.floats(0.1, 10))
def test_exact_features_are_a_factor_of_the_kernel_matrix(
    seed: int, k: int, d: int, length: float, variance: float
) -> None:
    points = np.random.default_rng(seed).integers(0, 4, (k, d)) / 3  # with repeats
    kernel = Kernel(length, variance)
    factor = exact_features(kernel, points)
    np.testing.assert_allclose(
        factor @ factor.T, covariance(kernel, points, points), atol=1e-12 * k * variance
    )


@modest
@given(seeds, few, st.integers(0, 6), st.integers(1, 4), lengths)
def test_pathwise_draws_in_a_batch_equal_each_alone_and_slope_as_they_say(
    seed: int, b: int, t: int, d: int, length: float
) -> None:
    rng = np.random.default_rng(seed)
    data = rng.random((b, t, d)), rng.standard_normal((b, t)), rng.random((b, t)) < 0.7
    normals = [rng.standard_normal(shape) for shape in ((b, 10, d), (b, 10, 2), (b, t))]
    lengthscale = length * (1 + rng.random(b))
    x = rng.random((b, 5, d))
    drawn = pathwise_draw(Kernel(lengthscale), *data, *normals)
    values, gradients = drawn.values_and_gradients(x)
    along = rng.standard_normal((b, 5, d))
    h = 1e-6 * length
    slope = (drawn.values(x + h * along) - drawn.values(x - h * along)) / (2 * h)
    np.testing.assert_allclose(
        np.sum(gradients * along, axis=-1) * length, slope * length, atol=1e-4
    )
    for i in range(b):
        one = [v[i : i + 1] for v in (*data, *normals)]
        alone = pathwise_draw(Kernel(float(lengthscale[i])), *one)
        np.testing.assert_allclose(alone.values(x[i : i + 1])[0], values[i], atol=1e-8)


@modest
@given(seeds, few, few)
def test_ascent_never_goes_down_nor_out(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    s, c = rng.normal(0, 8, (4, d)), rng.standard_normal(4)
    lower = rng.random((n, d)) - 0.5
    upper = lower + rng.random((n, d)) * rng.integers(0, 2, (n, d))  # some of width 0

    def function(x: Floats) -> tuple[Floats, Floats]:
        angle = x @ s.T
        return np.sin(angle) @ c, (np.cos(angle) * c) @ s

    start = rng.uniform(lower, upper)
    x, value = ascend(function, start, lower, upper)
    assert np.all((x >= lower) & (x <= upper))
    assert np.all(value >= function(start)[0])
    np.testing.assert_array_equal(value, function(x)[0])


@modest
@given(seeds, few, st.integers(1, 4), st.sampled_from([1, 2, 3, 4, 6]), lengths)
def test_the_maximum_is_inside_the_cube_and_no_candidate_is_higher(
    seed: int, b: int, d: int, p: int, length: float
) -> None:
    rng = np.random.default_rng(seed)
    regions = equal_boxes(p, d)
    drawn = RegionalDraw(
        shared_features(seed, 20, d, length), regions, rng.standard_normal((b, p, 20))
    )
    candidates = rng.random((b, 60, d))
    x, value = over_boxes(drawn, candidates, regions)
    assert np.all((x >= 0) & (x <= 1))
    highest = drawn.values(candidates).max(axis=-1)
    assert np.all(value >= highest - 1e-12 * (1 + np.abs(highest)))
    np.testing.assert_allclose(drawn.values(x[:, None])[:, 0], value, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(seeds, few, st.integers(0, 9), st.integers(1, 3), st.booleans(), lengths, st.floats(0.01, 4))
def test_no_fit_is_less_likely_than_its_start_whatever_the_data(
    seed: int, b: int, t: int, d: int, ard: bool, length: float, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, (b, t, d)) / 3  # with repeats
    y, mask = rng.integers(-2, 3, (b, t)).astype(float), rng.random((b, t)) < 0.8
    square = np.sum(y**2 * mask, axis=1) / np.maximum(mask.sum(axis=1), 1)
    square = np.where(square > 0, square, 1.0)
    start = Kernel(np.full(b, length), square, noise * square)
    kernel = fit(points, y, mask, start, ard)
    before, _ = log_marginal_likelihood(start, points, y, mask)
    after, _ = log_marginal_likelihood(kernel, points, y, mask, ard)
    assert np.all(after >= before - 1e-7)
