from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.acquisition.improvement import LogImprovement, log_h, log_told
from sottovoce.gp.matern import Coordinates, Matern
from sottovoce.gp.predictive import Predictive

Floats = NDArray[Any]
PLANE = Coordinates((0, 1), (1.0, 1.0))


def model(known: Floats | None = None, t: int = 8) -> Predictive:
    random = np.random.default_rng(0)
    kernel = Matern(PLANE, np.full((2, 2), 0.4), np.ones(2), np.full(2, 0.01))
    mask = np.ones((2, t), bool) if known is None else known
    y = np.where(mask, random.standard_normal((2, t)), 0.0)
    return Predictive(kernel, random.random((2, t, 2)), y, mask, np.ones((2, t), bool))


def test_it_is_the_expected_improvement_of_many_draws_times_what_a_trial_tells() -> None:
    improvement, random = LogImprovement(model()), np.random.default_rng(1)
    x = random.random((2, 3, 2))
    mean, deviation = improvement.model.moments(x)
    best = improvement.model.moments(improvement.incumbent[:, None])[0]
    draws = mean + deviation * random.standard_normal((400_000, 2, 3))
    sampled = np.mean(np.maximum(draws - best, 0.0), axis=0)
    told = 1.0 - 0.1 / np.sqrt(deviation**2 + 0.01)  # the noise's variance is 0.01
    np.testing.assert_allclose(np.exp(improvement.values(x)), sampled * told, rtol=0.03, atol=1e-4)


def test_where_nothing_is_left_to_learn_a_trial_tells_nothing() -> None:
    deviation = np.array([[1e-8, 1e-3, 1.0, 1e3]])
    log, slope = log_told(deviation, np.array([1e-2]))
    np.testing.assert_allclose(np.exp(log[0, 0]), 0.5e-16 / 1e-2, rtol=1e-6)
    np.testing.assert_allclose(np.exp(log[0, 2:]), 1 - 0.1 / np.sqrt([1.01, 1e6]), rtol=1e-6)
    above, below = (log_told(deviation * f, np.array([1e-2]))[0] for f in (1 + 1e-6, 1 - 1e-6))
    np.testing.assert_allclose(slope, (above - below) / (2e-6 * deviation), rtol=1e-4)


def test_the_logarithm_is_exact_from_far_below_to_far_above() -> None:
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    for u in (-1e8, -1e5 - 1, -1e4, -300.0, -38.0, -5.0, -1.001, -0.999, 0.0, 2.0, 50.0):
        h = mpmath.npdf(u) + u * mpmath.ncdf(u)
        found = [float(part[0]) for part in log_h(np.array([u]))]
        wanted = [float(v) for v in (mpmath.log(h), mpmath.ncdf(u) / h, mpmath.npdf(u) / h)]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("fails", [False, True])
def test_its_slope_is_its_gradient_also_where_trials_fail(fails: bool) -> None:
    known = np.ones((2, 8), bool)
    known[:, 2:4] = not fails
    improvement = LogImprovement(model(known), ~known if fails else None)
    x = np.random.default_rng(2).random((2, 6, 2))
    value, gradient = improvement.values_and_gradients(x)
    np.testing.assert_allclose(value, improvement.values(x), rtol=1e-10)
    for d in range(2):
        step = 1e-6 * np.eye(2)[d]
        slope = (improvement.values(x + step) - improvement.values(x - step)) / 2e-6
        np.testing.assert_allclose(gradient[..., d], slope, rtol=1e-4, atol=1e-6)


def test_where_trials_failed_less_is_expected() -> None:
    known = np.ones((2, 8), bool)
    known[:, 5] = False
    there = model(known).points[:, 5:6]
    with_failure, without = LogImprovement(model(known), ~known), LogImprovement(model(known))
    assert np.all(with_failure.values(there) < without.values(there) - 0.2)


def test_before_the_first_value_there_is_still_somewhere_to_go() -> None:
    nothing = np.zeros((2, 8), bool)
    value, gradient = LogImprovement(model(nothing), ~nothing).values_and_gradients(
        np.random.default_rng(3).random((2, 6, 2))
    )
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradient))
