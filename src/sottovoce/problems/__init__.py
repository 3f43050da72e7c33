"""Problems to run methods on, one file each."""

from __future__ import annotations

import difflib

from sottovoce.errors import InvalidInput
from sottovoce.problems.protocol import Objectives, Problem, Setting
from sottovoce.problems.synthetic import Synthetic

PROBLEMS: dict[str, Problem] = {"synthetic": Synthetic()}


def problem_named(name: str) -> Problem:
    """The problem of that name; an unknown one is answered with those there are."""
    if name not in PROBLEMS:
        near = difflib.get_close_matches(name, PROBLEMS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"problem must be one of {', '.join(PROBLEMS)}, got {name!r}{hint}")
    return PROBLEMS[name]


__all__ = ["PROBLEMS", "Objectives", "Problem", "Setting", "problem_named"]
