"""The tables of the page. Cells are HTML: whatever comes from a file is escaped on its way in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sottovoce.report.pointchart import point_swatches
from sottovoce.report.styles import styles_for
from sottovoce.report.svg import swatch
from sottovoce.report.text import (
    epsilon,
    escaped,
    full_label,
    interval,
    last_value,
    measure_of,
    number,
    pairs,
    percent,
    scalar,
    with_error,
)

# Told by word and sign; the colour of the class only repeats it
SIGNS = {"holds": "✓", "within noise": "≈", "does not hold": "✗"}
CLASSES = {"holds": "good", "within noise": "unsure", "does not hold": "bad"}
_ACCOUNTANTS = {"moments": "the paper's", "rdp": "", "pld": "tightest", "gdp": "approximation"}
_Row = Sequence[tuple[str, str]]  # (class, HTML) of each cell


def verdict(name: str) -> str:
    """A verdict as a sign and its words."""
    sign = f'<b aria-hidden="true">{SIGNS[name]}</b>'
    return f'<span class="verdict {CLASSES[name]}">{sign} {name}</span>'


def claims_table(figures: Sequence[dict[str, Any]], caption: str, *, linked: bool) -> str:
    """Every claim of these figures; `linked` adds a column that leads to the figure."""
    heads = ["Claim", "Verdict", "Measured", "Estimate ± s.e.", "The paper says"]
    between = any(claim.get("interval") for figure in figures for claim in figure["claims"])
    heads[4:4] = ["95 % interval"] * between
    rows = []
    for figure in figures:
        link = f'<a href="#{figure["name"]}">{escaped(figure["paper"] or figure["title"])}</a>'
        for claim in figure["claims"]:
            cells = [
                ("", escaped(claim["claim"])),
                ("short", verdict(claim["verdict"])),
                ("", escaped(claim.get("text", claim["measured"]))),
                ("short", _estimate(claim)),
                *[("short", interval(claim.get("interval")))] * between,
                ("", escaped(claim["paper"])),
            ]
            rows.append([*cells, ("", link)] if linked else cells)
    return _table(caption, [("", head) for head in heads + ["Figure"] * linked], rows, "stacks")


def curves_table(figure: dict[str, Any]) -> str:
    """Every curve with where it ends and what it costs in privacy."""
    curves = figure["curves"]
    named = {name for curve in curves for name in curve["epsilon"] or {}}
    accountants = [n for n in _ACCOUNTANTS if n in named] + sorted(named - set(_ACCOUNTANTS))
    clipped = any(curve["clipped_fraction"] is not None for curve in curves)
    signal = any(curve["signal_to_noise"] is not None for curve in curves)
    heads = [("", "Curve"), ("num", f"Last {escaped(measure_of(figure))} ± s.e.")]
    for name in accountants:
        note = _ACCOUNTANTS.get(name)
        small = f"<small>{note}</small>" if note else ""
        heads.append(("num", f"ε, {escaped(name)}{small}"))
    heads += [("num", "δ"), ("", "Adjacency")] if accountants else []
    heads += [("num", "Vectors clipped")] * clipped + [("num", "Signal to noise")] * signal
    rows = []
    for curve, drawn in zip(curves, _swatches(figure), strict=True):
        row = [("", drawn + _curve_words(curve)), ("num", last_value(curve["regret"]))]
        row += _privacy_cells(curve, accountants)
        share, ratio = curve["clipped_fraction"], curve["signal_to_noise"]
        row += [("num", "–" if share is None else percent(share))] * clipped
        row += [("num", "–" if ratio is None else number(ratio, 3))] * signal
        rows.append(row)
    return _table(f"Curves of {escaped(figure['title'])}", heads, rows, "curves")


def numbers_table(figure: dict[str, Any]) -> str:
    """Every number of the curves, a row for each x; of a trade-off, for each t before its end."""
    lines = [curve["regret"] for curve in figure["curves"]]
    columns = [_values(line) for line in lines]
    over = "t" if figure["kind"] == "tradeoff" else figure["x_label"]
    heads = [("num", escaped(over))]
    heads += [("num", escaped(full_label(curve))) for curve in figure["curves"]]
    marks = sorted({x for column in columns for x in column})
    rows = [[("num", number(x, 6)), *(("num", c.get(x, "–")) for c in columns)] for x in marks]
    what = f"{measure_of(figure)}, mean ± standard error"
    caption = escaped(f"All numbers of {figure['title']}: {what}")
    return _table(caption, heads, rows, "numbers", marks)


def settings_list(settings: dict[str, Any]) -> str:
    """The parameters all curves share, name and value."""
    items = "".join(
        f"<div><dt>{escaped(name)}</dt><dd>{scalar(value)}</dd></div>"
        for name, value in settings.items()
    )
    return (
        f'<dl class="settings">{items}</dl>' if items else "<p>None besides each curve's own.</p>"
    )


def _swatches(figure: dict[str, Any]) -> list[str]:
    if figure["kind"] == "tradeoff":
        return point_swatches(figure)
    return [swatch(style) for style in styles_for([c["role"] for c in figure["curves"]])]


def _estimate(claim: dict[str, Any]) -> str:
    """The number that was judged: a mean difference, or the quantity the claim is about."""
    return with_error(claim["measured"], claim["stderr"] or None)


def _curve_words(curve: dict[str, Any]) -> str:
    same = curve["method"].lower() == curve["label"].lower()
    words = [] if same or not curve["method"] else [escaped(curve["method"])]
    words += [pairs(curve["parameters"])] if curve["parameters"] else []
    role = "" if curve["role"] == "method" else f' <span class="role">{curve["role"]}</span>'
    return f"{escaped(full_label(curve))}{role}<small>{': '.join(words)}</small>"


def _privacy_cells(curve: dict[str, Any], accountants: Sequence[str]) -> list[tuple[str, str]]:
    if not accountants:
        return []
    spent = curve["epsilon"]
    if not any(value != 0 for value in (spent or {}).values()):
        return [("num", "nothing sent"), *[("num", "–")] * len(accountants), ("", "–")]
    cells = [("num", epsilon(spent[n]) if n in spent else "–") for n in accountants]
    if all(value is None for value in spent.values()):
        cells[0] = ("num", "∞, not private")
    delta, adjacency = curve["delta"], curve["adjacency"]
    cells.append(("num", "–" if delta is None else number(delta, 3)))
    cells.append(("", "–" if adjacency is None else escaped(adjacency)))
    return cells


def _values(line: dict[str, Any]) -> dict[float, str]:
    errors = line["stderr"] or [None] * len(line["t"])
    rows = zip(line["t"], line["mean"], errors, strict=True)
    return {x: with_error(mean, error) for x, mean, error in rows}


def _table(
    caption: str,
    heads: _Row,
    rows: Sequence[_Row],
    kind: str,
    marks: Sequence[float] | None = None,
) -> str:
    """A table in a box of its own, which scrolls where it is too wide, or stacks (`stacks`).

    The roles are spelt out because a table that CSS stacks would lose them. `marks` are the x of
    the rows, for the reading of values under the pointer.
    """
    top = "".join(
        f'<th scope="col" role="columnheader"{_class(name)}>{cell}</th>' for name, cell in heads
    )
    body = []
    for k, row in enumerate(rows):
        cells = [f'<th scope="row" role="rowheader"{_class(row[0][0])}>{row[0][1]}</th>']
        for (_, head), (name, cell) in zip(heads[1:], row[1:], strict=True):
            label = f' data-label="{head}"' if kind == "stacks" else ""
            cells.append(f'<td role="cell"{_class(name)}{label}>{cell}</td>')
        mark = f' data-x="{marks[k]!r}"' if marks else ""
        body.append(f'<tr role="row"{mark}>{"".join(cells)}</tr>')
    return (
        f'<div class="box" role="region" aria-label="{caption}" tabindex="0">'
        f'<table class="{kind}" role="table"><caption>{caption}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{top}</tr></thead>\n'
        '<tbody role="rowgroup">\n' + "\n".join(body) + "\n</tbody></table></div>"
    )


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
