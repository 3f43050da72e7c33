"""Problems to run methods on, one file each.

A problem is named by one string everywhere, with options after a colon: "synthetic",
"heterogeneous:alpha=1", "gp:dims=3,lengthscale=0.4", "ackley:dims=4,shift=0.1", "landmine",
"har:split=run".
"""

from __future__ import annotations

from sottovoce.problems.continuous import GaussianProcess
from sottovoce.problems.digits import Digits
from sottovoce.problems.functions import Ackley, Branin, Hartmann3, Hartmann6
from sottovoce.problems.har import Har
from sottovoce.problems.heterogeneous import Heterogeneous
from sottovoce.problems.landmine import Landmine
from sottovoce.problems.options import NamedProblem, problem_from
from sottovoce.problems.synthetic import Synthetic
from sottovoce.simulation.problem import Objectives, Problem, Setting

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
PROBLEMS: dict[str, type[NamedProblem]] = {problem.kind: problem for problem in _KINDS}


def problem_named(name: str) -> Problem:
    """The problem of that name; an unknown one, or option, is answered with the nearest."""
    return problem_from(name, PROBLEMS)


__all__ = ["PROBLEMS", "NamedProblem", "Objectives", "Problem", "Setting", "problem_named"]
