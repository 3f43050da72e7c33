"""What every problem must keep to.

A problem in PROBLEMS is tried with its defaults; to try it with options, add a line to OPTIONS.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.federation.methods import METHODS
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.problems import PROBLEMS, Objectives, Problem, problem_named
from sottovoce.simulation import Draws, simulate
from sottovoce.simulation.problem import Listing
from sottovoce.space import Space

AGENTS, POINTS = 4, 25
TOLERANCE = 1e-9  # by how much a value may exceed an optimum that is computed, not listed

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
]


@pytest.fixture(params=[*PROBLEMS, *OPTIONS])
def problem(request: pytest.FixtureRequest) -> Problem:
    return problem_named(request.param)


@lru_cache(maxsize=64)
def drawn(name: str) -> Objectives:
    return problem_named(name).draw(AGENTS, np.random.default_rng(0))


def objectives_of(problem: Problem) -> Objectives:
    """One draw for the tests that only look at it."""
    return drawn(problem.name)


def some_points(space: Space, seed: int = 0, count: int = POINTS) -> NDArray[np.float64]:
    u = np.random.default_rng(seed).random((AGENTS, count, space.dims))
    return np.asarray(space.snap(u))


@pytest.mark.parametrize("name", [*PROBLEMS, *OPTIONS])
def test_a_problem_is_called_what_it_is_asked_for_by(name: str) -> None:
    problem = problem_named(name)
    assert problem.name == name
    assert problem_named(problem.name) == problem


def test_a_problem_has_a_space_and_a_surrogate(problem: Problem) -> None:
    setting = problem.setting
    assert isinstance(setting.space, Space)
    assert isinstance(setting.surrogate, Surrogate)
    assert problem.setting == setting


def test_values_have_the_shape_of_what_was_asked_and_are_finite(problem: Problem) -> None:
    objectives = objectives_of(problem)
    for count in (1, POINTS):
        values = objectives.values(some_points(problem.setting.space)[:, :count])
        assert values.shape == (AGENTS, count)
        assert values.dtype == np.float64
        assert np.all(np.isfinite(values))


def test_objectives_are_not_flat(problem: Problem) -> None:
    objectives = objectives_of(problem)
    values = objectives.values(some_points(problem.setting.space))
    assert np.all(np.ptp(values, axis=1) > 0)


def test_no_value_exceeds_the_optimum(problem: Problem) -> None:
    objectives = objectives_of(problem)
    assert objectives.optimum.shape == (AGENTS,)
    values = objectives.values(some_points(problem.setting.space, 1, 4000))
    assert np.all(values <= objectives.optimum[:, None] + TOLERANCE)
    # nor does anything near the best of them, where a poor optimum would show
    best = np.argmax(values, axis=1)[:, None, None]
    points = np.take_along_axis(some_points(problem.setting.space, 1, 4000), best, axis=1)
    step = 0.02 * np.random.default_rng(2).standard_normal((AGENTS, 500, points.shape[2]))
    near = np.asarray(problem.setting.space.snap(points + step))
    assert np.all(objectives.values(near) <= objectives.optimum[:, None] + TOLERANCE)


def test_values_and_optima_are_of_the_order_of_one(problem: Problem) -> None:
    objectives = objectives_of(problem)
    values = objectives.values(some_points(problem.setting.space, 3, 200))
    assert values.min() > -0.3
    assert np.all((objectives.optimum > 0.5) & (objectives.optimum < 1.3))


def test_on_a_finite_space_the_optimum_is_reached(problem: Problem) -> None:
    space = problem.setting.space
    if not space.finite:
        pytest.skip("the space cannot be listed")
    objectives = objectives_of(problem)
    points = space.points()
    every = objectives.values(np.broadcast_to(points, (AGENTS, *points.shape)))
    assert np.array_equal(every.max(axis=1), objectives.optimum)


def test_objectives_asked_by_rows_answer_as_they_do_by_points(problem: Problem) -> None:
    objectives, space = objectives_of(problem), problem.setting.space
    assert not isinstance(objectives, Listing) or space.finite
    if isinstance(objectives, Listing):
        points = some_points(space)
        assert np.array_equal(objectives.at(space.index(points)), objectives.values(points))


def test_the_same_seed_draws_the_same_objectives(problem: Problem) -> None:
    points = some_points(problem.setting.space)
    one, two = (problem.draw(AGENTS, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(one.values(points), two.values(points))
    assert np.array_equal(one.optimum, two.optimum)


def test_asking_twice_gives_the_same_truth(problem: Problem) -> None:
    points = some_points(problem.setting.space)
    objectives = problem.draw(AGENTS, np.random.default_rng(7))
    assert np.array_equal(objectives.values(points), objectives.values(points))
    # and a point's value does not depend on what else is asked
    assert np.array_equal(objectives.values(points[:, 3:4])[:, 0], objectives.values(points)[:, 3])


def test_an_agents_values_do_not_depend_on_the_points_of_others(problem: Problem) -> None:
    objectives = objectives_of(problem)
    points = some_points(problem.setting.space)
    expected = objectives.values(points)
    others = some_points(problem.setting.space, 1)
    for agent in range(AGENTS):
        mixed = others.copy()
        mixed[agent] = points[agent]
        assert np.array_equal(objectives.values(mixed)[agent], expected[agent])


def test_noise_is_a_finite_standard_deviation(problem: Problem) -> None:
    noise = objectives_of(problem).noise
    assert np.isfinite(noise)
    assert noise >= 0


def test_any_number_of_agents_can_be_drawn(problem: Problem) -> None:
    space = problem.setting.space
    for agents in (1, 3):
        objectives = problem.draw(agents, np.random.default_rng(0))
        points = np.asarray(space.snap(np.full((agents, 1, space.dims), 0.5)))
        assert objectives.values(points).shape == (agents, 1)
        assert objectives.optimum.shape == (agents,)


def test_the_space_decodes_and_encodes_what_it_searches(problem: Problem) -> None:
    space = problem.setting.space
    for point in some_points(space)[0]:
        assert np.allclose(space.encode(space.decode(point)), point, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["ts", "dp-fts-de"])
def test_a_method_runs_on_it_from_end_to_end(problem: Problem, method: str) -> None:
    small = replace(METHODS[method], initial=3, features=12, lengthscale=0.2)
    study = FederatedStudy(problem.setting.space, small, AGENTS, 2)
    outcome = simulate(study, problem, Draws(0, 0))
    assert outcome.points.shape == (AGENTS, 5, problem.setting.space.dims)
    assert np.array_equal(problem.setting.space.snap(outcome.points), outcome.points)
    assert np.all(np.isfinite(outcome.observed))
    objectives = problem.draw(AGENTS, Draws(0, 0).stream("objectives"))
    assert np.array_equal(objectives.values(outcome.points), outcome.truth)
    assert np.all(outcome.simple_regret >= -TOLERANCE)
    assert len(outcome.events) == (0 if method == "ts" else 2)
