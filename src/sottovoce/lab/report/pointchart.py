"""A plot of privacy against utility as SVG inside the page."""

from __future__ import annotations

from sottovoce.lab.report.plot import Level, Plot, Point, Series
from sottovoce.lab.report.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Canvas, mark, stroke
from sottovoce.lab.report.text import counted, escaped

_MARK = 6.0  # half a mark's width
_FIELD = (LEFT + 4.0, TOP + 0.0, RIGHT + 8.0, BOTTOM - 2.0)
# Names of points are placed for the font sizes of page.css, on a wide and on a narrow screen
_FONTS = {"wide": 11.5, "narrow": 24.0}


def point_chart(plot: Plot) -> str:
    """The whole chart; each point has its words, for the pointer and the keyboard."""
    canvas = Canvas(plot.x, plot.y)
    parts = [canvas.grid()]
    parts += [_level(level, canvas) for level in plot.levels]
    first_on_top = plot.series[::-1]
    parts += [line for series in first_on_top for line in _lines(series, canvas)]
    parts += [_point(point, series, canvas) for series in first_on_top for point in series.points]
    for screen, size in _FONTS.items():
        parts += [
            f'<text class="name {screen}" x="{x:.1f}" y="{y:.1f}">{escaped(name)}</text>'
            for name, (x, y) in plot.names(canvas.spot, size, _MARK, _FIELD)
        ]
    return (
        f'<svg class="chart points" role="group" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-label="{_description(plot)}">\n' + "\n".join(parts) + "\n</svg>"
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


def _description(plot: Plot) -> str:
    """What a reader who cannot see the chart is told of it, escaped."""
    told = "; ".join(
        f"{series.key.label}, {counted(len(series.points), 'point', 'points')}"
        for series in plot.series
    )
    told = f"{counted(len(plot.series), 'series', 'series')}: {told}."
    levels = [f"{level.key.label}, {level.key.value}" for level in plot.levels]
    if levels:
        told += f" Lines to compare with: {'; '.join(levels)}."
    return escaped(f"Chart of {plot.y_label} against {plot.x_label}. {told}")
