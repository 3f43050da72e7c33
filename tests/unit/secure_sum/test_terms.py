from __future__ import annotations

import math

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.secure_sum.terms import Committee, SecureSum, committee_of, default_unreliable


@pytest.mark.parametrize("agents", [3, 4, 5, 10, 30, 99, 100])
def test_up_to_a_hundred_sites_all_are_members_and_more_than_two_thirds_are_needed(
    agents: int,
) -> None:
    committee = committee_of(agents, "seed")
    assert committee.members == tuple(range(agents))
    assert committee.threshold > 2 * agents / 3
    assert committee.threshold - 1 <= 2 * agents / 3
    # two sets need more than a third of all members to break their word
    assert committee.twice > agents / 3


def test_above_a_hundred_a_hash_draws_a_hundred_members_evenly() -> None:
    counts = [0] * 150
    for seed in range(300):
        committee = committee_of(150, f"seed {seed}")
        assert len(committee.members) == len(set(committee.members)) == 100
        assert committee.threshold == 67
        assert list(committee.members) == sorted(committee.members)
        for member in committee.members:
            counts[member] += 1
    spread = math.sqrt(300 * (2 / 3) * (1 / 3))
    assert all(abs(count - 200) < 5 * spread for count in counts)
    assert committee_of(150, "a") == committee_of(150, "a") != committee_of(150, "b")


def test_aggregators_of_their_own_follow_the_sites_and_all_of_them_are_needed() -> None:
    committee = committee_of(1000, "seed", aggregators=3)
    assert committee == Committee((1000, 1001, 1002), 3)
    assert committee.twice == 3


@pytest.mark.parametrize(("agents", "k"), [(5, 2), (9, 2), (10, 2), (30, 6), (100, 20)])
def test_a_fifth_of_the_sites_is_not_counted_on_unless_said(agents: int, k: int) -> None:
    assert default_unreliable(agents) == k
    assert k < committee_of(agents, "").twice


def test_too_few_sites_or_members_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 3 sites, got agents=2"):
        committee_of(2, "seed")
    with pytest.raises(InvalidInput, match="threshold must be in"):
        Committee((1, 2, 3), 4)
    with pytest.raises(InvalidInput, match="threshold must be in"):
        Committee((1, 2, 3), 1)


def test_more_sites_are_not_counted_on_than_the_committee_can_bear() -> None:
    SecureSum(2).check(5)
    with pytest.raises(InvalidInput, match=r"of 5 sites, unreliable must be in \[1, 2\]"):
        SecureSum(3).check(5)  # three who answer twice open the difference of two sets
    SecureSum(4, aggregators=3).check(5)  # no site sums
    with pytest.raises(InvalidInput, match=r"of 5 sites, unreliable must be in \[1, 4\]"):
        SecureSum(5, aggregators=3).check(5)
    with pytest.raises(InvalidInput, match="unreliable must be"):
        SecureSum(0).check(5)


def test_the_default_is_one_that_a_committee_of_a_hundred_keeps() -> None:
    assert default_unreliable(1000) == 33
    assert default_unreliable(1000, aggregators=3) == 200
    for aggregators in (0, 3):
        SecureSum(default_unreliable(1000, aggregators), "", aggregators).check(1000)
