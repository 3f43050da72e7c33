"""The frame of a page: one file that holds all it shows, and may ask the network for nothing.

What is given to these functions is HTML already: whatever comes from elsewhere is `escaped` first.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from sottovoce import __version__
from sottovoce.pages.styles import colours_as_css

Row = Sequence[tuple[str, str]]  # (class, HTML) of each cell


def own_text(package: str, name: str) -> str:
    """A style sheet or a script of ours."""
    return files(package).joinpath(name).read_text("utf-8")


def looks(*more: str) -> str:
    """The style sheet of all pages, and what one adds to it."""
    return "".join([colours_as_css(), own_text("sottovoce.pages", "page.css"), *more])


def policy(style: str, script: str = "", connect: str = "'none'") -> str:
    """The Content-Security-Policy: the browser itself refuses any request and script but ours."""
    scripts = f"script-src {_hash(script)}; " if script else ""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; {scripts}"
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def document(title: str, body: str, style: str, script: str = "", allowed: str = "") -> str:
    """A whole page. `allowed` is its policy, if not that of a page that connects to nothing."""
    ending = f"<script>{script}</script>\n" if script else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{allowed or policy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="sottovoce {__version__}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
{ending}</body>
</html>
"""


def table(
    caption: str,
    heads: Row,
    rows: Sequence[Row],
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
            label = f' data-label="{head}"' if "stacks" in kind.split() else ""
            cells.append(f'<td role="cell"{_class(name)}{label}>{cell}</td>')
        mark = f' data-x="{marks[k]!r}"' if marks else ""
        body.append(f'<tr role="row"{mark}>{"".join(cells)}</tr>')
    return (
        f'<div class="box" role="region" aria-label="{caption}" tabindex="0">'
        f'<table class="{kind}" role="table"><caption>{caption}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{top}</tr></thead>\n'
        '<tbody role="rowgroup">\n' + "\n".join(body) + "\n</tbody></table></div>"
    )


def pairs_list(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and values."""
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f'<dl class="settings">{items}</dl>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
