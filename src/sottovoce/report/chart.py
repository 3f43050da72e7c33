"""A figure as SVG inside the page: colours by class, so that the theme decides them."""

from __future__ import annotations

from typing import Any

from sottovoce.report.scale import Axis, band, log_axis, x_axis, y_axis
from sottovoce.report.styles import Style, styles_for
from sottovoce.report.text import counted, escaped, number, numbers, with_error

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 86, 742, 12, 376
FEW_POINTS = 12  # so few are marked one by one


def chart(figure: dict[str, Any], *, log: bool = False) -> str:
    """The whole chart; with `log` on a logarithmic axis, or nothing where that shows no more."""
    curves = [curve["regret"] for curve in figure["curves"]]
    x, y = x_axis(curves), log_axis(curves) if log else y_axis(curves)
    if y is None:
        return ""
    styles = styles_for([curve["role"] for curve in figure["curves"]])
    drawn = list(zip(curves, styles, strict=True))
    parts = [_grid(x, y)]
    parts += [_band(curve, style, x, y) for curve, style in drawn if curve["stderr"]]
    parts += [_line(c, s, x, y) for c, s in sorted(drawn, key=lambda pair: pair[1].in_front)]
    parts.append(f'<line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{BOTTOM}"/>')
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'data-left="{LEFT}" data-right="{RIGHT}" data-low="{x.low!r}" data-high="{x.high!r}" '
        f'aria-label="{_description(figure, log)}">\n' + "\n".join(parts) + "\n</svg>"
    )


def swatch(style: Style) -> str:
    """A short piece of the curve's line, for a legend or a table."""
    return (
        '<svg class="swatch" viewBox="0 0 40 10" aria-hidden="true">'
        f'<line class="line {style.name}" x1="0" x2="40" y1="5" y2="5"{_stroke(style)}/></svg>'
    )


def _stroke(style: Style) -> str:
    dashes = " ".join(f"{style.width * d:g}" for d in style.dashes)
    return f' stroke-width="{style.width:g}"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def _point(x: Axis, y: Axis, across: float, up: float) -> str:
    return f"{_across(x, across):.1f},{_down(y, up):.1f}"


def _across(x: Axis, value: float) -> float:
    return LEFT + (RIGHT - LEFT) * x.place(value)


def _down(y: Axis, value: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * y.place(value)


def _ticks(axis: Axis, about: int) -> list[tuple[float, str]]:
    ticks = axis.ticks(about)
    texts = [number(tick) for tick in ticks] if axis.log else numbers(ticks)
    return list(zip(ticks, texts, strict=True))


def _grid(x: Axis, y: Axis) -> str:
    parts = []
    for tick, text in _ticks(y, 6):
        down = f"{_down(y, tick):.1f}"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{down}" y2="{down}"/>')
        parts.append(f'<text class="tick y" x="{LEFT - 10}" y="{down}">{text}</text>')
    for tick, text in _ticks(x, 8):
        at = f"{_across(x, tick):.1f}"
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{BOTTOM}" y2="{BOTTOM + 6}"/>')
        parts.append(f'<text class="tick x" x="{at}" y="{BOTTOM + 12}">{text}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>')
    return "\n".join(parts)


def _band(curve: dict[str, Any], style: Style, x: Axis, y: Axis) -> str:
    low, high = band(curve)
    there = list(zip(curve["t"], high, strict=True))
    back = list(zip(curve["t"], low, strict=True))[::-1]
    points = " ".join(_point(x, y, *pair) for pair in there + back)
    return f'<polygon class="band {style.name}" fill-opacity="{style.band:g}" points="{points}"/>'


def _line(curve: dict[str, Any], style: Style, x: Axis, y: Axis) -> str:
    pairs = list(zip(curve["t"], curve["mean"], strict=True))
    points = " ".join(_point(x, y, *pair) for pair in pairs)
    drawn = f'<polyline class="line {style.name}"{_stroke(style)} points="{points}"/>'
    if len(pairs) > FEW_POINTS:
        return drawn
    return drawn + "".join(
        f'<circle class="dot {style.name}" r="4" cx="{_across(x, t):.1f}" cy="{_down(y, m):.1f}"/>'
        for t, m in pairs
    )


def _description(figure: dict[str, Any], log: bool) -> str:
    """What a reader who cannot see the chart is told of it, escaped."""
    ends = []
    for curve in figure["curves"]:
        line = curve["regret"]
        error = line["stderr"][-1] if line["stderr"] else None
        start, end = number(line["mean"][0]), with_error(line["mean"][-1], error)
        ends.append(f"{curve['label']}, from {start} to {end}")
    scale = " on a logarithmic scale" if log else ""
    lines = counted(len(ends), "curve", "curves")
    return escaped(
        f"Line chart of {figure['y_label']}{scale} against {figure['x_label']}. {lines}: "
        + "; ".join(ends)
        + "."
    )
