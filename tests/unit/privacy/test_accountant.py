from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from tests.published import PUBLISHED

from sottovoce.errors import InvalidInput, UnsupportedEvent
from sottovoce.privacy.accountant import (
    Accountant,
    epsilon,
    every_epsilon,
    gdp,
    moments,
    pld,
    rdp,
)
from sottovoce.privacy.budget import paper_delta
from sottovoce.privacy.events import DataFree, Event, NonPrivate, SubsampledGaussian


@pytest.mark.parametrize(("agents", "rounds", "q", "z", "published", "tight"), PUBLISHED)
def test_the_published_figures_come_out_to_two_decimals(
    agents: int, rounds: int, q: float, z: float, published: float, tight: float
) -> None:
    events = [SubsampledGaussian(z, q, agents)] * rounds
    assert round(moments(events, paper_delta(agents)), 2) == published
    assert pld(events, paper_delta(agents)) == pytest.approx(tight, abs=0.02)


def test_the_closed_form_of_the_moments_is_the_larger_of_abadis_two_integrals() -> None:
    q, z, lam = 0.3, 1.1, 5

    def mix(x: float) -> float:
        return float((1 - q) * norm.pdf(x, 0, z) + q * norm.pdf(x, 1, z))

    def base(x: float) -> float:
        return float(norm.pdf(x, 0, z))

    forward = quad(lambda x: mix(x) * (mix(x) / base(x)) ** lam, -15, 25)[0]
    backward = quad(lambda x: base(x) * (base(x) / mix(x)) ** lam, -15, 25)[0]
    from sottovoce.privacy.accountant import _log_moments

    assert forward >= backward
    assert _log_moments(z, q)[lam - 1] == pytest.approx(math.log(forward), rel=1e-7)


def test_full_participation_is_the_plain_gaussian_mechanism() -> None:
    events = [SubsampledGaussian(4.0, 1.0, 50)] * 9

    def delta_of(eps: float) -> float:
        mu = 3 / 4.0
        return float(norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu))

    exact = gdp(events, 1e-5)
    assert delta_of(exact) == pytest.approx(1e-5, rel=1e-6)
    assert pld(events, 1e-5) == pytest.approx(exact, abs=2e-3)
    assert pld(events, 1e-5) >= exact - 1e-9
    assert rdp(events, 1e-5) >= exact
    assert moments(events, 1e-5) >= exact


# rounds, z, δ, and ε by the Gaussian formula in 400 digits
EXACT = [
    (4, 4.0, 1e-5, 1.9930914044151196),
    (153, 7.8, 5e-13, 12.186686644641908),
    (278, 3.2, 1e-8, 42.138019446327682),
    (1, 1000.0, 1e-12, 0.0056995464684262821),
    (1, 100000.0, 1e-12, 4.8819950635304925e-5),
    (40, 1.0, 1e-12, 63.818730290916375),
    (3, 0.01, 1e-5, 15737.712878038889),
    (60, 3.0, 1e-300, 98.79817506668634),
]


@pytest.mark.parametrize(("rounds", "z", "delta", "exact"), EXACT)
def test_without_sampling_pld_and_gdp_are_the_exact_answer_rounded_up(
    rounds: int, z: float, delta: float, exact: float
) -> None:
    for accountant in (pld, gdp):
        found = accountant([SubsampledGaussian(z, 1.0, 50)] * rounds, delta)
        assert exact < found <= exact * (1 + 1e-8) + 1e-8


def test_unequal_rounds_without_sampling_are_one_gaussian_release() -> None:
    apart = [SubsampledGaussian(z, 1.0, 50) for z in (3.0, 4.0)]
    assert pld(apart, 1e-12) == pytest.approx(pld([SubsampledGaussian(2.4, 1.0, 50)], 1e-12))


def test_pld_leaves_room_for_the_rounding_of_its_convolutions() -> None:
    # q = 1 but for the last digit, so that the losses are convolved; the formula is the truth
    z, rounds, delta = 7.805775641149074, 153, 5.418602074147206e-13
    truth = gdp([SubsampledGaussian(z, 1.0, 50)] * rounds, delta)
    assert pld([SubsampledGaussian(z, 1 - 1e-15, 50)] * rounds, delta) > truth


def test_pld_has_no_answer_below_the_rounding_of_its_convolutions() -> None:
    assert pld([SubsampledGaussian(2.0, 0.5, 50)], 1e-15) == math.inf


@pytest.mark.parametrize("accountant", [moments, rdp, gdp])
@pytest.mark.parametrize("z", [1e-9, 1e-2, 0.05, 0.1, 1e3, 1e9])
@pytest.mark.parametrize("q", [1e-3, 0.3, 1.0])
@pytest.mark.parametrize("delta", [0.9, 1e-5, 1e-300])
def test_odd_noise_and_odd_delta_get_an_answer_never_an_error(
    accountant: Accountant, z: float, q: float, delta: float
) -> None:
    assert accountant([SubsampledGaussian(z, q, 50)] * 3, delta) >= 0


@pytest.mark.parametrize(("z", "q"), [(1e-9, 0.3), (1e-9, 1.0), (1e-4, 0.3), (1e-2, 1e-3)])
def test_hardly_any_noise_is_too_little_for_pld_not_too_much(z: float, q: float) -> None:
    events = [SubsampledGaussian(z, q, 50)] * 3
    assert pld(events, 1e-5) > 1000


def test_fixed_size_samples_cost_more_under_their_sound_bound_than_poisson_ones() -> None:
    fixed = [SubsampledGaussian(2.0, 10 / 29, 29, "fixed")] * 60
    poisson = [SubsampledGaussian(2.0, 10 / 29, 29)] * 60
    delta = paper_delta(29)
    assert rdp(fixed, delta) > rdp(poisson, delta)


def test_fixed_size_samples_use_the_doubled_sensitivity_of_replacement() -> None:
    # With all but one agent sampled, amplification is almost nil: the bound must not fall
    # below the plain Gaussian mechanism at zero-out sensitivity, which it contains.
    nearly_all = [SubsampledGaussian(2.0, 28 / 29, 29, "fixed")] * 5
    plain = [SubsampledGaussian(2.0, 1.0, 29)] * 5
    assert rdp(nearly_all, 1e-3) > 1.5 * rdp(plain, 1e-3)


@pytest.mark.parametrize("accountant", [moments, pld, gdp])
def test_accountants_without_a_bound_for_fixed_samples_refuse_them(accountant: object) -> None:
    assert callable(accountant)
    with pytest.raises(UnsupportedEvent, match="fixed-size"):
        accountant([SubsampledGaussian(1.0, 0.5, 10, "fixed")], 1e-3)


def test_rdp_refuses_a_mix_of_both_samplings() -> None:
    mix = [SubsampledGaussian(1.0, 0.5, 10, "fixed"), SubsampledGaussian(1.0, 0.5, 10)]
    with pytest.raises(UnsupportedEvent, match="one kind of sampling"):
        rdp(mix, 1e-3)


@pytest.mark.parametrize("accountant", [moments, rdp, pld, gdp])
def test_an_unknown_event_is_refused(accountant: object) -> None:
    class Surprise:
        sampling = "poisson"

    assert callable(accountant)
    with pytest.raises(UnsupportedEvent, match="Surprise"):
        accountant([Surprise()], 1e-3)


@pytest.mark.parametrize("name", ["moments", "rdp", "pld", "gdp"])
def test_one_unprotected_release_makes_epsilon_infinite(name: str) -> None:
    events: list[Event] = [SubsampledGaussian(1.0, 0.5, 10), NonPrivate()]
    assert epsilon(events, 1e-3, name) == math.inf


@pytest.mark.parametrize("name", ["moments", "rdp", "pld", "gdp"])
@pytest.mark.parametrize("events", [[], [DataFree(), DataFree()]])
def test_nothing_released_costs_nothing(name: str, events: list[Event]) -> None:
    assert epsilon(events, 1e-3, name) == 0.0


@pytest.mark.parametrize("name", ["moments", "rdp", "pld", "gdp"])
@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_delta_must_lie_between_zero_and_one(name: str, delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        epsilon([SubsampledGaussian(1.0, 0.5, 10)], delta, name)


def test_an_unknown_accountant_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"gdp.*moments.*pld.*rdp"):
        epsilon([], 1e-3, "abacus")


def test_every_epsilon_leaves_out_those_without_an_answer() -> None:
    fixed = [SubsampledGaussian(3.0, 0.5, 10, "fixed")]
    assert set(every_epsilon(fixed, 1e-3)) == {"rdp"}
    poisson = [SubsampledGaussian(3.0, 0.5, 10)]
    assert set(every_epsilon(poisson, 1e-3)) == {"moments", "rdp", "pld", "gdp"}


def test_hardly_any_noise_gives_a_huge_epsilon_not_an_error() -> None:
    events = [SubsampledGaussian(0.01, 0.25, 200)] * 3
    answers = every_epsilon(events, 1e-3)
    assert all(value > 1000 for value in answers.values())
    assert answers["gdp"] == math.inf


def test_a_little_gaussian_privacy_can_be_free_at_a_generous_delta() -> None:
    assert gdp([SubsampledGaussian(1000.0, 0.01, 200)], 0.4) == 0.0


def test_the_central_limit_answer_lies_below_the_truth_in_some_of_our_settings() -> None:
    events = [SubsampledGaussian(1.0, 0.15, 200)] * 40
    assert gdp(events, paper_delta(200)) < pld(events, paper_delta(200))


def test_unequal_rounds_compose_to_something_between_their_extremes() -> None:
    weak, strong = SubsampledGaussian(1.0, 0.25, 200), SubsampledGaussian(2.0, 0.25, 200)
    for name in ("moments", "rdp", "pld", "gdp"):
        low = epsilon([strong] * 20, 1e-3, name)
        high = epsilon([weak] * 20, 1e-3, name)
        mixed = epsilon([weak, strong] * 10, 1e-3, name)
        assert low < mixed < high
        assert mixed == pytest.approx(epsilon([strong] * 10 + [weak] * 10, 1e-3, name))
        assert np.isfinite(mixed)
