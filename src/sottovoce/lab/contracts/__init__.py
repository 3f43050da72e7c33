"""What every problem and every method must keep to, for shipped ones and for one's own.

`check_problem(problem)` and `check_method(method)` try each promise in turn, on small studies, and
give back what holds; the first that is broken is an InvalidInput that says what must hold and what
came. A promise is one function, and its first line is what it promises.
"""

from __future__ import annotations

from collections.abc import Iterator

from sottovoce.errors import InvalidInput, suggestion
from sottovoce.federation.methods import METHODS, Method, method_named
from sottovoce.federation.methods import PLUGINS as METHOD_PLUGINS
from sottovoce.lab.contracts.methods import METHOD_PROMISES, Tried, check_method
from sottovoce.lab.contracts.problems import PROBLEM_PROMISES, Examined, check_problem
from sottovoce.lab.contracts.promises import kept
from sottovoce.lab.problems import PLUGINS as PROBLEM_PLUGINS
from sottovoce.lab.problems import PROBLEMS, Problem, problem_named
from sottovoce.plugins import installed, loaded, reference_in


def subject_named(name: str) -> Method | Problem:
    """The method or the problem of that name, of FILE.py:NAME, or of an installed package."""
    reference = reference_in(name)
    if reference is not None:
        own = isinstance(loaded(reference), Method)
        return method_named(name) if own else problem_named(name)
    methods, problems = (
        [*METHODS, *installed(METHOD_PLUGINS)],
        [*PROBLEMS, *installed(PROBLEM_PLUGINS)],
    )
    if name in methods:
        return method_named(name)
    if name.partition(":")[0].strip() in problems:
        return problem_named(name)
    known = suggestion(name, [*methods, *problems])
    raise InvalidInput(f"unknown method or problem {name!r}; {known}")


def promises_of(subject: Method | Problem) -> Iterator[str]:
    """Each promise that holds, as it is tried; the first that is broken raises InvalidInput."""
    if isinstance(subject, Method):
        return kept(METHOD_PROMISES, Tried(subject))
    return kept(PROBLEM_PROMISES, Examined(subject))


__all__ = [
    "METHOD_PROMISES",
    "PROBLEM_PROMISES",
    "check_method",
    "check_problem",
    "promises_of",
    "subject_named",
]
