"""What `mkdocs` does besides: graphs are drawn without a network.

A graph is Mermaid's text, of `a["words"]` and `a --> b` alone, so that
a page can be read where Mermaid is known; here it becomes SVG, in the colours of the page.
"""

from __future__ import annotations

import html
import re
from typing import Any

FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CELL, ROW, HALF = 150, 74, 17  # a node's room across and down, half its height


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page's text as MkDocs, which calls this by its name, goes on with it."""
    return FENCE.sub(lambda found: svg_of(found[1]), markdown)


def svg_of(text: str) -> str:
    """A graph as SVG: who depends on nothing at the bottom, each other node above all it needs."""
    names, arrows = _read(text)
    rows = _rows(names, arrows)
    widest = max(len(row) for row in rows)
    spots = {
        name: (CELL * (widest - len(row)) / 2 + CELL * (k + 0.5), ROW * (level + 0.5))
        for level, row in enumerate(reversed(rows))
        for k, name in enumerate(row)
    }
    parts = [_arrow(spots[one], spots[other]) for one, other in arrows]
    parts += [_node(names[name], spot) for name, spot in spots.items()]
    head = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker>'
    )
    told = html.escape("; ".join(f"{one} uses {other}" for one, other in arrows))
    box = f"0 0 {CELL * widest} {ROW * len(rows)}"
    return (
        f'<svg viewBox="{box}" role="img" aria-label="{told}" font-size="13" '
        f'text-anchor="middle">{head}{"".join(parts)}</svg>'
    )


def _read(text: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Nodes with their words, and arrows; another kind of line is refused."""
    names: dict[str, str] = {}
    arrows = []
    for line in filter(None, map(str.strip, text.splitlines()[1:])):
        node = re.fullmatch(r'(\w+)\["(.+)"\]', line)
        arrow = re.fullmatch(r"(\w+) --> (\w+)", line)
        if node:
            names[node[1]] = node[2]
        elif arrow:
            arrows.append((arrow[1], arrow[2]))
            for name in arrow.groups():
                names.setdefault(name, name)
        else:
            raise ValueError(f"a graph has lines like `a --> b`, got {line!r}")
    return names, arrows


def _rows(names: dict[str, str], arrows: list[tuple[str, str]]) -> list[list[str]]:
    """Nodes by how far they are above the ground."""
    below = {name: [other for one, other in arrows if one == name] for name in names}

    def height(name: str) -> int:
        return 1 + max((height(other) for other in below[name]), default=-1)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(height, names)))]
    for name in names:
        rows[height(name)].append(name)
    return rows


def _node(words: str, spot: tuple[float, float]) -> str:
    x, y = spot
    half = max(46.0, 3.9 * len(words) + 8)
    return (
        f'<rect x="{x - half:g}" y="{y - HALF:g}" width="{2 * half:g}" height="{2 * HALF}" rx="5" '
        'fill="var(--md-code-bg-color)" stroke="currentColor" stroke-opacity=".5"/>'
        f'<text x="{x:g}" y="{y + 4.5:g}" fill="currentColor">{html.escape(words)}</text>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x, y), (to_x, to_y) = start, end
    bend = (to_y - y) / 2
    path = (
        f"M{x:g} {y + HALF:g}C{x:g} {y + bend:g} {to_x:g} {to_y - bend:g} {to_x:g} {to_y - HALF:g}"
    )
    return (
        f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".45" '
        'marker-end="url(#tip)"/>'
    )
