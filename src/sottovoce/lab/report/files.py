"""Reads the figures in folders of results; a bad file is named, with what to do about it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sottovoce.errors import StorageError, check
from sottovoce.lab.experiments.compared import Ran, compared, holds_runs, read_run
from sottovoce.lab.experiments.results import AGAIN, FigureResult


def read_figures(*folders: Path) -> list[FigureResult]:
    """Every figure of folders of `reproduce` and of `run`, checked, in the paper's order.

    Folders of `run` may also lie inside one that is named; those of one problem share a figure.
    """
    made: dict[Path, FigureResult] = {}
    ran: dict[Path, Ran] = {}
    for folder in folders:
        paths = sorted((folder / "figures").glob("*.json"))
        inside = sorted(path.parent for path in folder.glob("*/manifest.json"))
        runs = [folder] if holds_runs(folder) else inside
        if not paths and not runs:
            raise StorageError(
                f"{folder} has nothing to report: neither {folder / 'figures'}/*.json, which "
                f"`sottovoce reproduce all --out {folder}` makes, nor what "
                f"`sottovoce run --out {folder}` leaves"
            )
        made |= {path.resolve(): _read(path) for path in paths}
        ran |= {path.resolve(): read_run(path) for path in runs}
    figures = sorted(made.values(), key=_place_in_the_paper)
    names = [figure.name for figure in figures]
    twice = sorted({name for name in names if names.count(name) > 1})
    check(
        not twice, "figures of one name cannot share a page; report their folders apart", of=twice
    )
    return [*figures, *compared(ran.values())]


def _read(path: Path) -> FigureResult:
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise StorageError(
            f"{path} is damaged or half-written ({error}); make it again with: {AGAIN}"
        ) from error
    figure = FigureResult.from_dict(content, str(path))
    if figure.name != path.stem:
        raise StorageError(f"{path} holds the figure {figure.name!r}; give it its own name back")
    return figure


def _place_in_the_paper(figure: FigureResult) -> tuple[bool, list[tuple[int, str]], str]:
    """`Fig. 2` before `Fig. 10`, and what is no figure of the paper last."""
    where = re.sub(r"^Fig(ure)?s?\.?\s*", "", figure.paper)
    words = re.findall(r"\d+|\D+", where)
    key = [(int(word), "") if word.isdecimal() else (-1, word) for word in words]
    return not figure.paper.startswith("Fig"), key, figure.name
