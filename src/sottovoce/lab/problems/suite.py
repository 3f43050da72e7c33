"""The suite of problems that searches are judged by, and its split: what may be looked at when.

DESIGN problems may be looked at while a method is made; TEST problems only for the figures that
are reported. The split is by family: a function, a learner, a data set. A real problem is a TEST
problem if its learner or its data set is. It was fixed before anything was measured on it, and a
test pins it: a problem never moves to the other side.
"""

from __future__ import annotations

from typing import Literal, get_args

from sottovoce.errors import InvalidInput, check

Split = Literal["design", "test"]

FUNCTIONS: dict[Split, tuple[str, ...]] = {
    "design": (
        *("branin", "hartmann3", "hartmann6", "ackley", "gp"),
        *("levy", "rosenbrock", "styblinski"),
        *("steep", "few", "plateau", "failing"),
        *("choices", "bowl", "switches"),
    ),
    "test": (
        *("camel", "shekel", "michalewicz", "griewank"),
        *("cliff", "ridge"),
        *("memory", "pipeline"),
    ),
}
LEARNERS: dict[Split, tuple[str, ...]] = {
    "design": ("svm", "boosting", "forest", "elasticnet"),
    "test": ("sgd", "mlp"),
}
DATA: dict[Split, tuple[str, ...]] = {
    "design": ("digits", "wine", "blobs", "diabetes"),
    "test": ("cancer", "lines"),
}

TUNED: dict[Split, tuple[str, ...]] = {  # learners on data, tuned by sites, that have a table
    "design": ("svm", "svm:data=wine", "elasticnet", "boosting", "forest"),
    "test": ("svm:data=cancer", "elasticnet:data=lines", "sgd", "mlp"),
}


def split_of(problem: str) -> Split | None:
    """On which side a problem is, by its name, with or without options; None: not in the suite."""
    kind, _, options = problem.partition(":")
    families = [kind, *(part.partition("=")[2] for part in options.split(",") if part)]
    tested = [*FUNCTIONS["test"], *LEARNERS["test"], *DATA["test"]]
    if any(family in tested for family in families):
        return "test"
    return "design" if kind in (*FUNCTIONS["design"], *LEARNERS["design"]) else None


def problems(split: str) -> tuple[str, ...]:
    """All problems on one side: functions, and learners on data."""
    side = functions(split)
    return (*side, *TUNED["test" if split == "test" else "design"])


def names_in(text: str) -> list[str]:
    """The problems in "bowl,gp:dims=3,lengthscale=0.4,steep": commas also part options."""
    names = list[str]()
    for part in text.split(","):
        option = "=" in part and ":" not in part and bool(names)
        names[-1:] = [f"{names[-1]},{part}"] if option else [*names[-1:], part]
    return names


def functions(split: str) -> tuple[str, ...]:
    """The functions on one side."""
    known = get_args(Split)
    check(split in known, f"split must be one of {', '.join(known)}", split=split)
    return FUNCTIONS["test" if split == "test" else "design"]


def check_design(problem: str) -> None:
    """Refuse a TEST problem, for whatever is used while a method is made."""
    if split_of(problem) == "test":
        raise InvalidInput(f"{problem} is for the final figures: ask for the test split to run it")
