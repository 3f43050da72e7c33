from __future__ import annotations

import dataclasses
import math

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import POOLED_TS
from sottovoce.federation.schedule import (
    Exploration,
    ReleaseSchedule,
    SoloProbability,
    information_gain,
)


def test_the_default_chance_is_one_minus_one_over_the_root() -> None:
    chance = SoloProbability()
    assert chance(1) == 0.0
    assert chance(4) == 0.5
    assert chance(100) == pytest.approx(0.9, rel=1e-15)


@pytest.mark.parametrize(
    ("kind", "at_four"), [("root", 0.5), ("inverse", 0.75), ("square", 0.9375)]
)
def test_each_kind_of_chance_follows_its_power(kind: str, at_four: float) -> None:
    chance = SoloProbability(kind)  # type: ignore[arg-type]
    assert chance(1) == 0.0
    assert chance(4) == at_four
    assert 0.999 < SoloProbability(kind)(10**7) < 1  # type: ignore[arg-type]


def test_of_news_the_chance_begins_again_with_each_release() -> None:
    method = dataclasses.replace(POOLED_TS, releases=ReleaseSchedule(every=3, last=4))
    since = [1, 2, 3, 1, 2, 3, 4, 5]  # rounds 0 and 3 speak, and the query after a round uses it
    assert [method.releases.since(t) for t in range(1, 9)] == since
    assert [method.solo_probability(t) for t in range(1, 9)] == [1 - k**-0.5 for k in since]
    assert [ReleaseSchedule().since(t) for t in (1, 2, 50)] == [1, 1, 1]
    assert [ReleaseSchedule(last=0).since(t) for t in (1, 2, 50)] == [1, 2, 50]


def test_a_constant_chance_stays() -> None:
    assert [SoloProbability("constant", 0.3)(t) for t in (1, 2, 1000)] == [0.3] * 3
    assert SoloProbability("constant")(1) == 1.0


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf])
def test_a_chance_outside_zero_and_one_is_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"p_t must be in \[0, 1\]"):
        SoloProbability("constant", value)


def test_an_unknown_kind_of_chance_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"solo must be one of .*, got kind='cube'"):
        SoloProbability("cube")  # type: ignore[arg-type]


@pytest.mark.parametrize("t", [0, -3])
def test_queries_are_numbered_from_one(t: int) -> None:
    with pytest.raises(InvalidInput, match="numbered from 1"):
        SoloProbability()(t)
    with pytest.raises(InvalidInput, match="numbered from 1"):
        Exploration()(t, 2)


def test_exploration_is_one_unless_asked_otherwise() -> None:
    assert [Exploration()(t, dims) for t, dims in ((1, 1), (50, 3))] == [1.0, 1.0]


def test_the_theorems_exploration_is_its_formula() -> None:
    beta = Exploration("theorem", norm=2.0, noise=0.3, failure=0.05)
    for t, dims in ((1, 1), (2, 1), (10, 2), (60, 3)):
        gain = math.log(max(t - 1, 1)) ** (dims + 1)
        wanted = 2.0 + 0.3 * math.sqrt(2 * (gain + 1 + math.log(4 / 0.05)))
        assert beta(t, dims) == pytest.approx(wanted, rel=1e-15)


def test_exploration_widens_with_the_rounds() -> None:
    values = [Exploration("theorem")(t, 2) for t in range(1, 40)]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_nothing_is_gained_from_no_or_one_observation() -> None:
    assert information_gain(0, 2) == information_gain(1, 2) == 0.0
    assert information_gain(10, 1) == pytest.approx(math.log(10) ** 2)


@pytest.mark.parametrize(
    "changes",
    [{"kind": "two"}, {"norm": 0.0}, {"noise": 0.0}, {"noise": -1.0}, {"failure": 0.0}],
)
def test_bad_explorations_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Exploration(**changes)  # type: ignore[arg-type]


def test_every_round_speaks_unless_told_otherwise() -> None:
    speaking = ReleaseSchedule()
    assert all(speaking.released(r) for r in range(100))
    assert not speaking.over(10**6)
    assert speaking.count(40) == 40


def test_every_third_round_speaks_beginning_with_the_first() -> None:
    speaking = ReleaseSchedule(every=3)
    assert [r for r in range(10) if speaking.released(r)] == [0, 3, 6, 9]
    assert [speaking.count(rounds) for rounds in (0, 1, 3, 4, 10)] == [0, 1, 1, 2, 4]


def test_after_the_last_round_nobody_speaks() -> None:
    speaking = ReleaseSchedule(every=2, last=4)
    assert [r for r in range(10) if speaking.released(r)] == [0, 2, 4]
    assert [speaking.over(r) for r in (3, 4, 5, 6)] == [False, False, True, True]
    assert speaking.count(100) == 3
    assert ReleaseSchedule(last=0).count(5) == 1


@pytest.mark.parametrize("every", [0, -2])
def test_a_stride_below_one_is_refused(every: int) -> None:
    with pytest.raises(InvalidInput, match=f"every must be at least 1, got every={every}"):
        ReleaseSchedule(every=every)


def test_a_last_round_below_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 0, got last=-1"):
        ReleaseSchedule(last=-1)
