"""A site's search as a chart: its trials, the best so far, and what going alone was worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sottovoce.flower.pages.pieces import before
from sottovoce.flower.result.data import SiteResult
from sottovoce.pages.scale import Axis
from sottovoce.pages.styles import Key, Style
from sottovoce.pages.svg import BOTTOM, HEIGHT, TOP, WIDTH, Canvas, swatch
from sottovoce.pages.text import counted, escaped, number

BEST = Style("c0", (), 2.4, 0.0)
ALONE = Style("reference", (5, 3), 1.6, 0.1)
TRIAL = Style("control", (), 0.0, 0.0)
_FIRST = 0.5  # where the axis of trials begins
_DASH = 14
_WORSE = 0.9  # of the trials; those that are worse still stand at the edge
_Pair = tuple[float, float]


@dataclass(frozen=True)
class _Lines:
    """What is drawn, as pairs of x and y."""

    trials: tuple[_Pair, ...]
    best: tuple[_Pair, ...]
    earlier: tuple[float, ...]
    alone: tuple[_Pair, ...]
    low: tuple[_Pair, ...]
    high: tuple[_Pair, ...]


def search_figure(found: SiteResult) -> str:
    """The chart with its legend; words while there is nothing to draw."""
    lines = _lines(found)
    if not lines.best:
        return "<p>No trial has given a value yet.</p>"
    word = "lower is better" if found.direction == "minimize" else "higher is better"
    return f"""<figure>
<p class="y-label">value of the objective ({word})</p>
{_chart(found, lines)}
<p class="x-label">trial</p>
<figcaption><ul class="legend">{_legend(found, lines)}</ul></figcaption>
</figure>"""


def _lines(found: SiteResult) -> _Lines:
    alone = found.alone
    curves = (None, None, None) if alone is None else (alone.mean, alone.low, alone.high)
    return _Lines(
        tuple(
            (float(trial.number), trial.value) for trial in found.trials if trial.value is not None
        ),
        (*_start(found), *_numbered(found.best_so_far)),
        tuple(each.value for each in found.earlier),
        *(_numbered(curve or ()) for curve in curves),
    )


def _start(found: SiteResult) -> tuple[_Pair, ...]:
    """The best that was known before the first trial."""
    if not found.earlier:
        return ()
    best = min if found.direction == "minimize" else max
    return ((_FIRST, best(each.value for each in found.earlier)),)


def _numbered(values: Sequence[float | None]) -> tuple[_Pair, ...]:
    return tuple((float(k), value) for k, value in enumerate(values, 1) if value is not None)


def _chart(found: SiteResult, lines: _Lines) -> str:
    canvas = Canvas(
        Axis(_FIRST, max(found.planned, len(found.trials), 2) + 0.5), _y_axis(found, lines)
    )
    parts = [canvas.grid(), _initial(found, canvas), _band(lines, canvas)]
    parts += [_dash(value, canvas) for value in lines.earlier]
    parts += [_dot(pair, canvas) for pair in lines.trials]
    parts += [canvas.line(_steps(lines.alone), ALONE)] if lines.alone else []
    parts.append(canvas.line(_steps(lines.best), BEST))
    at = canvas.corner(*lines.best[-1]).split(",")
    parts.append(f'<circle class="dot {BEST.name}" r="5" cx="{at[0]}" cy="{at[1]}"/>')
    drawn = "\n".join(part for part in parts if part)
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-label="{_described(found, lines)}">\n{drawn}\n</svg>'
    )


def _y_axis(found: SiteResult, lines: _Lines) -> Axis:
    """Around all curves, and most trials: one that went wrong must not flatten the rest."""
    values = [y for line in (lines.best, lines.alone, lines.low, lines.high) for _, y in line]
    tried = np.asarray([y for _, y in lines.trials])
    worse = _WORSE if found.direction == "minimize" else 1 - _WORSE
    if len(tried):
        values += [float(np.quantile(tried, worse)), *(() if len(tried) > 8 else tried)]
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or abs(low) / 2 or 0.5
    return Axis(low - room, high + room)


def _steps(pairs: Sequence[_Pair]) -> list[_Pair]:
    """Level until the next trial is there."""
    found = [pairs[0]]
    for (_, last), (x, y) in pairwise(pairs):
        found += [(x, last), (x, y)] if y != last else [(x, y)]
    return found


def _dot(pair: _Pair, canvas: Canvas) -> str:
    x, y = canvas.spot(*pair)
    beyond = not canvas.y.low <= pair[1] <= canvas.y.high
    kind = "hollow" if beyond else "filled"
    title = f"<title>trial {pair[0]:.0f}: {number(pair[1])}</title>"
    at = f'cx="{x:.1f}" cy="{y:.1f}"'
    return f'<circle class="trial {kind} {TRIAL.name}" r="4" {at}>{title}</circle>'


def _dash(value: float, canvas: Canvas) -> str:
    """A trial from before the study: a dash at the edge, as it has no place among the others."""
    x, y = canvas.spot(_FIRST, value)
    title = f"<title>before the study: {number(value)}</title>"
    ends = f'x1="{x:.1f}" x2="{x + _DASH}" y1="{y:.1f}" y2="{y:.1f}"'
    return f'<line class="earlier {TRIAL.name}" {ends}>{title}</line>'


def _band(lines: _Lines, canvas: Canvas) -> str:
    if not lines.low:
        return ""
    around = [*_steps(lines.high), *_steps(lines.low)[::-1]]
    points = " ".join(canvas.corner(*pair) for pair in around)
    return f'<polygon class="band {ALONE.name}" fill-opacity="{ALONE.band:g}" points="{points}"/>'


def _initial(found: SiteResult, canvas: Canvas) -> str:
    """Where the first release was heard."""
    if not 0 < found.initial < found.planned:
        return ""
    at = f"{canvas.across(found.initial + 0.5):.1f}"
    return f'<line class="first" x1="{at}" x2="{at}" y1="{TOP}" y2="{BOTTOM}"/>'


def _legend(found: SiteResult, lines: _Lines) -> str:
    best = number(lines.best[-1][1])
    rows = [(swatch(Key("", BEST)), "best so far", best)]
    if lines.alone and found.alone is not None:
        many = "in the band in four of five cases"
        words = f"alone, as expected <small>{escaped(found.alone.how)}; {many}</small>"
        rows.append((swatch(Key("", ALONE)), words, number(lines.alone[-1][1])))
    dot = f'<circle class="trial filled {TRIAL.name}" r="4" cx="20" cy="5"/>'
    drawn = f'<svg class="swatch" viewBox="0 0 40 10" aria-hidden="true">{dot}</svg>'
    words = "one trial <small>hollow at the edge: beyond it</small>"
    rows.append((drawn, words, counted(len(lines.trials), "value", "values")))
    if lines.earlier:
        dash = f'<line class="earlier {TRIAL.name}" x1="13" x2="27" y1="5" y2="5"/>'
        drawn = f'<svg class="swatch" viewBox="0 0 40 10" aria-hidden="true">{dash}</svg>'
        words = "from before the study <small>at the edge; the best line begins with them</small>"
        rows.append((drawn, words, counted(len(lines.earlier), "value", "values")))
    if 0 < found.initial < found.planned:
        line = '<line class="first" x1="20" x2="20" y1="-3" y2="13"/>'
        drawn = f'<svg class="swatch" viewBox="0 0 40 10" aria-hidden="true">{line}</svg>'
        rows.append((drawn, "from here on the other sites were heard", ""))
    return "".join(
        f'<li>{key}<span class="label">{label}</span><span class="value">{value}</span></li>'
        for key, label, value in rows
    )


def _described(found: SiteResult, lines: _Lines) -> str:
    first, last = lines.best[0][1], lines.best[-1][1]
    text = f"Chart of {len(lines.trials)} trials"
    text += f", and {before(found)}" if lines.earlier else ""
    text += ". The best value so far goes from "
    text += f"{number(first)} to {number(last)}"
    if lines.alone:
        text += f"; alone, {number(lines.alone[-1][1])} could have been expected"
    return escaped(text + ".")
