"""The tables of the page. Cells are HTML: whatever comes from a file is escaped on its way in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sottovoce.lab.experiments.results import CurveResult, FigureResult
from sottovoce.pages.html import pairs_list, table
from sottovoce.pages.styles import Key
from sottovoce.pages.svg import swatch
from sottovoce.pages.text import (
    epsilon,
    escaped,
    interval,
    number,
    pairs,
    percent,
    scalar,
    with_error,
)
from sottovoce.pages.trace import Trace

# Told by word and sign; the colour of the class only repeats it
SIGNS = {"holds": "✓", "within noise": "≈", "does not hold": "✗"}
CLASSES = {"holds": "good", "within noise": "unsure", "does not hold": "bad"}
_ACCOUNTANTS = {"moments": "the paper's", "rdp": "", "pld": "tightest", "gdp": "approximation"}


def verdict(name: str) -> str:
    """A verdict as a sign and its words."""
    sign = f'<b aria-hidden="true">{SIGNS[name]}</b>'
    return f'<span class="verdict {CLASSES[name]}">{sign} {name}</span>'


def claims_table(figures: Sequence[FigureResult], caption: str, *, linked: bool) -> str:
    """Every claim of these figures; `linked` adds a column that leads to the figure."""
    claims = [claim for figure in figures for claim in figure.claims]
    between, said = any(c.interval for c in claims), any(c.paper for c in claims)
    source = "Expected" if all(figure.own for figure in figures) else "The paper says"
    heads = ["Claim", "Verdict", "Measured"]
    heads.append("Estimate ± s.e." if any(c.stderr for c in claims) else "Estimate")
    heads += ["95 % interval"] * between + [source] * said
    rows = []
    for figure in figures:
        link = f'<a href="#{figure.name}">{escaped(figure.paper or figure.title)}</a>'
        for claim in figure.claims:
            cells = [
                ("", escaped(claim.claim)),
                ("short", verdict(claim.verdict) + _hint(claim.hint)),
                ("", escaped(claim.text)),
                ("short", with_error(claim.measured, claim.stderr or None)),
                *[("short", interval(claim.interval))] * between,
                *[("", escaped(claim.paper))] * said,
            ]
            rows.append([*cells, ("", link)] if linked else cells)
    return table(caption, [("", head) for head in heads + ["Figure"] * linked], rows, "stacks")


def _hint(words: str) -> str:
    return f'<small class="hint">{escaped(words)}</small>' if words else ""


def curves_table(figure: FigureResult, keys: Sequence[Key]) -> str:
    """Every curve with where it ends and what it costs in privacy; its key stands before it."""
    curves = figure.curves
    named = {name for curve in curves for name in curve.epsilon or {}}
    accountants = [n for n in _ACCOUNTANTS if n in named] + sorted(named - set(_ACCOUNTANTS))
    clipped = any(curve.clipped_fraction is not None for curve in curves)
    signal = any(curve.signal_to_noise is not None for curve in curves)
    give = " ± s.e." if any(curve.regret.stderr for curve in curves) else ""
    heads = [("", "Curve"), ("num", f"Last {escaped(figure.quantity)}{give}")]
    for name in accountants:
        note = _ACCOUNTANTS.get(name)
        small = f"<small>{note}</small>" if note else ""
        heads.append(("num", f"ε, {escaped(name)}{small}"))
    heads += [("num", "δ"), ("", "Adjacency")] if accountants else []
    heads += [("num", "Vectors clipped")] * clipped + [("num", "Signal to noise")] * signal
    rows = []
    for curve, key in zip(curves, keys, strict=True):
        row = [("", swatch(key) + _curve_words(curve)), ("num", with_error(*curve.regret.last))]
        row += _privacy_cells(curve, accountants)
        share, ratio = curve.clipped_fraction, curve.signal_to_noise
        row += [("num", "–" if share is None else percent(share))] * clipped
        row += [("num", "–" if ratio is None else number(ratio, 3))] * signal
        rows.append(row)
    return table(f"Curves of {escaped(figure.title)}", heads, rows, "curves")


def numbers_table(figure: FigureResult) -> str:
    """Every number of the curves, a row for each x; of a trade-off, for each t before its end."""
    columns = [_values(curve.regret) for curve in figure.curves]
    over = "t" if figure.kind == "tradeoff" else figure.x_label
    heads = [("num", escaped(over))]
    heads += [("num", escaped(curve.full_label)) for curve in figure.curves]
    marks = sorted({x for column in columns for x in column})
    rows = [[("num", number(x, 6)), *(("num", c.get(x, "–")) for c in columns)] for x in marks]
    give = " ± standard error" if any(curve.regret.stderr for curve in figure.curves) else ""
    what = f"{figure.quantity}, mean{give}"
    caption = escaped(f"All numbers of {figure.title}: {what}")
    return table(caption, heads, rows, "numbers", marks)


def settings_list(settings: Mapping[str, Any]) -> str:
    """The parameters all curves share, name and value."""
    if not settings:
        return "<p>None besides each curve's own.</p>"
    return pairs_list([(escaped(name), scalar(value)) for name, value in settings.items()])


def _curve_words(curve: CurveResult) -> str:
    same = curve.method.lower() == curve.label.lower()
    words = [] if same or not curve.method else [escaped(curve.method)]
    words += [pairs(curve.parameters)] if curve.parameters else []
    role = "" if curve.role == "method" else f' <span class="role">{curve.role}</span>'
    return f"{escaped(curve.full_label)}{role}<small>{': '.join(words)}</small>"


def _privacy_cells(curve: CurveResult, accountants: Sequence[str]) -> list[tuple[str, str]]:
    if not accountants:
        return []
    spent = curve.epsilon or {}
    if not any(value != 0 for value in spent.values()):
        return [("num", "nothing sent"), *[("num", "–")] * len(accountants), ("", "–")]
    cells = [("num", epsilon(spent[n]) if n in spent else "–") for n in accountants]
    if all(value is None for value in spent.values()):
        cells[0] = ("num", "∞, not private")
    delta, adjacency = curve.delta, curve.adjacency
    cells.append(("num", "–" if delta is None else number(delta, 3)))
    cells.append(("", "–" if adjacency is None else escaped(adjacency)))
    return cells


def _values(trace: Trace) -> dict[float, str]:
    errors = trace.stderr or [None] * len(trace.t)
    rows = zip(trace.t, trace.mean, errors, strict=True)
    return {x: with_error(mean, error) for x, mean, error in rows}
