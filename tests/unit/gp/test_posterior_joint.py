from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.acquisition.maximise import JointDraw, RegionalDraw, over_boxes
from sottovoce.gp.features import shared_features
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.posterior import SharedTerm, pathwise_draw, pathwise_joint
from sottovoce.space.regions import Regions

Floats = NDArray[Any]
DRAWS, FREQUENCIES = 20_000, 12
KERNEL = Kernel(0.35, 0.8, 0.05, 0.6)
RANDOM = np.random.default_rng(0)
SEEN = RANDOM.random((6, 2))
Y = np.asarray([1.2, -0.7, 0.4, 1.9, -1.1, 0.3])
MASK = np.asarray([True, True, False, True, True, True])
NEW = RANDOM.random((5, 2))


def common(x: Floats) -> Floats:
    return np.asarray(np.sin(4 * x[..., 0]) + x[..., 1])


def exact(scale: float) -> tuple[Floats, Floats]:
    """Mean and covariance of own part + factor · common + level at NEW, by dense matrices."""
    y, seen = Y[MASK], SEEN[MASK]
    level = np.mean(y**2)

    def prior(a: Floats, b: Floats) -> Floats:
        own = covariance(KERNEL, a, b)
        return np.asarray(own + KERNEL.trust * np.outer(common(a), common(b)) + level)

    K = prior(seen, seen) + KERNEL.noise * np.eye(len(y))
    across = prior(NEW, seen)
    mean = across @ np.linalg.solve(K, y)
    return mean, scale**2 * (prior(NEW, NEW) - across @ np.linalg.solve(K, across.T))


def drawn(scale: float, count: int = DRAWS, still: bool = False, step: int | None = None) -> Floats:
    """Draws of own part + factor · common at NEW, (count, 5); the level is left out.

    still: without chance, but for one of the two normals, if any.
    """
    random = np.random.default_rng(1)

    def normals(*shape: int) -> Floats:
        return np.zeros(shape) if still else random.standard_normal(shape)

    frequencies = random.standard_normal((count, FREQUENCIES, 2))
    path = (frequencies, normals(count, FREQUENCIES, 2), normals(count, 6))
    points, y, mask = (np.broadcast_to(a, (count, *a.shape)) for a in (SEEN, Y, MASK))
    seen = np.where(MASK, common(SEEN), np.nan)  # what is masked may be anything
    leaning = normals(count, 2)
    if step is not None:
        leaning[:, step] = 1.0
    term = SharedTerm(np.broadcast_to(seen, (count, 6)), leaning)
    kernel = Kernel(*(np.full(count, part) for part in KERNEL.parts))
    own, factor = pathwise_joint(kernel, points, y, mask, term, path, scale)
    x = np.broadcast_to(NEW, (count, *NEW.shape))
    return np.asarray(own.values_and_gradients(x)[0] + factor[:, None] * common(NEW))


def contrasts(values: Floats) -> Floats:
    """Differences from the first point: no level is left in them."""
    return np.asarray(values[..., 1:] - values[..., :1])


@pytest.mark.parametrize("scale", [1.0, 0.4])
def test_draws_jointly_with_a_shared_function_have_the_exact_posteriors_mean_and_covariance(
    scale: float,
) -> None:
    mean, cov = exact(scale)
    sample = contrasts(drawn(scale))
    D = np.concatenate([-np.ones((4, 1)), np.eye(4)], axis=1)
    wanted = D @ cov @ D.T
    error = (sample.mean(axis=0) - D @ mean) / np.sqrt(np.diag(wanted) / DRAWS)
    assert np.abs(error).max() < 4.5
    size = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert np.max(np.abs(np.cov(sample.T) - wanted) / size) < 0.05


def test_without_chance_the_draw_is_the_exact_mean() -> None:
    found = contrasts(drawn(1.0, count=1, still=True))[0]
    np.testing.assert_allclose(found, contrasts(exact(1.0)[0]), atol=1e-10)


@pytest.mark.parametrize("which", [0, 1], ids=["factor", "level"])
def test_the_draws_of_the_factor_and_of_the_level_are_corrected_at_the_data(which: int) -> None:
    y, seen, c = Y[MASK], SEEN[MASK], common(SEEN[MASK])
    level, trust = np.mean(y**2), float(KERNEL.trust)
    K = covariance(KERNEL, seen, seen) + trust * np.outer(c, c) + level + 0.05 * np.eye(len(y))
    moved = (np.sqrt(trust) * c, np.full(len(y), np.sqrt(level)))[which]  # one step of the normal
    v = -np.linalg.solve(K, moved)
    wanted = covariance(KERNEL, NEW, seen) @ v + trust * common(NEW) * (c @ v)
    wanted = wanted + (np.sqrt(trust) * common(NEW) if which == 0 else 0.0)
    found = drawn(1.0, count=1, still=True, step=which) - drawn(1.0, count=1, still=True)
    np.testing.assert_allclose(found[0], wanted, atol=1e-10)


def test_without_trust_the_factor_is_zero() -> None:
    random = np.random.default_rng(2)
    waves = random.standard_normal((2, 3, 8, 2))
    path = (waves[0], waves[1], random.standard_normal((3, 6)))
    points, y, mask = (np.broadcast_to(a, (3, *a.shape)) for a in (SEEN, Y, MASK))
    term = SharedTerm(np.ones((3, 6)), random.standard_normal((3, 2)))
    _, factor = pathwise_joint(Kernel(0.35, 0.8, 0.05), points, y, mask, term, path)
    np.testing.assert_array_equal(factor, np.zeros(3))


def test_a_shared_function_that_explains_all_has_the_factor_it_should() -> None:
    t = 12
    points = np.random.default_rng(3).random((1, t, 2))
    y = 2.0 * common(points) - 1.0
    path = (np.zeros((1, 8, 2)), np.zeros((1, 8, 2)), np.zeros((1, t)))
    kernel = Kernel(np.array([0.3]), np.array([1e-6]), np.array([1e-6]), np.array([50.0]))
    term = SharedTerm(common(points), np.zeros((1, 2)))
    own, factor = pathwise_joint(kernel, points, y, np.ones((1, t), bool), term, path)
    assert factor[0] == pytest.approx(2.0, abs=1e-3)
    assert np.abs(own.values(points)).max() < 1e-3


# a sum of two drawn functions


def joined() -> JointDraw:
    random = np.random.default_rng(4)
    points, y = random.random((3, 5, 2)), random.standard_normal((3, 5))
    normals = [random.standard_normal(shape) for shape in ((3, 20, 2), (3, 20, 2), (3, 5))]
    own = pathwise_draw(Kernel(0.3), points, y, np.ones((3, 5), bool), *normals)
    weights = random.standard_normal((1, 16))
    shared = RegionalDraw(shared_features(1, 16, 2, 0.4, "quasirandom"), Regions((1, 1)), weights)
    return JointDraw(own, shared, np.asarray([0.0, 1.5, -2.0]))


def test_a_joint_draw_is_the_own_part_plus_a_multiple_of_the_shared_one() -> None:
    both = joined()
    x = np.random.default_rng(5).random((3, 7, 2))
    wanted = both.own.values(x) + both.factor[:, None] * both.shared.values(x)
    np.testing.assert_allclose(both.values(x), wanted, atol=1e-12)
    np.testing.assert_allclose(both.values_and_gradients(x)[0], wanted, atol=1e-12)
    np.testing.assert_allclose(both.values(x)[0], both.own.values(x)[0], atol=1e-12)
    assert not np.allclose(both.values(x)[1], both.own.values(x)[1], atol=0.1)


def test_the_gradient_of_a_joint_draw_is_its_slope() -> None:
    both = joined()
    x = np.random.default_rng(6).random((3, 7, 2))
    _, gradient = both.values_and_gradients(x)
    for d in range(2):
        step = 1e-6 * np.eye(2)[d]
        slope = (both.values(x + step) - both.values(x - step)) / 2e-6
        np.testing.assert_allclose(gradient[..., d], slope, atol=1e-6)


def test_the_top_of_a_joint_draw_is_found() -> None:
    both = joined()
    x, value = over_boxes(both, np.random.default_rng(7).random((3, 800, 2)), Regions((1, 1)))
    axis = np.linspace(0, 1, 81)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(1, -1, 2)
    highest = both.values(np.broadcast_to(grid, (3, *grid.shape[1:]))).max(axis=1)
    assert np.all(value >= highest - 1e-9)
    np.testing.assert_allclose(both.values(x[:, None])[:, 0], value, atol=1e-10)
