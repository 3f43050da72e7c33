"""What every problem must keep to, and what shipped ones keep to besides.

A problem in PROBLEMS is tried with its defaults; to try it with options, add a line to OPTIONS.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from sottovoce.lab.contracts import PROBLEM_PROMISES
from sottovoce.lab.contracts.problems import (
    Examined,
    Promise,
    a_seed_decides_everything,
    agents_are_apart,
    asking_changes_nothing,
    values_are_numbers,
)
from sottovoce.lab.problems import PROBLEMS, problem_named

OPTIONS = [
    "synthetic:level=0.5",
    "heterogeneous:level=0.5",
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
    "landmine:score=probability",
    "landmine:standardise=yes",
    "har:level=1",
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
    level = getattr(seen.problem, "level", 0.0)
    values = seen.objectives.values(seen.points(3, 200)) + level
    optimum = seen.objectives.optimum + level
    assert np.nanmin(values) > -0.3
    assert np.all((optimum > 0.5) & (optimum < 1.3))


def test_on_a_finite_space_the_optimum_is_exactly_the_largest_value(seen: Examined) -> None:
    if not seen.space.finite:
        pytest.skip("the space cannot be listed")
    points = seen.space.points()
    every = seen.objectives.values(np.broadcast_to(points, (seen.agents, *points.shape)))
    assert np.array_equal(np.nanmax(every, axis=1), seen.objectives.optimum)


@pytest.mark.slow
@pytest.mark.skipif("SOTTOVOCE_DATA" not in os.environ, reason="needs the data")
def test_models_trained_live_with_chance_in_them_keep_the_promises_of_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOTTOVOCE_CACHE", str(tmp_path))
    live = Examined(problem_named("landmine:objective=live,score=probability"))
    for promise in (
        values_are_numbers,
        asking_changes_nothing,
        a_seed_decides_everything,
        agents_are_apart,
    ):
        promise(live)
    one, other = (live.drawn(seed).values(live.points()) for seed in (1, 2))
    assert np.any(one != other)  # another run, other folds
