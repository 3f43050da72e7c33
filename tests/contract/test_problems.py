"""What every problem must keep to, and what shipped ones keep to besides.

A problem in PROBLEMS is tried with its defaults; to try it with options, add a line to OPTIONS.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from sottovoce.lab.contracts import PROBLEM_PROMISES
from sottovoce.lab.contracts.problems import Examined, Promise
from sottovoce.lab.problems import PROBLEMS, problem_named

OPTIONS = [
    "heterogeneous:alpha=0",
    "heterogeneous:alpha=1",
    "gp:alpha=0.7",
    "gp:dims=1,lengthscale=0.05",
    "gp:dims=3",
    "gp:dims=6",
    "gp:alpha=1,dims=3,lengthscale=0.3",
    "branin:noise=0,shift=0.15",
    "hartmann3:shift=0.1",
    "hartmann6:shift=0",
    "ackley:dims=1",
    "ackley:dims=6,shift=0.2",
    "steep:kinship=opposed",
    "failing:kinship=strangers",
    "bowl:kinship=strangers",
    "choices:kinship=opposed",
    "svm:data=wine",
    "svm:data=cancer",
    "elasticnet:data=lines",
]
FAILING = ("failing", "memory")  # problems with places where trials fail


@lru_cache(maxsize=64)
def examined(name: str) -> Examined:
    return Examined(problem_named(name))


@pytest.fixture(params=[*PROBLEMS, *OPTIONS])
def seen(request: pytest.FixtureRequest) -> Examined:
    return examined(request.param)


@pytest.mark.parametrize("promise", PROBLEM_PROMISES, ids=lambda promise: promise.__name__)
def test_a_shipped_problem_keeps_every_promise(seen: Examined, promise: Promise) -> None:
    promise(seen)


@pytest.mark.parametrize("name", [*PROBLEMS, *OPTIONS])
def test_a_problem_is_called_what_it_is_asked_for_by(name: str) -> None:
    problem = problem_named(name)
    assert problem.name == name
    assert problem_named(problem.name) == problem


def test_trials_of_a_shipped_problem_do_not_fail_but_where_that_is_the_point(
    seen: Examined,
) -> None:
    values = seen.objectives.values(seen.points())
    failing = seen.problem.name.partition(":")[0] in FAILING
    assert np.all(np.isfinite(values)) != failing


def test_objectives_are_not_flat(seen: Examined) -> None:
    values = seen.objectives.values(seen.points())
    assert np.all(np.nanmax(values, axis=1) > np.nanmin(values, axis=1))


def test_values_and_optima_are_of_the_order_of_one(seen: Examined) -> None:
    values, optimum = seen.objectives.values(seen.points(3, 200)), seen.objectives.optimum
    assert np.nanmin(values) > -0.3
    assert np.all((optimum > 0.5) & (optimum < 1.3))


def test_on_a_finite_space_the_optimum_is_exactly_the_largest_value(seen: Examined) -> None:
    if not seen.space.finite:
        pytest.skip("the space cannot be listed")
    points = seen.space.points()
    every = seen.objectives.values(np.broadcast_to(points, (seen.agents, *points.shape)))
    assert np.array_equal(np.nanmax(every, axis=1), seen.objectives.optimum)
