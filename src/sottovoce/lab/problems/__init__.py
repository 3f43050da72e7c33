"""Problems to run methods on, one file each.

A problem is named by one string everywhere, with options after a colon: "synthetic",
"heterogeneous:alpha=1", "gp:dims=3,lengthscale=0.4", "ackley:dims=4,shift=0.1", "landmine",
"har:split=run".
"""

from __future__ import annotations

from typing import cast

from sottovoce.errors import InvalidInput, check
from sottovoce.lab.problems.continuous import GaussianProcess
from sottovoce.lab.problems.digits import Digits
from sottovoce.lab.problems.functions import Ackley, Branin, Hartmann3, Hartmann6
from sottovoce.lab.problems.har import Har
from sottovoce.lab.problems.heterogeneous import Heterogeneous
from sottovoce.lab.problems.landmine import Landmine
from sottovoce.lab.problems.options import NamedProblem, problem_from
from sottovoce.lab.problems.synthetic import Synthetic
from sottovoce.plugins import from_package, installed, loaded, reference_in
from sottovoce.simulation.problem import FunctionObjectives, Objectives, Problem, Setting

_KINDS: tuple[type[NamedProblem], ...] = (
    Synthetic,
    Heterogeneous,
    GaussianProcess,
    Branin,
    Hartmann3,
    Hartmann6,
    Ackley,
    Landmine,
    Har,
    Digits,
)
PLUGINS = "sottovoce.problems"  # entry points of packages with problems of their own
PROBLEMS: dict[str, type[NamedProblem]] = {problem.kind: problem for problem in _KINDS}


def problem_named(name: str) -> Problem:
    """The problem of that name, of FILE.py:NAME, or of an installed package, with its options.

    An unknown one, or option, is answered with the nearest.
    """
    check(isinstance(name, str), "problem must be a word", problem=name)
    reference = reference_in(name)
    if reference is not None:
        return _own(name, loaded(reference), reference.options)
    kind = name.partition(":")[0].strip()
    if kind not in PROBLEMS and kind in installed(PLUGINS):
        return _own(name, from_package(PLUGINS, kind), name.partition(":")[2])
    return problem_from(name, {**PROBLEMS, **installed(PLUGINS)})


def problem_label(name: str) -> str:
    """One label for one problem, however it was written; a file's stays as it is."""
    return name if reference_in(name) else problem_named(name).name


def _own(name: str, found: object, options: str) -> Problem:
    """A problem from outside: a class with options, or a problem as it is."""
    if isinstance(found, type) and issubclass(found, NamedProblem):
        return problem_from(
            f"{found.kind}:{options}" if options else found.kind, {found.kind: found}
        )
    offers = all(hasattr(found, part) for part in ("name", "setting", "draw"))
    if isinstance(found, type) or not offers or options:
        raise InvalidInput(
            f"{name} must be a NamedProblem, or an object with name, setting and draw (no options)"
        )
    return cast(Problem, found)


__all__ = [
    "PROBLEMS",
    "FunctionObjectives",
    "NamedProblem",
    "Objectives",
    "Problem",
    "Setting",
    "problem_label",
    "problem_named",
]
