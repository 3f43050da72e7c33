from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.gp.seen import random_trials

from sottovoce.federation.parts.messages import feature_sums, residual_mean, with_failures
from sottovoce.gp.features import shared_features
from sottovoce.gp.shared import RESIDUAL_GAIN

Floats = NDArray[Any]
M = 16
FEATURES = shared_features(5, M, 2, 0.4, "quasirandom")
AGENTS, T = 4, 6


seen = partial(random_trials, AGENTS, T)


def test_an_agent_says_its_features_times_its_standardised_values() -> None:
    points, raw = seen(0)
    found = feature_sums(FEATURES(points), raw)
    for n in range(AGENTS):
        y = (raw[n] - raw[n].mean()) / raw[n].std()
        np.testing.assert_allclose(found[n], FEATURES(points[n]).T @ y, atol=1e-12)


def test_what_it_says_is_no_longer_than_its_points_allow() -> None:
    points, raw = seen(1)
    rows = FEATURES(points)
    bound = [math.sqrt(T * np.linalg.eigvalsh(r @ r.T)[-1]) for r in rows]
    for power in (-8, 0, 8):
        norms = np.linalg.norm(feature_sums(rows, np.sinh(3 * raw) * 10.0**power), axis=1)
        assert np.all(norms <= np.asarray(bound) * (1 + 1e-12))
    # and it can be as long: values along the longest direction
    top = np.linalg.eigh(rows[0] @ rows[0].T)[1][:, -1]
    centred = top - top.mean()
    y = np.sqrt(T) * centred / np.linalg.norm(centred)
    said = np.linalg.norm(feature_sums(rows[:1], y[None])[0])
    assert said == pytest.approx(np.linalg.norm(rows[0].T @ y))


def test_a_failed_trial_adds_nothing() -> None:
    points, raw = seen(2)
    rows, hit = FEATURES(points), raw.copy()
    hit[:, [1, 4]] = math.nan
    kept = [0, 2, 3, 5]
    np.testing.assert_allclose(
        feature_sums(rows, hit), feature_sums(rows[:, kept], raw[:, kept]), atol=1e-12
    )
    assert not np.allclose(feature_sums(rows, hit), feature_sums(rows, raw), atol=0.1)


@pytest.mark.parametrize("raw", [[math.nan] * T, [3.0] * T, [math.nan] * (T - 1) + [2.0]])
def test_an_agent_without_two_different_values_has_nothing_to_say(raw: list[float]) -> None:
    rows = FEATURES(seen(3)[0])[:1]
    np.testing.assert_array_equal(feature_sums(rows, np.asarray([raw])), np.zeros((1, M)))


def test_a_residual_is_the_mean_of_what_is_missing_given_all_its_values() -> None:
    points, raw = seen(20)
    rows, heard, lam, first = FEATURES(points), seen(21)[1], 0.03, 4
    found = residual_mean(rows, raw, heard, first, lam)
    for n in range(AGENTS):
        start = raw[n, :first]
        y = (raw[n] - start.mean()) / start.std() - heard[n]
        seen_of = rows[n] @ rows[n].T + 1.0 + lam * np.eye(T)  # δ, a level, and noise
        wanted = rows[n].T @ np.linalg.solve(seen_of, y)
        np.testing.assert_allclose(found[n], RESIDUAL_GAIN * wanted, atol=1e-10)


def test_who_finds_what_all_know_already_has_next_to_no_residual() -> None:
    points, _ = seen(22)
    rows = FEATURES(points)
    raw = rows @ np.random.default_rng(23).standard_normal(M)
    unit, level = raw.std(axis=1, keepdims=True), raw.mean(axis=1, keepdims=True)
    known = residual_mean(rows, raw, (raw - level) / unit, T, 0.03)
    np.testing.assert_allclose(known, np.zeros((AGENTS, M)), atol=1e-9)
    unknown = residual_mean(rows, raw, np.zeros((AGENTS, T)), T, 0.03)
    assert np.all(np.linalg.norm(unknown, axis=1) > 0.5)


def test_a_failed_trial_leaves_no_residual() -> None:
    points, raw = seen(24)
    rows, hit, heard = FEATURES(points), raw.copy(), seen(25)[1]
    hit[:, [1, 5]] = math.nan
    kept = [0, 2, 3, 4]
    found = residual_mean(rows, hit, heard, 4, 0.03)
    wanted = residual_mean(rows[:, kept], raw[:, kept], heard[:, kept], 3, 0.03)
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    nothing = residual_mean(rows, np.full_like(raw, math.nan), heard, 4, 0.03)
    np.testing.assert_array_equal(nothing, np.zeros((AGENTS, M)))


@pytest.mark.parametrize(("level", "scale"), [(100.0, 1.0), (0.0, 1e-3), (-7.0, 1e4)])
def test_the_level_and_the_scale_of_the_values_do_not_matter(level: float, scale: float) -> None:
    points, raw = seen(4)
    rows = FEATURES(points)
    wanted, heard = feature_sums(rows, raw), seen(5)[1]
    later = residual_mean(rows, raw, heard, 4, 0.03)
    other = residual_mean(rows, level + scale * raw, heard, 4, 0.03)
    np.testing.assert_allclose(other, later, atol=1e-6)
    np.testing.assert_allclose(feature_sums(rows, level + scale * raw), wanted, atol=1e-8)
    np.testing.assert_allclose(feature_sums(rows, -raw), -wanted, atol=1e-12)


def test_a_failed_trial_counts_as_the_worst_that_did_not_in_what_is_said_of_effects() -> None:
    raw = np.array([[3.0, np.nan, -2.0, np.nan], [np.nan] * 4, [1.0, 2.0, 3.0, 4.0]])
    found = with_failures(raw)
    np.testing.assert_array_equal(found[0], [3.0, -2.0, -2.0, -2.0])
    assert np.all(np.isnan(found[1]))  # who has no value has nothing to say
    np.testing.assert_array_equal(found[2], raw[2])
