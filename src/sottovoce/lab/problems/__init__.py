"""Problems to run methods on, one file each.

A problem is named by one string everywhere, with options after a colon: "synthetic",
"heterogeneous:alpha=1", "gp:dims=3,lengthscale=0.4", "ackley:dims=4,shift=0.1", "landmine",
"har:split=run".
"""

from __future__ import annotations

from typing import cast

from sottovoce.errors import InvalidInput, SottovoceError, check, suggestion
from sottovoce.lab.problems.continuous import GaussianProcess
from sottovoce.lab.problems.digits import Digits
from sottovoce.lab.problems.functions import Ackley, Branin, Hartmann3, Hartmann6
from sottovoce.lab.problems.har import Har
from sottovoce.lab.problems.heterogeneous import Heterogeneous
from sottovoce.lab.problems.landmine import Landmine
from sottovoce.lab.problems.learners import Boosting, ElasticNet, Forest, Mlp, Sgd, Svm
from sottovoce.lab.problems.mixed import Bowl, Choices, Memory, Pipeline, Switches
from sottovoce.lab.problems.options import NamedProblem, problem_of, written_options
from sottovoce.lab.problems.standard import (
    Camel,
    Griewank,
    Levy,
    Michalewicz,
    Rosenbrock,
    Shekel,
    StyblinskiTang,
)
from sottovoce.lab.problems.synthetic import Synthetic
from sottovoce.lab.problems.tuning import Cliff, Failing, Few, Plateau, Ridge, Steep
from sottovoce.plugins import from_package, installed, loaded, reference_in, told
from sottovoce.simulation.problem import FunctionObjectives, Objectives, Problem, Setting

_KINDS: tuple[type[NamedProblem], ...] = (
    Synthetic,
    Heterogeneous,
    GaussianProcess,
    Branin,
    Hartmann3,
    Hartmann6,
    Ackley,
    *(Levy, Rosenbrock, StyblinskiTang, Camel, Shekel, Michalewicz, Griewank),
    *(Steep, Few, Plateau, Failing, Cliff, Ridge),
    *(Choices, Bowl, Switches, Memory, Pipeline),
    *(Svm, Boosting, Forest, ElasticNet, Sgd, Mlp),
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
    return _found(name)[1]


def problem_label(name: str, changed: Problem | None = None) -> str:
    """One label for one problem, however it was written; or for the same with options changed.

    It is a name again, so a file's begins with the file, and a package's with what it offers.
    """
    base, problem = _found(name)
    problem = problem if changed is None else changed
    options = written_options(problem) if isinstance(problem, NamedProblem) else ""
    return f"{base}:{options}" if options else base


def _found(name: str) -> tuple[str, Problem]:
    """What a problem is called without its options, and the problem with them."""
    check(isinstance(name, str), "problem must be a word", problem=name)
    reference = reference_in(name)
    if reference is not None:
        file, own, options = reference
        return f"{file}:{own}", _own(name, loaded(reference), options)
    kind, colon, options = (part.strip() for part in name.partition(":"))
    if kind not in PROBLEMS and kind in installed(PLUGINS):
        return kind, _own(name, from_package(PLUGINS, kind), options)
    if kind not in PROBLEMS:
        known = suggestion(kind, [*PROBLEMS, *installed(PLUGINS)])
        raise InvalidInput(f"unknown problem {kind!r}; {known}")
    return kind, problem_of(PROBLEMS[kind], options if colon else None)


def _own(name: str, found: object, options: str) -> Problem:
    """A problem from outside: a class with options, or a problem as it is."""
    try:
        if isinstance(found, type) and issubclass(found, NamedProblem):
            kind = getattr(found, "kind", None)
            rule = f"{name} must have a kind, the word that it is known by"
            check(isinstance(kind, str) and kind.isprintable() and ":" not in kind, rule, kind=kind)
            return problem_of(found, options or None)
        offers = all(hasattr(found, part) for part in ("name", "setting", "draw"))
    except SottovoceError:
        raise
    except Exception as error:  # whatever the code of others raises
        raise InvalidInput(f"{name} cannot be made: {told(error)}") from error
    if isinstance(found, type) or not offers:
        came = f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
        rule = "must be a NamedProblem, or an object with name, setting and draw"
        raise InvalidInput(f"{name} {rule}, got {came}")
    check(not options, f"{name}: only a NamedProblem takes options", options=options)
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
