"""What a document says of figures that a folder of results does not hold, kept beside the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_SECTION = re.compile(r"^(?=### )", re.MULTILINE)


def kept_sections(old: str, new: str) -> str:
    """Sections, each from its heading `###` on: those of `new`, and of `old` the others.

    A new one goes where the old one was, or after the last of the same figure of the paper.
    """
    merged = {_heading(part): part for part in _SECTION.split(old) if part.startswith("###")}
    for part in _SECTION.split(new):
        if not part.startswith("###"):
            continue
        heading, order = _heading(part), list(merged)
        if heading not in merged:
            alike = [k for k, known in enumerate(order) if _place(known) == _place(heading)]
            order.insert(alike[-1] + 1 if alike else len(order), heading)
        merged = {known: part if known == heading else merged[known] for known in order}
    return "\n\n".join(part.strip() for part in merged.values())


def kept_rows(old: str, new: Sequence[str], beside: Mapping[str, str]) -> list[str]:
    """Rows of a table, known by their first cell: those of `new`, and of `old` the others.

    beside: by first cell, what an old row is to say in its last cell but one.
    """
    rows = {_cell(line): line for line in old.splitlines() if line.startswith("| ")}
    for cell, note in beside.items():
        if f"| {cell}" in rows:
            *first, _, last = rows[f"| {cell}"].split(" | ")
            rows[f"| {cell}"] = " | ".join((*first, note, last))
    return [*({**rows, **{_cell(line): line for line in new}}).values()]


def _heading(section: str) -> str:
    return section.partition("\n")[0].strip()


def _place(heading: str) -> str:
    """What a heading says last, in brackets: the place in the paper."""
    found = re.search(r"\((Fig.*)\)$", heading)
    return found[1] if found else heading


def _cell(row: str) -> str:
    return row.split(" | ")[0]
