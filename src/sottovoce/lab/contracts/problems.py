"""What every problem must keep to.

Symbols: N agents, s points, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.errors import check
from sottovoce.federation.methods import METHODS, Method
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.contracts.promises import kept, sent
from sottovoce.lab.problems import Objectives, Problem, Setting
from sottovoce.simulation import Draws, simulate
from sottovoce.simulation.problem import Listing
from sottovoce.space import Space

AGENTS, POINTS = 4, 25
MANY, NEAR = 4000, 500  # points at which an optimum is doubted: anywhere, and near the best
TOLERANCE = 1e-9  # by how much a value may exceed an optimum that is computed, not listed


@dataclass(frozen=True)
class Examined:
    """A problem, and one draw of it for the promises that only look at it."""

    problem: Problem

    @property
    def space(self) -> Space:
        """What is searched."""
        return self.problem.setting.space

    @property
    def agents(self) -> int:
        """N: a few, or as many as there are."""
        return min(AGENTS, self.problem.setting.agents or AGENTS)

    @cached_property
    def objectives(self) -> Objectives:
        """The draw."""
        return self.drawn(0)

    def drawn(self, seed: int) -> Objectives:
        """Another."""
        return self.problem.draw(self.agents, np.random.default_rng(seed))

    def points(self, seed: int = 0, count: int = POINTS) -> FloatArray:
        """Random points of the space for each agent, (N, s, D)."""
        u = np.random.default_rng(seed).random((self.agents, count, self.space.dims))
        return np.asarray(self.space.snap(u))


Promise = Callable[[Examined], None]


def its_setting_is_whole(seen: Examined) -> None:
    """It has a name, a space and a surrogate, the same whenever it is asked."""
    name, setting = seen.problem.name, seen.problem.setting
    check(isinstance(name, str) and bool(name), "name must be a word", name=name)
    check(isinstance(setting, Setting), "setting must be a Setting", setting=type(setting))
    check(isinstance(setting.space, Space), "space must be a Space", space=type(setting.space))
    surrogate = setting.surrogate
    rule = "surrogate must be a Surrogate"
    check(isinstance(surrogate, Surrogate), rule, surrogate=type(surrogate))
    again = seen.problem.setting
    check(again == setting, "setting must be the same when asked again", first=setting, then=again)


def its_space_encodes_what_it_decodes(seen: Examined) -> None:
    """A point of its space is where it was after being parameters in between."""
    for point in seen.points()[0]:
        params = seen.space.decode(point)
        there = seen.space.encode(params)
        right = there.shape == point.shape and np.allclose(there, point, rtol=0, atol=1e-9)
        check(right, f"{params} must be encoded as {point}", encoded=there)


def values_are_numbers(seen: Examined) -> None:
    """Values at (N, s, D) points are (N, s) doubles, finite, or NaN where a trial failed."""
    for count in (1, POINTS):
        values = seen.objectives.values(seen.points(count=count))
        wanted, shape = (seen.agents, count), np.shape(values)
        check(shape == wanted, f"values must be of shape {wanted}", shape=shape)
        kind = getattr(values, "dtype", type(values))
        check(kind == np.float64, "values must be an array of doubles", dtype=kind)
        endless = values[np.isinf(values)][:1].tolist()
        check(not endless, "a value must be finite, or NaN if the trial failed", value=endless)
    failed = np.isnan(seen.objectives.values(seen.points()))
    check(not failed.all(), f"of {failed.size} trials some must not fail", failed=failed.sum())


def noise_is_a_deviation(seen: Examined) -> None:
    """The noise is a standard deviation, finite and not below 0."""
    noise = seen.objectives.noise
    number = isinstance(noise, int | float | np.number)
    check(number and bool(0 <= noise < np.inf), "noise must be in [0, ∞)", noise=noise)


def no_value_exceeds_the_optimum(seen: Examined) -> None:
    """No value exceeds its agent's optimum, which is finite."""
    optimum = np.asarray(seen.objectives.optimum)
    rule = f"optimum must be of shape ({seen.agents},)"
    check(optimum.shape == (seen.agents,), rule, shape=optimum.shape)
    check(bool(np.all(np.isfinite(optimum))), "an optimum must be finite", optimum=optimum)
    points = seen.points(1, MANY)
    values = _up_to(optimum, seen.objectives.values(points))
    # nor does anything near the best of them, where a poor optimum would show
    best = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=1)[:, None, None]
    step = np.random.default_rng(2).standard_normal((seen.agents, NEAR, seen.space.dims))
    near = np.take_along_axis(points, best, axis=1) + 0.02 * step
    _up_to(optimum, seen.objectives.values(np.asarray(seen.space.snap(near))))


def _up_to(optimum: FloatArray, values: FloatArray) -> FloatArray:
    """The values, none of them above the optima."""
    over = values - optimum[:, None] > TOLERANCE * np.maximum(1.0, np.abs(optimum))[:, None]
    n = int(np.argmax(over.any(axis=1)))
    largest = float(np.max(values[n], where=over[n], initial=-np.inf))
    check(not over.any(), f"values of agent {n} must be at most {optimum[n]}", value=largest)
    return values


def the_optimum_of_a_list_is_reached(seen: Examined) -> None:
    """On a finite space, the optimum is the largest value."""
    if not seen.space.finite:
        return
    points = seen.space.points()
    every = seen.objectives.values(np.broadcast_to(points, (seen.agents, *points.shape)))
    largest, optimum = np.fmax.reduce(every, axis=1), seen.objectives.optimum
    right = np.allclose(largest, optimum, rtol=TOLERANCE, atol=TOLERANCE)
    check(right, f"the optimum must be the largest value, {largest}", optimum=optimum)


def rows_answer_as_points(seen: Examined) -> None:
    """Objectives that can be asked by rows of a list say there what they say at its points."""
    objectives = seen.objectives
    if isinstance(objectives, Listing):
        check(seen.space.finite, "only a finite space has rows to ask by", size=seen.space.size)
        points = seen.points()
        by_row, values = objectives.at(seen.space.index(points)), objectives.values(points)
        _the_same("by rows", values, by_row)


def a_seed_decides_everything(seen: Examined) -> None:
    """The same seed draws the same objectives."""
    one, two, points = seen.drawn(7), seen.drawn(7), seen.points()
    _the_same("of the same seed", one.values(points), two.values(points))
    _the_same("of the same seed, the optima,", one.optimum, two.optimum)


def asking_changes_nothing(seen: Examined) -> None:
    """A value depends on its point alone, not on what else is asked, or how often."""
    objectives, points = seen.drawn(7), seen.points()
    given = points.copy()
    values = objectives.values(given)
    _the_same("after being asked, the points,", points, given)
    _the_same("when asked again", values, objectives.values(points))
    _the_same("of a point alone", values[:, 3:4], objectives.values(points[:, 3:4]))


def agents_are_apart(seen: Examined) -> None:
    """An agent's values do not depend on the points of others."""
    points, others = seen.points(), seen.points(1)
    values = seen.objectives.values(points)
    for n in range(seen.agents):
        mixed = others.copy()
        mixed[n] = points[n]
        _the_same(f"of agent {n} among other points", values[n], seen.objectives.values(mixed)[n])


def _the_same(what: str, wanted: FloatArray, came: FloatArray) -> None:
    """Refuse numbers that differ, or are as many."""
    wanted, came = np.asarray(wanted), np.asarray(came)
    check(wanted.shape == came.shape, f"values {what} must be as many", shape=came.shape)
    differ = ~((wanted == came) | (np.isnan(wanted) & np.isnan(came)))
    first = (wanted[differ][:1].tolist(), came[differ][:1].tolist())
    check(not differ.any(), f"values {what} must be the same: {first[0]}", value=first[1])


def any_number_of_agents_can_be_drawn(seen: Examined) -> None:
    """Objectives can be drawn for one agent, or for any number that there are."""
    most = seen.problem.setting.agents or np.inf
    for agents in (n for n in (1, 3, 7) if n <= most):
        objectives = seen.problem.draw(agents, np.random.default_rng(0))
        points = np.asarray(seen.space.snap(np.full((agents, 1, seen.space.dims), 0.5)))
        shapes = (np.shape(objectives.values(points)), np.shape(objectives.optimum))
        rule = f"values and optimum must be of shapes {(agents, 1)} and {(agents,)}"
        check(shapes == ((agents, 1), (agents,)), rule, shapes=shapes)


def it_travels(seen: Examined) -> None:
    """Another process gets the same problem: it can be pickled."""
    there, points = Examined(sent(seen.problem)), seen.points()
    _the_same("in another process", seen.drawn(7).values(points), there.drawn(7).values(points))


def methods_run_on_it(seen: Examined) -> None:
    """Agents alone, and in private together, search it from end to end."""
    for name in ("ts", "dp-fts-de"):
        small = replace(METHODS[name], initial=3, features=12, lengthscale=0.2)
        if not seen.space.splittable or seen.agents < 2:
            small = replace(small, regions=1)
        _run(seen, small)


def _run(seen: Examined, method: Method) -> None:
    study = FederatedStudy(seen.space, method, seen.agents, 2)
    outcome = simulate(study, seen.problem, Draws(0, 0))
    wanted = (seen.agents, 5, seen.space.dims)
    check(outcome.points.shape == wanted, f"points must be {wanted}", shape=outcome.points.shape)
    inside = np.array_equal(seen.space.snap(outcome.points), outcome.points)
    check(inside, "all points must be of the space", points=outcome.points)
    objectives = seen.problem.draw(seen.agents, Draws(0, 0).stream("objectives"))
    _the_same("of a run", objectives.values(outcome.points), outcome.truth)
    least = float(np.nanmin(outcome.simple_regret, initial=np.inf))
    check(least >= -TOLERANCE, "no regret may be below 0", regret=least)
    releases = 2 if method.shared.exchanges else 0
    check(len(outcome.events) == releases, f"{releases} releases", events=outcome.events)


PROBLEM_PROMISES: tuple[Promise, ...] = (
    its_setting_is_whole,
    its_space_encodes_what_it_decodes,
    values_are_numbers,
    noise_is_a_deviation,
    no_value_exceeds_the_optimum,
    the_optimum_of_a_list_is_reached,
    rows_answer_as_points,
    asking_changes_nothing,
    a_seed_decides_everything,
    agents_are_apart,
    any_number_of_agents_can_be_drawn,
    it_travels,
    methods_run_on_it,
)


def check_problem(problem: Problem) -> tuple[str, ...]:
    """What the problem promises, in words; the first broken promise is an InvalidInput."""
    return tuple(kept(PROBLEM_PROMISES, Examined(problem)))
