"""What a study promises in plain sentences, true for its own trust mode; docs/threat-model.md has
the reasons for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sottovoce.flower.statement.promise import Bound, League, Promise, Stricter
from sottovoce.pages.text import counted

Cells = tuple[tuple[str, ...], ...]


class Rows(NamedTuple):
    """A table."""

    heads: tuple[str, ...]
    rows: Cells


class Bullets(NamedTuple):
    """A list."""

    items: tuple[str, ...]


Block = str | Rows | Bullets


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


def bound(value: float) -> str:
    """An ε, never shown below what it is."""
    return "∞" if value > 700 else f"{-(-value * 100 // 1) / 100:.2f}"


def percent(value: float) -> str:
    """A share, rounded up; only what is certain is called so."""
    shown = -(-value * 1000 // 1) / 10
    return "more than 99.9 %" if shown > 99.9 else f"{shown:.1f} %"


def sentences(promise: Promise) -> list[str]:
    """What is promised, to whom, against whom: for a terminal."""
    file, site, record = promise.file, promise.site, promise.record
    return [
        f"{promise.study.agents} sites, {promise.releases} releases, each the noised sum of what "
        f"sites say. Over the whole study:",
        f"To a site: whether its contribution is in what is broadcast, or zeros in its place, is "
        f"hidden within ε = {bound(site.epsilon)} at δ = {file.delta:g}; a guess is right in at "
        f"most {percent(site.right)} of cases, where 50 % is blind.",
        f"To a person whose record lies at one site: which of two records is there is hidden "
        f"within ε = {bound(record.epsilon)} at the same δ; a guess is right in at most "
        f"{percent(record.right)} of cases.",
        f"Against: {against(promise)}",
        f"Not against: {not_against(promise)}",
    ]


def against(promise: Promise) -> str:
    """Whom the promise holds against."""
    others = "all who see the broadcasts, other sites included, whatever else they know"
    league = promise.league
    if league is None:
        return (
            f"{others}, as long as the coordinator adds the noise and keeps what it got to itself."
        )
    return (
        f"{others}, and the coordinator, as long as the sites in league with it, absent or left "
        f"out by it, or careless with their noise are {league.unreliable} at most, all together."
    )


def not_against(promise: Promise) -> str:
    """Whom it does not hold against."""
    league = promise.league
    if league is None:
        return (
            "the coordinator and the host of its link: they see every site's vectors without "
            "noise, and can rebuild from them the parameters a site tried and how well each did."
        )
    return (
        f"{_openers(league)} in league with the coordinator: they open single sites' vectors, each "
        f"hidden by that site's own noise alone, which is ε = {bound(league.opened[0].epsilon)} "
        f"for the site and {bound(league.opened[1].epsilon)} for a record."
    )


def _openers(league: League) -> str:
    if league.aggregators:
        return f"all {league.aggregators} aggregators"
    return f"{league.threshold} of the {league.members} members of the committee"


def price(table: list[Stricter]) -> Rows:
    """What a stricter ε costs."""
    heads = ("ε, a site", "ε, a record", "noise z", "revealed of what sites have in common")
    rows = tuple(
        (
            f"{row.epsilon:g}",
            bound(row.record),
            f"{row.noise:g}",
            "not known for this method" if row.revealed is None else f"{row.revealed:.0%}",
        )
        for row in table
    )
    return Rows(heads, rows)


def purpose(promise: Promise) -> Section:
    """What it is for."""
    study, names = promise.study, [p.name for p in promise.study.space.parameters]
    trials = study.method.initial + study.rounds
    return Section(
        "Purpose",
        (
            f"{study.agents} sites tune the same kind of model. Each tries {trials} settings of "
            f"{', '.join(f'`{name}`' for name in names)} on its own data and its own machine, and "
            f"keeps what does best there ({promise.file.direction} the objective). "
            f"{promise.releases} times each says something of how its trials went; all get the "
            f"noised sum, and search on with it. No record and no model is exchanged.",
            "Purpose of the model, legal basis, kind of data (to be filled in): "
            "______________________________",
        ),
    )


def leaves(promise: Promise) -> Section:
    """What leaves."""
    count, each = promise.releases, promise.numbers
    made = f"{count} times, a vector of {each} numbers, worked out from the site's trials"
    league, items = promise.league, []
    if league is None:
        items.append(
            f"{made}, without noise, over TLS, to the coordinator. It is as good as the trials "
            f"themselves: which settings were tried, and how well each did up to scale, can be "
            f"rebuilt from it. Records of persons are not in it."
        )
        never = "Never sent: records, models, logs."
    else:
        items.append(
            f"{made}. Before it leaves it is shortened to a fixed length at most, the site adds "
            f"its own share of the noise, and it is split into {league.members} shares, each "
            f"sealed for one of those who sum. A share by itself is a random number."
        )
        if not league.aggregators:
            some = "" if league.members == promise.study.agents else ", if it is one of those,"
            items.append(
                f"{count} times{some} the sum of the shares that it got from all sites, signed."
            )
        never = "Never sent: records, models, logs, what was tried, how well anything did."
    items.append(f"That it takes part, when it answers, and why if it refuses.{_timing(promise)}")
    return Section("What leaves the site", (Bullets(tuple(items)), never))


def _timing(promise: Promise) -> str:
    cadence = promise.file.cadence
    if cadence is None:
        return " How long an answer took, which may depend on the data."
    return f" Not how long it took, but whether trials took more than {cadence:g} seconds each."


def sees(promise: Promise) -> Section:
    """Who sees it."""
    heads = ("who", "sees", "does not see")
    ledger = "the noised sums, what was spent"
    rows: Cells
    if promise.league is None:
        rows = (
            (
                "the coordinator, who is **trusted**, and the host of its link",
                "every site's vectors, without noise; who answered, and when",
                "records, models",
            ),
            ("other sites", "the noised sums", "anything more of a single site"),
        )
    else:
        ledger += "; in the ledger also who spoke"
        rows = (
            (
                "the coordinator and the host of its link, who are **not trusted**",
                "sealed packets, the noised sums; who answered, and when",
                "any single site's vector, noised or not",
            ),
            (
                "those who sum" + ("" if promise.league.aggregators else " (sites)"),
                "one share of every site's noised vector: a random number; the noised sums",
                "any single site's vector",
            ),
            ("other sites", "the noised sums", "anything more of a single site"),
        )
    rows = (
        *rows,
        (
            "somebody on the network",
            "that the site talks to the coordinator, when, how much",
            "what is said (TLS)",
        ),
        ("whoever gets a broadcast or the ledger", ledger, "anything more of a single site"),
    )
    return Section("Who sees it", (Rows(heads, rows),))


def promised(promise: Promise) -> Section:
    """ε and δ."""
    file = promise.file
    rows = (
        _row("a site: its whole contribution, or zeros in its place", promise.site, file.delta),
        _row("a person: one record at the site, or any other there", promise.record, file.delta),
    )
    return Section(
        "What is promised",
        (
            Rows(("protected", "ε at most", "δ", "a guess is right at most"), rows),
            f"For whatever is broadcast over the whole study, nothing becomes more than e^ε times "
            f"as likely by what is protected, but for a probability of δ. The last column: how "
            f"often somebody who knows all else, and must say which of two worlds it was, can be "
            f"right; 50 % is blind. A person whose records lie at several sites is protected less. "
            f"It holds against {against(promise)}",
        ),
    )


def _row(what: str, found: Bound, delta: float) -> tuple[str, ...]:
    return (what, bound(found.epsilon), f"{delta:g}", percent(found.right))


def collude(promise: Promise) -> Section:
    """What if they collude."""
    league, n = promise.league, promise.study.agents
    heads = ("who", "what they can do", "ε, a site", "ε, a record")
    within = bound(promise.site.epsilon), bound(promise.record.epsilon)
    if league is None:
        rows: Cells = (
            ("all other sites together", "no more than anybody who sees the sums", *within),
            (
                "the coordinator, alone or with anybody",
                "reads this site's vectors, and so its trials, without noise",
                "none holds",
                "none holds",
            ),
        )
        return Section("What if they collude", (Rows(heads, rows),))
    opened = bound(league.opened[0].epsilon), bound(league.opened[1].epsilon)
    bad, absent = league.unreliable, league.absent
    without = f", while it leaves out {counted(absent, 'other', 'others')}" if absent else ""
    rows = (
        (
            f"the coordinator and up to {counted(bad - absent, 'site', 'sites')}{without}",
            "no more than is promised: the noise of these is not counted on",
            *within,
        ),
    )
    if absent:
        least = ("none holds",) * 2
        if league.left_out is not None:
            least = bound(league.left_out[0].epsilon), bound(league.left_out[1].epsilon)
        who = f"the coordinator and {counted(bad, 'site', 'sites')}{without}"
        rows = (*rows, (who, "take the others' noise off, and less is left", *least))
    if league.doubled is not None:
        more = bound(league.doubled[0].epsilon), bound(league.doubled[1].epsilon)
        who = f"{2 * league.unreliable} sites that add no noise, or tell what they added"
        rows = (*rows, (who, "leave less noise in the sums for the others", *more))
    rows = (*rows, (f"the coordinator and {_openers(league)}", _OPENING, *opened))
    if not league.aggregators:
        rows = (
            *rows,
            (
                f"the coordinator and {league.twice} members that answer twice in a round",
                "take the difference of two sums, which may be one site's noised vector",
                *opened,
            ),
        )
    note = (
        f"A release needs {league.fewest} of {n} sites; with fewer nothing is released. A "
        f"coordinator that made up the other sites' keys could do all of this alone: compare the "
        f"digest of all keys below with the other sites, by telephone or so."
    )
    return Section("What if they collude", (Rows(heads, rows), note))


_OPENING = "open single sites' vectors, each hidden by that site's own noise alone"
