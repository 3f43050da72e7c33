"""Pieces that the pages of sites and coordinators share. Whatever comes from a disk is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sottovoce.flower.result.data import Best, CoordinatorResult, SiteResult, TrialResult
from sottovoce.pages.html import pairs_list, table
from sottovoce.pages.text import counted, epsilon, escaped, number, numbers, scalar

Result = SiteResult | CoordinatorResult
_SITE = (
    "Whoever sees all that was sent, and knows everything about the other sites, can hardly tell "
    "whether this site’s messages were in the sums or zero all along (zero-out)."
)
_ANY = (
    "Whoever sees all that was sent, and knows everything about all sites but one, can hardly tell "
    "whether that one’s messages were in the sums or zero all along (zero-out)."
)
_RECORD = (
    "The same of one record at a site, against its replacement by another; that can move a message "
    "twice as far, so the figure is larger (replace-one)."
)


def tiles(pairs: Sequence[tuple[str, str, str]]) -> str:
    """The few figures that matter: what each is, the figure, and a word more."""
    items = "".join(
        f"<div><dt>{name}</dt><dd>{figure}{f'<small>{more}</small>' if more else ''}</dd></div>"
        for name, figure, more in pairs
    )
    return f'<dl class="tiles">{items}</dl>'


def notice(kind: str, words: str) -> str:
    """A sentence that must not be overlooked; `kind` is bad, unsure or good."""
    return f'<p class="notice {kind}">{words}</p>'


def seeded(found: Result) -> str:
    """That a simulation protects nobody."""
    words = "This is a simulation: its seeded noise protects nobody."
    return notice("unsure", words) if found.simulation else ""


def spending(found: Result) -> str:
    """ε for a site and for a record, with all that must stand beside it."""
    spent, granted = bounded(found.epsilon), found.granted
    left = "nothing" if spent is None else f"ε = {max(0.0, granted - spent):.2f}"
    releases = f"{found.releases} of {counted(found.releases_planned, 'release', 'releases')}"
    words, made = (_SITE, "heard or spoken in") if isinstance(found, SiteResult) else (_ANY, "made")
    person = epsilon(bounded(found.replace_one))
    rows = [
        [("", "A site"), ("short", epsilon(spent)), ("short", f"{granted:.2f}"), ("", words)],
        [("", "A person"), ("short", person), ("short", "–"), ("", _RECORD)],
    ]
    heads = [("", "For"), ("", "ε spent"), ("", "ε granted"), ("", "What it means")]
    return f"""{_meter(spent, granted)}
<p>{releases} {made} so far; {left} is left of what was granted.
<span class="short">δ = {number(found.delta, 3)}</span>,
by the accountant {escaped(found.accountant)}. The smaller ε, the better the protection.</p>
{table("Privacy spent, for a site and for a person", heads, rows, "stacks promise")}"""


def bounded(value: float) -> float | None:
    """An ε; None if there is no bound."""
    return value if math.isfinite(value) else None


def _meter(spent: float | None, granted: float) -> str:
    share = 1.0 if spent is None or granted <= 0 else min(spent / granted, 1.0)
    words = f"ε {epsilon(spent)} spent of {granted:.2f} granted"
    return (
        f'<svg class="meter" role="img" aria-label="{words}" viewBox="0 0 1000 14" '
        'preserveAspectRatio="none"><rect class="all" width="1000" height="14"/>'
        f'<rect class="spent" width="{1000 * share:.0f}" height="14"/></svg>'
    )


def which(best: Best) -> str:
    """Which trial was the best."""
    return "a trial from before the study" if best.earlier else f"trial {best.number}"


def before(found: SiteResult) -> str:
    """How many trials the site brought along; nothing if it brought none."""
    if not found.earlier:
        return ""
    return f"{counted(len(found.earlier), 'trial', 'trials')} from before the study"


def best_parameters(found: SiteResult) -> str:
    """The best trial's parameters."""
    if found.best is None:
        return "<p>There is none yet.</p>"
    pairs = [(escaped(name), value_words(value)) for name, value in found.best.params.items()]
    return pairs_list(pairs)


def trials_table(found: SiteResult, *, newest_first: bool) -> str:
    """Every trial, with what it tried."""
    names = list(found.trials[0].params) if found.trials else []
    heads = [("num", "Trial"), ("num", "Value"), *(("num", escaped(name)) for name in names)]
    heads += [("num", "Ended")]
    known = [(each.number, each.value) for each in found.trials if each.value is not None]
    texts = dict(zip([k for k, _ in known], numbers([value for _, value in known]), strict=True))
    if found.best is not None and not found.best.earlier:
        texts[found.best.number] = f"<b>{texts[found.best.number]}</b>"
    trials = found.trials[::-1] if newest_first else found.trials
    rows = [_trial(each, names, texts.get(each.number)) for each in trials]
    return table("All trials, the best in bold", heads, rows, "trials")


def earlier_table(found: SiteResult) -> str:
    """The trials that the site brought along, folded; nothing if it brought none."""
    if not found.earlier:
        return ""
    names = list(found.earlier[0].params)
    heads = [("num", "Number there"), ("num", "Value"), *(("num", escaped(n)) for n in names)]
    texts = numbers([each.value for each in found.earlier])
    rows = [
        [
            ("num", str(each.number)),
            ("num", text),
            *(("num", value_words(each.params.get(name, "–"))) for name in names),
        ]
        for each, text in zip(found.earlier, texts, strict=True)
    ]
    return (
        f"<details><summary>{before(found)}</summary>\n"
        "<p>This site knows them, and learns from them; none of them is a trial of the study.</p>\n"
        f"{table('Trials from before the study', heads, rows, 'trials')}</details>"
    )


def _trial(trial: TrialResult, names: Sequence[str], value: str | None) -> list[tuple[str, str]]:
    cells = [("num", str(trial.number)), ("num", value or "")]
    if value is None:
        cells[-1] = ("failed", f"failed<small>{escaped(trial.error or '')}</small>")
    cells += [("num", value_words(trial.params.get(name, "–"))) for name in names]
    return [*cells, ("num", clock(trial.ended))]


def value_words(value: Any) -> str:
    """A parameter's value."""
    return number(value) if isinstance(value, float) else scalar(value)


def clock(when: str | None) -> str:
    """A moment in UTC; a live page shows it in the reader's own time."""
    if when is None:
        return "–"
    text = escaped(when)
    return f'<time datetime="{text}">{text[:10]} {text[11:16]} UTC</time>'


def shares(importance: Mapping[str, float]) -> str:
    """Which parameters mattered, as bars."""
    rows = []
    for name, share in sorted(importance.items(), key=lambda each: -each[1]):
        bar = (
            '<svg class="bar" aria-hidden="true" viewBox="0 0 100 8" preserveAspectRatio="none">'
            f'<rect width="{100 * share:.1f}" height="8"/></svg>'
        )
        rows.append(f"<li><span>{escaped(name)}</span>{bar}<b>{100 * share:.0f} %</b></li>")
    return f'<ul class="shares">{"".join(rows)}</ul>'


def section(title: str, body: str, name: str) -> str:
    """A part of a page."""
    return f'<section id="{name}">\n<h2>{title}</h2>\n{body}\n</section>'
