from __future__ import annotations

import math
import sys
import tracemalloc
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.given import Floats, GivenProblem, pitted, slope

from sottovoce.device import device_named
from sottovoce.errors import InvalidInput, MissingExtra
from sottovoce.federation.domain import PointList
from sottovoce.federation.methods import CONTROL, DP_FTS_DE, FTS_DE, METHODS, POOLED_TS, TS, Method
from sottovoce.federation.schedule import ReleaseSchedule, SoloProbability
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.lab.problems import Problem
from sottovoce.lab.problems.synthetic import SPACE as GRID
from sottovoce.lab.problems.synthetic import Synthetic
from sottovoce.privacy.events import DataFree, Event, NonPrivate, SubsampledGaussian
from sottovoce.privacy.release import Mechanism
from sottovoce.simulation import Draws, Outcome, simulate
from sottovoce.space import Category, Float, Integer, Space

AGENTS, ROUNDS = 5, 4
MIXED = Space([Float("x", 0, 1), Integer("n", 1, 4), Category("c", ("a", "b"))])
LIST = Space([Float("x", 0, 1, steps=12), Integer("n", 1, 4)])


def hills(points: Floats) -> Floats:
    """Agent n's objective: a hill whose top lies a little further for each agent."""
    top = 0.4 + 0.02 * np.arange(len(points))[:, None, None]
    return np.asarray(-np.sum((points - top) ** 2, axis=-1))


HillProblem = partial(GivenProblem, function=hills, best=0.0)
PittedProblem = partial(GivenProblem, function=pitted(hills), best=0.0)
SlopeProblem = partial(GivenProblem, function=slope, noise=0.0, best=0.0)
SURROGATES = {
    "fixed": Surrogate(Kernel(0.3, 1.0, 0.01)),
    "fitted": Surrogate(refit=2),
    "raw": Surrogate(Kernel(0.3, 1.0, 0.01), standardise=False),
}


def small(method: Method, **changes: Any) -> Method:
    sizes: dict[str, Any] = {"initial": 3, "lengthscale": 0.2}
    if method.basis != "effects":  # their number follows from the space
        sizes["features"] = 16
    return replace(method, **{**sizes, **changes})


def run(
    method: Method,
    problem: Problem | None = None,
    seed: int = 0,
    number: int = 0,
    rounds: int = ROUNDS,
) -> Outcome:
    problem = Synthetic() if problem is None else problem
    study = FederatedStudy(problem.setting.space, method, AGENTS, rounds)
    return simulate(study, problem, Draws(seed, number))


def same(one: Outcome, two: Outcome) -> bool:
    arrays = ("points", "truth", "observed", "optimum")
    return (
        all(np.array_equal(getattr(one, name), getattr(two, name)) for name in arrays)
        and one.events == two.events
        and one.diagnostics == two.diagnostics
        and one.broadcasts.keys() == two.broadcasts.keys()
        and all(np.array_equal(one.broadcasts[r], two.broadcasts[r]) for r in one.broadcasts)
    )


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_outcome_and_another_does_not(name: str) -> None:
    first = run(small(METHODS[name]))
    assert same(first, run(small(METHODS[name])))
    assert not same(first, run(small(METHODS[name]), seed=1))
    assert not same(first, run(small(METHODS[name]), number=1))


@pytest.mark.parametrize("name", METHODS)
def test_an_outcome_has_a_place_for_every_query_of_every_agent(name: str) -> None:
    outcome = run(small(METHODS[name]))
    length = 3 + ROUNDS
    assert outcome.points.shape == (AGENTS, length, 1)
    assert outcome.truth.shape == outcome.observed.shape == (AGENTS, length)
    assert outcome.optimum.shape == (AGENTS,)
    assert outcome.simple_regret.shape == (AGENTS, ROUNDS + 1)
    assert np.all(np.isfinite(outcome.points))
    assert np.array_equal(GRID.snap(outcome.points), outcome.points)


@pytest.mark.parametrize("name", METHODS)
def test_regret_never_rises_and_is_never_below_zero(name: str) -> None:
    regret = run(small(METHODS[name])).simple_regret
    assert np.all(np.diff(regret, axis=1) <= 0)
    assert np.all(regret >= 0)


def test_regret_is_the_optimum_minus_the_best_query_so_far() -> None:
    outcome = run(small(FTS_DE))
    for t in range(ROUNDS + 1):
        best = outcome.truth[:, : 3 + t].max(axis=1)
        assert np.array_equal(outcome.simple_regret[:, t], outcome.optimum - best)


def test_two_methods_meet_the_same_objectives_and_initial_points() -> None:
    alone, fts, server = (run(small(METHODS[n])) for n in ("ts", "fts", "fts-server"))
    for other in (fts, server):
        assert np.array_equal(alone.optimum, other.optimum)
        assert np.array_equal(alone.points[:, :3], other.points[:, :3])
        assert np.array_equal(alone.observed[:, :3], other.observed[:, :3])
        assert not np.array_equal(alone.points, other.points)
    private, control, open_door = (
        run(small(METHODS[n])) for n in ("dp-fts-de", "control", "fts-de")
    )
    for other in (control, open_door):
        assert np.array_equal(private.points[:, :3], other.points[:, :3])
        assert np.array_equal(private.optimum, other.optimum)


def test_initial_points_lie_in_each_agents_region() -> None:
    method = small(FTS_DE, regions=2, initial=6)
    outcome = run(method)
    regions = FederatedStudy(GRID, method, AGENTS, ROUNDS).regions
    assert np.array_equal(
        regions.index(outcome.points[:, :6]), np.broadcast_to(np.arange(5)[:, None] % 2, (5, 6))
    )


def test_initial_points_stay_in_the_region_where_an_integer_straddles_its_edge() -> None:
    space = Space([Integer("n", 1, 3), Float("x", 0, 1)])
    method = small(FTS_DE, regions=2, initial=12)
    outcome = run(method, HillProblem(space, SURROGATES["fixed"]), rounds=1)
    regions = FederatedStudy(space, method, AGENTS, 1).regions
    found = regions.index(outcome.points[:, :12])
    assert np.array_equal(found, np.broadcast_to(np.arange(5)[:, None] % 2, (5, 12)))


def test_observations_are_the_truth_and_noise_of_the_problems_size() -> None:
    study = FederatedStudy(GRID, small(TS, initial=40), 100, 1)
    outcome = simulate(study, Synthetic(), Draws(0, 0))
    noise = (outcome.observed - outcome.truth).ravel()
    assert np.std(noise) == pytest.approx(0.1, rel=0.05)
    assert abs(np.mean(noise)) < 0.01


def test_agents_alone_release_nothing() -> None:
    outcome = run(small(TS))
    assert outcome.events == []
    assert outcome.broadcasts == {}
    assert outcome.diagnostics == []


def test_each_method_records_what_its_releases_spend() -> None:
    wanted: dict[str, Event] = {
        "fts": NonPrivate(),
        "fts-server": NonPrivate(),
        "fts-de": NonPrivate(),
        "dp-fts": SubsampledGaussian(1.0, 0.25, AGENTS),
        "dp-fts-de": SubsampledGaussian(1.0, 0.25, AGENTS),
        "control": DataFree(),
        "pooled-ts": SubsampledGaussian(2.0, 1.0, AGENTS),
        "pooled-ts-control": DataFree(),
        "sottovoce": SubsampledGaussian(2.0, 1.0, AGENTS),
        "sottovoce-control": DataFree(),
    }
    assert {*wanted, "ts", "gp"} == set(METHODS)
    for name, event in wanted.items():
        outcome = run(small(METHODS[name]))
        spoken = [r for r in range(ROUNDS) if METHODS[name].releases.released(r)]
        assert outcome.events == [event] * len(spoken)
        rows = AGENTS if name == "fts" else METHODS[name].regions
        features = 6 if METHODS[name].shared.consensus else 16
        assert all(v.shape == (rows, features) for v in outcome.broadcasts.values())
        assert list(outcome.broadcasts) == spoken


def test_only_protected_methods_are_diagnosed() -> None:
    for name, method in METHODS.items():
        protected = method.private and not method.noise_only
        count = method.releases.count(ROUNDS) if protected else 0
        assert len(run(small(METHODS[name])).diagnostics) == count


def test_after_the_last_spoken_round_nothing_more_is_released() -> None:
    outcome = run(small(DP_FTS_DE, releases=ReleaseSchedule(last=1)), rounds=6)
    assert list(outcome.broadcasts) == [0, 1]
    assert len(outcome.events) == 2


def test_after_the_last_spoken_round_agents_go_alone() -> None:
    # agents that always follow would all be at one point for ever
    follow = SoloProbability("constant", 0.0)
    outcome = run(small(FTS_DE, releases=ReleaseSchedule(last=1), solo=follow), rounds=6)
    spread = [len(np.unique(outcome.points[:, 3 + t, 0])) for t in range(6)]
    assert spread[:2] == [1, 1]
    assert max(spread[2:]) > 1


def test_only_every_other_round_speaks_and_the_broadcast_is_kept() -> None:
    follow = SoloProbability("constant", 0.0)
    outcome = run(small(FTS_DE, releases=ReleaseSchedule(every=2), solo=follow))
    assert list(outcome.broadcasts) == [0, 2]
    assert np.array_equal(outcome.points[:, 3], outcome.points[:, 4])


def test_the_controls_broadcasts_hold_nothing_of_the_agents() -> None:
    method = small(CONTROL)
    on_hills = run(method, HillProblem(GRID, SURROGATES["fixed"]))
    on_another = run(method)
    assert not np.array_equal(on_hills.observed, on_another.observed)
    assert on_hills.events == [DataFree()] * ROUNDS
    for number in range(ROUNDS):
        assert np.array_equal(on_hills.broadcasts[number], on_another.broadcasts[number])


def test_rounds_whose_sample_is_empty_publish_noise_and_go_on() -> None:
    nobody = Mechanism(clip=1.0, participation=1e-9, noise=1.0)
    outcome = run(small(DP_FTS_DE, mechanism=nobody))
    assert all(np.all(np.isfinite(v)) for v in outcome.broadcasts.values())
    assert all(np.std(v) > 0 for v in outcome.broadcasts.values())
    assert np.all(np.isfinite(outcome.observed))


def test_vectors_that_are_all_clipped_are_said_to_be() -> None:
    tight = replace(DP_FTS_DE, mechanism=Mechanism(clip=1e-3))
    loose = replace(DP_FTS_DE, mechanism=Mechanism(clip=1e3))
    assert all(d.clipped == 1.0 for d in run(small(tight)).diagnostics)
    assert all(d.clipped == 0.0 for d in run(small(loose)).diagnostics)
    assert all(0 < d.signal_to_noise < 10 for d in run(small(tight)).diagnostics)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("space", [MIXED, LIST], ids=["mixed", "list"])
def test_every_method_runs_on_any_space_with_any_surrogate(
    space: Space, name: str, surrogate: str
) -> None:
    problem = HillProblem(space, SURROGATES[surrogate])
    outcome = run(small(METHODS[name]), problem)
    assert outcome.points.shape == (AGENTS, 3 + ROUNDS, space.dims)
    assert np.allclose(space.snap(outcome.points), outcome.points)
    assert np.all(np.isfinite(outcome.observed))
    assert same(outcome, run(small(METHODS[name]), problem))


def test_hearing_the_others_helps_on_the_synthetic_problem() -> None:
    def mean_regret(method: Method) -> float:
        outcome = simulate(FederatedStudy(GRID, method, 60, 6), Synthetic(), Draws(0, 1))
        return float(outcome.simple_regret[:, 1:].mean())

    assert mean_regret(FTS_DE) < 0.7 * mean_regret(TS)


def test_another_space_than_the_problems_is_refused() -> None:
    study = FederatedStudy(MIXED, small(TS), AGENTS, ROUNDS)
    with pytest.raises(InvalidInput, match="must search the problem's space"):
        simulate(study, Synthetic(), Draws(0, 0))


def test_a_region_without_any_point_is_refused() -> None:
    space = Space([Integer("n", 1, 2)])
    with pytest.raises(InvalidInput, match="each region must hold a point"):
        run(small(FTS_DE, regions=3), HillProblem(space, SURROGATES["fixed"]))


def test_a_watcher_sees_every_round_with_what_is_spent_so_far() -> None:
    seen: list[tuple[int, int]] = []
    study = FederatedStudy(
        GRID, small(DP_FTS_DE, releases=ReleaseSchedule(every=2)), AGENTS, ROUNDS
    )
    watch = simulate(
        study, Synthetic(), Draws(0, 0), lambda t, events: seen.append((t, len(events)))
    )
    assert seen == [(1, 1), (2, 1), (3, 2), (4, 2)]
    assert same(watch, simulate(study, Synthetic(), Draws(0, 0)))


# failed trials


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("space", [MIXED, LIST], ids=["mixed", "list"])
def test_every_method_goes_on_when_trials_fail(space: Space, name: str, surrogate: str) -> None:
    problem = PittedProblem(space, SURROGATES[surrogate])
    outcome = run(small(METHODS[name]), problem)
    failed = np.isnan(outcome.observed)
    assert np.array_equal(failed, np.isnan(outcome.truth))
    assert np.all(failed[1])
    assert 0 < failed[[0, 2, 3, 4]].sum() < failed[[0, 2, 3, 4]].size
    assert np.allclose(space.snap(outcome.points), outcome.points)
    assert all(np.all(np.isfinite(v)) for v in outcome.broadcasts.values())
    assert np.all(np.isfinite(outcome.simple_regret))


def test_agents_that_meet_no_failure_do_not_notice_the_others() -> None:
    # alone, on the same draws: only those whose trials failed search otherwise
    for space in (MIXED, LIST):
        whole, pitted = (
            run(small(TS), kind(space, SURROGATES["raw"]), rounds=8)
            for kind in (HillProblem, PittedProblem)
        )
        lucky = ~np.any(np.isnan(pitted.observed), axis=1)
        hit = np.any(np.isnan(pitted.observed[:, :3]), axis=1)
        assert np.allclose(pitted.points[lucky], whole.points[lucky], rtol=0, atol=1e-9)
        assert not np.allclose(pitted.points[hit], whole.points[hit])


def test_a_value_that_is_not_finite_is_a_failed_trial() -> None:
    surrogate = SURROGATES["fixed"]
    nan, infinite = (
        run(small(FTS_DE), PittedProblem(LIST, surrogate, function=pitted(hills, mark)))
        for mark in (math.nan, math.inf)
    )
    assert np.array_equal(nan.points, infinite.points)
    assert np.array_equal(nan.observed, infinite.observed, equal_nan=True)


@pytest.mark.parametrize("space", [MIXED, LIST], ids=["mixed", "list"])
@pytest.mark.parametrize("name", ["ts", "gp", "dp-fts-de", "pooled-ts", "sottovoce"])
def test_failures_do_not_depend_on_how_many_agents_are_simulated_at_a_time(
    space: Space, name: str
) -> None:
    problem = PittedProblem(space, SURROGATES["fixed"])
    study = FederatedStudy(space, small(METHODS[name], repeats="replace"), 11, ROUNDS)
    whole = simulate(study, problem, Draws(5, 1, chunk=4))
    for batch in (1, 3, 9):
        parts = simulate(study, problem, Draws(5, 1, chunk=4), batch=batch)
        assert np.allclose(parts.points, whole.points, rtol=0, atol=1e-9)
        assert np.allclose(parts.observed, whole.observed, rtol=0, atol=1e-9, equal_nan=True)


def outcome_of(truth: list[list[float]], optimum: list[float], initial: int) -> Outcome:
    values = np.asarray(truth)
    return Outcome(values[..., None], values, values, np.asarray(optimum), initial, {}, [], [])


def test_regret_ignores_failures_once_an_agent_has_a_value() -> None:
    nan = math.nan
    outcome = outcome_of([[nan, 2.0, nan, 4.0], [1.0, nan, 3.0, nan]], [5.0, 9.0], 2)
    assert outcome.simple_regret.tolist() == [[3.0, 3.0, 1.0], [8.0, 6.0, 6.0]]


def test_without_a_value_of_its_own_an_agents_regret_is_the_largest_of_any_trial_so_far() -> None:
    nan = math.nan
    truth = [[nan, nan, nan, 4.0], [3.0, 2.0, nan, 1.0], [8.0, nan, 7.0, nan]]
    outcome = outcome_of(truth, [5.0, 4.0, 10.0], 1)
    assert outcome.simple_regret[0].tolist() == [2.0, 2.0, 3.0, 1.0]
    assert outcome.simple_regret[2].tolist() == [2.0, 2.0, 2.0, 2.0]


def test_regret_is_not_a_number_while_nobody_has_a_value() -> None:
    regret = outcome_of([[math.nan, math.nan], [math.nan, 1.0]], [2.0, 2.0], 1).simple_regret
    assert np.array_equal(regret, [[math.nan, 1.0], [math.nan, 1.0]], equal_nan=True)


# points tried before


def new_points(outcome: Outcome) -> NDArray[np.bool_]:
    """Which queries after the start were of points that the agent had not tried: (N, T)."""
    points = outcome.points
    return np.asarray(
        [
            [not np.any(np.all(own[:k] == own[k], axis=-1)) for k in range(3, len(own))]
            for own in points
        ]
    )


@pytest.mark.parametrize("name", ["ts", "fts", "dp-fts-de", "pooled-ts"])
@pytest.mark.parametrize("space", [MIXED, LIST], ids=["mixed", "list"])
def test_no_agent_tries_a_point_twice_where_repeats_are_replaced(space: Space, name: str) -> None:
    problem = SlopeProblem(space, Surrogate(Kernel(3.0, 1.0, 1e-4), standardise=False))
    again, never = (
        run(small(METHODS[name], repeats=repeats), problem, rounds=10)
        for repeats in ("allow", "replace")
    )
    assert not np.all(new_points(again))
    assert np.all(new_points(never))
    assert np.allclose(space.snap(never.points), never.points)


@pytest.mark.parametrize("name", ["gp", "sottovoce"])
@pytest.mark.parametrize("space", [MIXED, LIST], ids=["mixed", "list"])
def test_a_search_by_expected_improvement_tries_no_point_twice_by_itself(
    space: Space, name: str
) -> None:
    problem = SlopeProblem(space, Surrogate(Kernel(3.0, 1.0, 1e-4), standardise=False))
    outcome = run(small(METHODS[name]), problem, rounds=10)
    assert np.all(new_points(outcome))
    assert np.allclose(space.snap(outcome.points), outcome.points)


@pytest.mark.parametrize("space", [MIXED, LIST], ids=["mixed", "list"])
def test_until_a_point_is_repeated_the_replacement_changes_nothing(space: Space) -> None:
    problem = SlopeProblem(space, Surrogate(Kernel(3.0, 1.0, 1e-4), standardise=False))
    again, never = (
        run(small(TS, repeats=repeats), problem, rounds=10) for repeats in ("allow", "replace")
    )
    first = np.argmin(new_points(again), axis=1)  # of the queries, each agent's first repeated
    for n in range(AGENTS):
        upto = 3 + first[n]
        assert np.array_equal(again.points[n, :upto], never.points[n, :upto])
        assert not np.array_equal(again.points[n, upto], never.points[n, upto])


def test_an_exhausted_space_is_tried_again() -> None:
    space = Space([Integer("n", 1, 5)])
    problem = HillProblem(space, SURROGATES["fixed"])
    outcome = run(small(TS, initial=1, repeats="replace"), problem, rounds=9)
    for own in outcome.points[..., 0]:
        assert len(set(own[:5])) == 5


# the draws


def test_a_stream_is_named_and_always_begins_anew() -> None:
    draws = Draws(3, 1)
    first = draws.stream("coin", 2).random(4)
    assert np.array_equal(first, Draws(3, 1).stream("coin", 2).random(4))
    others = [
        draws.stream("coin", 3),
        draws.stream("belief", 2),
        Draws(3, 2).stream("coin", 2),
        Draws(4, 1).stream("coin", 2),
    ]
    assert all(not np.any(first == other.random(4)) for other in others)
    assert draws.seed_for("server") == Draws(3, 1).seed_for("server")
    assert draws.seed_for("server") != draws.seed_for("other")


@pytest.mark.parametrize(("seed", "number"), [(-1, 0), (0, -1)])
def test_negative_seeds_and_runs_are_refused(seed: int, number: int) -> None:
    with pytest.raises(InvalidInput, match="must be at least 0"):
        Draws(seed, number)


def test_an_agents_draws_do_not_depend_on_where_the_others_go() -> None:
    # two methods that differ only in who follows: an agent that goes alone in both at query t,
    # with the same history, must try the same point, with a fitted kernel as with a fixed one
    for surrogate in (SURROGATES["fixed"], SURROGATES["fitted"]):
        problem = HillProblem(LIST, surrogate)
        first = run(small(FTS_DE, solo=SoloProbability("constant", 1.0)), problem, rounds=1)
        half = run(small(FTS_DE, solo=SoloProbability("constant", 0.5)), problem, rounds=1)
        coins = Draws(0, 0).stream("coin", 1).random(AGENTS)
        alone = coins <= 0.5
        assert 0 < alone.sum() < AGENTS
        assert np.array_equal(first.points[alone], half.points[alone])


# batches and chunks


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", ["ts", "gp", "fts", "dp-fts-de", "pooled-ts", "sottovoce"])
@pytest.mark.parametrize("space", [GRID, MIXED, LIST], ids=["grid", "mixed", "list"])
def test_how_many_agents_are_simulated_at_a_time_changes_nothing(
    space: Space, name: str, surrogate: str
) -> None:
    if space is GRID and surrogate == "fitted":
        pytest.skip("a second's work for each agent and round, and LIST shows the same")
    problem = HillProblem(space, SURROGATES[surrogate])
    study = FederatedStudy(space, small(METHODS[name]), 11, ROUNDS)
    whole = simulate(study, problem, Draws(5, 1, chunk=4))
    for batch in (1, 3, 4, 9):
        parts = simulate(study, problem, Draws(5, 1, chunk=4), batch=batch)
        assert np.allclose(parts.points, whole.points, rtol=0, atol=1e-9)
        assert np.allclose(parts.observed, whole.observed, rtol=0, atol=1e-9)
        for number, vectors in whole.broadcasts.items():
            assert np.allclose(parts.broadcasts[number], vectors, rtol=0, atol=1e-9)


def test_agents_of_the_first_chunk_meet_the_same_draws_however_many_there_are() -> None:
    few, many = (
        simulate(FederatedStudy(GRID, small(TS), agents, 2), Synthetic(), Draws(1, 0, chunk=6))
        for agents in (6, 20)
    )
    assert np.array_equal(few.points[:, :3], many.points[:6, :3])
    assert not np.any(np.all(many.points[:6, :3] == many.points[6:12, :3], axis=(1, 2)))


def test_what_is_made_in_between_takes_memory_for_a_batch_only() -> None:
    agents = 4000
    study = FederatedStudy(GRID, small(TS), agents, 1)
    simulate(study, Synthetic(), Draws(0, 0))  # what is kept from run to run is there now

    def peak(batch: int) -> int:
        tracemalloc.start()
        try:
            simulate(study, Synthetic(), Draws(0, 0), batch=batch)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # the values at all 1000 points, 8 bytes each: all agents' at once, or a batch's
    assert peak(100) + 0.5 * 8 * 1000 * agents < peak(agents)


def test_batches_and_chunks_of_nobody_are_refused() -> None:
    study = FederatedStudy(GRID, small(TS), AGENTS, ROUNDS)
    with pytest.raises(InvalidInput, match="batch must be at least 1, got batch=0"):
        simulate(study, Synthetic(), Draws(0, 0), batch=0)
    with pytest.raises(InvalidInput, match="chunk must be at least 1, got chunk=0"):
        Draws(0, 0, chunk=0)


# devices


def test_draws_on_a_device_need_a_device() -> None:
    study = FederatedStudy(GRID, small(TS), AGENTS, ROUNDS)
    with pytest.raises(InvalidInput, match="draws on a device need a run on a device"):
        simulate(study, Synthetic(), Draws(0, 0, on_device=True))


def test_without_pytorch_a_device_is_answered_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sottovoce\[torch\]'"):
        device_named("cuda")


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("space", [LIST, MIXED], ids=["list", "mixed"])
def test_agents_that_have_learnt_but_trust_only_themselves_do_as_those_alone(
    space: Space, surrogate: str
) -> None:
    ignore: dict[str, Any] = {"solo": SoloProbability("constant", 1.0), "initial": 3}
    ignore["initial_design"] = "public"
    found = [
        simulate(
            FederatedStudy(space, replace(method, **ignore), AGENTS, ROUNDS),
            HillProblem(space, SURROGATES[surrogate]),
            Draws(0, 0),
        ).points
        for method in (POOLED_TS, TS)
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_agents_that_have_learnt_take_each_way_in_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: dict[str, list[int]] = {"own": [], "joint": [], "shared": []}

    def counted(name: str) -> Any:
        real = getattr(PointList, name)

        def move(self: PointList, t: int, *rest: Any) -> Any:
            counts[name].append(int(np.sum(rest[-1])))  # whom it concerns comes last
            return real(self, t, *rest)

        return move

    for name in counts:
        monkeypatch.setattr(PointList, name, counted(name))
    method = replace(POOLED_TS, initial=3, solo=SoloProbability("constant", 0.5))
    study, agents = FederatedStudy(LIST, method, 600, 3), 600
    simulate(study, HillProblem(LIST, SURROGATES["fixed"]), Draws(0, 0))
    for name, share in (("own", 0.5), ("joint", 0.25), ("shared", 0.25)):
        assert sum(counts[name]) / (3 * agents) == pytest.approx(share, abs=0.06)
    assert sum(sum(each) for each in counts.values()) == 3 * agents
