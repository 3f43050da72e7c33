"""Reads figure files and writes whole files; a bad file is named, with what to do about it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sottovoce import __version__
from sottovoce.errors import StorageError

SCHEMA = 1
VERDICTS = ("holds", "within noise", "does not hold")
_ROLES = ("method", "reference", "control")
_KINDS = ("convergence", "terms", "tradeoff")
_AGAIN = "make it again with: sottovoce reproduce NAME (--list shows the names)"

_Test = tuple[str, Callable[[Any], bool]]


class _Unfit(Exception):
    """Why a content is no figure, in words."""


def read_figures(folder: Path) -> list[dict[str, Any]]:
    """Every figure of a folder of results, checked, in the paper's order."""
    paths = sorted((folder / "figures").glob("*.json"))
    if not paths:
        raise StorageError(
            f"{folder} has no figures to report (no {folder / 'figures'}/*.json); "
            f"make them first with: sottovoce reproduce all --out {folder}"
        )
    return sorted((_read(path) for path in paths), key=_place_in_the_paper)


def check_content(content: Any, where: str) -> None:
    """Raise StorageError unless `content` is a figure this version can show."""
    known = content if isinstance(content, dict) else {}
    command = known.get("command")
    again = f"make it again with: {command}" if isinstance(command, str) and command else _AGAIN
    schema, version = known.get("schema", SCHEMA), known.get("version", __version__)
    if schema != SCHEMA:
        raise StorageError(f"{where} is of schema {schema!r}, this reads schema {SCHEMA}; {again}")
    if version != __version__:
        raise StorageError(
            f"{where} was made by sottovoce {version}, this is {__version__}; {again}"
        )
    try:
        _check_figure(content)
    except _Unfit as error:
        raise StorageError(f"{where} is not a figure to report: {error}; {again}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is damaged or half-written ({error}); {_AGAIN}") from error
    check_content(content, str(path))
    if content["name"] != path.stem:
        raise StorageError(
            f"{path} holds the figure {content['name']!r}; give it its own name back"
        )
    return dict(content)


def _place_in_the_paper(figure: dict[str, Any]) -> tuple[bool, list[tuple[int, str]], str]:
    """`Fig. 2` before `Fig. 10`, and what is no figure of the paper last."""
    where = re.sub(r"^Fig(ure)?s?\.?\s*", "", figure["paper"])
    words = re.findall(r"\d+|\D+", where)
    key = [(int(word), "") if word.isdecimal() else (-1, word) for word in words]
    return not figure["paper"].startswith("Fig"), key, figure["name"]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-z0-9][a-z0-9-]{0,79}", value) is not None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)


def _is_words(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_interval(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(map(_is_number, value))
        and value[0] <= value[1]
    )


def _one_of(names: tuple[str, ...]) -> _Test:
    return f"one of {names}", lambda value: isinstance(value, str) and value in names


def _or_null(test: _Test) -> _Test:
    words, holds = test
    return f"{words} or null", lambda value: value is None or holds(value)


_TEXT: _Test = ("text", lambda value: isinstance(value, str))
_NUMBER: _Test = ("a finite number", _is_number)
_TABLE: _Test = ("an object", lambda value: isinstance(value, dict))
_LIST: _Test = ("a list", lambda value: isinstance(value, list))
_NUMBERS: _Test = (
    "a list of finite numbers, not empty",
    lambda value: isinstance(value, list) and bool(value) and all(map(_is_number, value)),
)
_FIGURE: dict[str, _Test] = {
    "schema": _NUMBER,
    "version": _TEXT,
    "name": ("lower-case letters, digits and hyphens", _is_name),
    "title": _TEXT,
    "paper": _TEXT,
    "kind": _one_of(_KINDS),
    "about": _TEXT,
    "problem": _TEXT,
    "objective": _or_null(_TEXT),
    "runs": ("a whole number above 0", lambda value: type(value) is int and value > 0),
    "seconds": _NUMBER,
    "settings": _TABLE,
    "x_label": _TEXT,
    "y_label": _TEXT,
    "curves": ("a list, not empty", lambda value: isinstance(value, list) and bool(value)),
    "claims": _LIST,
    "command": _TEXT,
    "versions": ("an object of texts", _is_words),
}
_CURVE: dict[str, _Test] = {
    "label": _TEXT,
    "method": _TEXT,
    "parameters": _TABLE,
    "role": _one_of(_ROLES),
    "epsilon": _or_null(_TABLE),
    "delta": _or_null(_NUMBER),
    "adjacency": _or_null(_TEXT),
    "clipped_fraction": _or_null(_NUMBER),
    "signal_to_noise": _or_null(_NUMBER),
    "regret": _TABLE,
}
_LINE: dict[str, _Test] = {"t": _NUMBERS, "mean": _NUMBERS, "stderr": _or_null(_NUMBERS)}
_CLAIM: dict[str, _Test] = {
    "claim": _TEXT,
    "paper": _TEXT,
    "measured": _NUMBER,  # the number judged
    "stderr": _NUMBER,
    "text": _TEXT,  # what was measured, in words
    "verdict": _one_of(VERDICTS),
}
# What may be left out
_FIGURE_MAY: dict[str, _Test] = {"measure": _TEXT, "group": _or_null(_TEXT)}
_CURVE_MAY: dict[str, _Test] = {"series": _or_null(_TEXT)}
_INTERVAL: _Test = ("a list of two finite numbers, the lower first", _is_interval)
_CLAIM_MAY: dict[str, _Test] = {"interval": _or_null(_INTERVAL)}


def _check_keys(
    content: Any, tests: dict[str, _Test], where: str, may: dict[str, _Test] | None = None
) -> None:
    if not isinstance(content, dict):
        raise _Unfit(f"{where} must be an object, got {type(content).__name__}")
    for key, (words, holds) in (tests | (may or {})).items():
        if key not in content:
            if key in tests:
                raise _Unfit(f"{where} lacks {key!r}")
        elif not holds(content[key]):
            raise _Unfit(f"{key!r} of {where} must be {words}, got {str(content[key])[:60]!r}")


def _check_figure(content: Any) -> None:
    _check_keys(content, _FIGURE, "the file", _FIGURE_MAY)
    for k, curve in enumerate(content["curves"]):
        where = f"curve {k + 1}"
        _check_keys(curve, _CURVE, where, _CURVE_MAY)
        _check_keys(curve["regret"], _LINE, where)
        for name, value in (curve["epsilon"] or {}).items():
            if value is not None and not _is_number(value):
                raise _Unfit(f"ε by {name!r} of {where} must be a finite number or null")
        if len({len(values) for values in curve["regret"].values() if values is not None}) > 1:
            raise _Unfit(f"'t', 'mean' and 'stderr' of {where} must have one length")
    for k, claim in enumerate(content["claims"]):
        _check_keys(claim, _CLAIM, f"claim {k + 1}", _CLAIM_MAY)
    if content["kind"] == "tradeoff":
        _check_tradeoff(content["curves"])


def _check_tradeoff(curves: list[dict[str, Any]]) -> None:
    """A point of a series needs an ε to stand at, and without points there is no trade-off."""
    if all(curve.get("series") is None for curve in curves):
        raise _Unfit("a trade-off must have a curve with a 'series', got none")
    for k, curve in enumerate(curves):
        spent = curve["epsilon"] or {}
        if curve.get("series") is None:
            continue
        if spent.get("moments") is None or min(spent["moments"], spent.get("pld") or 0) < 0:
            raise _Unfit(f"ε of curve {k + 1}, which has a series, must be a number from 0 up")
