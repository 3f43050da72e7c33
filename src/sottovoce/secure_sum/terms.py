"""Who sums: the committee, how many of it are needed, and how many sites may be missing.

Symbols: N sites, k that may be absent, careless or in league, h members, t threshold.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sottovoce.errors import check

LARGEST = 100  # members; more would cost more and protect hardly better
FEWEST = 3  # sites: with two, each would know the other's share


@dataclass(frozen=True)
class Committee:
    """Who adds up shares, by their numbers among the parties, and how many of them are needed."""

    members: tuple[int, ...]
    threshold: int

    def __post_init__(self) -> None:
        h, t = len(self.members), self.threshold
        check(2 <= t <= h, "the threshold must be in [2, members]", threshold=t, members=h)

    @property
    def twice(self) -> int:
        """How many of them must answer twice before two sets of a round can be summed."""
        return 2 * self.threshold - len(self.members)


@dataclass(frozen=True)
class SecureSum:
    """Of a study whose sums nobody can open alone: what all parties agree on besides; public.

    Args:
        unreliable: k, the sites that may be absent, careless or in league before ε grows.
        roster: what names the keys of all parties; empty before they are known.
        aggregators: parties that do nothing but sum, in place of a committee of sites.
    """

    unreliable: int
    roster: str = ""
    aggregators: int = 0

    def committee(self, agents: int) -> Committee:
        """Who sums."""
        return committee_of(agents, self.roster, self.aggregators)

    def check(self, agents: int) -> None:
        """Refuse what would promise more than the committee can keep."""
        committee = self.committee(agents)
        most = min(agents, committee.twice if not self.aggregators else agents) - 1
        rule = f"of {agents} sites, unreliable must be in [1, {most}]"
        check(1 <= self.unreliable <= most, rule, unreliable=self.unreliable)
        rule = "aggregators must be none, or at least 2"
        check(self.aggregators == 0 or self.aggregators >= 2, rule, aggregators=self.aggregators)


def committee_of(agents: int, seed: str, aggregators: int = 0) -> Committee:
    """The committee of a study: all sites up to 100, above that 100 that a hash of `seed` draws.

    With aggregators of their own, who follow the sites in number, all of those are needed.
    """
    check(agents >= FEWEST, f"a sum needs at least {FEWEST} sites", agents=agents)
    if aggregators > 0:
        return Committee(tuple(range(agents, agents + aggregators)), aggregators)
    members = list(range(agents))
    if agents > LARGEST:
        ranked = sorted(members, key=lambda n: hashlib.sha256(f"{seed}/{n}".encode()).digest())
        members = sorted(ranked[:LARGEST])
    return Committee(tuple(members), 2 * len(members) // 3 + 1)


def default_unreliable(agents: int, aggregators: int = 0) -> int:
    """k, if nobody says another: a fifth of the sites, at least two of them.

    One of two may be absent; the other is a site that wants to know, and knows its own noise.
    Beyond a hundred sites a committee keeps no more than its size allows.
    """
    fifth = max(2, agents // 5)
    if agents <= LARGEST or aggregators:
        return fifth
    return min(fifth, committee_of(agents, "").twice - 1)
