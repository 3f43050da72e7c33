"""What a study came to, as one HTML page for its party alone: `result.html`."""

from __future__ import annotations

from pathlib import Path

from sottovoce.files import private, write_whole
from sottovoce.flower.pages.curve import search_figure
from sottovoce.flower.pages.pieces import (
    Result,
    before,
    best_parameters,
    bounded,
    clock,
    earlier_table,
    notice,
    section,
    seeded,
    shares,
    spending,
    tiles,
    trials_table,
    which,
)
from sottovoce.flower.result.data import VERDICTS, CoordinatorResult, SiteResult
from sottovoce.pages.html import document, looks, own_text, table
from sottovoce.pages.text import counted, epsilon, escaped, number

NAME = "result.html"
_STAYS = "Everything on this page is this site’s own, and the page is sent to nobody."
_NOBODYS = "Nothing on this page is of any single site but whether it answered."


def write_page(result: Result, folder: Path) -> Path:
    """Write the page of a result into its party's folder, for its user alone."""
    path, page = folder / NAME, result_page(result)
    with private():
        # a lone surrogate from a file cannot be written as UTF-8; it becomes a question mark
        write_whole(path, lambda part: part.write_bytes(page.encode("utf-8", "replace")))
    return path


def result_page(result: Result) -> str:
    """The page; equal results give equal pages."""
    style = looks(own_text("sottovoce.flower.pages", "party.css"))
    site = isinstance(result, SiteResult)
    title = f"{result.site}: {result.study}" if isinstance(result, SiteResult) else result.study
    main = _site(result) if isinstance(result, SiteResult) else _coordinator(result)
    words = _STAYS if site else _NOBODYS
    body = f"""<a class="skip" href="#main">Skip to the result</a>
{main}
<footer><p>{words} Made by <code>sottovoce result</code> from what is on this disk; nothing on
this page comes from the network. Study {result.fingerprint[:12]}.</p></footer>"""
    return document(f"{escaped(title)} – result", body, style)


def _site(found: SiteResult) -> str:
    return f"""<header>
<p class="kind">Result</p>
<h1>{escaped(found.site)} <span class="place">in {escaped(found.study)}</span></h1>
<p class="lead">{_lead(found)}</p>
{seeded(found)}{_left(found)}
{tiles(_site_tiles(found))}
</header>
<main id="main">
{section("The best parameters", best_parameters(found), "best")}
{section("How the search went", search_figure(found) + _together(found), "search")}
{section("Which parameters mattered", _mattered(found), "mattered")}
{section("What was spent", spending(found), "spent")}
{section("All trials", trials_table(found, newest_first=False) + earlier_table(found), "trials")}
</main>"""


def _lead(found: SiteResult) -> str:
    count = counted(len(found.trials), "trial", "trials")
    if not found.over:
        count = f"{len(found.trials)} of {counted(found.planned, 'trial', 'trials')} so far"
    failed = f", {found.failed} of them without a value" if found.failed else ""
    failed += f", and {before(found)}" if found.earlier else ""
    if found.best is None:
        return f"{count}{failed}: no best parameters yet."
    word = "lowest" if found.direction == "minimize" else "highest"
    return (
        f"The {word} value was {number(found.best.value)}, in {which(found.best)}; {count}{failed}."
    )


def _left(found: SiteResult) -> str:
    return "" if found.left is None else notice("bad", escaped(found.left))


def _site_tiles(found: SiteResult) -> list[tuple[str, str, str]]:
    best = "–" if found.best is None else number(found.best.value)
    shown = [("Best value", best, "minimised" if found.direction == "minimize" else "maximised")]
    alone = _alone(found)
    if alone is not None:
        mean, low, high = map(number, alone)
        shown.append(("Alone, as expected", mean, f"{low} to {high} in four of five cases"))
    more = f"; {len(found.earlier)} from before" if found.earlier else ""
    failed = f"of {found.planned}, {found.failed} failed{more}"
    shown.append(("Trials", str(len(found.trials)), failed))
    return [*shown, *spent_tiles(found)]


def spent_tiles(found: Result) -> list[tuple[str, str, str]]:
    """ε for a site, and for a person."""
    return [
        ("ε for a site", epsilon(bounded(found.epsilon)), f"of {found.granted:.2f} granted"),
        ("ε for a person", epsilon(bounded(found.replace_one)), f"δ = {number(found.delta, 3)}"),
    ]


def _together(found: SiteResult) -> str:
    """What the chart says of going alone, in words."""
    alone, best, verdict = _alone(found), found.best, found.beside_alone
    if alone is None or best is None or verdict is None:
        return "<p>What going alone would have given cannot be told from so few values.</p>"
    mean, low, high = map(number, alone)
    cannot = "" if verdict != "about" else " One study cannot tell whether sharing helped."
    return (
        f"<p>{number(best.value)} is {VERDICTS[verdict]}: {mean} after as many trials, and between "
        f"{low} and {high} in four of five cases.{cannot} The expectation is a simulation on a "
        f"model of this site’s own trials, and leans a little towards going alone.</p>"
    )


def _alone(found: SiteResult) -> tuple[float, float, float] | None:
    """What going alone could have expected in the end: the mean, and the band's ends."""
    alone = found.alone
    if alone is None or not alone.mean:
        return None
    mean, low, high = (each[-1] for each in (alone.mean, alone.low, alone.high))
    return None if mean is None or low is None or high is None else (mean, low, high)


def _mattered(found: SiteResult) -> str:
    if not found.importance:
        return f"<p>{escaped(found.importance_by[:1].upper() + found.importance_by[1:])}.</p>"
    note = f'<p class="facts">By {escaped(found.importance_by)}.</p>'
    return shares(found.importance) + note


def _coordinator(found: CoordinatorResult) -> str:
    state = "The study is over." if found.over else "The study is not over."
    if found.done is not None:
        state += (
            f" {found.done} of {counted(found.agents, 'site has', 'sites have')} run all trials."
        )
    stopped = "" if found.stopped is None else notice("bad", f"Stopped: {escaped(found.stopped)}")
    return f"""<header>
<p class="kind">Result for the coordinator</p>
<h1>{escaped(found.study)}</h1>
<p class="lead">{state}</p>
{seeded(found)}{stopped}
{tiles(_coordinator_tiles(found))}
</header>
<main id="main">
{section("What was spent", spending(found), "spent")}
{section("Who took part", _rounds(found), "rounds")}
</main>"""


def _coordinator_tiles(found: CoordinatorResult) -> list[tuple[str, str, str]]:
    return [
        ("Releases", str(found.releases), f"of {found.releases_planned}"),
        ("Sites", str(found.agents), f"{found.trials} trials each"),
        *spent_tiles(found),
    ]


def _rounds(found: CoordinatorResult) -> str:
    if not found.rounds:
        return "<p>Nothing was released.</p>"
    heads = [("num", "Release"), ("num", "Round"), ("num", "When")]
    names = ("spoke", "absent", "left", "refused", "rejected")
    heads += [("num", name.capitalize()) for name in names]
    rows = []
    for k, each in enumerate(found.rounds, 1):
        counts = [getattr(each, name) for name in names]
        cells = [("num", "–" if count is None else str(count)) for count in counts]
        rows.append([("num", str(k)), ("num", str(each.round)), ("num", clock(each.time)), *cells])
    return table("Who took part, by release", heads, rows, "trials")
