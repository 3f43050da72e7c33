"""Noise that agents add in shares: what it spends, against computations of another kind."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from sottovoce.errors import InvalidInput
from sottovoce.privacy.accountant import epsilon, every_epsilon, replace_one
from sottovoce.privacy.budget import Budget, noise_for
from sottovoce.privacy.events import NonPrivate, SharedGaussian, SubsampledGaussian
from sottovoce.privacy.noise import Drawn, SystemEntropy

SETTINGS = [  # N, k, z, numbers, releases, δ
    (5, 2, 4.0, 48, 4, 1e-5),
    (10, 2, 2.0, 256, 4, 1e-5),
    (10, 3, 8.0, 32, 1, 1e-6),
    (30, 6, 7.5, 64, 4, 1e-5),
    (100, 20, 1.0, 256, 1, 1e-5),
    (100, 33, 15.0, 100, 60, 1e-6),
    (200, 20, 7.46, 256, 4, 1e-5),
    (1000, 200, 3.0, 128, 8, 1e-8),
    (10_000, 1000, 0.7, 256, 2, 1e-4),
    (100_000, 20_000, 20.0, 256, 40, 1e-7),
]


def integrated(mu: float, delta: float) -> float:
    """ε of two Gaussians μ apart, by integrating [p − e^ε q]₊ over where it is above zero."""

    def gap(eps: float) -> float:
        start = eps / mu + mu / 2  # where p(x) = e^ε q(x), with p ~ N(μ, 1) and q ~ N(0, 1)
        value, _ = quad(
            lambda x: norm.pdf(x - mu) - math.exp(eps) * norm.pdf(x),
            start,
            start + 40,
            epsabs=1e-16,
            epsrel=1e-12,
            limit=400,
            points=[start + 1, start + 3],
        )
        return float(value) - delta

    return float(brentq(gap, 0.0, mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)), xtol=1e-9))


@pytest.mark.parametrize(("agents", "k", "z", "numbers", "releases", "delta"), SETTINGS)
def test_epsilon_is_that_of_an_independent_computation(
    agents: int, k: int, z: float, numbers: int, releases: int, delta: float
) -> None:
    event = SharedGaussian(z, agents, k, numbers, 40)
    # what reaches a reader: N − k shares of variance share², against one contribution of 2^bits
    together = event.share * math.sqrt(agents - k)
    mu = math.sqrt(releases) * 2.0**event.bits / together
    for measure, distance in ((epsilon, mu), (replace_one, 2 * mu)):
        found, wanted = measure({event: releases}, delta), integrated(distance, delta)
        assert wanted - 1e-6 <= found <= wanted + 1e-5


def test_more_failing_than_planned_costs_what_their_missing_noise_costs() -> None:
    event = SharedGaussian(7.4614, 200, 20, 256, 40)
    spent = {}
    for failing in (0, 20, 40):
        fewer = event.counting_on(200 - failing)
        assert fewer is not None
        assert fewer.share == pytest.approx(event.share)  # a site's own noise stays as it is
        spent[failing] = round(epsilon({fewer: 4}, 1e-5), 2)
    assert spent == {0: 0.94, 20: 1.0, 40: 1.07}
    assert event.counting_on(180) == event
    assert event.counting_on(0) is None


def test_the_price_is_what_all_shares_together_have_too_much() -> None:
    assert SharedGaussian(1.0, 100, 10, 1, 40).price == pytest.approx(1.0541, abs=1e-4)
    assert SharedGaussian(1.0, 99, 33, 1, 40).price == pytest.approx(1.2247, abs=1e-4)


def pmf(scale: float, reach: int) -> NDArray[np.float64]:
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("scale", [10.0, 30.0, 100.0])
def test_a_discrete_gaussian_is_as_near_to_a_rounded_one_as_the_event_says(scale: float) -> None:
    reach = math.ceil(12 * scale)
    edges = (np.arange(-reach, reach + 2) - 0.5) / scale
    apart = 0.5 * float(np.abs(pmf(scale, reach) - np.diff(norm.cdf(edges))).sum())
    # the event refuses so coarse a noise; its formula is looked at by itself
    assert 0.2 / (24 * scale**2) < apart <= 1 / (24 * scale**2)


@pytest.mark.parametrize("shares", [2, 5])
def test_discrete_gaussians_add_up_to_one_as_nearly_as_the_event_takes_for_granted(
    shares: int,
) -> None:
    for scale in (0.6, 0.9, 1.2):
        total = single = pmf(scale, 40)
        for _ in range(shares - 1):
            total = np.convolve(total, single)
        one = pmf(scale * math.sqrt(shares), len(total) // 2)
        apart = 0.5 * float(np.abs(total - one).sum())
        assert apart <= 2.2 * (shares - 1) * math.exp(-(math.pi**2) * scale**2) + 1e-15


def test_what_differs_from_a_gaussian_is_taken_out_of_delta() -> None:
    fine = SharedGaussian(4.0, 10, 2, 256, 40)
    coarse = replace(fine, bits=18)
    gaussian = epsilon({SubsampledGaussian(4.0, 1.0, 10): 4}, 1e-8)
    assert epsilon({fine: 4}, 1e-8) == pytest.approx(gaussian, abs=1e-8)
    apart = 4 * coarse.distance
    above = epsilon({coarse: 4}, 1e-8)
    half = epsilon({SubsampledGaussian(4.0, 1.0, 10): 4}, 5e-9)
    kept = 1e-8 - apart * (1 + math.exp(half))
    assert 0 < kept < 1e-8
    assert above == epsilon({SubsampledGaussian(4.0, 1.0, 10): 4}, kept)
    assert above > gaussian
    # where nothing is left of δ there is no promise
    assert epsilon({coarse: 4}, 1e-9) == math.inf
    assert epsilon({SharedGaussian(0.01, 3, 0, 1, 40): 900}, 1e-9) == math.inf


def test_every_accountant_knows_it_and_composes_it_with_others() -> None:
    event, plain = SharedGaussian(4.0, 10, 2, 256, 40), SubsampledGaussian(4.0, 1.0, 10)
    ours = every_epsilon({event: 4}, 1e-5)
    assert ours == pytest.approx(every_epsilon({plain: 4}, 1e-5), rel=1e-9)
    assert every_epsilon({event: 4}, 1e-5, replace_one) == pytest.approx(
        every_epsilon({plain: 4}, 1e-5, replace_one), rel=1e-9
    )
    both = epsilon({event: 2, plain: 2}, 1e-5)
    assert both == pytest.approx(ours["pld"], rel=1e-9)
    assert epsilon({event: 2, NonPrivate(): 1}, 1e-5) == math.inf


def test_a_budget_and_the_noise_for_it_know_it() -> None:
    event = SharedGaussian(1.0, 100, 20, 256, 40)
    assert noise_for(1.0, 1e-5, event, 4) == 7.4614  # as for a trusted server
    spent = Budget(1.0, 1e-5).allow(
        [replace(event, noise=7.4614)] * 3, replace(event, noise=7.4614)
    )
    assert 0.999 < spent <= 1.0


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"noise": 0.0}, "z must be finite and above 0, got z=0.0"),
        ({"agents": 0}, "agents must be at least 1"),
        ({"unreliable": 10}, "must be in \\[0, N\\), got k=10, N=10"),
        ({"unreliable": -1}, "must be in \\[0, N\\)"),
        ({"numbers": 0}, "a number at least"),
        ({"bits": 12}, "a share of the noise must have a scale of at least 65536 steps"),
        ({"bits": 0}, "a share of the noise"),
    ],
)
def test_an_event_that_cannot_be_is_refused(change: dict[str, float], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        replace(SharedGaussian(4.0, 10, 2, 256, 40), **change)  # type: ignore[arg-type]


def test_shares_of_noise_are_of_64_bits_and_of_the_scale_asked_for() -> None:
    zeros = np.zeros(4000, dtype=np.int64)
    drawn = SystemEntropy().add_discrete_gaussian(zeros + 5, 2.0**43)
    assert drawn.dtype == np.int64
    assert abs(float(drawn.std()) / 2.0**43 - 1) < 0.06
    assert len(np.unique(drawn)) == 4000
    for scale in (0.0, 2.0**58, math.inf, math.nan):
        with pytest.raises(InvalidInput, match="scale must be in"):
            SystemEntropy().add_discrete_gaussian(zeros, scale)


def test_drawn_shares_are_the_numbers_given_and_are_marked_as_simulation() -> None:
    source = Drawn(np.array([0.26, -1.0]))
    assert source.simulation
    assert not SystemEntropy().simulation
    assert source.add_discrete_gaussian(np.array([1, 2]), 10.0).tolist() == [4, -8]
