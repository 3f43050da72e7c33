from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.federation.parts.messages import feature_sums, residual_mean
from sottovoce.gp.features import shared_features
from sottovoce.gp.quasirandom import quasirandom_points
from sottovoce.gp.shared import RESIDUAL_GAIN, PooledModel, SharedPosterior
from sottovoce.privacy.release import clipped

Floats = NDArray[np.float64]
M, PRIOR, LAM = 12, 0.4, 0.03
FEATURES = shared_features(3, M, 2, 0.4, "quasirandom")


def pool(agents: int, initial: int = 5) -> PooledModel:
    points = quasirandom_points(b"pool", agents * initial, 2).reshape(agents, initial, 2)
    return PooledModel(points, FEATURES, PRIOR, LAM)


def centred(design: PooledModel) -> Floats:
    """Φ̃_n of all agents, (N, n0, M)."""
    rows = FEATURES(design.points)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def said(design: PooledModel, values: Floats) -> Floats:
    """b without noise: the mean over agents of Φ_nᵀ y_n, y_n with its mean taken off."""
    y = values - values.mean(axis=1, keepdims=True)
    return np.asarray(np.einsum("ntm,nt->m", FEATURES(design.points), y) / len(y))


def covariance_of(common: SharedPosterior) -> Floats:
    return np.asarray(common.root @ common.root.T)


@pytest.mark.parametrize("noise", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("agents", [1, 2, 40])
def test_the_posterior_is_that_of_dense_matrices(agents: int, noise: float) -> None:
    design = pool(agents)
    rows = centred(design)
    G = np.einsum("ntm,ntk->mk", rows, rows) / agents
    seen = PRIOR * G @ G + G / agents + noise**2 * np.eye(M)
    gain = PRIOR * G @ np.linalg.pinv(seen, rcond=1e-9, hermitian=True)
    b = said(design, np.random.default_rng(0).standard_normal((agents, 5)))
    found = design.posterior(b[None], noise)
    np.testing.assert_allclose(found.mean, gain @ b, atol=1e-6)
    wanted = PRIOR * np.eye(M) - gain @ G * PRIOR
    np.testing.assert_allclose(covariance_of(found), wanted, atol=1e-6)


def test_without_noise_it_is_the_regression_on_all_values_together() -> None:
    # nothing is lost by adding up: as if everybody's values had been pooled
    design = pool(30)
    rows = centred(design).reshape(-1, M)
    values = np.random.default_rng(1).standard_normal((30, 5))
    y = (values - values.mean(axis=1, keepdims=True)).ravel()
    precision = rows.T @ rows + np.eye(M) / PRIOR
    found = design.posterior(said(design, values)[None], 0.0)
    np.testing.assert_allclose(found.mean, np.linalg.solve(precision, rows.T @ y), atol=1e-9)
    np.testing.assert_allclose(covariance_of(found), np.linalg.inv(precision), atol=1e-9)


def test_many_agents_without_noise_recover_the_shared_function() -> None:
    design = pool(4000)
    random = np.random.default_rng(2)
    omega = np.sqrt(PRIOR) * random.standard_normal(M)
    values = FEATURES(design.points) @ omega + random.standard_normal((4000, 5))
    found = design.posterior(said(design, values)[None], 0.0)
    x = random.random((300, 2))
    true, guessed = FEATURES(x) @ omega, FEATURES(x) @ found.mean
    error = (guessed - guessed.mean()) - (true - true.mean())  # a level cannot be told
    assert np.sqrt(np.mean(error**2)) < 0.05 * np.std(true)
    few = pool(20)
    worse = few.posterior(said(few, values[:20])[None], 0.0)
    assert np.trace(covariance_of(found)) < 0.5 * np.trace(covariance_of(worse))


def test_under_much_noise_nothing_is_learnt_and_draws_are_those_of_the_prior() -> None:
    design = pool(40)
    b = 1e6 * np.random.default_rng(3).standard_normal(M)
    found = design.posterior(b[None], 1e6)
    assert np.abs(found.mean).max() < 1e-4
    np.testing.assert_allclose(covariance_of(found), PRIOR * np.eye(M), atol=1e-9)
    drawn = found.drawn(np.random.default_rng(4).standard_normal((20_000, M)))
    np.testing.assert_allclose(np.cov(drawn.T), PRIOR * np.eye(M), atol=0.02)
    assert np.abs(drawn.mean(axis=0)).max() < 0.02


def test_draws_have_the_posteriors_mean_and_covariance() -> None:
    design = pool(50)
    found = design.posterior(np.random.default_rng(5).standard_normal((3, M)), 0.05)
    np.testing.assert_array_equal(found.drawn(np.zeros((1, M)))[0], found.mean)
    steps = found.drawn(np.eye(M)) - found.mean  # affine in the normals
    np.testing.assert_allclose(steps.T @ steps, covariance_of(found), atol=1e-12)


def test_the_share_revealed_lies_between_none_and_all_and_falls_with_noise() -> None:
    design = pool(200)
    shares = [design.revealed(noise) for noise in (0.0, 0.01, 0.1, 1.0, 10.0)]
    assert all(0 < share < 1 for share in shares)
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) == 5
    assert shares[0] > 0.7
    assert shares[-1] < 0.01
    assert pool(2000).revealed(0.01) > pool(20).revealed(0.01)


def test_the_share_revealed_is_what_is_learnt_on_average() -> None:
    design = pool(100)  # the share looks at no more agents than these
    noise, random = 0.05, np.random.default_rng(6)
    rows = FEATURES(design.points).reshape(-1, M)
    left = []
    for _ in range(3000):
        omega = np.sqrt(PRIOR) * random.standard_normal(M)
        values = FEATURES(design.points) @ omega + random.standard_normal((100, 5))
        b = said(design, values) + noise * random.standard_normal(M)
        left.append(np.mean((rows @ (design.posterior(b[None], noise).mean - omega)) ** 2))
    assert 1 - np.mean(left) / PRIOR == pytest.approx(design.revealed(noise), abs=0.02)


def test_how_many_agents_are_taken_at_a_time_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    b = np.random.default_rng(7).standard_normal((3, M))
    whole = pool(31).posterior(b, 0.1)
    monkeypatch.setattr("sottovoce.gp.shared._CHUNK", 4)
    parts = pool(31).posterior(b, 0.1)
    np.testing.assert_allclose(parts.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(covariance_of(parts), covariance_of(whole), atol=1e-12)


def test_a_design_of_one_point_each_tells_nothing() -> None:
    # one value has no spread: without its mean there is nothing left
    found = pool(20, initial=1).posterior(np.zeros((1, M)), 0.0)
    np.testing.assert_allclose(covariance_of(found), PRIOR * np.eye(M), atol=1e-9)
    assert pool(20, initial=1).revealed(0.0) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("shape", [(5, 2), (0, 5, 2), (2, 3, 4, 2)])
def test_a_design_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="a design must be"):
        PooledModel(np.zeros(shape), FEATURES, PRIOR, LAM)


@pytest.mark.parametrize("prior", [0.0, -1.0, float("inf"), float("nan")])
def test_a_prior_that_is_not_finite_and_above_zero_is_refused(prior: float) -> None:
    with pytest.raises(InvalidInput, match="the shared prior must be above 0"):
        PooledModel(np.zeros((2, 3, 2)), FEATURES, prior, LAM)


@pytest.mark.parametrize("b", [np.zeros(M), np.zeros((1, M - 1)), np.zeros((1, 1, M))])
def test_releases_of_another_shape_are_refused(b: Any) -> None:
    with pytest.raises(InvalidInput, match=r"releases must be \(k, M\)"):
        pool(3).posterior(b, 0.1)


# residuals


def telling(design: PooledModel) -> Floats:
    """H: how the news of agents that know their first points alone depend on ω − μ, (M, M)."""
    rows = FEATURES(design.points)
    seen = rows @ rows.transpose(0, 2, 1) + 1.0 + LAM * np.eye(rows.shape[1])
    return np.asarray(np.mean(rows.transpose(0, 2, 1) @ np.linalg.solve(seen, rows), axis=0))


def test_before_any_release_the_shared_function_is_that_of_the_prior() -> None:
    found = pool(5).posterior(np.zeros((0, M)), 0.1)
    np.testing.assert_array_equal(found.mean, np.zeros(M))
    np.testing.assert_allclose(covariance_of(found), PRIOR * np.eye(M), atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.02, 1.0])
def test_each_later_release_moves_the_mean_by_its_gain_and_leaves_less_variance(
    noise: float,
) -> None:
    design = pool(40)
    b = np.random.default_rng(8).standard_normal((3, M))
    _, V = np.linalg.eigh(np.einsum("ntm,ntk->mk", centred(design), centred(design)))
    told = np.diag(V.T @ telling(design) @ V)
    before = design.posterior(b[:1], noise)
    for k in (2, 3):
        after = design.posterior(b[:k], noise)
        left = np.diag(V.T @ covariance_of(before) @ V)
        unclear = told / 40 + (noise / RESIDUAL_GAIN) ** 2
        gain = told * left / (told**2 * left + unclear)
        wanted = before.mean + V @ (gain * (V.T @ b[k - 1])) / RESIDUAL_GAIN
        np.testing.assert_allclose(after.mean, wanted, atol=1e-8)
        left = left * (1 - gain * told)
        np.testing.assert_allclose(covariance_of(after), V @ np.diag(left) @ V.T, atol=1e-8)
        before = after


def test_residuals_bring_what_is_known_nearer_to_the_shared_function() -> None:
    design, random = pool(4000, initial=8), np.random.default_rng(9)
    omega = np.sqrt(PRIOR) * random.standard_normal(M)
    rows = FEATURES(design.points)
    raw = rows @ omega + 0.1 * random.standard_normal(rows.shape[:2])
    unit = np.std(raw, axis=1).mean()  # agents take their values in units of their own
    releases = [np.mean(feature_sums(rows, raw), axis=0)]
    x = random.random((500, 2))
    true, errors = FEATURES(x) @ omega / unit, []
    for _ in range(4):
        common = design.posterior(np.asarray(releases), 0.02)
        apart = FEATURES(x) @ common.mean - true
        errors.append(np.std(apart) / np.std(true))
        heard = rows @ common.mean
        releases.append(np.mean(residual_mean(rows, raw, heard, 8, LAM), axis=0))
        releases[-1] += 0.02 * random.standard_normal(M)
    assert errors[3] < errors[0]
    assert errors[3] < 0.25


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1])
@pytest.mark.parametrize(("initial", "points"), [(5, 11), (5, 25), (10, 40)])
def test_residuals_that_are_clipped_never_run_away(initial: int, points: int, noise: float) -> None:
    # a gain above 1 makes up for how little an agent's first points tell; it has more by then
    design, random = pool(200, initial), np.random.default_rng(10)
    x = np.concatenate([design.points, random.random((200, points - initial, 2))], axis=1)
    rows = FEATURES(x)
    raw = rows @ (np.sqrt(PRIOR) * random.standard_normal(M))
    first, errors = raw[:, :initial], []
    y = (raw - first.mean(axis=1)[:, None]) / first.std(axis=1)[:, None]
    said = feature_sums(rows[:, :initial], first)
    releases: list[Floats] = []
    for _ in range(10):
        releases.append(np.mean(clipped(said, 5.0), axis=0) + noise * random.standard_normal(M))
        heard = rows @ design.posterior(np.asarray(releases), noise).mean
        errors.append(np.std(y - heard - np.mean(y - heard, axis=1, keepdims=True)))
        said = residual_mean(rows, raw, heard, initial, LAM)
    assert max(errors) < 1.5 * errors[0]
    assert errors[-1] < errors[0]
    assert max(errors[5:]) < 1.1 * errors[-1]  # it settles


def test_more_releases_reveal_more() -> None:
    design = pool(200)
    shares = [design.revealed(0.1, releases) for releases in (0, 1, 2, 5)]
    assert shares[0] == pytest.approx(0.0, abs=1e-12)
    assert shares == sorted(shares)
    assert len(set(shares)) == 4
