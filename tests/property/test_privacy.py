"""What must hold for any release and any accountant, whatever the numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.events import SubsampledGaussian
from sottovoce.privacy.release import Mechanism, clipped, limited_sum, sensitivity

noises = st.floats(0.5, 8.0)
rates = st.floats(0.01, 1.0)
quick = st.sampled_from(["moments", "rdp", "gdp"])
seeds = st.integers(0, 2**32 - 1)


@given(quick, noises, rates, st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_many_rounds_at_once_are_the_same_rounds_one_by_one(
    name: str, z: float, q: float, rounds: int
) -> None:
    event = SubsampledGaussian(z, q, 100)
    apart = [SubsampledGaussian(z, q, 100, source=str(k)) for k in range(rounds)]
    assert epsilon([event] * rounds, 1e-4, name) == epsilon(apart, 1e-4, name)


@given(noises, rates, st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_the_log_moments_of_n_rounds_are_n_times_those_of_one(
    z: float, q: float, rounds: int
) -> None:
    # (Σα + log 1/δ)/λ is linear in the number of rounds for each λ: recover α from two counts
    from sottovoce.privacy.accountant import _log_moments

    one = SubsampledGaussian(z, q, 100)
    alpha = rounds * _log_moments(z, q)
    orders = np.arange(1, 33)
    direct = float(np.min((alpha + math.log(1e4)) / orders))
    assert epsilon([one] * rounds, 1e-4, "moments") == pytest.approx(direct, rel=1e-12)


@given(quick, noises, rates, st.integers(1, 30), st.floats(1.01, 3.0))
@settings(max_examples=60, deadline=None)
def test_more_noise_less_sampling_and_fewer_rounds_never_cost_more(
    name: str, z: float, q: float, rounds: int, factor: float
) -> None:
    spent = epsilon([SubsampledGaussian(z, q, 100)] * rounds, 1e-4, name)
    slack = 1e-9 * max(spent, 1.0)
    if q < 1:  # at q = 1 gdp leaves its approximation for the exact figure
        noisier = epsilon([SubsampledGaussian(z * factor, q, 100)] * rounds, 1e-4, name)
        rarer = epsilon([SubsampledGaussian(z, q / factor, 100)] * rounds, 1e-4, name)
        assert noisier <= spent + slack
        assert rarer <= spent + slack
    assert epsilon([SubsampledGaussian(z, q, 100)] * (rounds + 1), 1e-4, name) >= spent - slack


@given(noises, st.floats(0.05, 1.0), st.integers(1, 40))
@settings(max_examples=12, deadline=None)
def test_pld_never_exceeds_the_other_bounds_by_more_than_its_rounding(
    z: float, q: float, rounds: int
) -> None:
    events = [SubsampledGaussian(z, q, 100)] * rounds
    tight = epsilon(events, 1e-4, "pld")
    assert tight <= epsilon(events, 1e-4, "rdp") + 1e-2
    assert tight <= epsilon(events, 1e-4, "moments") + 1e-2


@given(st.sampled_from(["moments", "rdp", "gdp", "pld"]), noises, st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_a_record_replaced_costs_at_least_a_site_left_out_and_less_with_more_noise(
    name: str, z: float, rounds: int
) -> None:
    events, noisier = ({SubsampledGaussian(z * k, 1.0, 100): rounds} for k in (1.0, 1.1))
    spent = replace_one(events, 1e-4, name)
    assert epsilon(events, 1e-4, name) <= spent
    assert replace_one(noisier, 1e-4, name) <= spent


@given(st.floats(1.0, 8.0), st.floats(0.05, 0.95), st.integers(1, 8))
@settings(max_examples=8, deadline=None)
def test_a_record_replaced_under_sampling_costs_at_least_a_site_left_out(
    z: float, q: float, rounds: int
) -> None:
    events = {SubsampledGaussian(z, q, 100): rounds}
    spent = replace_one(events, 1e-4)
    assert epsilon(events, 1e-4) <= spent + 1e-6
    assert replace_one({SubsampledGaussian(z * 1.1, q, 100): rounds}, 1e-4) <= spent + 1e-6
    assert replace_one({SubsampledGaussian(z, q, 100): rounds + 1}, 1e-4) >= spent - 1e-6
    assert spent <= replace_one({SubsampledGaussian(z, 1.0, 100): rounds}, 1e-4) + 1e-6


@given(seeds, st.integers(2, 20), st.integers(1, 8), st.integers(1, 5), st.data())
@settings(max_examples=150, deadline=None)
def test_no_agent_can_move_the_joint_sum_further_than_the_sensitivity(
    seed: int, agents: int, features: int, regions: int, data: Any
) -> None:
    random = np.random.default_rng(seed)
    weights = random.random((regions, agents)) ** 3
    weights /= weights.sum(axis=1, keepdims=True)
    scale = 10.0 ** data.draw(st.integers(-3, 6))
    vectors = scale * random.standard_normal((agents, features))
    kind = data.draw(st.sampled_from(["paper", "tight"]))
    q, clip = data.draw(rates), data.draw(st.floats(0.1, 30.0))
    mechanism = Mechanism(clip=clip, participation=q, sensitivity=kind)
    chosen = random.random(agents) < 0.7
    one = data.draw(st.integers(0, agents - 1))
    silent = vectors.copy()
    silent[one] = 0.0
    moved = np.linalg.norm(
        limited_sum(vectors, weights, chosen, mechanism)
        - limited_sum(silent, weights, chosen, mechanism)
    )
    assert moved <= sensitivity(weights, mechanism) * (1 + 1e-9)


@given(seeds, st.floats(1e-3, 1e3), st.integers(-8, 90))
@settings(max_examples=150, deadline=None)
def test_clipping_bounds_the_norm_keeps_the_direction_and_is_idempotent(
    seed: int, limit: float, exponent: int
) -> None:
    vectors = 10.0**exponent * np.random.default_rng(seed).standard_normal((4, 6))
    cut = clipped(vectors, limit)
    norms = np.linalg.norm(cut, axis=1)
    assert np.all(norms <= limit * (1 + 1e-12))
    cosine = np.sum(
        cut / norms[:, None] * (vectors / np.linalg.norm(vectors, axis=1)[:, None]), axis=1
    )
    assert np.allclose(cosine, 1.0)
    assert np.allclose(clipped(cut, limit), cut, rtol=1e-12)


@given(seeds, st.floats(-100.0, 100.0), st.floats(-300.0, 100.0), st.integers(1, 40))
@settings(max_examples=300, deadline=None)
def test_no_vector_passes_a_clip_that_a_mechanism_accepts_tiny_or_huge(
    seed: int, clip_exponent: float, exponent: float, regions: int
) -> None:
    limit = Mechanism(clip=10.0**clip_exponent).clip / math.sqrt(regions)
    random = np.random.default_rng(seed)
    vectors = 10.0 ** (exponent + random.uniform(-5, 0, (4, 6))) * random.choice([-1, 1], (4, 6))
    cut = clipped(vectors, limit)
    norms = [math.hypot(*row) for row in cut]  # hypot neither over- nor underflows
    assert max(norms) <= limit * (1 + 1e-12)


@given(seeds, st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 1e150, -1e308]), min_size=1))
@settings(max_examples=60, deadline=None)
def test_whatever_an_agent_sends_the_clipped_vector_is_finite_and_bounded(
    seed: int, poison: list[float]
) -> None:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((5, 12))
    vectors[2, random.integers(0, 12, len(poison))] = poison
    cut = clipped(vectors, 2.0)
    assert np.all(np.isfinite(cut))
    assert np.all(np.linalg.norm(cut, axis=1) <= 2.0 * (1 + 1e-12))


@given(st.floats(0.05, 1e4), st.integers(1, 1000), st.floats(-12.0, -1.0))
@settings(max_examples=200, deadline=None)
def test_without_sampling_no_bound_is_below_the_exact_gaussian_answer(
    z: float, rounds: int, exponent: float
) -> None:
    delta, mu = 10.0**exponent, math.sqrt(rounds) / z
    for name in ("pld", "rdp", "moments", "gdp"):
        found = epsilon([SubsampledGaussian(z, 1.0, 100)] * rounds, delta, name)
        first, second = log_ndtr(mu / 2 - found / mu), log_ndtr(-mu / 2 - found / mu)
        assert math.exp(first) * -math.expm1(min(found + second - first, 0.0)) <= delta
