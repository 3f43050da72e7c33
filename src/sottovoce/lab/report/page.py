"""The report: one HTML page that holds everything it shows and asks the network for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from sottovoce.files import write_whole
from sottovoce.lab.experiments.results import FigureResult, Verdict
from sottovoce.lab.report.caption import privacy
from sottovoce.lab.report.charts import chart, point_chart
from sottovoce.lab.report.files import read_figures
from sottovoce.lab.report.plot import Plot, plot_of
from sottovoce.lab.report.tables import (
    CLASSES,
    SIGNS,
    claims_table,
    curves_table,
    numbers_table,
    settings_list,
)
from sottovoce.pages.html import document, looks, own_text
from sottovoce.pages.svg import BOTTOM, LEFT, RIGHT, TOP, swatch
from sottovoce.pages.text import counted, duration, escaped, number, with_error

_LEAD = "Many parties tune the same kind of model together, each on data it may not show. "
_OF_THE_PAPER = (
    "The method is DP-FTS-DE (Dai, Low and Jaillet, NeurIPS 2021). This page sets what the paper "
    "says beside what this implementation measured."
)
_OF_OTHERS = "This page shows what simulations of it measured."
_MANY = 12  # so many figures can be found in a list without headings
_READING = (
    "Bands, bars and ± are one standard error over runs. The estimate is the number judged: a mean "
    "difference between two curves, or the quantity that the claim is about. A claim holds or "
    "does not hold where the 95 % interval of a paired test over runs says so; within noise means "
    "that the runs cannot tell. Grey lines are references, and controls that broadcast nothing but "
    "noise."
)
_PRIVACY = (
    "ε is given by each accountant for the same noise. The gdp figure is an approximation, never a "
    "bound; the others are bounds. ∞ means that vectors are sent unprotected. Under zero-out "
    "adjacency one agent’s vectors become zero in every round, under replace-one any others; the "
    "number of agents, the regions, the weights, S, q and z are public. These are simulations: "
    "their seeded noise protects nobody."
)


def write_report(*folders: Path) -> Path:
    """Write report.html, of all figures in these folders, into the first; returns where it is."""
    return write_page(read_figures(*folders), folders[0] / "report.html")


def write_page(figures: Sequence[FigureResult], path: Path) -> Path:
    """Write the page of these figures; returns where it is."""
    page = make_page(figures)
    # a lone surrogate from a file cannot be written as UTF-8; it becomes a question mark
    write_whole(path, lambda part: part.write_bytes(page.encode("utf-8", "replace")))
    return path


def make_page(figures: Sequence[FigureResult]) -> str:
    """The whole page, from the content of figure files; equal files give equal pages."""
    style, script = looks(), own_text("sottovoce.lab.report", "page.js")
    sections = "\n\n".join(_section(figure) for figure in figures)
    body = f"""<a class="skip" href="#contents">Skip to the figures</a>
{_head(figures)}
<main>
{_contents(figures)}

{sections}

{_summary(figures)}
</main>
<footer><p>Made by <code>sottovoce report</code> from {counted(len(figures), "file", "files")}.
Nothing on this page comes from the network.</p></footer>"""
    return document(_title(figures), body, style, script)


def _head(figures: Sequence[FigureResult]) -> str:
    verdicts = [claim.verdict for figure in figures for claim in figure.claims]
    counts = [(name, verdicts.count(name)) for name in get_args(Verdict)]
    tally = "".join(
        f'<li class="{CLASSES[name]}"><b>{count}</b> '
        f'<span><span aria-hidden="true">{SIGNS[name]}</span> {_plural(name, count)}</span></li>'
        for name, count in counts
    )
    versions: dict[str, set[str]] = {}
    for figure in figures:
        for name, version in figure.versions.items():
            versions.setdefault(name, set()).add(version)
    made_with = ", ".join(
        f"{escaped(name)} {escaped(' and '.join(sorted(found)))}"
        for name, found in sorted(versions.items(), key=lambda item: (item[0] != "sottovoce", item))
    )
    total = duration(sum(figure.seconds for figure in figures))
    return f"""<header>
<h1>{_title(figures)}</h1>
<p class="lead">{_LEAD}{_OF_THE_PAPER if _of_the_paper(figures) else _OF_OTHERS}</p>
<ul class="tally" aria-label="Verdicts">{tally}</ul>
<p class="facts">{counted(len(figures), "figure", "figures")},
{counted(len(verdicts), "claim", "claims")}, {total} of computing. {made_with}.</p>
</header>"""


def _title(figures: Sequence[FigureResult]) -> str:
    if _of_the_paper(figures):
        return "Sottovoce: the paper’s figures, run again"
    return f"Sottovoce: {escaped(figures[0].title) if len(figures) == 1 else 'figures, measured'}"


def _of_the_paper(figures: Sequence[FigureResult]) -> bool:
    return any(figure.paper and figure.group != "own" for figure in figures)


def _plural(name: str, count: int) -> str:
    if count == 1:
        return name
    return {"holds": "hold", "does not hold": "do not hold"}.get(name, name)


def _summary(figures: Sequence[FigureResult]) -> str:
    claims = any(figure.claims for figure in figures)
    table = claims_table(figures, "All claims", linked=True) if claims else "<p>None.</p>"
    return f"""<section id="claims">
<h2>All claims</h2>
<p>{_READING}</p>
{table}
</section>"""


def _contents(figures: Sequence[FigureResult]) -> str:
    """A link to every figure; many of them under the names of their groups."""
    groups: dict[str, list[FigureResult]] = {}
    for figure in figures:
        groups.setdefault(figure.group or "", []).append(figure)
    lists = f'<ol class="contents">{_links(figures)}</ol>'
    if len(figures) > _MANY and set(groups) != {""}:
        lists = "\n".join(
            f'<h3>{escaped(name or "others")}</h3>\n<ul class="contents">{_links(found)}</ul>'
            for name, found in sorted(groups.items(), key=lambda item: not item[0])
        )
    return f"""<section id="contents">
<h2>Figures</h2>
{lists}
<p class="back"><a href="#claims">All claims in one table</a></p>
</section>"""


def _links(figures: Sequence[FigureResult]) -> str:
    """Each figure in small, with what it found."""
    return "".join(
        f'<li><a href="#{figure.name}">{_thumb(figure)}{escaped(figure.title)}</a>{_place(figure)}'
        f"{_found(figure)}</li>"
        for figure in figures
    )


def _thumb(figure: FigureResult) -> str:
    """What is drawn in the figure's chart, once more."""
    box = f"{LEFT} {TOP} {RIGHT - LEFT} {BOTTOM - TOP}"
    return (
        f'<svg class="thumb" aria-hidden="true" viewBox="{box}" preserveAspectRatio="none">'
        f'<use href="#{figure.name}-ink"/></svg>'
    )


def _found(figure: FigureResult) -> str:
    """One line: which curve ends lowest, and how the claims fared."""
    said = []
    shown = [curve for curve in figure.curves if curve.role != "control"]
    if figure.kind != "terms" and len(shown) > 1:
        best = min(shown, key=lambda curve: curve.regret.mean[-1])
        value = with_error(*best.regret.last)
        said.append(f"Lowest at the end: {escaped(best.full_label)}, {value}.")
    counts = Counter(claim.verdict for claim in figure.claims)
    if counts:
        words = ", ".join(
            f'<span class="{CLASSES[name]}">{counts[name]} {_plural(name, counts[name])}</span>'
            for name in get_args(Verdict)
            if counts[name]
        )
        said.append(f"Of {counted(counts.total(), 'claim', 'claims')}: {words}.")
    return f'<p class="found">{" ".join(said)}</p>' if said else ""


def _place(figure: FigureResult) -> str:
    return f' <span class="place">{escaped(figure.paper)}</span>' if figure.paper else ""


def _section(figure: FigureResult) -> str:
    facts = [f"Problem: {escaped(figure.problem)}"]
    facts += [counted(figure.runs, "run", "runs"), f"{duration(figure.seconds)} of computing"]
    verdicts = (
        claims_table([figure], f"Claims of {escaped(figure.title)}", linked=False)
        if figure.claims
        else f"<p>No claim{'' if figure.own else ' of the paper'} is checked here.</p>"
    )
    private = any(curve.epsilon is not None for curve in figure.curves)
    plot = plot_of(figure)
    return f"""<section class="figure" id="{figure.name}">
<h2>{escaped(figure.title)}{_place(figure)}</h2>
<p>{escaped(figure.about)}</p>
<p class="facts">{", ".join(facts)}.</p>
{_found(figure)}
{_drawn(figure, plot)}
<h3>Claims</h3>
{verdicts}
<h3>Curves{" and their privacy" if private else ""}</h3>
{curves_table(figure, plot.curve_keys)}
{f"<p>{_PRIVACY}</p>" if private else ""}
<h3>Settings of all curves</h3>
{settings_list(figure.settings)}
<h3>Run it again</h3>
<pre class="command" tabindex="0"><code>{escaped(figure.command)}</code></pre>
<details><summary>All numbers</summary>
{numbers_table(figure)}
</details>
<p class="back"><a href="#contents">All figures</a></p>
</section>"""


def _drawn(figure: FigureResult, plot: Plot) -> str:
    """The chart, what can be read off it, its legend; on a logarithmic scale too if that helps."""
    rows = "".join(
        f'<li>{swatch(key)}<span class="label">{escaped(key.label)}</span>'
        f'<span class="value">{key.value}</span></li>'
        for key in plot.legend
    )
    x_label, y_label, ink = escaped(plot.x_label), escaped(plot.y_label), f"{figure.name}-ink"
    if plot.series:
        svg, log = point_chart(plot, name=ink), ""
        last = f"the last {escaped(figure.quantity)} of a curve"
        at = f"Each point is {last}; point at one to read it."
    else:
        svg, on_log = chart(plot, name=ink), chart(plot, log=True)
        end = number(max(x for line in plot.lines for x in line.trace.t), 6)
        at = f'Values at x = <span class="x">{end}</span>'
        log = (
            "<details><summary>The same on a logarithmic scale</summary>\n"
            f"{_plot(on_log, x_label, y_label + ', logarithmic')}\n</details>\n"
            if on_log
            else "\n"
        )
    return f"""<figure>
{_plot(svg, x_label, y_label)}
<figcaption><p class="at">{at}</p>
<ul class="legend">{rows}</ul>{_caption(figure)}</figcaption>
{log}</figure>"""


def _caption(figure: FigureResult) -> str:
    """How the values came about, by trained models or a table of them, and what they cost."""
    words = [f"Objective: {figure.objective}."] if figure.objective else []
    words += [said] if (said := privacy(figure)) else []
    return f'\n<p class="facts source">{escaped(" ".join(words))}</p>' if words else ""


def _plot(svg: str, x_label: str, y_label: str) -> str:
    return f'<p class="y-label">{y_label}</p>\n{svg}\n<p class="x-label">{x_label}</p>'
