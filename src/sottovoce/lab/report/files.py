"""Reads the figures in a folder of results; a bad file is named, with what to do about it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sottovoce.errors import StorageError
from sottovoce.lab.experiments.results import AGAIN, FigureResult


def read_figures(folder: Path) -> list[FigureResult]:
    """Every figure of a folder of results, checked, in the paper's order."""
    paths = sorted((folder / "figures").glob("*.json"))
    if not paths:
        raise StorageError(
            f"{folder} has no figures to report (no {folder / 'figures'}/*.json); "
            f"make them first with: sottovoce reproduce all --out {folder}"
        )
    return sorted((_read(path) for path in paths), key=_place_in_the_paper)


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
