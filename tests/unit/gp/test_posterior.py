from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.gp.features import shared_features
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.posterior import (
    PathwiseDraw,
    draw,
    exact_features,
    mean,
    next_root_row,
    pathwise_draw,
    pathwise_mean,
)

Floats = NDArray[Any]


def history(seed: int, t: int = 7, m: int = 12) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return shared_features(seed, m, 2, 0.3)(rng.random((t, 2))), rng.standard_normal(t)


def primal(phi: Floats, y: Floats, lam: float) -> tuple[Floats, Floats]:
    """ν and λΣ⁻¹, straight from the paper's formulas."""
    sigma = phi.T @ phi + lam * np.eye(phi.shape[1])
    return np.linalg.solve(sigma, phi.T @ y), lam * np.linalg.inv(sigma)


def linear_map(phi: Floats, lam: float, scale: float) -> Floats:
    """The matrix (M, M + t) by which `draw` maps (prior, noise), from unit vectors."""
    t, m = phi.shape
    units, zeros = np.eye(m + t), np.zeros((m + t, t))
    batch = np.broadcast_to(phi, (m + t, t, m))
    return np.asarray(draw(batch, zeros, lam, units[:, :m], units[:, m:], scale).T)


def test_mean_equals_the_primal_formula() -> None:
    phi, y = history(1)
    np.testing.assert_allclose(mean(phi, y, 0.05), primal(phi, y, 0.05)[0], atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_a_draw_has_exactly_the_posterior_mean_and_covariance(scale: float) -> None:
    phi, y = history(2)
    nu, covariance_ = primal(phi, y, 0.05)
    still = draw(phi, y, 0.05, np.zeros(12), np.zeros(7), scale)
    np.testing.assert_allclose(still, nu, atol=1e-12)
    # the draw is affine in standard normals, so its covariance is A Aᵀ
    A = linear_map(phi, 0.05, scale)
    np.testing.assert_allclose(A @ A.T, scale**2 * covariance_, atol=1e-12)


def test_measured_moments_of_draws_are_those_of_the_posterior() -> None:
    phi, y = history(3, t=5, m=4)
    rng, n = np.random.default_rng(0), 200_000
    draws = draw(phi, y, 0.2, rng.standard_normal((n, 4)), rng.standard_normal((n, 5)))
    nu, covariance_ = primal(phi, y, 0.2)
    np.testing.assert_allclose(draws.mean(axis=0), nu, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(np.cov(draws.T), covariance_, atol=8 / np.sqrt(n))


def test_rows_of_zeros_change_nothing() -> None:
    phi, y = history(4)
    rng = np.random.default_rng(0)
    prior, noise = rng.standard_normal(12), rng.standard_normal(7)
    padded = np.insert(phi, [2, 7, 7], 0.0, axis=0)
    padded_y, padded_noise = np.insert(y, [2, 7, 7], 0.0), np.insert(noise, [2, 7, 7], 9.0)
    np.testing.assert_allclose(
        draw(padded, padded_y, 0.05, prior, padded_noise),
        draw(phi, y, 0.05, prior, noise),
        atol=1e-12,
    )


def test_a_batch_of_draws_equals_a_loop_over_them() -> None:
    rng = np.random.default_rng(5)
    phi, y = rng.standard_normal((2, 3, 5, 8)), rng.standard_normal((2, 3, 5))
    prior, noise = rng.standard_normal((2, 3, 8)), rng.standard_normal((2, 3, 5))
    lam, scale = rng.random((2, 3)) + 0.01, rng.random((2, 3))
    together = draw(phi, y, lam, prior, noise, scale)
    for i in np.ndindex(2, 3):
        alone = draw(phi[i], y[i], float(lam[i]), prior[i], noise[i], float(scale[i]))
        np.testing.assert_allclose(together[i], alone, atol=1e-12)


def test_without_history_the_draw_is_the_prior_and_the_mean_is_zero() -> None:
    prior = np.arange(4.0)
    empty = np.zeros((0, 4)), np.zeros(0)
    np.testing.assert_array_equal(draw(*empty, 0.1, prior, np.zeros(0), 0.5), 0.5 * prior)
    np.testing.assert_array_equal(mean(*empty, 0.1), np.zeros(4))


def test_a_noise_variance_of_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match="lam must be above 0"):
        mean(np.zeros((1, 2)), np.zeros(1), 0.0)


def grown_root(phi: Floats, lam: float) -> Floats:
    """R of a batch of histories (B, t, M), row by row."""
    root = np.zeros((phi.shape[0], phi.shape[1], phi.shape[1]))
    for k in range(phi.shape[1]):
        similar = np.einsum("bim,bm->bi", phi[:, : k + 1], phi[:, k])
        root[:, k, : k + 1] = next_root_row(root[:, :k, :k], similar, lam)
    return root


def test_a_root_grown_row_by_row_is_the_inverse_of_the_cholesky_factor() -> None:
    phi = np.stack([history(seed)[0] for seed in range(3)])
    gram = phi @ phi.mT + 0.05 * np.eye(7)
    wanted = np.linalg.inv(np.linalg.cholesky(gram))
    np.testing.assert_allclose(grown_root(phi, 0.05), wanted, atol=1e-12)


@pytest.mark.parametrize("lam", [1e-2, 1e-6])
def test_a_draw_by_a_kept_root_is_the_draw_from_scratch_even_where_points_repeat(
    lam: float,
) -> None:
    rng = np.random.default_rng(0)
    few = shared_features(0, 30, 2, 0.3)(rng.random((5, 2)))
    phi = few[rng.integers(5, size=(4, 70))]  # 70 observations at 5 points: all but singular
    y, prior, noise = (rng.standard_normal((4, n)) for n in (70, 30, 70))
    wanted = draw(phi, y, lam, prior, noise, 0.7)
    found = draw(phi, y, lam, prior, noise, 0.7, grown_root(phi, lam))
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("lengthscale", [0.02, 0.3, 3.0])
def test_exact_features_reproduce_the_kernel(lengthscale: float) -> None:
    points = np.random.default_rng(6).random((150, 2))
    points[100:] = points[:50]  # a singular matrix
    kernel = Kernel(lengthscale, 2.5)
    factor = exact_features(kernel, points)
    np.testing.assert_allclose(
        factor @ factor.T, covariance(kernel, points, points), rtol=0, atol=1e-11
    )
    assert factor.shape[1] <= 100


def test_a_draw_on_exact_features_is_the_exact_gp_posterior() -> None:
    points = np.random.default_rng(7).random((30, 2))
    kernel, seen = Kernel(0.3, 1.5, 0.1), np.array([3, 8, 8, 21])
    y = np.array([1.0, -0.5, -0.4, 0.2])
    factor = exact_features(kernel, points)
    phi = factor[seen]
    mu, sigma = gp_posterior(kernel, points[seen], y, points)
    np.testing.assert_allclose(factor @ mean(phi, y, 0.1), mu, atol=1e-10)
    A = factor @ linear_map(phi, 0.1, 1.0)
    np.testing.assert_allclose(A @ A.T, sigma, atol=1e-10)


def test_exact_features_of_a_batch_of_kernels_are_refused() -> None:
    with pytest.raises(InvalidInput, match="one kernel"):
        exact_features(Kernel(np.ones(2)), np.zeros((3, 1)))


def gp_posterior(kernel: Kernel, points: Floats, y: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Textbook mean and covariance of the noisy GP at the points `at`."""
    K = covariance(kernel, points, points) + kernel.noise * np.eye(len(points))
    cross = covariance(kernel, at, points)
    half = np.linalg.solve(K, cross.T)
    return half.T @ y, covariance(kernel, at, at) - cross @ half


def normals(seed: int, b: int, f: int, t: int, d: int = 2) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    shapes = (b, f, d), (b, f, 2), (b, t)
    first, second, third = (rng.standard_normal(shape) for shape in shapes)
    return first, second, third


def test_a_pathwise_draw_without_spread_is_the_exact_posterior_mean() -> None:
    rng = np.random.default_rng(8)
    points, y, at = rng.random((2, 9, 2)), rng.standard_normal((2, 9)), rng.random((2, 20, 2))
    parts = np.array([[0.2, 0.5], [1.0, 2.0], [0.1, 0.01]])
    kernel = Kernel(*parts)
    drawn = pathwise_draw(kernel, points, y, np.ones((2, 9), bool), *normals(0, 2, 16, 9), 0.0)
    for b in range(2):
        mu, _ = gp_posterior(Kernel(*parts[:, b]), points[b], y[b], at[b])
        np.testing.assert_allclose(drawn.values(at)[b], mu, atol=1e-10)


def test_the_pathwise_mean_is_the_exact_posterior_mean_of_what_the_mask_shows() -> None:
    rng = np.random.default_rng(8)
    points, y, at = rng.random((2, 9, 2)), rng.standard_normal((2, 9)), rng.random((2, 20, 2))
    parts = np.array([[0.2, 0.5], [1.0, 2.0], [0.1, 0.01]])
    mask = np.ones((2, 9), bool)
    mask[1, 6:] = False
    found = pathwise_mean(Kernel(*parts), points, y, mask)
    for b, seen in enumerate((9, 6)):
        mu, _ = gp_posterior(Kernel(*parts[:, b]), points[b, :seen], y[b, :seen], at[b])
        np.testing.assert_allclose(found.values(at)[b], mu, atol=1e-10)
    assert np.all(pathwise_mean(Kernel(0.2), points[:, :0], y[:, :0], mask[:, :0]).values(at) == 0)


def test_the_correction_of_a_pathwise_draw_is_exact_for_its_own_prior() -> None:
    """f = βf0 + k(x, X)(K + λI)⁻¹(y − β(f0(X) + √λ ε)), with f0 recomputed plainly."""
    rng = np.random.default_rng(9)
    points, y, at = rng.random((1, 6, 2)), rng.standard_normal((1, 6)), rng.random((1, 15, 2))
    kernel, beta = Kernel(0.3, 1.7, 0.05), 0.6
    s, a, e = normals(1, 1, 8, 6)
    drawn = pathwise_draw(kernel, points, y, np.ones((1, 6), bool), s, a, e, beta)

    def prior(x: Floats) -> Floats:
        angle = x @ s[0].T / 0.3
        waves = np.cos(angle) @ a[0, :, 0] + np.sin(angle) @ a[0, :, 1]
        return np.asarray(beta * np.sqrt(1.7 / 8) * waves)

    error = y[0] - prior(points[0]) - beta * np.sqrt(0.05) * e[0]
    expected = prior(at[0]) + gp_posterior(kernel, points[0], error, at[0])[0]
    np.testing.assert_allclose(drawn.values(at)[0], expected, atol=1e-10)


def test_pathwise_draws_have_the_moments_of_the_exact_gp_on_a_grid() -> None:
    n, beta = 20_000, 0.8
    rng = np.random.default_rng(10)
    points, y = rng.random((4, 1)), rng.standard_normal(4)
    grid = np.linspace(0, 1, 6)[:, None]
    kernel = Kernel(0.25, 1.3, 0.05)
    drawn = pathwise_draw(
        kernel,
        np.broadcast_to(points, (n, 4, 1)),
        np.broadcast_to(y, (n, 4)),
        np.ones((n, 4), bool),
        *normals(2, n, 32, 4, d=1),
        beta,
    )
    values = drawn.values(np.broadcast_to(grid, (n, 6, 1)))
    mu, sigma = gp_posterior(kernel, points, y, grid)
    np.testing.assert_allclose(values.mean(axis=0), mu, atol=6 / np.sqrt(n))
    np.testing.assert_allclose(np.cov(values.T), beta**2 * sigma, atol=10 / np.sqrt(n))


def test_a_pathwise_draw_interpolates_the_data_as_the_noise_vanishes() -> None:
    rng = np.random.default_rng(11)
    points, y = rng.random((1, 8, 2)), rng.standard_normal((1, 8))
    ones = np.ones((1, 8), bool)
    drawn = pathwise_draw(Kernel(0.2, 1.0, 1e-10), points, y, ones, *normals(3, 1, 64, 8))
    np.testing.assert_allclose(drawn.values(points), y, atol=1e-3)


def test_what_the_mask_hides_changes_nothing() -> None:
    rng = np.random.default_rng(12)
    points, y, at = rng.random((1, 5, 2)), rng.standard_normal((1, 5)), rng.random((1, 9, 2))
    kernel = Kernel(0.3)
    s, a, e = normals(4, 1, 16, 5)
    full = pathwise_draw(kernel, points, y, np.ones((1, 5), bool), s, a, e)
    wide = [np.insert(v, [1, 5], 0.7, axis=1) for v in (points, y, e)]
    mask = np.insert(np.ones((1, 5), bool), [1, 5], False, axis=1)
    hidden = pathwise_draw(kernel, wide[0], wide[1], mask, s, a, wide[2])
    np.testing.assert_allclose(hidden.values(at), full.values(at), atol=1e-11)


def test_without_history_a_pathwise_draw_is_a_prior_draw() -> None:
    n = 20_000
    empty = np.zeros((n, 0, 1)), np.zeros((n, 0)), np.zeros((n, 0), bool)
    kernel, grid = Kernel(0.3, 2.0), np.linspace(0, 1, 4)[:, None]
    drawn = pathwise_draw(kernel, *empty, *normals(5, n, 8, 0, d=1))
    values, gradients = drawn.values_and_gradients(np.broadcast_to(grid, (n, 4, 1)))
    assert gradients.shape == (n, 4, 1)
    np.testing.assert_allclose(np.cov(values.T), covariance(kernel, grid, grid), atol=0.1)


def an_example(ard: bool) -> tuple[PathwiseDraw, Floats]:
    rng = np.random.default_rng(13)
    points, y, at = rng.random((2, 6, 3)), rng.standard_normal((2, 6)), rng.random((2, 130, 3))
    length = np.array([[0.2, 0.4, 0.8], [0.3, 0.3, 1.0]]) if ard else np.array([0.2, 0.5])
    kernel = Kernel(length, np.array([1.0, 2.0]), 0.05)
    drawn = pathwise_draw(kernel, points, y, np.ones((2, 6), bool), *normals(6, 2, 16, 6, d=3))
    return drawn, at


@pytest.mark.parametrize("ard", [False, True])
def test_gradients_of_a_pathwise_draw_are_its_slopes(ard: bool) -> None:
    drawn, at = an_example(ard)
    values, gradients = drawn.values_and_gradients(at)
    np.testing.assert_allclose(values, drawn.values(at), atol=1e-11)
    for d in range(3):
        step = 1e-6 * np.eye(3)[d]
        slope = (drawn.values(at + step) - drawn.values(at - step)) / 2e-6
        np.testing.assert_allclose(gradients[..., d], slope, atol=1e-6)


def test_a_pathwise_draw_is_the_sum_its_docstring_says() -> None:
    drawn, at = an_example(ard=True)
    angle = np.einsum("bkd,bfd->bkf", at, drawn.frequencies) + drawn.phases[:, None]
    waves = np.einsum("bkf,bf->bk", np.cos(angle), drawn.amplitudes)
    bumps = covariance(drawn.kernel, at, drawn.points)
    expected = waves + np.einsum("bkt,bt->bk", bumps, drawn.coefficients)
    np.testing.assert_allclose(drawn.values(at), expected, atol=1e-11)
