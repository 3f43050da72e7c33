"""A figure of lines over x as SVG inside the page."""

from __future__ import annotations

from typing import Any

from sottovoce.report.scale import Axis, band, log_axis, x_axis, y_axis
from sottovoce.report.styles import Style, styles_for
from sottovoce.report.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    across,
    corner,
    down,
    grid,
    stroke,
)
from sottovoce.report.text import counted, escaped, last_value, number

FEW_POINTS = 12  # so few are marked one by one


def chart(figure: dict[str, Any], *, log: bool = False) -> str:
    """The whole chart; with `log` on a logarithmic axis, or nothing where that shows no more."""
    curves = [curve["regret"] for curve in figure["curves"]]
    x, y = x_axis(curves), log_axis(curves) if log else y_axis(curves)
    if y is None:
        return ""
    styles = styles_for([curve["role"] for curve in figure["curves"]])
    drawn = list(zip(curves, styles, strict=True))
    parts = [grid(x, y)]
    parts += [_band(curve, style, x, y) for curve, style in drawn if curve["stderr"]]
    parts += [_line(c, s, x, y) for c, s in sorted(drawn, key=lambda pair: pair[1].in_front)]
    parts.append(f'<line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{BOTTOM}"/>')
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'data-left="{LEFT}" data-right="{RIGHT}" data-low="{x.low!r}" data-high="{x.high!r}" '
        f'aria-label="{_description(figure, log)}">\n' + "\n".join(parts) + "\n</svg>"
    )


def _band(curve: dict[str, Any], style: Style, x: Axis, y: Axis) -> str:
    low, high = band(curve)
    there = list(zip(curve["t"], high, strict=True))
    back = list(zip(curve["t"], low, strict=True))[::-1]
    points = " ".join(corner(x, y, *pair) for pair in there + back)
    return f'<polygon class="band {style.name}" fill-opacity="{style.band:g}" points="{points}"/>'


def _line(curve: dict[str, Any], style: Style, x: Axis, y: Axis) -> str:
    pairs = list(zip(curve["t"], curve["mean"], strict=True))
    points = " ".join(corner(x, y, *pair) for pair in pairs)
    drawn = f'<polyline class="line {style.name}"{stroke(style)} points="{points}"/>'
    if len(pairs) > FEW_POINTS:
        return drawn
    return drawn + "".join(
        f'<circle class="dot {style.name}" r="4" cx="{across(x, t):.1f}" cy="{down(y, m):.1f}"/>'
        for t, m in pairs
    )


def _description(figure: dict[str, Any], log: bool) -> str:
    """What a reader who cannot see the chart is told of it, escaped."""
    ends = []
    for curve in figure["curves"]:
        line = curve["regret"]
        ends.append(f"{curve['label']}, from {number(line['mean'][0])} to {last_value(line)}")
    scale = " on a logarithmic scale" if log else ""
    lines = counted(len(ends), "curve", "curves")
    return escaped(
        f"Line chart of {figure['y_label']}{scale} against {figure['x_label']}. {lines}: "
        + "; ".join(ends)
        + "."
    )
