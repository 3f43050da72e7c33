"""Pieces of SVG that the page's charts share: colours by class, so that the theme decides them."""

from __future__ import annotations

from sottovoce.report.scale import Axis
from sottovoce.report.styles import Style
from sottovoce.report.text import number, numbers

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 86, 742, 12, 376


def across(x: Axis, value: float) -> float:
    """Where a value of x stands."""
    return LEFT + (RIGHT - LEFT) * x.place(value)


def down(y: Axis, value: float) -> float:
    """Where a value of y stands; SVG counts downwards."""
    return BOTTOM - (BOTTOM - TOP) * y.place(value)


def corner(x: Axis, y: Axis, right: float, up: float) -> str:
    """A point of a line or an area."""
    return f"{across(x, right):.1f},{down(y, up):.1f}"


def stroke(style: Style) -> str:
    """Width and dashes of a line, as attributes."""
    dashes = " ".join(f"{style.width * d:g}" for d in style.dashes)
    return f' stroke-width="{style.width:g}"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def swatch(style: Style, mark: str = "") -> str:
    """A short piece of the curve's line, for a legend or a table, with its mark if it has one."""
    return (
        '<svg class="swatch" viewBox="0 0 40 10" aria-hidden="true">'
        f'<line class="line {style.name}" x1="0" x2="40" y1="5" y2="5"{stroke(style)}/>{mark}</svg>'
    )


def grid(x: Axis, y: Axis) -> str:
    """The lines and ticks behind a chart."""
    parts = []
    for tick, text in _ticks(y, 6):
        at = f"{down(y, tick):.1f}"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick y" x="{LEFT - 10}" y="{at}">{text}</text>')
    for tick, text in _ticks(x, 8):
        at = f"{across(x, tick):.1f}"
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{BOTTOM}" y2="{BOTTOM + 6}"/>')
        parts.append(f'<text class="tick x" x="{at}" y="{BOTTOM + 12}">{text}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>')
    return "\n".join(parts)


def _ticks(axis: Axis, about: int) -> list[tuple[float, str]]:
    ticks = axis.ticks(about)
    texts = [number(tick) for tick in ticks] if axis.log else numbers(ticks)
    return list(zip(ticks, texts, strict=True))
