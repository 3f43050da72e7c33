"""The live pages' HTML: of a site, of a coordinator, and while nothing has begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from sottovoce.flower.pages.coordinator import CoordinatorView, Open, SiteLine, Trouble
from sottovoce.flower.pages.curve import search_figure
from sottovoce.flower.pages.pieces import (
    best_parameters,
    clock,
    earlier_table,
    notice,
    section,
    seeded,
    spending,
    tiles,
    trials_table,
    value_words,
    which,
)
from sottovoce.flower.pages.result import spent_tiles
from sottovoce.flower.pages.site import SiteView
from sottovoce.flower.result.data import CoordinatorResult, RoundResult
from sottovoce.pages.html import table
from sottovoce.pages.text import counted, duration, escaped, number

_STATES = {
    "answered": ("good", "answered"),
    "not yet": ("", "not yet"),
    "absent": ("unsure", "absent"),
    "refused": ("bad", "refused"),
    "rejected": ("bad", "rejected"),
    "left": ("bad", "left"),
}
_WORTH = {"nothing": "unsure", "much": "good", "unprotected": "bad"}
_NOTHING_SAID = "this round said nothing: it cannot be told from noise"
_NOTHING = (
    "Nothing has begun here yet. This page shows it as soon as <code>sottovoce join</code>, "
    "<code>start</code> or <code>rehearse</code> has, and the coordinator has called its sites."
)


@dataclass(frozen=True)
class Shown:
    """One state of a live page: what stands in it, and what is said of it in a sentence."""

    title: str
    said: str  # for whoever listens, and in the page's head
    main: str


def waiting_page(words: str = _NOTHING, kind: str = "unsure") -> Shown:
    """While there is nothing to show, or what there is cannot be read."""
    main = f"<header><h1>Sottovoce</h1>\n{notice(kind, words)}</header>"
    return Shown("Sottovoce", "Nothing to show yet", main)


def site_page(view: SiteView) -> Shown:
    """A site's search."""
    found = view.result
    said = _site_state(view)
    left = "" if found.left is None else notice("bad", escaped(found.left))
    main = f"""<header>
<p class="kind">Site, live</p>
<h1>{escaped(found.site)} <span class="place">in {escaped(found.study)}</span></h1>
<p class="lead">{said}</p>
{seeded(found)}{left}{tiles(_site_tiles(view))}
</header>
{section("The search so far", search_figure(found), "search")}
{section("The best parameters so far", best_parameters(found), "best")}
{_running(view)}
{section("What others can learn of this site", spending(found), "spent")}
{section("Trials, the newest first", _trials(view), "trials")}"""
    return Shown(f"{found.site}: {found.study}", said, main)


def _site_state(view: SiteView) -> str:
    found, count = view.result, len(view.result.trials)
    if found.left is not None:
        return "This site has left the study."
    if found.over:
        return f"All {found.planned} trials are done."
    if len(view.running) == 1:
        return f"Trial {count + 1} of {found.planned} is running."
    if view.running:
        return f"{count} of {found.planned} trials are done; {len(view.running)} are running."
    if not count:
        return "Waiting for the coordinator’s first call."
    # all that are due before the release it last spoke for
    waits = view.spoke >= 0 and count <= found.initial + view.spoke
    what = "waiting for the other sites" if waits else "the next one is being chosen"
    return f"{count} of {found.planned} trials are done; {what}."


def _site_tiles(view: SiteView) -> list[tuple[str, str, str]]:
    found = view.result
    best, at = "–", "no value yet"
    if found.best is not None:
        best, at = number(found.best.value), f"in {which(found.best)}"
    left = view.seconds_left
    time = ("–", "not known yet") if left is None else (f"≈ {_roughly(left)}", "at the pace so far")
    if found.over or found.left is not None:
        time = ("none", "the trials are over")
    failed = f"{found.failed} failed" if found.failed else "none failed"
    failed += f"; {len(found.earlier)} from before" if found.earlier else ""
    return [
        ("Best value", best, at),
        ("Trials", f"{len(found.trials)} of {found.planned}", failed),
        ("Time left", *time),
        *spent_tiles(found),
    ]


def _roughly(seconds: float) -> str:
    """To what an estimate is worth: in steps, so that the page does not flicker."""
    if seconds < 90:
        return "a minute"
    step = 60 if seconds < 7200 else 600
    return duration(max(120, step * round(seconds / step)))


def _running(view: SiteView) -> str:
    if not view.running or view.result.over:
        return ""
    lines = [
        ", ".join(f"{escaped(k)}&nbsp;=&nbsp;{value_words(v)}" for k, v in params.items())
        for params in view.running
    ]
    title = "The trial under way" if len(lines) == 1 else "The trials under way"
    return section(title, "".join(f"<p>{line}</p>" for line in lines), "running")


def _trials(view: SiteView) -> str:
    shown = "<p>None yet.</p>"
    if view.result.trials:
        shown = trials_table(view.result, newest_first=True)
    shown += earlier_table(view.result)
    if view.dashboard is None:
        return shown
    command = f"<code>optuna-dashboard '{escaped(view.dashboard)}'</code>"
    link = '<a href="http://127.0.0.1:8080/dashboard" rel="noreferrer">127.0.0.1:8080</a>'
    return f"{shown}\n<p>More of them in Optuna’s dashboard: {command}, then {link}.</p>"


def coordinator_page(view: CoordinatorView) -> Shown:
    """A coordinator's study."""
    said = _study_state(view)
    bad = "" if view.error is None else notice("bad", _damaged(view.error))
    stopped = _stopped(view)
    found = view.result
    head = tiles(_study_tiles(view, found)) if found is not None else ""
    parts = [
        section("Rounds", _rounds(view), "rounds"),
        section("Sites", _sites(view), "sites"),
        section("Refusals and trouble", _troubles(view.troubles), "trouble"),
    ]
    if found is not None:
        parts.insert(0, section("Privacy spent", spending(found) + _digest(view), "spent"))
    main = f"""<header>
<p class="kind">Coordinator, live</p>
<h1>{escaped(view.study)}</h1>
<p class="lead">{said}</p>
{seeded(found) if found is not None else ""}{bad}{stopped}{head}
</header>
""" + "\n".join(parts)
    return Shown(view.study, said, main)


def _damaged(error: str) -> str:
    return (
        f"{escaped(error[:1].upper() + error[1:])}. What was spent cannot be told from it; what is "
        f"below comes from the journal alone."
    )


def _stopped(view: CoordinatorView) -> str:
    found = view.result
    if found is None or found.stopped is None or found.over or view.step is not None:
        return ""
    return notice("bad", f"Stopped: {escaped(found.stopped)}")


def _study_state(view: CoordinatorView) -> str:
    found, step = view.result, view.step
    if step is not None:
        here = sum(site.state == "answered" for site in view.sites)
        sites = counted(len(view.sites), "site has", "sites have")
        if step.summing:
            return f"{_called(step, view)}: who spoke is settled, and members are adding up."
        return f"{_called(step, view)}: {here} of {sites} answered."
    if found is None:
        return "What has been released cannot be told."
    if found.over:
        sites = f" {found.done} of {found.agents} sites ran all trials."
        return "The study is over." + ("" if found.done is None else sites)
    if found.stopped is not None:
        return "The study has stopped before its end; it can be started again."
    if not found.releases:
        return "Nothing has been released yet; waiting for the sites to connect."
    return f"{found.releases} of {found.releases_planned} releases are made; no round is open."


def _called(step: Open, view: CoordinatorView) -> str:
    """A step by its release, as people count."""
    if step.round in view.planned:
        k = view.planned.index(step.round) + 1
        return f"Release {k} of {len(view.planned)} is being prepared"
    if view.planned:
        return "All releases are made, and sites run their last trials"
    return "A round is open"


def _study_tiles(view: CoordinatorView, found: CoordinatorResult) -> list[tuple[str, str, str]]:
    here = sum(site.state == "answered" for site in view.sites)
    when = "in the round under way" if view.step is not None else "in the last round"
    trials = f"{found.trials} trials a site"
    return [
        ("Releases", f"{found.releases} of {found.releases_planned}", trials),
        ("Sites that answered", f"{here} of {found.agents}", when),
        *spent_tiles(found),
    ]


def _rounds(view: CoordinatorView) -> str:
    found = view.result
    made = {} if found is None else {each.round: each for each in found.rounds}
    planned = view.planned or tuple(made)
    if not planned:
        return "<p>No round is known.</p>"
    names = ("Release", "When", "Spoke", "Absent", "Refused", "What it said")
    heads = [("", name) for name in names]
    rows = [_round(k, number, made.get(number), view) for k, number in enumerate(planned, 1)]
    note = (
        "What a release said is an estimate from what everybody was sent, against the noise in it; "
        "in one round of twenty noise alone passes for something."
    )
    return table("Releases", heads, rows, "stacks rounds") + f'<p class="facts">{note}</p>'


def _round(
    k: int, number_: int, made: RoundResult | None, view: CoordinatorView
) -> list[tuple[str, str]]:
    # the first trial of a site that can use it
    name = f"{k}<small>before trial {view.initial + number_ + 1}</small>"
    if made is None:
        step = view.step
        open_ = step is not None and step.round == number_
        words = "being prepared" if open_ else "to come"
        until = ""
        if open_ and step is not None and step.until is not None:
            until = f"<small>at the latest until {clock(step.until)}</small>"
        return [("", name), ("", words + until), *[("short", "–")] * 3, ("", "–")]
    found = view.worth.get(number_)
    worth = "–"
    if found is not None:
        words = _NOTHING_SAID if found.level == "nothing" else found.said
        words = words[:1].upper() + words[1:]
        worth = f'<span class="{_WORTH.get(found.level, "")}">{words}</span>'
    counts = (made.spoke, made.absent, _sum(made.refused, made.rejected, made.left))
    cells = [("short", "–" if count is None else str(count)) for count in counts]
    return [("", name), ("", clock(made.time)), *cells, ("", worth)]


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _sites(view: CoordinatorView) -> str:
    if not view.sites:
        return "<p>No site is listed yet.</p>"
    when = "This round" if view.step is not None else "Last round"
    heads = [("", "Site"), ("", when), ("", "Rounds answered"), ("", "Trouble so far")]
    rows = [_site(site) for site in view.sites]
    note = "Of a site this page says that it answered, never what it tried."
    return table("Sites", heads, rows, "stacks sites") + f'<p class="facts">{note}</p>'


def _site(site: SiteLine) -> list[tuple[str, str]]:
    kind, words = _STATES[site.state]
    count = ", ".join(f"{escaped(event)} {n}×" for event, n in sorted(site.troubles.items()))
    return [
        ("", escaped(site.name)),
        ("short", f'<span class="state {kind}">{words}</span>'),
        ("short", str(site.answered)),
        ("", count or "none"),
    ]


def _troubles(troubles: Sequence[Trouble]) -> str:
    if not troubles:
        return "<p>None.</p>"
    heads = [("", "When"), ("", "What"), ("", "Who"), ("", "Why")]
    rows = [
        [("short", clock(each.time)), ("short", escaped(each.event)), ("", escaped(each.who)),
         ("", escaped(each.reason))]
        for each in troubles
    ]  # fmt: skip
    return table("Refusals and trouble, the newest first", heads, rows, "stacks trouble")


def _digest(view: CoordinatorView) -> str:
    if view.head is None:
        return ""
    words = "Whoever keeps the ledger’s newest digest can tell later if it was rolled back:"
    return f'<p class="facts">{words} <code>{view.head}</code></p>'


def party_path(name: str) -> str:
    """The address of a party's page: its folder's name, and nothing of what it holds."""
    return "/party/" + quote(name, safe="")


def events_path(name: str | None) -> str:
    """Where its changes come from."""
    return "/events" if name is None else party_path(name) + "/events"


def navigation(names: Sequence[str], current: str) -> str:
    """Links to all parties of a rehearsal or a simulation."""
    if len(names) < 2:
        return ""
    here = {current: ' aria-current="page"'}
    links = "".join(
        f'<li><a href="{party_path(name)}"{here.get(name, "")}>{escaped(name)}</a></li>'
        for name in names
    )
    return f'<nav aria-label="Parties"><ul>{links}</ul></nav>'
