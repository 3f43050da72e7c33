from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.gp.matern import Coordinates, Matern, bumps
from sottovoce.gp.predictive import Predictive

Floats = NDArray[Any]
PLANE = Coordinates((0, 1), (1.0, 1.0))


def kernels(agents: int) -> Matern:
    random = np.random.default_rng(7)
    return Matern(
        PLANE,
        random.uniform(0.3, 0.8, (agents, 2)),
        random.uniform(0.5, 2.0, agents),
        random.uniform(1e-3, 1e-1, agents),
    )


def seen(agents: int = 3, t: int = 8) -> tuple[Floats, Floats, Any]:
    random = np.random.default_rng(8)
    return random.random((agents, t, 2)), random.standard_normal((agents, t)), None


def plain(kernel: Matern, b: int, points: Floats, y: Floats, x: Floats) -> tuple[Floats, Floats]:
    """The textbook formulas, by a solver, for one agent."""

    def k(a: Floats, c: Floats) -> Floats:
        apart = (a[:, None] - c[None]) / kernel.lengthscale[b]
        return np.asarray(kernel.variance[b] * bumps(np.sum(apart**2, axis=-1))[0])

    K, near = k(points, points) + kernel.noise[b] * np.eye(len(points)), k(x, points)
    variance = kernel.variance[b] - np.sum(near * np.linalg.solve(K, near.T).T, axis=1)
    return near @ np.linalg.solve(K, y), np.sqrt(variance)


def test_mean_and_deviation_are_those_of_the_textbook() -> None:
    points, y, _ = seen()
    kernel, x = kernels(3), np.random.default_rng(9).random((3, 5, 2))
    mean, deviation = Predictive(kernel, points, y, np.ones((3, 8), bool)).moments(x)
    for b in range(3):
        expected = plain(kernel, b, points[b], y[b], x[b])
        np.testing.assert_allclose((mean[b], deviation[b]), expected, rtol=1e-8)


def test_the_pull_is_the_gradient_of_both_moments() -> None:
    points, y, _ = seen()
    known = np.ones((3, 8), bool)
    known[1, 2] = False
    model = Predictive(kernels(3), points, y, known, np.ones((3, 8), bool))
    x = np.random.default_rng(10).random((3, 5, 2))
    mean, _, pull = model.moments_and_pull(x)
    one, none = np.ones_like(mean), np.zeros_like(mean)
    for which, gradient in enumerate((pull.of_moments(one, none), pull.of_moments(none, one))):
        for d in range(2):
            step = 1e-6 * np.eye(2)[d]
            slope = (model.moments(x + step)[which] - model.moments(x - step)[which]) / 2e-6
            np.testing.assert_allclose(gradient[..., d], slope, rtol=1e-5, atol=1e-7)


def test_a_running_trial_leaves_the_mean_alone_and_takes_the_doubt_away() -> None:
    points, y, _ = seen()
    known = np.ones((3, 8), bool)
    known[:, 3] = False
    kernel, x = kernels(3), points[:, 3:4]
    without = Predictive(kernel, points, np.where(known, y, 0.0), known)
    running = Predictive(kernel, points, np.where(known, y, 0.0), known, np.ones((3, 8), bool))
    np.testing.assert_allclose(running.moments(x)[0], without.moments(x)[0], rtol=1e-10)
    assert np.all(running.moments(x)[1] < without.moments(x)[1])
    # as if its value had come out as predicted
    told = np.where(known, y, without.moments(points)[0])
    believed = Predictive(kernel, points, told, np.ones((3, 8), bool))
    elsewhere = np.random.default_rng(11).random((3, 6, 2))
    np.testing.assert_allclose(running.moments(elsewhere), believed.moments(elsewhere), rtol=1e-7)


@pytest.mark.parametrize("which", [slice(0, 1), slice(1, 3)])
def test_a_part_predicts_what_the_whole_does(which: slice) -> None:
    points, y, _ = seen()
    model = Predictive(kernels(3), points, y, np.ones((3, 8), bool))
    x = np.random.default_rng(12).random((3, 4, 2))
    np.testing.assert_allclose(model.part(which).moments(x[which])[0], model.moments(x)[0][which])
