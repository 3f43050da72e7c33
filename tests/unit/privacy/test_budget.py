from __future__ import annotations

import math
from typing import Any

import pytest

from sottovoce.errors import BudgetExceeded, InvalidInput
from sottovoce.privacy.accountant import ACCOUNTANTS, epsilon
from sottovoce.privacy.budget import Budget, noise_for, paper_delta
from sottovoce.privacy.events import DataFree, Event, NonPrivate, SubsampledGaussian

ROUND = SubsampledGaussian(1.0, 0.25, 200)


def test_the_papers_delta() -> None:
    assert paper_delta(200) == pytest.approx(200**-1.1)
    with pytest.raises(InvalidInput, match="at least 2 agents"):
        paper_delta(1)


def test_the_guard_lets_pass_what_fits_and_refuses_the_round_that_does_not() -> None:
    budget = Budget(9.91 + 0.005, paper_delta(200), "moments")
    spent: list[Event] = []
    for _ in range(40):
        after = budget.allow(spent, ROUND)
        spent.append(ROUND)
        assert budget.spent(spent) == after <= budget.epsilon
    with pytest.raises(BudgetExceeded, match=r"would bring ε to 1\d.*budget is 9.915.*zero-out"):
        budget.allow(spent, ROUND)


def test_the_guard_refuses_an_unprotected_release_and_allows_pure_noise() -> None:
    budget = Budget(1.0, 1e-5)
    with pytest.raises(BudgetExceeded, match="inf"):
        budget.allow([], NonPrivate())
    assert budget.allow([], DataFree()) == 0.0


def test_the_guard_refuses_what_the_accountant_has_no_number_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ACCOUNTANTS, "moments", lambda events, delta: math.nan)
    with pytest.raises(BudgetExceeded, match="would bring ε to nan"):
        Budget(1.0, 1e-5, "moments").allow([], SubsampledGaussian(4.0, 1.0, 100))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"accountant": "gdp"}, "bounds ε"),
        ({"accountant": "abacus"}, "abacus"),
    ],
)
def test_a_budget_that_promises_nothing_is_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        Budget(**{"epsilon": 1.0, "delta": 1e-5, **changes})


@pytest.mark.parametrize("accountant", ["moments", "rdp", "pld", "gdp"])
@pytest.mark.parametrize(("target", "delta", "rounds"), [(9.91, 200**-1.1, 40), (1.0, 1e-5, 5)])
def test_the_noise_found_keeps_the_promise_and_is_not_wasteful(
    accountant: str, target: float, delta: float, rounds: int
) -> None:
    z = noise_for(target, delta, ROUND, rounds, accountant)
    at = SubsampledGaussian(z, 0.25, 200)
    assert epsilon([at] * rounds, delta, accountant) <= target
    less = SubsampledGaussian(z * 0.995, 0.25, 200)
    assert epsilon([less] * rounds, delta, accountant) > target


def test_the_noise_for_the_papers_epsilon_is_the_papers_noise() -> None:
    assert noise_for(9.908, paper_delta(200), ROUND, 40, "moments") == pytest.approx(1.0, abs=1e-3)


def test_noise_for_fixed_samples_is_found_by_rdp() -> None:
    fixed = SubsampledGaussian(1.0, 0.5, 10, "fixed")
    z = noise_for(2.0, 1e-3, fixed, 5, "rdp")
    assert epsilon([SubsampledGaussian(z, 0.5, 10, "fixed")] * 5, 1e-3, "rdp") <= 2.0


def test_a_very_generous_epsilon_needs_next_to_no_noise() -> None:
    assert noise_for(1e7, 1e-5, ROUND, 1, "moments") == pytest.approx(0.01)


def test_an_epsilon_beyond_reach_of_the_accountant_is_an_error() -> None:
    # moments has orders up to 32: it cannot go below log(1/δ)/32
    with pytest.raises(InvalidInput, match="no noise multiplier"):
        noise_for(0.1, 1e-5, ROUND, 10, "moments")


@pytest.mark.parametrize(
    ("target", "rounds", "word"),
    [(0.0, 5, "epsilon"), (math.nan, 5, "epsilon"), (math.inf, 5, "epsilon"), (1.0, 0, "rounds")],
)
def test_a_senseless_target_is_refused(target: float, rounds: int, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        noise_for(target, 1e-5, ROUND, rounds)
