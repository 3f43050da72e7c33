from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.gp.fit import fit, log_marginal_likelihood
from sottovoce.gp.kernel import Kernel, covariance

Floats = NDArray[Any]


def sampled(kernel: Kernel, seed: int, b: int, t: int, d: int = 2) -> tuple[Floats, Floats, Any]:
    """Histories drawn from the GP of this kernel: points, y, mask."""
    rng = np.random.default_rng(seed)
    points = rng.random((b, t, d))
    K = covariance(kernel, points, points) + kernel.noise * np.eye(t)
    y = (np.linalg.cholesky(K) @ rng.standard_normal((b, t, 1)))[..., 0]
    return points, y, np.ones((b, t), bool)


def plain_likelihood(kernel: Kernel, points: Floats, y: Floats) -> float:
    K = covariance(kernel, points, points) + kernel.noise * np.eye(len(y))
    sign, logdet = np.linalg.slogdet(K)
    assert sign == 1
    return float(-0.5 * (y @ np.linalg.solve(K, y) + logdet + len(y) * np.log(2 * np.pi)))


def at(theta: Floats) -> Kernel:
    """The batched kernel of θ = (log ℓ..., log σ², log λ), (B, A + 2)."""
    values = np.exp(theta)
    length = values[:, 0] if theta.shape[1] == 3 else values[:, :-2]
    return Kernel(length, values[:, -2], values[:, -1])


def test_the_likelihood_equals_the_plain_formula_over_the_unmasked_points() -> None:
    points, y, mask = sampled(Kernel(0.3), 1, 2, 8)
    mask[1, [0, 5]] = False
    value, _ = log_marginal_likelihood(Kernel(0.4, 1.5, 0.1), points, y, mask)
    for b in range(2):
        plain = plain_likelihood(Kernel(0.4, 1.5, 0.1), points[b][mask[b]], y[b][mask[b]])
        np.testing.assert_allclose(value[b], plain, rtol=1e-12)


@pytest.mark.parametrize("ard", [False, True])
def test_the_gradient_of_the_likelihood_is_its_slope(ard: bool) -> None:
    points, y, mask = sampled(Kernel(0.3), 2, 3, 9)
    mask[2, 4:] = False
    size = 4 if ard else 3
    theta = np.random.default_rng(0).uniform(-2, 0, (3, size))
    _, gradient = log_marginal_likelihood(at(theta), points, y, mask, ard)
    assert gradient.shape == (3, size)
    for i in range(size):
        step = 1e-5 * np.eye(size)[i]
        above = log_marginal_likelihood(at(theta + step), points, y, mask, ard)[0]
        below = log_marginal_likelihood(at(theta - step), points, y, mask, ard)[0]
        np.testing.assert_allclose(gradient[:, i], (above - below) / 2e-5, rtol=1e-5, atol=1e-6)


def test_the_fit_recovers_the_kernel_the_data_came_from() -> None:
    kernel = fit(*sampled(Kernel(0.25, 2.0, 0.01), 3, 12, 80))
    assert np.all(np.abs(np.log(np.asarray(kernel.lengthscale) / 0.25)) < 0.4)
    assert abs(np.log(np.median(kernel.lengthscale) / 0.25)) < 0.15
    assert abs(np.log(np.median(kernel.variance) / 2.0)) < 0.7
    assert abs(np.log(np.median(kernel.noise) / 0.01)) < 0.25


def test_a_length_scale_per_dimension_finds_the_dimension_that_matters() -> None:
    points, y, mask = sampled(Kernel(np.tile([0.2, 5.0], (4, 1)), np.ones(4)), 4, 4, 60)
    kernel = fit(points, y, mask, ard=True)
    length = np.asarray(kernel.lengthscale)
    assert length.shape == (4, 2)
    assert np.all(length[:, 0] < 0.4)
    assert np.all(length[:, 1] > 1.0)


@pytest.mark.parametrize("start", [Kernel(0.05, 1.0, 0.5), Kernel(3.0, 0.1, 1e-3), Kernel(0.3)])
def test_the_fit_is_never_less_likely_than_its_start(start: Kernel) -> None:
    points, y, mask = sampled(Kernel(0.3), 5, 6, 20)
    before, _ = log_marginal_likelihood(start, points, y, mask)
    for iterations in (0, 3, 50):
        kernel = fit(points, y, mask, start, iterations=iterations)
        assert np.all(log_marginal_likelihood(kernel, points, y, mask)[0] >= before - 1e-9)


def test_a_fit_begun_at_its_own_result_stays_there() -> None:
    data = sampled(Kernel(0.3), 6, 2, 40)
    first = fit(*data, tolerance=1e-9)
    again = fit(*data, first)
    np.testing.assert_allclose(again.lengthscale, first.lengthscale, rtol=1e-3)
    np.testing.assert_allclose(again.noise, first.noise, rtol=1e-3)


def test_each_history_is_fitted_as_if_alone_and_hidden_points_do_not_count() -> None:
    points, y, mask = sampled(Kernel(0.3), 7, 3, 30)
    mask[1, 20:] = False
    together = fit(points, y, mask, tolerance=1e-10)
    y[1, 20:] = 99.0  # behind the mask
    alone = fit(points[1:2], y[1:2], mask[1:2], tolerance=1e-10)
    short = fit(points[1:2, :20], y[1:2, :20], mask[1:2, :20], tolerance=1e-10)
    for name in ("lengthscale", "variance", "noise"):
        value = getattr(alone, name)
        np.testing.assert_allclose(getattr(together, name)[1:2], value, rtol=1e-3)
        np.testing.assert_allclose(getattr(short, name), value, rtol=1e-3)


def test_rescaling_the_observations_rescales_only_the_variances() -> None:
    points, y, mask = sampled(Kernel(0.3), 8, 1, 30)
    one, big = fit(points, y, mask), fit(points, 1e4 * y, mask)
    np.testing.assert_allclose(big.lengthscale, one.lengthscale, rtol=1e-6)
    np.testing.assert_allclose(big.variance, 1e8 * np.asarray(one.variance), rtol=1e-6)


DEGENERATE: dict[str, tuple[Floats, Floats]] = {
    "no point": (np.zeros((1, 0, 2)), np.zeros((1, 0))),
    "one point": (np.full((1, 1, 2), 0.3), np.ones((1, 1))),
    "all zero": (np.random.default_rng(0).random((1, 9, 2)), np.zeros((1, 9))),
    "all equal": (np.random.default_rng(0).random((1, 9, 2)), np.full((1, 9), 7.0)),
    "one place, equal": (np.full((1, 9, 2), 0.3), np.ones((1, 9))),
    "one place, different": (np.full((1, 9, 2), 0.3), np.arange(9.0)[None]),
    "tiny": (np.random.default_rng(0).random((1, 9, 2)), np.full((1, 9), 1e-200)),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("ard", [False, True])
def test_degenerate_data_still_give_a_finite_positive_kernel(name: str, ard: bool) -> None:
    points, y = DEGENERATE[name]
    kernel = fit(points, y, np.ones(y.shape, bool), Kernel(0.2), ard)
    for value in (kernel.lengthscale, kernel.variance, kernel.noise):
        assert np.all(np.isfinite(value))
        assert np.all(np.asarray(value) > 0)


def test_a_start_with_length_scales_per_dimension_serves_an_isotropic_fit() -> None:
    data = sampled(Kernel(0.3), 9, 2, 20)
    start = fit(*data, ard=True)
    assert np.asarray(fit(*data, start).lengthscale).shape == (2,)
