"""A plot as SVG inside the page: lines over x, or points of privacy against utility."""

from __future__ import annotations

from collections.abc import Sequence

from sottovoce.lab.report.plot import FEW_POINTS, Level, Line, Plot, Point, Series
from sottovoce.pages.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Canvas, mark, stroke
from sottovoce.pages.text import counted, escaped, number

_MARK = 6.0  # half a mark's width
_FIELD = (LEFT + 4.0, TOP + 0.0, RIGHT + 8.0, BOTTOM - 2.0)
# Names of points are placed for the font sizes of page.css, on a wide and on a narrow screen
_FONTS = {"wide": 11.5, "narrow": 24.0}


def chart(plot: Plot, *, log: bool = False, name: str = "") -> str:
    """The whole chart; with `log` on a logarithmic axis, or nothing where that shows no more.

    name: of what is drawn in it, by which it can be shown elsewhere again.
    """
    x, y = plot.x, plot.log_y if log else plot.y
    if y is None:
        return ""
    canvas = Canvas(x, y)
    drawn = [_band(line, canvas) for line in plot.lines if line.trace.stderr]
    drawn += [
        _curve(one, canvas) for one in sorted(plot.lines, key=lambda one: one.key.style.in_front)
    ]
    parts = [canvas.grid(), *_group(name, drawn)]
    parts.append(f'<line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{BOTTOM}"/>')
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'data-left="{LEFT}" data-right="{RIGHT}" data-low="{x.low!r}" data-high="{x.high!r}" '
        f'aria-label="{_lines_described(plot, log)}">\n' + "\n".join(parts) + "\n</svg>"
    )


def _group(name: str, drawn: Sequence[str]) -> list[str]:
    return [f'<g id="{escaped(name)}">', *drawn, "</g>"] if name else list(drawn)


def _band(line: Line, canvas: Canvas) -> str:
    low, high = line.trace.band
    there = list(zip(line.trace.t, high, strict=True))
    back = list(zip(line.trace.t, low, strict=True))[::-1]
    points = " ".join(canvas.corner(*pair) for pair in there + back)
    style = line.key.style
    return f'<polygon class="band {style.name}" fill-opacity="{style.band:g}" points="{points}"/>'


def _curve(line: Line, canvas: Canvas) -> str:
    pairs = list(zip(line.trace.t, line.trace.mean, strict=True))
    drawn = canvas.line(pairs, line.key.style)
    if len(pairs) > FEW_POINTS:
        return drawn
    return drawn + "".join(
        f'<circle class="dot {line.key.style.name}" r="4" cx="{x:.1f}" cy="{y:.1f}"/>'
        for x, y in (canvas.spot(*pair) for pair in pairs)
    )


def _lines_described(plot: Plot, log: bool) -> str:
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


def point_chart(plot: Plot, *, name: str = "") -> str:
    """The whole chart; each point has its words, for the pointer and the keyboard."""
    canvas = Canvas(plot.x, plot.y)
    first_on_top = plot.series[::-1]
    drawn = [_level(level, canvas) for level in plot.levels]
    drawn += [line for series in first_on_top for line in _lines(series, canvas)]
    parts = [canvas.grid(), *_group(name, drawn)]
    parts += [_point(point, series, canvas) for series in first_on_top for point in series.points]
    for screen, size in _FONTS.items():
        parts += [
            f'<text class="name {screen}" x="{x:.1f}" y="{y:.1f}">{escaped(name)}</text>'
            for name, (x, y) in plot.names(canvas.spot, size, _MARK, _FIELD)
        ]
    return (
        f'<svg class="chart points" role="group" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-label="{_points_described(plot)}">\n' + "\n".join(parts) + "\n</svg>"
    )


def _level(level: Level, canvas: Canvas) -> str:
    at, style = f"{canvas.down(level.value):.1f}", level.key.style
    drawn = (
        f'<line class="line level {style.name}"{stroke(style)} '
        f'x1="{LEFT}" x2="{RIGHT}" y1="{at}" y2="{at}"/>'
    )
    if not level.error:
        return drawn
    top = canvas.down(level.value + level.error)
    height = canvas.down(level.value - level.error) - top
    band = (
        f'<rect class="band {style.name}" fill-opacity="{style.band:g}" '
        f'x="{LEFT}" y="{top:.1f}" width="{RIGHT - LEFT}" height="{height:.1f}"/>'
    )
    return band + drawn


def _lines(series: Series, canvas: Canvas) -> list[str]:
    """By pld, if there is any, and over it by the figure's accountant."""
    solid, dashed = series.lines()
    beneath = [canvas.line(dashed, series.key.style.by_pld)] if dashed else []
    return [*beneath, canvas.line(solid, series.key.style)]


def _point(point: Point, series: Series, canvas: Canvas) -> str:
    """Both marks of a curve, with their error bars; they belong together."""
    parts = [f"<title>{escaped(point.words)}</title>"]
    ends = [canvas.down(point.value + sign * point.error) for sign in (-1, 1)]
    marks = [] if point.pld is None else [(point.pld, True)]
    for at, hollow in [*marks, (point.spent, False)]:
        right, up = canvas.spot(at, point.value)
        if point.error:
            parts.append(
                f'<path class="error {series.key.style.name}" '
                f'd="M{right:.1f} {ends[0]:.1f}V{ends[1]:.1f}"/>'
            )
        parts.append(mark(series.shape, series.key.style, right, up, hollow=hollow))
    return f'<g class="point" role="img" tabindex="0">{"".join(parts)}</g>'


def _points_described(plot: Plot) -> str:
    """The same of points and levels."""
    told = "; ".join(
        f"{series.key.label}, {counted(len(series.points), 'point', 'points')}"
        for series in plot.series
    )
    told = f"{counted(len(plot.series), 'series', 'series')}: {told}."
    levels = [f"{level.key.label}, {level.key.value}" for level in plot.levels]
    if levels:
        told += f" Lines to compare with: {'; '.join(levels)}."
    return escaped(f"Chart of {plot.y_label} against {plot.x_label}. {told}")
