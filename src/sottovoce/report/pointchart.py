"""A figure of privacy against utility as SVG inside the page, and its legend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sottovoce.report.styles import PLD_DASHES, Style
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
    swatch,
)
from sottovoce.report.text import counted, epsilon, escaped
from sottovoce.report.tradeoff import (
    FILLED,
    HOLLOW,
    Level,
    Point,
    Series,
    Tradeoff,
    tradeoff_of,
)

_MARK = 6.0  # half a mark's width
_FIELD = (LEFT + 4.0, TOP + 0.0, RIGHT + 8.0, BOTTOM - 2.0)
# Names of points are placed for the font sizes of page.css, on a wide and on a narrow screen
_FONTS = {"wide": 11.5, "narrow": 24.0}
_ANY = Style("control", (), 2.0, 0.0)  # for a legend that speaks of every series


def point_chart(figure: dict[str, Any]) -> str:
    """The whole chart; each point has its words, for the pointer and the keyboard."""
    picture = tradeoff_of(figure)
    parts = [grid(picture.x, picture.y)]
    parts += [_level(level, picture) for level in picture.levels]
    first_on_top = picture.series[::-1]
    parts += [line for series in first_on_top for line in _lines(series, picture)]
    parts += [_point(p, series, picture) for series in first_on_top for p in series.points]
    for screen, size in _FONTS.items():
        parts += [
            f'<text class="name {screen}" x="{x:.1f}" y="{y:.1f}">{escaped(name)}</text>'
            for name, (x, y) in picture.places(
                lambda right, up: (across(picture.x, right), down(picture.y, up)),
                size, _MARK, _FIELD,
            )
        ]  # fmt: skip
    return (
        f'<svg class="chart points" role="group" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-label="{_description(figure, picture)}">\n' + "\n".join(parts) + "\n</svg>"
    )


def point_legend(figure: dict[str, Any]) -> str:
    """The rows of the legend: every series, which mark is which accountant, every level."""
    picture = tradeoff_of(figure)
    rows = []
    for series in picture.series:
        ends = [epsilon(e) for e in (series.points[0].moments, series.points[-1].moments)]
        reach = f"ε {ends[0]}" if ends[0] == ends[1] else f"ε {ends[0]} to {ends[1]}"
        rows.append((_swatch(series), escaped(series.name), reach))
    rows.append((swatch(_ANY, _mark("circle", _ANY, 20, 5)), FILLED, ""))
    dashed = swatch(_dashed(_ANY), _mark("circle", _ANY, 20, 5, hollow=True))
    rows.append((dashed, HOLLOW, ""))
    rows += [(_swatch(level), escaped(level.label), level.text) for level in picture.levels]
    return "".join(
        f'<li>{drawn}<span class="label">{label}</span><span class="value">{value}</span></li>'
        for drawn, label, value in rows
    )


def point_swatches(figure: dict[str, Any]) -> list[str]:
    """A piece of what stands for each curve."""
    return [_swatch(look) for look in tradeoff_of(figure).looks]


def _swatch(look: Series | Level) -> str:
    if isinstance(look, Series):
        return swatch(look.style, _mark(look.shape, look.style, 20, 5))
    return swatch(look.style)


def _dashed(style: Style) -> Style:
    return replace(style, dashes=PLD_DASHES, width=style.width * 0.6)


def _level(level: Level, picture: Tradeoff) -> str:
    at = f"{down(picture.y, level.value):.1f}"
    drawn = (
        f'<line class="line level {level.style.name}"{stroke(level.style)} '
        f'x1="{LEFT}" x2="{RIGHT}" y1="{at}" y2="{at}"/>'
    )
    if not level.error:
        return drawn
    top = down(picture.y, level.value + level.error)
    height = down(picture.y, level.value - level.error) - top
    band = (
        f'<rect class="band {level.style.name}" fill-opacity="{level.style.band:g}" '
        f'x="{LEFT}" y="{top:.1f}" width="{RIGHT - LEFT}" height="{height:.1f}"/>'
    )
    return band + drawn


def _lines(series: Series, picture: Tradeoff) -> list[str]:
    drawn = []
    looks = (series.style, _dashed(series.style))
    for pairs, style in zip(series.lines(), looks, strict=True):
        points = " ".join(corner(picture.x, picture.y, *pair) for pair in pairs)
        if points:
            drawn.append(f'<polyline class="line {style.name}"{stroke(style)} points="{points}"/>')
    return drawn[::-1]


def _point(point: Point, series: Series, picture: Tradeoff) -> str:
    """Both marks of a curve, with their error bars; they belong together."""
    parts = [f"<title>{escaped(point.words)}</title>"]
    up = down(picture.y, point.value)
    ends = [down(picture.y, point.value + sign * point.error) for sign in (-1, 1)]
    marks = [] if point.pld is None else [(point.pld, True)]
    for at, hollow in [*marks, (point.moments, False)]:
        right = across(picture.x, at)
        if point.error:
            parts.append(
                f'<path class="error {series.style.name}" '
                f'd="M{right:.1f} {ends[0]:.1f}V{ends[1]:.1f}"/>'
            )
        parts.append(_mark(series.shape, series.style, right, up, hollow=hollow))
    return f'<g class="point" role="img" tabindex="0">{"".join(parts)}</g>'


def _mark(shape: str, style: Style, right: float, up: float, *, hollow: bool = False) -> str:
    r = 4.5 if hollow else 5.5
    outlines = {
        "circle": f"m{-r:g} 0a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0z",
        "square": f"m{-1.1 * r:g} {-1.1 * r:g}h{2.2 * r:g}v{2.2 * r:g}h{-2.2 * r:g}z",
        "triangle": f"m0 {-1.4 * r:g}l{1.4 * r:g} {2.4 * r:g}h{-2.8 * r:g}z",
        "diamond": f"m0 {-1.5 * r:g}l{1.5 * r:g} {1.5 * r:g}l{-1.5 * r:g} {1.5 * r:g}"
        f"l{-1.5 * r:g} {-1.5 * r:g}z",
    }
    kind = "hollow" if hollow else "filled"
    return f'<path class="mark {kind} {style.name}" d="M{right:.1f} {up:.1f}{outlines[shape]}"/>'


def _description(figure: dict[str, Any], picture: Tradeoff) -> str:
    """What a reader who cannot see the chart is told of it, escaped."""
    told = "; ".join(
        f"{series.name}, {counted(len(series.points), 'point', 'points')}"
        for series in picture.series
    )
    told = f"{counted(len(picture.series), 'series', 'series')}: {told}."
    levels = [f"{level.label}, {level.text}" for level in picture.levels]
    if levels:
        told += f" Lines to compare with: {'; '.join(levels)}."
    return escaped(f"Chart of {figure['y_label']} against {figure['x_label']}. {told}")
