"""A problem and its options as one string: "gp", "gp:dims=3,lengthscale=0.4".

The options of a problem are the fields of its frozen dataclass, so that a new problem states
each of them once: as a field with a type (int, float, either of them or None, or a Literal of
words) and a default.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType
from typing import Any, ClassVar, get_args, get_type_hints

import numpy as np

from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.simulation.problem import Objectives, Setting

_WORDS: dict[Any, str] = {int: "a whole number", float: "a finite number", NoneType: "none"}


@dataclass(frozen=True)
class NamedProblem(ABC):
    """A problem that is known by the word `kind` and by its options, the fields."""

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for option, types in _option_types(type(self)).items():
            value = getattr(self, option)
            rule = f"{self.kind}: {option} must be {' or '.join(_WORDS.get(t, t) for t in types)}"
            check(any(_is(value, t) for t in types), rule, **{option: value})
            if float in types and value is not None:
                # 1 and 1.0, or 0.0 and -0.0, are the same problem, so they get the same name
                object.__setattr__(self, option, float(value) + 0.0)

    @property
    def name(self) -> str:
        """The kind and the options that differ from their defaults, sorted: what labels results.

        `problem_named` makes an equal problem of it.
        """
        options = written_options(self)
        return f"{self.kind}:{options}" if options else self.kind

    @property
    @abstractmethod
    def setting(self) -> Setting:
        """The space and how agents model it."""

    @abstractmethod
    def draw(self, agents: int, random: np.random.Generator) -> Objectives:
        """Objectives for that many agents."""


def problem_of(cls: type[NamedProblem], options: str | None) -> NamedProblem:
    """The problem of that class with the options "option=value,option=value"."""
    made: NamedProblem = cls(**(_options(cls, options) if options is not None else {}))
    return made


def written_options(problem: NamedProblem) -> str:
    """The options that differ from their defaults, sorted, as `problem_of` reads them."""
    given = sorted((f.name, getattr(problem, f.name), f.default) for f in fields(problem))
    options = [f"{name}={_written(value)}" for name, value, usual in given if value != usual]
    return ",".join(options)


def _options(cls: type[NamedProblem], text: str) -> dict[str, int | float | str | None]:
    """The options in "a=1,b=2"; whether their values will do, the class itself says."""
    types, options = _option_types(cls), dict[str, int | float | str | None]()
    for part in text.split(","):
        option, equals, value = (piece.strip() for piece in part.partition("="))
        rule = f"{cls.kind}: options must be written option=value with commas between"
        check(bool(option and equals and value), rule, options=text)
        if option not in types:
            hint = suggestion(option, types)
            raise InvalidInput(f"{cls.kind}: unknown option {option!r}; {hint}")
        check(option not in options, f"{cls.kind}: {option} must be given once", options=text)
        options[option] = _read(value)
    return options


@cache  # a page of figures names thousands of problems
def _option_types(cls: type[NamedProblem]) -> dict[str, tuple[Any, ...]]:
    """The types, or the words, each option may have, by name, sorted."""
    hints = get_type_hints(cls)
    names = sorted(f.name for f in fields(cls))
    return {name: get_args(hints[name]) or (hints[name],) for name in names}


def _is(value: object, kind: Any) -> bool:
    if isinstance(kind, str):
        return value == kind
    if isinstance(value, bool):  # an int to Python
        return False
    if kind is float:
        whole = isinstance(value, int) and abs(value) <= 2**53  # more may not even fit a float
        return whole or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, kind)


def _read(text: str) -> int | float | str | None:
    """The number in the text, or None; text that is neither, as it is."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None if text == "none" else text


def _written(value: float | str | None) -> str:
    """The shortest text that `_read` makes the value of."""
    if value is None or isinstance(value, str):
        return value or "none"
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
