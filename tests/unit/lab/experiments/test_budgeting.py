from __future__ import annotations

import json
import math
from typing import Any

import pytest
from tests.published import PUBLISHED

from sottovoce.errors import InvalidInput, UnsupportedEvent
from sottovoce.lab.experiments.budgeting import Plan, answer, costs_of_stricter_delta
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.events import SubsampledGaussian

KEYS = {
    "epsilon",
    "replace_one",
    "noise",
    "delta",
    "agents",
    "rounds",
    "participation",
    "sampling",
    "adjacency",
}


@pytest.mark.parametrize(("agents", "rounds", "q", "z", "published", "pld"), PUBLISHED)
def test_the_published_figures_come_out(
    agents: int, rounds: int, q: float, z: float, published: float, pld: float
) -> None:
    found = answer(Plan(agents, rounds, q), noise=z, epsilon=None, accountant="all")["epsilon"]
    assert round(found["moments"], 2) == published
    assert found["pld"] == pytest.approx(pld, abs=0.02)
    assert found["pld"] <= found["rdp"] <= found["moments"] + 1e-9


def test_an_answer_says_everything_beside_the_number() -> None:
    result = answer(Plan(200, 40, 0.25), noise=1.0, epsilon=None, accountant="moments")
    assert set(result) == KEYS
    assert set(result["epsilon"]) == {"moments"}
    assert (result["agents"], result["rounds"], result["participation"]) == (200, 40, 0.25)
    assert (result["noise"], result["sampling"]) == (1.0, "poisson")
    assert result["adjacency"] == "zero-out"
    assert result["delta"] == pytest.approx(200**-1.1)
    json.dumps(result, allow_nan=False)


def test_all_accountants_answer_when_asked_for_all() -> None:
    result = answer(Plan(29, 5, 0.35), noise=2.0, epsilon=None, accountant="all")
    assert list(result["epsilon"]) == ["moments", "rdp", "pld", "gdp"]


@pytest.mark.parametrize("accountant", ["moments", "rdp", "gdp"])
def test_the_noise_found_for_an_epsilon_keeps_it(accountant: str) -> None:
    plan = Plan(50, 4, 0.3, delta=1e-5)
    result = answer(plan, noise=None, epsilon=2.0, accountant=accountant)
    assert result["epsilon"][accountant] <= 2.0
    assert result["epsilon"][accountant] > 1.95
    less = [SubsampledGaussian(result["noise"] * 0.99, 0.3, 50)] * 4
    assert epsilon(less, 1e-5, accountant) > 2.0


def test_for_all_the_noise_is_chosen_by_the_tightest_bound() -> None:
    result = answer(Plan(50, 2, 0.3, delta=1e-5), noise=None, epsilon=2.0, accountant="all")
    assert 1.95 < result["epsilon"]["pld"] <= 2.0


def test_fixed_samples_are_answered_for_by_rdp_alone() -> None:
    plan = Plan(30, 3, 0.25, delta=1e-4, sampling="fixed")
    result = answer(plan, noise=3.0, epsilon=None, accountant="all")
    assert set(result["epsilon"]) == {"rdp"}
    assert result["sampling"] == "fixed"
    assert result["participation"] == 8 / 30  # what is really drawn


@pytest.mark.parametrize("accountant", ["moments", "pld", "gdp"])
def test_an_accountant_without_a_bound_for_fixed_samples_refuses_them(accountant: str) -> None:
    plan = Plan(30, 3, 0.25, sampling="fixed")
    with pytest.raises(UnsupportedEvent, match=f"{accountant} has no sound bound"):
        answer(plan, noise=1.0, epsilon=None, accountant=accountant)


def test_a_record_replaced_is_answered_for_beside_a_site_left_out() -> None:
    found = answer(Plan(50, 4, 1.0, 1e-5), noise=None, epsilon=4.0, accountant="pld")
    assert found["epsilon"]["pld"] == pytest.approx(4.0, abs=1e-3)
    assert found["replace_one"] == {"pld": pytest.approx(9.08, abs=0.01)}


def test_a_record_replaced_is_answered_for_by_pld_where_the_one_asked_has_no_answer() -> None:
    found = answer(Plan(50, 4, 0.5, 1e-5), noise=2.0, epsilon=None, accountant="moments")
    assert set(found["epsilon"]) == {"moments"}
    assert set(found["replace_one"]) == {"pld"}


def test_for_fixed_samples_both_figures_are_the_same() -> None:
    found = answer(Plan(50, 4, 0.5, 1e-5, "fixed"), noise=2.0, epsilon=None, accountant="all")
    assert found["epsilon"] == found["replace_one"]


def test_a_million_rounds_are_answered_for_without_pld_where_it_has_no_answer() -> None:
    plan = Plan(50, 10**6, 0.3)
    result = answer(plan, noise=3000.0, epsilon=None, accountant="all")
    assert list(result["epsilon"]) == ["moments", "rdp", "gdp"]
    assert result["replace_one"] == {}
    name, costs = costs_of_stricter_delta(plan, result)
    assert name == "rdp"
    assert costs[1e-6] > costs[1e-5] > result["epsilon"]["rdp"]
    found = answer(plan, noise=None, epsilon=1.0, accountant="all")
    assert 0.99 < found["epsilon"]["rdp"] <= 1.0


def test_a_million_rounds_without_sampling_are_answered_for_by_pld_too() -> None:
    result = answer(Plan(50, 10**6, 1.0), noise=3000.0, epsilon=None, accountant="all")
    assert list(result["epsilon"]) == ["moments", "rdp", "pld", "gdp"]


@pytest.mark.parametrize("given", [{}, {"noise": 1.0, "epsilon": 2.0}])
def test_exactly_one_of_noise_and_epsilon_is_asked_for(given: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="not both and not neither"):
        answer(
            Plan(30, 3, 0.25),
            noise=given.get("noise"),
            epsilon=given.get("epsilon"),
            accountant="moments",
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"agents": 0},
        {"agents": 1},  # N^(−1.1) is no probability to fail with
        {"rounds": 0},
        {"rounds": 10**9 + 1},
        {"participation": 0.0},
        {"participation": 1.3},
        {"participation": -0.1},
        {"participation": math.nan},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"sampling": "stratified"},
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Plan(**{"agents": 30, "rounds": 3, "participation": 0.25, **changes})


@pytest.mark.parametrize("noise", [0.0, -1.0, math.inf, math.nan])
def test_a_noise_that_is_none_is_refused(noise: float) -> None:
    with pytest.raises(InvalidInput, match="z must be finite and above 0"):
        answer(Plan(30, 3, 0.25), noise=noise, epsilon=None, accountant="moments")


@pytest.mark.parametrize("target", [0.0, -1.0, math.inf, math.nan])
def test_an_epsilon_that_is_none_is_refused(target: float) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be finite and above 0"):
        answer(Plan(30, 3, 0.25), noise=None, epsilon=target, accountant="moments")


def test_an_unknown_accountant_is_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="one of moments, rdp, pld, gdp, all, got 'magic'"):
        answer(Plan(30, 3, 0.25), noise=1.0, epsilon=None, accountant="magic")


def test_a_stricter_delta_costs_more() -> None:
    plan = Plan(30, 2, 0.25)
    result = answer(plan, noise=2.0, epsilon=None, accountant="moments")
    name, costs = costs_of_stricter_delta(plan, result)
    assert name == "pld"
    assert list(costs) == [1e-5, 1e-6]
    assert costs[1e-6] > costs[1e-5] > epsilon([plan.event(2.0)] * 2, result["delta"], "pld")


def test_only_deltas_below_the_one_used_are_costed() -> None:
    plan = Plan(30, 2, 0.25, delta=5e-6)
    result = answer(plan, noise=2.0, epsilon=None, accountant="moments")
    assert list(costs_of_stricter_delta(plan, result)[1]) == [1e-6]
