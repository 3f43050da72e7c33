"""Every accountant, run through the same demands."""

from __future__ import annotations

import math

import pytest

from sottovoce.errors import InvalidInput, UnsupportedEvent
from sottovoce.privacy.accountant import ACCOUNTANTS, BOUNDS, epsilon
from sottovoce.privacy.events import DataFree, Event, NonPrivate, SubsampledGaussian

EVENT = SubsampledGaussian(1.3, 0.3, 100)
everyone = pytest.mark.parametrize("name", ACCOUNTANTS)


@everyone
def test_it_gives_a_finite_positive_answer_for_a_private_release(name: str) -> None:
    assert 0 < epsilon([EVENT], 1e-5, name) < math.inf


@everyone
def test_silence_is_free_and_exposure_is_infinite(name: str) -> None:
    assert epsilon([], 1e-5, name) == 0.0
    assert epsilon([DataFree()] * 3, 1e-5, name) == 0.0
    assert epsilon([EVENT, NonPrivate()], 1e-5, name) == math.inf


@everyone
def test_a_smaller_delta_costs_more(name: str) -> None:
    assert epsilon([EVENT] * 10, 1e-7, name) > epsilon([EVENT] * 10, 1e-3, name)


@everyone
def test_the_order_of_rounds_does_not_matter(name: str) -> None:
    other = SubsampledGaussian(2.0, 0.3, 100)
    first = epsilon([EVENT, other, EVENT], 1e-5, name)
    assert epsilon([other, EVENT, EVENT], 1e-5, name) == pytest.approx(first, rel=1e-9)


@everyone
def test_counted_rounds_are_the_same_as_listed_ones(name: str) -> None:
    assert epsilon({EVENT: 7}, 1e-5, name) == epsilon([EVENT] * 7, 1e-5, name)


@everyone
def test_a_hundred_million_rounds_are_answered_or_refused(name: str) -> None:
    whole, sampled = (SubsampledGaussian(1e4, q, 100) for q in (1.0, 0.5))
    assert 1 < epsilon({whole: 10**8}, 1e-5, name) < 10
    if name == "pld":
        with pytest.raises(UnsupportedEvent, match="at most 10000 sampled rounds, got 100000000"):
            epsilon({sampled: 10**8}, 1e-5, name)
    else:
        assert 0.5 < epsilon({sampled: 10**8}, 1e-5, name) < 5


@everyone
def test_free_rounds_change_nothing(name: str) -> None:
    mixed: list[Event] = [EVENT, DataFree(), EVENT]
    assert epsilon(mixed, 1e-5, name) == epsilon([EVENT, EVENT], 1e-5, name)


@everyone
def test_it_refuses_what_it_does_not_know(name: str) -> None:
    with pytest.raises(UnsupportedEvent):
        epsilon([object()], 1e-5, name)  # type: ignore[list-item]


@everyone
def test_it_refuses_a_delta_that_means_nothing(name: str) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        epsilon([EVENT], 0.0, name)


@everyone
def test_fixed_samples_are_bounded_or_refused_never_guessed(name: str) -> None:
    fixed = SubsampledGaussian(3.0, 0.5, 10, "fixed")
    plain = SubsampledGaussian(3.0, 1.0, 10)
    try:
        answer = epsilon([fixed] * 4, 1e-3, name)
    except UnsupportedEvent:
        return
    assert answer > 0.2 * epsilon([plain] * 4, 1e-3, name)


def test_only_accountants_whose_answer_is_a_bound_may_guard_a_budget() -> None:
    assert set(ACCOUNTANTS) - set(BOUNDS) == {"gdp"}
