"""One budget for all studies on the same data: what each may say, and whether one more fits.

A site keeps a purse for its data. A study is entered with all releases that it may ever make, and
what all studies together may say is composed over all their events, in both adjacencies, at the
purse's δ: a study that does not fit is refused before its first message. Each thing the site says
is written here before it is sent. A study that is closed keeps what was said, and gives the rest
back; the site says nothing more in it.

Why the sum is a bound, whatever is joined, closed, and joined after that: releases in which all
agents are (q = 1) are pieces of one Brownian path whose length is Σ 1/z², and choosing the pieces
by what was seen of earlier ones costs nothing (Smith and Thakurta 2022; Koskela, Tobaben and
Honkela 2023). No such theorem is known to us for sampled releases, so those give nothing back.

This module decides and reads nothing; `pursefile` keeps it on disk. A `Book` is what the entries
of a purse come to; its methods give the entry to be written next, None if there is nothing to
write, or refuse.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sottovoce.errors import BudgetExceeded, LedgerError, check
from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.chain import canonical
from sottovoce.privacy.events import Event, SharedGaussian, SubsampledGaussian, from_dict, to_dict

Content = dict[str, Any]  # of an entry, as plain data

_LEAST_NOISE, _MOST_NOISE = 1e-2, 1e5  # where a further study is looked for
SOURCE = "entered"  # of events: none was drawn yet


@dataclass(frozen=True)
class Spent:
    """ε of a site's whole contribution to all studies, and of one record replaced, at one δ."""

    epsilon: float
    replace_one: float


@dataclass(frozen=True)
class Limits:
    """The most that all studies on the data may spend together.

    Args:
        epsilon: of a site's whole contribution, against its absence (zero-out).
        delta: δ of both.
        replace_one: of one record, against another in its place; None: there is no such limit.
    """

    epsilon: float
    delta: float
    replace_one: float | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "replace_one"):
            value = getattr(self, name)
            ok = value is None or 0 < value < math.inf
            check(ok, f"{name} must be finite and above 0", **{name: value})
        check(0 < self.delta < 1, "delta must be in (0, 1)", delta=self.delta)

    def spent(self, events: Mapping[Event, int]) -> Spent:
        """What the events come to, by pld: the tightest bound, and the only one for both."""
        return Spent(epsilon(events, self.delta), replace_one(events, self.delta))

    def allow(self, events: Mapping[Event, int]) -> Spent:
        """The same; refused if it is more than either limit."""
        after = self.spent(events)
        pairs = [("a site's whole contribution", after.epsilon, self.epsilon)]
        if self.replace_one is not None:
            pairs.append(("one record replaced", after.replace_one, self.replace_one))
        for what, value, most in pairs:
            if not value <= most:  # a NaN is refused too
                raise BudgetExceeded(
                    f"with this study ε of all studies on the data would come to {value:.4g} for "
                    f"{what}; the purse allows {most:g} (pld, δ = {self.delta:g})"
                )
        return after


@dataclass(frozen=True)
class Stake:
    """What one study has in a purse."""

    study: str  # fingerprint of its public constants
    name: str  # for people
    event: Event  # what each of its releases spends
    releases: int  # how many it may make
    open: bool = True
    agent: int | None = None  # the one that this site is in it, once it has spoken
    said: Mapping[int, str] = field(default_factory=dict)  # by round: what names the content

    @property
    def kept(self) -> int:
        """How many releases it counts with: all, or once it is closed those that were said."""
        return self.releases if self.open or not gives_back(self.event) else len(self.said)


def gives_back(event: Event) -> bool:
    """Whether releases that were not made may be spent otherwise: not if agents are sampled."""
    if isinstance(event, SubsampledGaussian):
        return event.participation == 1
    return isinstance(event, SharedGaussian)


@dataclass(frozen=True)
class Book:
    """What the entries of a purse come to."""

    name: str  # drawn at random when the purse was made
    data: str  # what it is for, in words
    limits: Limits
    place: Mapping[str, Any]  # where its file was made, or moved to
    stakes: Mapping[str, Stake]  # by study

    @property
    def events(self) -> dict[Event, int]:
        """What all studies together may say; the same in whatever order they came."""
        return _together(self.stakes.values())

    @property
    def room(self) -> float | None:
        """ε, at the purse's δ, of the largest further study without sampling that would fit.

        None if a study in the purse is sampled: each of the questions would take seconds.
        """
        events = self.events
        if not all(gives_back(event) for event in events):
            return None

        def fits(noise: float) -> bool:
            further = SubsampledGaussian(noise, 1.0, 2)
            try:
                self.limits.allow({**events, further: events.get(further, 0) + 1})
            except BudgetExceeded:
                return False
            return True

        low, high = _LEAST_NOISE, _MOST_NOISE
        if not fits(high):
            return 0.0
        while high / low > 1 + 1e-6:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(middle) else (middle, high)
        return self.limits.spent({SubsampledGaussian(high, 1.0, 2): 1}).epsilon

    def enter(
        self, study: str, name: str, event: Event, releases: int, *, again: bool = False
    ) -> Content | None:
        """Set aside all that a study may spend, or refuse it.

        again: also if it was closed; that is for the site's operator to say, not for a call.
        """
        check(releases >= 1, "a study must have a release at least", releases=releases)
        event = from_dict({**to_dict(event), "source": SOURCE})
        new = Stake(study, name, event, releases)
        old = self.stakes.get(study)
        if old is not None:
            if (old.event, old.releases) != (event, releases):
                raise LedgerError(f"study {study[:12]} is in this purse with other releases")
            if old.open:
                return None
            if not again:
                raise LedgerError(
                    f"study {study[:12]} is closed in this site's purse: it says nothing more in it"
                )
            new = replace(old, open=True)
        self.limits.allow(_together({**self.stakes, study: new}.values()))
        entry = {"kind": "enter", "study": study, "name": name, "releases": releases}
        return {**entry, "event": to_dict(event)}

    def say(self, study: str, agent: int, round_number: int, digest: str) -> Content | None:
        """Note what is about to be said; refused beyond what was entered, or a second content."""
        stake = self.stakes.get(study)
        if stake is None or not stake.open:
            raise LedgerError(f"study {study[:12]} is not open in this site's purse")
        if stake.agent not in (None, agent):
            # two agents with the same data move a sum twice as far, which nothing here counts
            raise LedgerError(
                f"this purse's data speak as agent {stake.agent} of study {study[:12]} already, "
                f"and must not as agent {agent} too"
            )
        if round_number in stake.said:
            if stake.said[round_number] != digest:
                raise LedgerError(
                    f"this site has said something else in round {round_number} of study "
                    f"{study[:12]}: its folder was set back, or the study is run a second time "
                    f"(a new one needs another feature_seed)"
                )
            return None
        if len(stake.said) >= stake.releases:
            raise LedgerError(f"study {study[:12]} has said all that it was entered with")
        entry = {"kind": "say", "study": study, "agent": agent, "round": round_number}
        return {**entry, "digest": digest}

    def close(self, study: str, said: Collection[int]) -> Content | None:
        """End a study: what was said stays counted, `said` of which the site knows included."""
        stake = self.stakes.get(study)
        if stake is None:
            raise LedgerError(f"study {study[:12]} is not in this purse")
        if not stake.open:
            return None
        return {"kind": "close", "study": study, "said": sorted({*said, *stake.said})}

    def limit(self, limits: Limits) -> Content | None:
        """Have other limits from now on; what is in the purse stays."""
        return None if limits == self.limits else {"kind": "limit", "limits": asdict(limits)}

    def after(self, content: Mapping[str, Any]) -> Book:
        """The book with one more entry."""
        kind = content["kind"]
        if kind == "limit":
            return replace(self, limits=Limits(**content["limits"]))
        if kind == "move":
            return replace(self, place=content["place"])
        study = content["study"]
        old = self.stakes.get(study)
        if kind == "enter":
            event, releases = from_dict(content["event"]), int(content["releases"])
            stake = Stake(study, content["name"], event, releases)
            new = stake if old is None else replace(old, open=True)
        elif kind == "say" and old is not None:
            said = {**old.said, int(content["round"]): str(content["digest"])}
            new = replace(old, agent=int(content["agent"]), said=said)
        elif kind == "close" and old is not None:
            rounds = {int(number): "" for number in content["said"]}
            new = replace(old, open=False, said={**rounds, **old.said})
        else:
            raise LedgerError(f"a purse has no entry {kind!r}, or not of study {study[:12]}")
        return replace(self, stakes={**self.stakes, study: new})


def first(name: str, data: str, limits: Limits, place: Mapping[str, Any]) -> Content:
    """The first entry of a purse."""
    words = {"kind": "new", "name": name, "data": data}
    return {**words, "limits": asdict(limits), "place": dict(place)}


def opened(content: Mapping[str, Any]) -> Book:
    """The book that a first entry begins."""
    if content["kind"] != "new":
        raise LedgerError("a purse must begin with its limits")
    limits = Limits(**content["limits"])
    return Book(content["name"], content["data"], limits, content["place"], {})


def _together(stakes: Collection[Stake]) -> dict[Event, int]:
    counts = Counter[Event]()
    for stake in stakes:
        counts[stake.event] += stake.kept
    # in one order: sums of floats depend on it in their last digit
    pairs = sorted(counts.items(), key=lambda pair: canonical(to_dict(pair[0])))
    return {event: count for event, count in pairs if count > 0}
