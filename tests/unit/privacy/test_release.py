from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.privacy.events import DataFree, NonPrivate, SubsampledGaussian
from sottovoce.privacy.noise import Seeded
from sottovoce.privacy.release import (
    Mechanism,
    clipped,
    diagnose,
    limited_sum,
    noise_only,
    noise_scale,
    release,
    sample,
    sensitivity,
    unprotected,
)

N, M, P = 12, 5, 3


def vectors(seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal((N, M))


def weights(seed: int = 1) -> NDArray[np.float64]:
    raw = np.random.default_rng(seed).random((P, N))
    return np.asarray(raw / raw.sum(axis=1, keepdims=True))


class Fixed:
    """A source whose coins are given, to hold the sampling still."""

    label = "simulation-only, given coins"
    simulation = True

    def __init__(self, chosen: NDArray[np.bool_], noise: float = 0.0) -> None:
        self.chosen, self.noise, self.scales = chosen, noise, list[float]()

    def coins(self, count: int, probability: float) -> NDArray[np.bool_]:
        return self.chosen

    def subset(self, count: int, size: int) -> NDArray[np.bool_]:
        return self.chosen

    def add_gaussian(self, values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        self.scales.append(scale)
        return values + self.noise * scale


def test_without_noise_and_with_an_infinite_clip_it_is_the_weighted_mean() -> None:
    plain = Mechanism(clip=math.inf, participation=1.0, noise=0.0)
    result = release(vectors(), weights(), plain, Seeded(0))
    assert np.allclose(result.vectors, weights() @ vectors(), rtol=1e-14)
    assert result.event == NonPrivate()


def test_it_follows_the_papers_algorithm_line_by_line() -> None:
    mechanism = Mechanism(clip=3.0, participation=0.4, noise=1.2)
    chosen = np.arange(N) % 3 == 0
    source = Fixed(chosen, noise=1.0)
    result = release(vectors(), weights(), mechanism, source)
    phi, w = weights(), vectors()
    expected = np.zeros((P, M))
    for i in range(P):
        for n in np.flatnonzero(chosen):
            clip = max(1.0, float(np.linalg.norm(w[n])) / (3.0 / math.sqrt(P)))
            expected[i] += phi[i, n] / 0.4 * w[n] / clip
    scale = 1.2 * phi.max() * 3.0 / 0.4
    assert source.scales == [pytest.approx(scale, rel=1e-12)]
    assert np.allclose(result.vectors, expected + scale, rtol=1e-12)


def test_the_measured_noise_is_within_two_percent_of_the_formula() -> None:
    mechanism = Mechanism(clip=11.0, participation=0.25, noise=1.5)
    source, phi = Seeded(8), weights()
    silence = np.zeros((N, 40))
    drawn = np.asarray([release(silence, phi, mechanism, source).vectors for _ in range(400)])
    assert drawn.std() == pytest.approx(1.5 * phi.max() * 11.0 / 0.25, rel=0.02)


def test_an_empty_sample_publishes_pure_noise() -> None:
    nobody = Fixed(np.zeros(N, dtype=np.bool_), noise=1.0)
    mechanism = Mechanism(clip=3.0, participation=0.1, noise=1.0)
    result = release(vectors(), weights(), mechanism, nobody)
    assert np.allclose(result.vectors, noise_scale(weights(), M, mechanism))
    assert result.event == SubsampledGaussian(1.0, 0.1, N)


def test_the_sum_is_divided_by_q_not_by_the_head_count() -> None:
    mechanism = Mechanism(clip=math.inf, participation=0.5, noise=0.0)
    one = np.arange(N) == 4
    total = limited_sum(vectors(), weights(), one, mechanism)
    assert np.allclose(total, weights()[:, [4]] * vectors()[4] / 0.5)


def test_sampling_makes_the_release_unbiased() -> None:
    mechanism = Mechanism(clip=2.0, participation=0.3, noise=0.0)
    source = Seeded(2)
    mean = np.mean(
        [release(vectors(), weights(), mechanism, source).vectors for _ in range(20_000)], axis=0
    )
    whole = weights() @ clipped(vectors(), 2.0 / math.sqrt(P))
    assert np.allclose(mean, whole, atol=0.02)


def test_poisson_sampling_varies_in_size_and_fixed_sampling_does_not() -> None:
    source = Seeded(1)
    sizes = {int(sample(N, Mechanism(participation=0.5), source).sum()) for _ in range(200)}
    assert len(sizes) > 3
    fixed = Mechanism(participation=0.5, sampling="fixed")
    assert {int(sample(N, fixed, source).sum()) for _ in range(50)} == {6}


def test_a_fixed_sample_is_divided_and_accounted_by_its_true_rate() -> None:
    mechanism = Mechanism(clip=math.inf, participation=0.3, noise=0.0, sampling="fixed")
    assert mechanism.sample_size(N) == 4
    assert mechanism.rate(N) == pytest.approx(4 / 12)
    noisy = Mechanism(participation=0.3, sampling="fixed")
    assert noisy.event(N, "x") == SubsampledGaussian(1.0, 4 / 12, N, "fixed")


def test_a_fixed_sample_of_everybody_is_accounted_as_no_sampling() -> None:
    everybody = Mechanism(participation=1.0, sampling="fixed")
    assert everybody.event(N, "x") == SubsampledGaussian(1.0, 1.0, N, "poisson")


def test_a_tiny_fixed_sample_takes_one_agent() -> None:
    assert Mechanism(participation=0.01, sampling="fixed").sample_size(N) == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e200, -1e300])
def test_a_vector_that_is_not_sane_counts_as_zero(bad: float) -> None:
    spoilt = vectors()
    spoilt[3, 2] = bad
    absent = vectors()
    absent[3] = 0.0
    assert np.array_equal(clipped(spoilt, 1.0), clipped(absent, 1.0))
    assert np.all(clipped(spoilt, 1.0)[3] == 0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200, 1e99])
def test_of_many_vectors_each_is_clipped_as_it_would_be_alone(bad: float) -> None:
    many = np.random.default_rng(0).standard_normal((2500, 5))
    many[[7, 1024, 2300], 3] = bad
    alone = np.concatenate([clipped(many[n : n + 1], 2.0) for n in range(len(many))])
    assert clipped(many, 2.0).tobytes() == alone.tobytes()
    assert np.linalg.norm(alone, axis=1).max() <= 2.0 * (1 + 1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200, 1e99, 0.5])
def test_the_sum_of_many_vectors_is_that_of_each_clipped_alone(bad: float) -> None:
    rng = np.random.default_rng(0)
    many = rng.standard_normal((2500, 5)) * rng.choice([0.1, 1.0, 10.0], (2500, 1))
    many[[7, 1023, 1024, 2300], 3] = bad
    before, weights = many.copy(), rng.random((2, 2500))
    chosen, mechanism = rng.random(2500) < 0.5, Mechanism(clip=1.5, participation=0.5)
    alone = [clipped(row[None], 1.5 / math.sqrt(2))[0] for row in many]
    wanted = (weights * chosen / 0.5) @ np.array(alone)
    found = limited_sum(many, weights, chosen, mechanism)
    assert np.allclose(found, wanted, rtol=0, atol=1e-11)
    assert many.tobytes() == before.tobytes()
    silent = np.where(np.arange(2500)[:, None] == 9, 0.0, many)  # one agent, zeroed out
    moved = np.linalg.norm(found - limited_sum(silent, weights, chosen, mechanism))
    assert moved <= sensitivity(weights, mechanism) * (1 + 1e-12)


def test_many_whole_numbers_are_clipped_too() -> None:
    many = np.full((2500, 2), [3, 4])
    assert np.allclose(clipped(many, 1.0), [0.6, 0.8])


def test_clipping_scales_down_what_is_too_long_and_leaves_the_rest() -> None:
    rows = np.asarray([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert np.allclose(clipped(rows, 1.0), [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])


def test_tight_sensitivity_is_never_above_the_papers_and_root_p_below_when_one_hot() -> None:
    one_hot = np.zeros((P, N))
    one_hot[np.arange(N) % P, np.arange(N)] = P / N
    paper, tight = (Mechanism(clip=2.0, sensitivity=kind) for kind in ("paper", "tight"))
    assert sensitivity(one_hot, tight) == pytest.approx(sensitivity(one_hot, paper) / math.sqrt(P))
    uniform = np.full((P, N), 1 / N)
    assert sensitivity(uniform, tight) == pytest.approx(sensitivity(uniform, paper))


@pytest.mark.parametrize("kind", ["paper", "tight"])
def test_zeroing_out_an_agent_moves_the_joint_sum_by_at_most_the_sensitivity(kind: Any) -> None:
    mechanism = Mechanism(clip=1.5, participation=0.4, sensitivity=kind)
    everyone = np.ones(N, dtype=np.bool_)
    loud = vectors() * 100
    whole = limited_sum(loud, weights(), everyone, mechanism)
    moved = []
    for n in range(N):
        silent = loud.copy()
        silent[n] = 0.0
        moved.append(np.linalg.norm(whole - limited_sum(silent, weights(), everyone, mechanism)))
    bound = sensitivity(weights(), mechanism)
    assert max(moved) <= bound * (1 + 1e-12)
    if kind == "tight":  # and somebody reaches it
        assert max(moved) == pytest.approx(bound, rel=1e-9)


def test_the_control_has_the_noise_of_a_release_and_no_data() -> None:
    mechanism = Mechanism(clip=3.0, participation=0.4, noise=1.2)
    result = noise_only(weights(), M, mechanism, Seeded(4))
    silent = release(np.zeros((N, M)), weights(), mechanism, Fixed(np.ones(N, dtype=np.bool_), 1.0))
    drawn = Seeded(4).add_gaussian(np.zeros((P, M)), float(silent.vectors[0, 0]))
    assert np.array_equal(result.vectors, drawn)
    assert result.event == DataFree()


def test_without_protection_the_event_says_so() -> None:
    result = unprotected(vectors(), weights())
    assert np.allclose(result.vectors, weights() @ vectors())
    assert result.event == NonPrivate()


def test_the_event_names_the_source_of_the_randomness() -> None:
    result = release(vectors(), weights(), Mechanism(), Seeded(77))
    assert result.event.source == "simulation-only, seed 77"


def test_diagnostics_count_the_clipped_and_weigh_signal_against_noise() -> None:
    mechanism = Mechanism(clip=math.sqrt(P) * 2.0, participation=0.5, noise=1.0)
    norms = np.linalg.norm(vectors(), axis=1)
    seen = diagnose(vectors(), weights(), mechanism)
    assert seen.clipped == pytest.approx(np.mean(norms > 2.0))
    signal = np.linalg.norm(weights() @ clipped(vectors(), 2.0))
    noise = noise_scale(weights(), M, mechanism) * math.sqrt(P * M)
    assert seen.signal_to_noise == pytest.approx(signal / noise)
    assert diagnose(vectors(), weights(), Mechanism(noise=0.0)).signal_to_noise == math.inf


@pytest.mark.parametrize("kind", ["paper", "tight"])
def test_the_noise_covers_what_rounding_may_add_to_the_sum(kind: Any) -> None:
    many = 20_000
    everyone = np.full((1, many), 1 / many)
    mechanism = Mechanism(clip=2.0, participation=0.5, noise=3.0, sensitivity=kind)
    covered = noise_scale(everyone, 100, mechanism) / (3.0 * sensitivity(everyone, mechanism))
    assert covered - 1 == pytest.approx((many**2 + 100) * 2.0**-52, rel=1e-6)


def test_no_noise_means_no_scale_even_with_an_infinite_clip() -> None:
    assert noise_scale(weights(), M, Mechanism(clip=math.inf, noise=0.0)) == 0.0


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"clip": 0.0}, "S must be above 0"),
        ({"clip": -1.0}, "S=-1.0"),
        ({"clip": math.nan}, "S must"),
        ({"clip": math.inf}, "finite clip"),
        ({"clip": 1e-170}, "S must be at least 1e-100, got S=1e-170"),
        ({"clip": 1e-170, "noise": 0.0}, "S must be at least 1e-100"),
        ({"clip": 1e101}, "clip S, of at most 1e\\+100"),
        ({"participation": 0.0}, r"participation must be in \(0, 1\], got participation=0.0"),
        ({"participation": 1.3}, "participation=1.3"),
        ({"participation": math.nan}, "participation must"),
        ({"noise": -0.1}, "z must"),
        ({"noise": math.inf}, "z must"),
        ({"noise": math.nan}, "z must"),
        ({"noise": 1e-170}, "z must be between 1e-100 and 1e\\+100, got z=1e-170"),
        ({"noise": 1e170}, "z must be between"),
        ({"sampling": "lottery"}, "lottery"),
        ({"sensitivity": "hopeful"}, "hopeful"),
    ],
)
def test_a_mechanism_that_cannot_protect_is_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        Mechanism(**changes)


@pytest.mark.parametrize(
    ("rows", "phi", "word"),
    [
        (np.zeros(M), np.ones((1, N)), "vectors must be"),
        (np.zeros((N, M)), np.ones(N), "weights must be"),
        (np.zeros((N, M)), np.ones((1, N + 1)), "weights must be"),
        (np.zeros((N, M)), np.full((1, N), np.nan), "finite"),
        (np.zeros((N, M)), np.full((1, N), -1.0), "at least 0"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    rows: NDArray[np.float64], phi: NDArray[np.float64], word: str
) -> None:
    with pytest.raises(InvalidInput, match=word):
        release(rows, phi, Mechanism(), Seeded(0))
