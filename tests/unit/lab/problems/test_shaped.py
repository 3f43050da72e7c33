"""Functions with the shapes of tuning: their optima, and what agents have in common."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.lab.problems import PROBLEMS, problem_named
from sottovoce.lab.problems.shaped import ShapedFunction, ShapedObjectives
from sottovoce.lab.problems.standard import PlainFunction
from sottovoce.space import Float

SHAPED = [kind for kind, problem in PROBLEMS.items() if issubclass(problem, ShapedFunction)]
PLAIN = [kind for kind, problem in PROBLEMS.items() if issubclass(problem, PlainFunction)]


def drawn(name: str, agents: int = 4) -> tuple[ShapedFunction, ShapedObjectives]:
    problem = problem_named(name)
    assert isinstance(problem, ShapedFunction)
    return problem, problem.draw(agents, np.random.default_rng(5))


@pytest.mark.parametrize("kinship", ["near", "opposed", "strangers"])
@pytest.mark.parametrize("kind", SHAPED)
def test_an_optimum_is_reached_by_a_point_of_the_space(kind: str, kinship: str) -> None:
    problem, objectives = drawn(f"{kind}:kinship={kinship}" if kinship != "near" else kind)
    space, optimum, agents = problem.space, objectives.optimum, len(objectives.shifts)
    known = problem.combinations
    count = len(next(iter(known.values()))) if known else 1
    seen = {
        name: objectives._seen(space.names.index(name), np.tile(z, (agents, 1)))
        for name, z in known.items()
    }
    best, columns = problem.best_floats(seen), []
    for k, p in enumerate(space.parameters):
        if isinstance(p, Float):
            z = np.broadcast_to(np.asarray(best[p.name], dtype=np.float64), (agents, count))
            u = z + objectives.shifts[:, k : k + 1]
            columns.append(np.where(objectives.reversed[:, k : k + 1], 1 - u, u)[..., None])
        else:
            index = np.indices([q.size for q in space.parameters if not isinstance(q, Float)])
            place = list(known).index(p.name)
            k_th = index.reshape(len(known), -1)[place].astype(np.float64)
            columns.append(np.tile(np.asarray(p._place(k_th)), (agents, 1, 1)))
    points = np.concatenate(columns, axis=-1)
    assert np.all((points >= 0) & (points <= 1))
    largest = np.nanmax(objectives.values(points), axis=1)
    assert np.allclose(largest, optimum, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", SHAPED)
def test_near_agents_have_nearly_one_function_and_opposed_ones_do_not(kind: str) -> None:
    def alike(name: str) -> float:
        problem, objectives = drawn(name, 2)
        u = np.random.default_rng(0).random((1, 500, problem.space.dims))
        points = np.broadcast_to(problem.space.snap(u), (2, 500, problem.space.dims))
        first, second = objectives.values(points)
        known = np.isfinite(first) & np.isfinite(second)
        return float(np.corrcoef(first[known], second[known])[0, 1])

    near = alike(f"{kind}:shift=0.01")
    assert near > 0.8
    assert alike(f"{kind}:kinship=opposed,shift=0.01") < near - 0.1


def test_what_does_not_matter_does_not() -> None:
    _, objectives = drawn("few", 1)
    points = np.tile(np.full(6, 0.5), (1, 2, 1))
    points[0, 1, 1:3] = 0.1, 0.9
    apart = np.ptp(objectives.values(points))
    points[0, 1] = 0.5
    points[0, 1, 0] = 0.9
    assert apart < 0.02 < np.ptp(objectives.values(points))


def test_trials_fail_beyond_the_edge_and_the_best_is_near_it() -> None:
    _, objectives = drawn("failing:shift=0", 1)
    points = np.asarray([[[0.6, 0.5, 0.4], [0.64, 0.5, 0.4], [0.3, 0.5, 0.4]]])
    best, beyond, before = objectives.values(points)[0]
    assert np.isnan(beyond)
    assert before < best == pytest.approx(objectives.optimum[0])


def test_a_shift_that_leaves_no_maximiser_in_the_space_is_refused() -> None:
    with pytest.raises(InvalidInput, match="shift must be in"):
        problem_named("steep:shift=0.45")


@pytest.mark.parametrize("kind", PLAIN)
def test_a_standard_function_is_largest_where_it_says(kind: str) -> None:
    function = problem_named(kind)
    assert isinstance(function, PlainFunction)
    step = 1e-4 * np.random.default_rng(1).standard_normal((300, function.dims))
    best = function.scaled(function.maximiser)
    assert best == pytest.approx(1.0, abs=1e-9)
    assert np.all(function.scaled(function.maximiser + step) < best)
    u = np.random.default_rng(0).random((2000, function.dims))
    assert np.all((function.scaled(u) >= 0) & (function.scaled(u) < best))
