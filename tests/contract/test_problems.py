"""What every problem must keep to; a new one is tried by being in PROBLEMS."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.belief import Belief
from sottovoce.problems import PROBLEMS, Problem
from sottovoce.space import Space

AGENTS, POINTS = 4, 25


@pytest.fixture(params=sorted(PROBLEMS))
def problem(request: pytest.FixtureRequest) -> Problem:
    found: Problem = PROBLEMS[request.param]
    return found


def some_points(space: Space, seed: int = 0) -> NDArray[np.float64]:
    u = np.random.default_rng(seed).random((AGENTS, POINTS, space.dims))
    return np.asarray(space.snap(u))


def test_a_problem_is_called_what_it_is_listed_as(problem: Problem) -> None:
    assert PROBLEMS[problem.name] is problem


def test_a_problem_has_a_space_and_a_belief(problem: Problem) -> None:
    setting = problem.setting
    assert isinstance(setting.space, Space)
    assert isinstance(setting.belief, Belief)
    assert problem.setting == setting


def test_values_have_the_shape_of_what_was_asked_and_are_finite(problem: Problem) -> None:
    objectives = problem.draw(AGENTS, np.random.default_rng(0))
    for count in (1, POINTS):
        values = objectives.values(some_points(problem.setting.space)[:, :count])
        assert values.shape == (AGENTS, count)
        assert values.dtype == np.float64
        assert np.all(np.isfinite(values))


def test_objectives_are_not_flat(problem: Problem) -> None:
    objectives = problem.draw(AGENTS, np.random.default_rng(0))
    values = objectives.values(some_points(problem.setting.space))
    assert np.all(np.ptp(values, axis=1) > 0)


def test_no_value_exceeds_the_optimum(problem: Problem) -> None:
    objectives = problem.draw(AGENTS, np.random.default_rng(0))
    assert objectives.optimum.shape == (AGENTS,)
    for seed in range(4):
        values = objectives.values(some_points(problem.setting.space, seed))
        assert np.all(values <= objectives.optimum[:, None] + 1e-12)


def test_on_a_finite_space_the_optimum_is_reached(problem: Problem) -> None:
    space = problem.setting.space
    if not space.finite:
        pytest.skip("the space cannot be listed")
    objectives = problem.draw(AGENTS, np.random.default_rng(0))
    points = space.points()
    every = objectives.values(np.broadcast_to(points, (AGENTS, *points.shape)))
    assert np.array_equal(every.max(axis=1), objectives.optimum)


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


def test_noise_is_a_finite_standard_deviation(problem: Problem) -> None:
    noise = problem.draw(AGENTS, np.random.default_rng(0)).noise
    assert np.isfinite(noise)
    assert noise >= 0


def test_any_number_of_agents_can_be_drawn(problem: Problem) -> None:
    space = problem.setting.space
    for agents in (1, 2, 5):
        objectives = problem.draw(agents, np.random.default_rng(0))
        points = np.asarray(space.snap(np.full((agents, 1, space.dims), 0.5)))
        assert objectives.values(points).shape == (agents, 1)
        assert objectives.optimum.shape == (agents,)


def test_the_space_decodes_and_encodes_what_it_searches(problem: Problem) -> None:
    space = problem.setting.space
    for point in some_points(space)[0]:
        assert np.allclose(space.encode(space.decode(point)), point, rtol=0, atol=1e-9)
