from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.gp.consensus import _MISREAD, Consensus, Speech, State, for_agents
from sottovoce.gp.effects import effects
from sottovoce.gp.matern import Coordinates
from sottovoce.gp.promise import Promise
from sottovoce.gp.quasirandom import latin_points, quasirandom_points
from sottovoce.gp.usual import Usual, flat_weights

Floats = NDArray[Any]
PLANE = Coordinates((0, 1), (1.0, 1.0))
BASIS = effects(PLANE)
M = BASIS.count
PROMISE = Promise(quasirandom_points(b"test/promise", 256, 2), BASIS)
AGENTS, POINTS = 200, 6


def consensus(agents: int = AGENTS, clip: float = 1.0) -> Consensus:
    designs = latin_points(b"test/consensus", 100, 12, 2)
    return Consensus(designs, 5, PROMISE, agents, flat_weights(M, 0.5), 0.4, clip)


def said(model: Consensus, state: State, weights: Floats, points: int) -> Floats:
    """What agents with the same function φ(x)ᵀw, each at points of its own, say: (N, M)."""
    where = latin_points(b"test/agents", model.agents, points, 2)
    rows = BASIS(where)
    mask = np.ones(where.shape[:2], bool)
    return np.asarray(model.speech(state, points)(rows, rows @ weights, mask))


def clipped(vectors: Floats, clip: float = 1.0) -> Floats:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors * np.minimum(1.0, clip / length))


def function(seed: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(M)


@pytest.mark.parametrize("seed", range(3))
def test_without_noise_what_all_know_comes_near_the_function_that_all_have(seed: int) -> None:
    model, weights = consensus(), function(seed)
    state, lines = model.prior, np.sqrt(BASIS.variance)
    likeness = []
    for points in (5, 7, 9, 11):
        release = clipped(said(model, state, weights, points)).mean(axis=0)
        state = model.heard(state, points, release, 0.0)
        # of the functions, hence with each weight's share in it
        one, two = lines * state.mean, lines * weights
        likeness.append(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
    assert likeness[-1] > 0.9
    assert likeness[-1] > likeness[0]


def test_with_endless_noise_all_know_what_they_knew_before() -> None:
    model = consensus()
    state = model.heard(model.prior, POINTS, np.ones(M), 1e12)
    np.testing.assert_allclose(state.mean, 0.0, atol=1e-9)
    np.testing.assert_allclose(state.covariance, model.prior.covariance, atol=1e-9)
    assert model.revealed([POINTS], 1e12) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.01, 1.0])
def test_what_is_told_grows_with_each_release_and_what_is_known_stays_a_covariance(
    noise: float,
) -> None:
    model = consensus()
    state, random = model.prior, np.random.default_rng(0)
    for points in (5, 7, 9, 11):
        later = model.heard(state, points, random.standard_normal(M), noise)
        np.testing.assert_allclose(later.covariance, later.covariance.T, atol=1e-12)
        assert np.linalg.eigvalsh(later.covariance).min() > -1e-10
        told = later.information - state.information
        assert np.linalg.eigvalsh(told).min() > -1e-9 * np.linalg.eigvalsh(told).max()
        state = later


def test_with_scales_as_they_are_expected_each_release_is_a_step_of_a_kalman_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sottovoce.gp.consensus._SCALE", 1e-8)  # no room for other scales
    model, random, noise = consensus(), np.random.default_rng(1), 0.1
    state, wanted = model.prior, np.zeros(M)
    for points in (5, 7, 9):
        release = random.standard_normal(M)
        rows, lam, C = BASIS(model.designs[:, :points]), 0.4, state.covariance
        if state.chances is not None:  # the later points are where the best is expected
            later = PROMISE.sets(state.chances, len(rows), points - 5)
            rows = np.concatenate([rows[:, :5], later], axis=1)
        speech = model.speech(state, points)
        gram = rows @ C @ np.swapaxes(rows, -1, -2) + 1.0 + lam * np.eye(points)
        A = C @ np.swapaxes(rows, -1, -2) @ np.linalg.inv(gram)
        A = speech.scale / 2 * speech.weight @ A
        H, own = (A @ rows).mean(axis=0), lam * (A @ np.swapaxes(A, -1, -2)).mean(axis=0)
        seen = H @ C @ H.T + own / AGENTS + noise**2 * np.eye(M)
        seen = seen + _MISREAD * (H @ C @ H.T + own)
        gain = C @ H.T @ np.linalg.inv(seen)
        state = model.heard(state, points, release, noise)
        wanted = wanted + gain @ release
        np.testing.assert_allclose(state.mean, wanted, atol=1e-6)
        np.testing.assert_allclose(state.covariance, C - gain @ H @ C, atol=1e-6)


def test_scales_are_those_of_highest_density_given_the_releases() -> None:
    model = consensus()
    state = model.prior
    for points in (5, 7):
        said_ = clipped(said(model, state, function(points), points)).mean(axis=0)
        state = model.heard(state, points, said_, 0.02)
    J, eta, traits = state.information, state.evidence, BASIS.traits
    found = model._borne_out(J, eta)

    def density(log_p: Floats) -> float:
        variance = 0.5 * np.exp(log_p @ traits)
        C = np.linalg.inv(np.diag(1 / variance) + J)
        volume = np.linalg.slogdet(np.eye(M) + J * variance)[1]
        return float(0.5 * (eta @ C @ eta - volume - log_p @ log_p))

    best = np.linalg.lstsq(traits.T, np.log(found / 0.5), rcond=None)[0]
    assert density(best) > density(np.zeros(len(traits))) + 0.1
    for g in range(len(traits)):
        for step in (-1e-2, 1e-2):
            other = best + step * np.eye(len(traits))[g]
            assert density(other) < density(best) + 1e-5


def variance_by_trait(state: State) -> Floats:
    """The mean variance, prior to releases, of the features that have each trait."""
    variance = consensus()._borne_out(state.information, state.evidence)
    return np.asarray((BASIS.traits > 0) @ variance / (BASIS.traits > 0).sum(axis=1))


def after_four(weights: Floats, noise: float) -> State:
    model, random = consensus(), np.random.default_rng(8)
    state = model.prior
    for points in (5, 7, 9, 11):
        release = clipped(said(model, state, weights, points)).mean(axis=0)
        release = release + noise * random.standard_normal(M)
        state = model.heard(state, points, release, noise)
    return state


def test_a_parameter_without_effect_is_found_to_have_none() -> None:
    first_alone = function(0) * (BASIS.traits[1] == 0)
    one, other, pairs, *_ = variance_by_trait(after_four(first_alone, 0.01))
    assert other < 0.5 * one
    assert pairs < 0.5 * one


def test_where_nothing_is_common_less_of_the_releases_is_believed() -> None:
    shares = []
    for seed in range(8):
        random, model = np.random.default_rng(seed), consensus()
        state = model.prior
        for points in (5, 7, 9, 11):  # noise alone
            state = model.heard(state, points, 0.05 * random.standard_normal(M), 0.05)
        wholly = model.known(state.information, state.evidence, np.full(M, 0.5)).mean
        shares.append(np.linalg.norm(state.mean) / np.linalg.norm(wholly))
    assert np.mean(shares) < 0.8


def test_less_noise_more_agents_or_more_releases_reveal_more() -> None:
    model = consensus()
    shares = [model.revealed([5, 7], noise) for noise in (3.0, 0.3, 0.03, 0.0)]
    assert 0 < shares[0] < shares[1] < shares[2] < shares[3] < 1
    assert model.revealed([5], 0.3) < model.revealed([5, 7], 0.3) < model.revealed([5, 7, 9], 0.3)
    assert consensus(agents=5).revealed([5], 0.01) < consensus(agents=500).revealed([5], 0.01)


def test_the_expected_signal_is_in_proportion_to_the_noise() -> None:
    model = consensus()
    assert model.signal(5, 0.1) == pytest.approx(10 * model.signal(5, 1.0))
    assert model.signal(5, 0.0) == math.inf


def random_state() -> State:
    root = np.random.default_rng(2).standard_normal((M, M)) / math.sqrt(M)
    return State(function(3), root @ root.T, np.zeros((M, M)), np.zeros(M))


def test_a_message_is_the_posterior_mean_of_what_is_missing_weighed() -> None:
    state, random = random_state(), np.random.default_rng(4)
    speech = consensus().speech(state, POINTS)
    rows, y = BASIS(random.random((3, POINTS, 2))), random.standard_normal((3, POINTS))
    mask = np.ones((3, POINTS), bool)
    mask[1, [0, 3]] = False
    found = speech(rows, np.where(mask, y, 0.0), mask)
    for n in range(3):
        phi, left = rows[n][mask[n]], y[n][mask[n]] - rows[n][mask[n]] @ state.mean
        K = phi @ state.covariance @ phi.T + 1.0 + 0.4 * np.eye(len(phi))
        mean = state.covariance @ phi.T @ np.linalg.solve(K, left)
        np.testing.assert_allclose(found[n], speech.scale * speech.weight @ mean, rtol=1e-9)


def test_who_has_no_value_says_nothing() -> None:
    speech = consensus().speech(random_state(), POINTS)
    rows = BASIS(np.random.default_rng(5).random((2, POINTS, 2)))
    silent = speech(rows, np.zeros((2, POINTS)), np.zeros((2, POINTS), bool))
    np.testing.assert_array_equal(silent, np.zeros((2, M)))


def test_a_message_is_linear_in_the_values_and_not_cut_by_who_says_it() -> None:
    model = consensus()
    speech = model.speech(model.prior, POINTS)
    rows = BASIS(np.random.default_rng(6).random((1, POINTS, 2)))
    y, mask = np.random.default_rng(7).standard_normal((1, POINTS)), np.ones((1, POINTS), bool)
    once = speech(rows, y, mask)
    np.testing.assert_allclose(speech(rows, 100.0 * y, mask), 100.0 * once)
    assert np.linalg.norm(speech(rows, 100.0 * y, mask)) > 10.0  # far beyond the clip of 1


def test_later_messages_tell_more_of_where_the_best_may_lie() -> None:
    model, weights = consensus(), 5.0 * BASIS(np.array([0.2, 0.8]))
    release = clipped(said(model, model.prior, weights, 5)).mean(axis=0)
    state = model.heard(model.prior, 5, release, 0.02)
    assert state.chances is not None
    near = np.array([0.2, 0.8]) + 0.2 * (np.random.default_rng(0).random((200, 2)) - 0.5)
    far = np.random.default_rng(1).random((200, 2))

    def share(speech: Speech) -> float:
        """How loud a small change of the function is near the best, beside elsewhere."""
        loud = [
            np.sqrt(np.mean((np.diff(BASIS(x), axis=0) @ speech.weight) ** 2)) for x in (near, far)
        ]
        return float(loud[0] / loud[1])

    before = replace(state, chances=None)
    assert share(model.speech(state, 7)) > 1.1 * share(model.speech(before, 7))


def test_who_brings_thousands_of_trials_speaks_as_one_with_as_many_as_the_design_has() -> None:
    model = consensus()
    state = model.heard(model.prior, 5, 0.3 * np.ones(M) / math.sqrt(M), 0.02)
    for known in (model.prior, state):
        many, some = model.speech(known, 100_000), model.speech(known, 12)
        np.testing.assert_array_equal(many.weight, some.weight)


def test_messages_are_as_loud_as_the_clip_is_long() -> None:
    one, five = (consensus(clip=clip) for clip in (1.0, 5.0))
    quiet, loud = (each.speech(each.prior, POINTS) for each in (one, five))
    assert loud.scale == pytest.approx(5 * quiet.scale)
    np.testing.assert_allclose(loud.weight, quiet.weight)


def test_an_agent_takes_for_likely_what_all_know_with_some_doubt() -> None:
    state = random_state()
    mean, root = for_agents(state)
    np.testing.assert_array_equal(mean, state.mean)
    covariance = root @ root.T
    wanted = 0.1 * np.outer(state.mean, state.mean) + 0.55 * state.covariance
    np.testing.assert_allclose(covariance, wanted, atol=1e-12)


def test_what_is_usual_is_where_learning_begins_and_all_is_measured_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Promise, "chances", lambda *known: None)  # which the mean would move
    flat, random = consensus(), np.random.default_rng(3)
    usual = Usual(random.standard_normal(M), random.uniform(0.2, 2.0, M))
    model = replace(flat, before=usual)
    np.testing.assert_array_equal(model.prior.mean, usual.mean)
    np.testing.assert_array_equal(np.diag(model.prior.covariance), usual.variance)
    silent = model.heard(model.prior, POINTS, random.standard_normal(M), 1e12)
    np.testing.assert_allclose(silent.mean, usual.mean, atol=1e-9)
    # moved by the usual mean, it is the model without one
    centred = replace(flat, before=usual._replace(mean=np.zeros(M)))
    state, other = model.prior, centred.prior
    for points in (5, 7):
        release = random.standard_normal(M)
        state = model.heard(state, points, release, 0.1)
        other = centred.heard(other, points, release, 0.1)
        np.testing.assert_allclose(state.mean, usual.mean + other.mean, atol=1e-6)
        np.testing.assert_allclose(state.covariance, other.covariance, atol=1e-6)


def test_who_has_the_usual_function_says_nothing_before_the_first_release() -> None:
    usual = Usual(np.random.default_rng(4).standard_normal(M), np.full(M, 0.5))
    model = replace(consensus(), before=usual)
    vectors = said(model, model.prior, usual.mean, POINTS)
    np.testing.assert_allclose(vectors, 0.0, atol=1e-12)


def test_speech_needs_nothing_but_what_is_public() -> None:
    speech = consensus().speech(consensus().prior, POINTS)
    assert isinstance(speech, Speech)
    again = consensus().speech(consensus().prior, POINTS)
    np.testing.assert_array_equal(again.weight, speech.weight)
    assert again.scale == speech.scale
