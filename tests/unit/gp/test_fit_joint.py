from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.gp.fit import _likelihood, _squares, fit, fit_joint
from sottovoce.gp.kernel import Kernel, covariance

Floats = NDArray[Any]


def standard(y: Floats) -> Floats:
    return np.asarray((y - y.mean(axis=1, keepdims=True)) / y.std(axis=1, keepdims=True))


def data(seed: int, b: int, t: int, related: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Points, standardised values, mask, and a common function that tells of them or does not."""
    random = np.random.default_rng(seed)
    points = random.random((b, t, 2))
    common = np.sin(5 * points.sum(axis=-1))
    if related:
        y = 3.0 + 2.0 * common + 0.1 * random.standard_normal((b, t))
    else:
        K = covariance(Kernel(0.2), points, points) + 1e-9 * np.eye(t)
        y = (np.linalg.cholesky(K) @ random.standard_normal((b, t, 1)))[..., 0]
    return points, standard(y), np.ones((b, t), bool), common


def plain_likelihood(
    kernel: Kernel, b: int, points: Floats, y: Floats, mask: Floats, common: Floats
) -> float:
    """log p(y) of entry b from K = σ²R + λI + s²ccᵀ + m11ᵀ, over what is not masked."""
    one, kept = kernel.one(b), mask[b]
    points, y, c = points[b][kept], y[b][kept], common[b][kept]
    K = covariance(one, points, points) + one.noise * np.eye(len(y))
    K = K + one.trust * np.outer(c, c) + np.mean(y**2)
    sign, logdet = np.linalg.slogdet(K)
    assert sign == 1
    return float(-0.5 * (y @ np.linalg.solve(K, y) + logdet + len(y) * np.log(2 * np.pi)))


def test_the_likelihood_jointly_with_a_shared_function_is_the_plain_formula() -> None:
    points, y, mask, common = data(0, 3, 8, related=False)
    mask[1, [2, 6]] = False
    y[1, mask[1]] /= np.sqrt(np.mean(y[1, mask[1]] ** 2))  # so that m is 1 there too
    theta = np.random.default_rng(1).uniform(-2, 0, (3, 4))
    kernel = Kernel(*np.exp(theta).T)
    seen, shared = np.where(mask, y, 0.0), np.where(mask, common, 0.0)
    value, _ = _likelihood(_squares(points, False), seen, mask, theta, shared)
    for b in range(3):
        plain = plain_likelihood(kernel, b, points, y, mask, common)
        assert value[b] == pytest.approx(plain, rel=1e-10)


def test_the_gradient_jointly_with_a_shared_function_is_the_slope() -> None:
    points, y, mask, common = data(2, 3, 9, related=True)
    mask[2, 5:] = False
    seen, shared = np.where(mask, y, 0.0), np.where(mask, common, 0.0)
    squares = _squares(points, False)
    theta = np.random.default_rng(3).uniform(-2, 0, (3, 4))
    gradient = _likelihood(squares, seen, mask, theta, shared)[1]
    assert gradient.shape == (3, 4)
    for i in range(4):
        step = 1e-5 * np.eye(4)[i]
        above = _likelihood(squares, seen, mask, theta + step, shared)[0]
        below = _likelihood(squares, seen, mask, theta - step, shared)[0]
        np.testing.assert_allclose(gradient[:, i], (above - below) / 2e-5, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("t", [10, 20])
def test_a_shared_function_that_is_the_truth_is_trusted_and_leaves_little_of_its_own(
    t: int,
) -> None:
    kernel = fit_joint(*data(4, 12, t, related=True))
    assert np.all(np.asarray(kernel.trust) > 1.0)
    assert np.median(kernel.variance) < 0.05
    assert np.all(np.asarray(kernel.variance) < 0.3)


@pytest.mark.parametrize("t", [10, 20])
def test_a_shared_function_that_tells_nothing_is_hardly_trusted(t: int) -> None:
    kernel = fit_joint(*data(5, 12, t, related=False))
    assert np.median(kernel.trust) < 0.01
    assert np.mean(np.asarray(kernel.trust) < 0.01) >= 0.75
    assert np.median(kernel.variance) > 0.5


def test_a_shared_function_may_count_backwards() -> None:
    points, y, mask, common = data(6, 4, 15, related=True)
    for with_sign in (fit_joint(points, y, mask, -common), fit_joint(points, -y, mask, common)):
        np.testing.assert_allclose(
            with_sign.trust, fit_joint(points, y, mask, common).trust, rtol=1e-6
        )


@pytest.mark.parametrize("related", [True, False])
def test_of_a_known_kernel_the_length_scale_and_the_noise_are_kept(related: bool) -> None:
    b = 6
    noise = np.linspace(0.01, 0.05, b)
    known = Kernel(np.full(b, 0.2), np.full(b, 1.3), noise)
    kernel = fit_joint(*data(7, b, 12, related), None, known)
    np.testing.assert_allclose(kernel.lengthscale, 0.2, rtol=1e-12)
    np.testing.assert_allclose(kernel.noise, noise, rtol=1e-12)
    assert np.all(np.asarray(kernel.variance) <= 1.3 * (1 + 1e-9))
    assert (np.median(kernel.variance) < 0.1) == related
    assert (np.median(kernel.trust) > 1.0) == related


def test_known_numbers_serve_the_whole_batch() -> None:
    some = data(8, 3, 10, related=True)
    numbers = fit_joint(*some, None, Kernel(0.2, 1.0, 0.01))
    arrays = fit_joint(*some, None, Kernel(np.full(3, 0.2), np.ones(3), np.full(3, 0.01)))
    for one, two in zip(numbers.parts, arrays.parts, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_known_noise_far_below_the_values_does_not_break_the_fit() -> None:
    # as when values are far larger than the known kernel thought
    points, y, mask, common = data(9, 2, 20, related=False)
    points[:, 10:] = points[:, :10]  # and points come twice
    kernel = fit_joint(points, y, mask, common, None, Kernel(3.0, 1e-18, 1e-20))
    assert all(np.all(np.isfinite(part)) for part in kernel.parts)
    assert np.all(np.asarray(kernel.noise) >= 0.9e-6)


@pytest.mark.parametrize("related", [True, False])
@pytest.mark.parametrize(
    "start",
    [Kernel(0.05, 1.0, 0.5, 0.3), Kernel(3.0, 0.1, 1e-3, 5.0), Kernel(0.3, 1.0, 0.01, 1e-4)],
)
def test_the_fit_is_never_less_likely_than_its_start(start: Kernel, related: bool) -> None:
    some = data(10, 5, 12, related)
    kernel = fit_joint(*some, start)
    batch = Kernel(*(np.full(5, part) for part in start.parts))
    for b in range(5):
        before, after = (plain_likelihood(k, b, *some) for k in (batch, kernel))
        assert after >= before - 1e-7


def test_a_start_without_trust_will_do() -> None:
    points, y, mask, common = data(11, 3, 12, related=True)
    start = fit(points, y, mask)
    assert start.trust == 0.0
    kernel = fit_joint(points, y, mask, common, start)
    assert np.all(np.asarray(kernel.trust) > 0.5)


def test_a_fit_with_a_shared_function_is_no_less_likely_than_one_that_leaves_it_out() -> None:
    some = data(12, 5, 12, related=True)
    kernel = fit_joint(*some)
    without = replace(kernel, trust=1e-4 * np.ones(5))
    for b in range(5):
        assert plain_likelihood(kernel, b, *some) > plain_likelihood(without, b, *some) + 1.0


def test_what_is_masked_changes_nothing_and_each_history_is_fitted_as_if_alone() -> None:
    points, y, mask, common = data(13, 3, 20, related=True)
    mask[1, 12:] = False
    together = fit_joint(points, y, mask, common)
    y[1, 12:], common[1, 12:] = 99.0, np.nan  # behind the mask
    alone = fit_joint(points[1:2], y[1:2], mask[1:2], common[1:2])
    short = fit_joint(points[1:2, :12], y[1:2, :12], mask[1:2, :12], common[1:2, :12])
    for k, value in enumerate(alone.parts):
        np.testing.assert_allclose(np.asarray(together.parts[k])[1:2], value, rtol=1e-3)
        np.testing.assert_allclose(short.parts[k], value, rtol=1e-3)


@pytest.mark.parametrize("t", [0, 1, 9])
@pytest.mark.parametrize("value", [0.0, 7.0])
def test_degenerate_data_still_give_a_finite_kernel(t: int, value: float) -> None:
    points, mask = np.full((1, t, 2), 0.3), np.ones((1, t), bool)
    common = np.full((1, t), 2.0)
    for known in (None, Kernel(0.3, 1.0, 0.01)):
        kernel = fit_joint(points, np.full((1, t), value), mask, common, None, known)
        assert all(np.all(np.isfinite(part)) for part in kernel.parts)
        assert all(np.all(np.asarray(part) > 0) for part in kernel.parts)
