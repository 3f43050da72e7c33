"""A plot of lines over x as SVG inside the page."""

from __future__ import annotations

from sottovoce.lab.report.plot import FEW_POINTS, Line, Plot
from sottovoce.lab.report.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Canvas
from sottovoce.lab.report.text import counted, escaped, number


def chart(plot: Plot, *, log: bool = False) -> str:
    """The whole chart; with `log` on a logarithmic axis, or nothing where that shows no more."""
    x, y = plot.x, plot.log_y if log else plot.y
    if y is None:
        return ""
    canvas = Canvas(x, y)
    parts = [canvas.grid()]
    parts += [_band(line, canvas) for line in plot.lines if line.trace.stderr]
    parts += [
        _line(one, canvas) for one in sorted(plot.lines, key=lambda one: one.key.style.in_front)
    ]
    parts.append(f'<line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{BOTTOM}"/>')
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'data-left="{LEFT}" data-right="{RIGHT}" data-low="{x.low!r}" data-high="{x.high!r}" '
        f'aria-label="{_description(plot, log)}">\n' + "\n".join(parts) + "\n</svg>"
    )


def _band(line: Line, canvas: Canvas) -> str:
    low, high = line.trace.band
    there = list(zip(line.trace.t, high, strict=True))
    back = list(zip(line.trace.t, low, strict=True))[::-1]
    points = " ".join(canvas.corner(*pair) for pair in there + back)
    style = line.key.style
    return f'<polygon class="band {style.name}" fill-opacity="{style.band:g}" points="{points}"/>'


def _line(line: Line, canvas: Canvas) -> str:
    pairs = list(zip(line.trace.t, line.trace.mean, strict=True))
    drawn = canvas.line(pairs, line.key.style)
    if len(pairs) > FEW_POINTS:
        return drawn
    return drawn + "".join(
        f'<circle class="dot {line.key.style.name}" r="4" cx="{x:.1f}" cy="{y:.1f}"/>'
        for x, y in (canvas.spot(*pair) for pair in pairs)
    )


def _description(plot: Plot, log: bool) -> str:
    """What a reader who cannot see the chart is told of it, escaped."""
    ends = [
        f"{line.key.label}, from {number(line.trace.mean[0])} to {line.key.value}"
        for line in plot.lines
    ]
    scale = " on a logarithmic scale" if log else ""
    lines = counted(len(ends), "curve", "curves")
    return escaped(
        f"Line chart of {plot.y_label}{scale} against {plot.x_label}. {lines}: "
        + "; ".join(ends)
        + "."
    )
