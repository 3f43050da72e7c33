"""Pieces of SVG that charts share: colours by class, so that the theme decides them."""

from __future__ import annotations

from dataclasses import dataclass

from sottovoce.pages.scale import Axis
from sottovoce.pages.styles import Key, Style
from sottovoce.pages.text import number, numbers

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 86, 742, 12, 376


@dataclass(frozen=True)
class Canvas:
    """Where values of x and y stand in a chart; SVG counts downwards."""

    x: Axis
    y: Axis

    def across(self, value: float) -> float:
        """Where a value of x stands."""
        return LEFT + (RIGHT - LEFT) * self.x.place(value)

    def down(self, value: float) -> float:
        """Where a value of y stands."""
        return BOTTOM - (BOTTOM - TOP) * self.y.place(value)

    def spot(self, right: float, up: float) -> tuple[float, float]:
        """Where a point stands."""
        return self.across(right), self.down(up)

    def corner(self, right: float, up: float) -> str:
        """A point of a line or an area."""
        return f"{self.across(right):.1f},{self.down(up):.1f}"

    def line(self, pairs: list[tuple[float, float]], style: Style) -> str:
        """A line through these points."""
        points = " ".join(self.corner(*pair) for pair in pairs)
        return f'<polyline class="line {style.name}"{stroke(style)} points="{points}"/>'

    def grid(self) -> str:
        """The lines and ticks behind a chart."""
        parts = []
        for tick, text in _ticks(self.y, 6):
            at = f"{self.down(tick):.1f}"
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{at}" y2="{at}"/>')
            parts.append(f'<text class="tick y" x="{LEFT - 10}" y="{at}">{text}</text>')
        for tick, text in _ticks(self.x, 8):
            at, end = f"{self.across(tick):.1f}", BOTTOM + 6
            parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{BOTTOM}" y2="{end}"/>')
            parts.append(f'<text class="tick x" x="{at}" y="{BOTTOM + 12}">{text}</text>')
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>')
        return "\n".join(parts)


def swatch(key: Key) -> str:
    """A short piece of the curve's line, for a legend or a table, with its mark if it has one."""
    style = key.style
    drawn = mark(key.shape, style, 20, 5, hollow=key.hollow) if key.shape else ""
    line = f'<line class="line {style.name}" x1="0" x2="40" y1="5" y2="5"{stroke(style)}/>'
    return f'<svg class="swatch" viewBox="0 0 40 10" aria-hidden="true">{line}{drawn}</svg>'


def mark(shape: str, style: Style, right: float, up: float, *, hollow: bool = False) -> str:
    """The mark of a point."""
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


def stroke(style: Style) -> str:
    """Width and dashes of a line, as attributes."""
    dashes = " ".join(f"{style.width * d:g}" for d in style.dashes)
    return f' stroke-width="{style.width:g}"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def _ticks(axis: Axis, about: int) -> list[tuple[float, str]]:
    ticks = axis.ticks(about)
    texts = [number(tick) for tick in ticks] if axis.log else numbers(ticks)
    return list(zip(ticks, texts, strict=True))
