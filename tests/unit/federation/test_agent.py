from __future__ import annotations

import copy
import json
import math
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.federation.exchange import exchanged

from sottovoce.arrays import Array
from sottovoce.errors import (
    InvalidInput,
    ProtocolError,
    SpaceError,
    StorageError,
    StudyMismatch,
    UnknownAgent,
    WrongRound,
)
from sottovoce.federation.agent import Agent
from sottovoce.federation.draws import Recipe
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.methods import DP_FTS_DE, FTS, FTS_DE, METHODS, TS, Method
from sottovoce.federation.parts import INITIAL_DESIGNS
from sottovoce.federation.schedule import ReleaseSchedule, SoloProbability
from sottovoce.federation.searcher import Direction
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.simulation import Draws, draws_of_agent
from sottovoce.space import Category, Float, Integer, Space

PLANE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
MIXED = Space(
    [
        Float("rate", 1e-4, 1.0, log=True),
        Float("C", 0.0, 10.0),
        Integer("depth", 1, 8),
        Category("kernel", ("rbf", "linear", "poly")),
    ]
)
GRID = Space([Float("x", 0.0, 1.0, steps=40)])
KERNEL = Kernel(0.2, 1.0, 0.01)
DRAWS = Draws(seed=3, run=0)
SMALL: dict[str, Any] = {"initial": 3, "features": 20, "lengthscale": 0.2}
FOLLOW, IGNORE = SoloProbability("constant", 0.0), SoloProbability("constant", 1.0)


def small(method: Method, **changes: Any) -> Method:
    sizes = {**SMALL, **changes}
    if method.basis == "effects":  # their number follows from the space
        sizes.pop("features", None)
    return replace(method, **sizes)


def study(
    space: Space = GRID, method: Method = FTS_DE, agents: int = 4, **changes: Any
) -> FederatedStudy:
    return FederatedStudy(space, small(method, **changes), agents, 6)


def height(params: dict[str, Any]) -> float:
    """An objective on any of the spaces above."""
    numbers = [float(v) for v in params.values() if not isinstance(v, str)]
    return math.cos(3 * sum(numbers)) + (0.2 if params.get("kernel") == "rbf" else 0.0)


def told(agent: Agent, more: int = 0) -> Agent:
    """The agent after its initial points and some more."""
    for _ in range(agent.study.method.initial + more):
        params = agent.ask()
        agent.tell(params, height(params))
    return agent


def first_points(agent: Agent) -> list[NDArray[np.float64]]:
    """Where the agent goes in its initial trials."""
    points = []
    while agent.starting:
        params = agent.ask()
        points.append(agent.study.space.encode(params))
        agent.tell(params, 0.0)
    return points


def broadcast(
    study: FederatedStudy,
    round_number: int = 0,
    vectors: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> Broadcast:
    count = study.method.regions if study.method.shared.summed else study.agents
    if vectors is None:
        vectors = np.random.default_rng(seed).standard_normal((count, study.method.features))
    return Broadcast(study.fingerprint, round_number, vectors, "00" * 32)


def state(agent: Agent, tmp_path: Path) -> str:
    """All an agent knows, to see that nothing has changed."""
    agent.save(tmp_path / "state.json")
    return (tmp_path / "state.json").read_text()


# the first points


@pytest.mark.parametrize(
    ("space", "regions"), [(PLANE, 4), (GRID, 3), (MIXED, 4)], ids=["plane", "grid", "mixed"]
)
def test_initial_points_lie_in_the_agents_own_region(space: Space, regions: int) -> None:
    federation = study(space, agents=regions, regions=regions, initial=40)
    for index in range(regions):
        points = first_points(Agent(federation, index, seed=index))
        assert {int(federation.regions.index(u)) for u in points} == {index}
        assert len({tuple(u) for u in points}) > 5


def test_initial_points_stay_in_the_region_where_an_integer_straddles_its_edge() -> None:
    # 2 of {1, 2, 3} sits at 0.5 and owns the cell from 1/3 to 2/3, which the edge cuts in two
    space = Space([Integer("n", 1, 3), Float("x", 0.0, 1.0)])
    federation = study(space, agents=2, regions=2, initial=40)
    for index in range(2):
        points = first_points(Agent(federation, index, seed=index))
        assert {int(federation.regions.index(u)) for u in points} == {index}


@pytest.mark.parametrize("space", [PLANE, MIXED])
def test_without_a_local_start_initial_points_lie_everywhere(space: Space) -> None:
    federation = study(space, regions=4, initial_design="uniform", initial=60)
    points = first_points(Agent(federation, 1, seed=0))
    assert {int(federation.regions.index(u)) for u in points} == {0, 1, 2, 3}


def test_without_a_local_start_a_finite_space_is_begun_everywhere() -> None:
    agent = Agent(study(GRID, initial_design="uniform", initial=400), 0, seed=0)
    assert len({float(u[0]) for u in first_points(agent)}) == 40


@pytest.mark.parametrize("design", INITIAL_DESIGNS.names)
@pytest.mark.parametrize("space", [PLANE, GRID, MIXED], ids=["plane", "grid", "mixed"])
def test_asked_twice_for_an_initial_point_an_agent_says_the_same(space: Space, design: str) -> None:
    agent = Agent(study(space, initial_design=design), 0, seed=0)
    for _ in range(3):
        params = agent.ask()
        assert agent.ask() == params
        agent.tell(params, 1.0)


def test_a_region_without_any_point_is_refused() -> None:
    space = Space([Integer("n", 1, 2)])
    agent = Agent(study(space, agents=3, regions=3), 1)
    with pytest.raises(InvalidInput, match="each region must hold a point"):
        agent.ask()


# whole rounds


@pytest.mark.parametrize("direction", get_args(Direction))
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("space", [MIXED, GRID], ids=["mixed", "grid"])
def test_agents_ask_tell_speak_and_hear_for_some_rounds(
    space: Space, name: str, direction: Direction
) -> None:
    federation = FederatedStudy(space, small(METHODS[name]), 4, 3)
    agents = [
        told(Agent(federation, n, direction=direction, surrogate=Surrogate(KERNEL), seed=n))
        for n in range(4)
    ]
    alone = not federation.method.shared.exchanges
    server = None if alone else Server.simulation(federation, seed=1)
    for t in range(3):
        if server is not None and federation.method.releases.released(t):
            exchanged(server, agents, t)
        for agent in agents:
            params = agent.ask()
            assert set(params) == set(space.names)
            assert np.all(space.encode(params) >= 0)
            agent.tell(params, height(params))
    for agent in agents:
        assert agent.observations == 6
        assert agent.round == (0 if server is None else 3)
        params, value = agent.best
        assert value == height(params)
        assert value == (max if direction == "maximize" else min)(agent._values())


def test_an_agent_finds_the_top_of_a_smooth_function_alone() -> None:
    agent = Agent(FederatedStudy(PLANE, small(TS), 1, 40), 0, seed=4)
    for _ in range(30):
        params = agent.ask()
        agent.tell(params, -((params["x"] - 0.3) ** 2) - (params["y"] - 0.8) ** 2)
    assert agent.best[1] > -1e-3


def test_an_agent_that_minimises_finds_the_bottom() -> None:
    agent = Agent(FederatedStudy(PLANE, small(TS), 1, 40), 0, direction="minimize", seed=4)
    for _ in range(30):
        params = agent.ask()
        agent.tell(params, 7 + (params["x"] - 0.3) ** 2 + (params["y"] - 0.8) ** 2)
    assert agent.best[1] < 7 + 1e-3


# following the broadcast, or not


def test_with_no_trust_in_itself_a_finite_query_is_the_best_of_the_broadcast() -> None:
    federation = study(GRID, solo=FOLLOW, regions=2)
    agent = told(Agent(federation, 0, seed=0))
    points = GRID.points()
    for seed in range(6):
        heard = broadcast(federation, seed=seed, round_number=seed)
        agent.receive(heard)
        own = federation.regions.index(points)
        values = np.einsum("km,km->k", federation.features(points), heard.vectors[own])
        assert agent.ask() == GRID.decode(points[np.argmax(values)])


def test_with_no_trust_in_itself_a_query_is_the_top_of_the_broadcast_function() -> None:
    federation = study(PLANE, solo=FOLLOW, regions=4)
    agent = told(Agent(federation, 0, seed=0))
    axis = np.linspace(0, 1, 201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    own = federation.regions.index(grid)
    for seed in range(4):
        heard = broadcast(federation, seed=seed, round_number=seed)
        agent.receive(heard)
        values = np.einsum("km,km->k", federation.features(grid), heard.vectors[own])
        place = PLANE.encode(agent.ask())
        weights = heard.vectors[int(federation.regions.index(place))]
        assert float(federation.features(place) @ weights) >= values.max() - 1e-9


@pytest.mark.parametrize("space", [PLANE, GRID])
def test_with_full_trust_in_itself_an_agent_never_uses_the_broadcast(space: Space) -> None:
    federation = study(space, solo=IGNORE)
    hearing, deaf = (
        told(Agent(federation, 0, surrogate=Surrogate(KERNEL), draws=draws_of_agent(DRAWS, 4, 0)))
        for _ in range(2)
    )
    for t in range(4):
        hearing.receive(broadcast(federation, t, seed=t))
        told_same = [agent.ask() for agent in (hearing, deaf)]
        assert told_same[0] == told_same[1]
        for agent in (hearing, deaf):
            agent.tell(told_same[0], height(told_same[0]))


def test_the_chance_to_follow_is_that_of_the_query() -> None:
    # 1 − 1/√t: surely at the first query, half the time at the fourth
    federation = study(GRID, solo=SoloProbability("root"))
    heard = broadcast(federation)
    agent = told(Agent(federation, 0, surrogate=Surrogate(KERNEL), seed=1))
    agent.receive(heard)
    top = agent.ask()
    assert all(agent.ask() == top for _ in range(30))
    for _ in range(3):
        agent.tell(top, -9.0)  # so that its own model would never go there
    share = sum(agent.ask() == top for _ in range(300)) / 300
    assert 0.4 < share < 0.65


def test_after_the_last_spoken_round_an_agent_goes_alone() -> None:
    federation = study(GRID, solo=FOLLOW, releases=ReleaseSchedule(last=1))
    values = [(GRID.decode(GRID.points()[k]), float(k % 7)) for k in (1, 8, 15, 22, 30)]

    def pair(count: int) -> tuple[dict[str, Any], dict[str, Any]]:
        surrogate = Surrogate(KERNEL)
        hearing, deaf = (Agent(federation, 0, surrogate=surrogate, seed=9) for _ in range(2))
        for agent in (hearing, deaf):
            for params, value in values[:count]:
                agent.tell(params, value)
        hearing.receive(broadcast(federation, 1, seed=2))
        return hearing.ask(), deaf.ask()

    second, third = pair(4), pair(5)  # queries 2 and 3, which would use rounds 1 and 2
    assert second[0] != second[1]
    assert third[0] == third[1]


def test_between_two_spoken_rounds_an_agent_keeps_the_last_broadcast() -> None:
    federation = study(GRID, solo=FOLLOW, releases=ReleaseSchedule(every=3))
    agent = told(Agent(federation, 0, seed=0))
    agent.receive(broadcast(federation))
    first = agent.ask()
    for _ in range(2):
        agent.tell(first, 0.0)
        assert agent.ask() == first


def test_an_agent_of_fts_follows_every_other_and_never_itself() -> None:
    federation = study(GRID, FTS, agents=5, solo=FOLLOW)
    points = GRID.points()[[2, 11, 20, 29, 37]]
    heard = broadcast(federation, vectors=10 * federation.features(points))
    for index in range(5):
        agent = told(Agent(federation, index, seed=index))
        agent.receive(heard)
        asked = [agent.ask()["x"] for _ in range(120)]
        others = [GRID.decode(u)["x"] for n, u in enumerate(points) if n != index]
        assert set(asked) == set(others)
        assert min(asked.count(x) for x in others) > 12


# what it says


def test_standardised_and_raw_values_change_the_message_accordingly() -> None:
    federation = study(GRID)
    raw = np.asarray([3.0, 8.0, 4.0, 4.5])
    scaled = (raw - raw.mean()) / raw.std()

    def said(
        values: NDArray[np.float64], surrogate: Surrogate, direction: Direction = "maximize"
    ) -> Any:
        agent = Agent(federation, 1, direction=direction, surrogate=surrogate, seed=5)
        for k, value in zip((3, 9, 22, 35), values, strict=True):
            agent.tell(GRID.decode(GRID.points()[k]), float(value))
        return agent.message().vector

    as_they_come, standardising = Surrogate(KERNEL, standardise=False), Surrogate(KERNEL)
    assert np.allclose(said(raw, standardising), said(scaled, as_they_come), rtol=0, atol=1e-12)
    assert not np.allclose(said(raw, as_they_come), said(raw, standardising))
    assert np.allclose(said(-raw, as_they_come, direction="minimize"), said(raw, as_they_come))
    assert np.allclose(said(-raw, standardising, direction="minimize"), said(raw, standardising))


def test_a_message_is_a_draw_from_the_posterior_over_its_own_history() -> None:
    federation = study(GRID, features=8, regularisation=0.2)
    values, chosen = np.asarray([2.0, -1.0, 0.5, 1.0]), [3, 9, 22, 35]
    said = []
    for seed in range(1500):
        agent = Agent(federation, 0, surrogate=Surrogate(KERNEL, standardise=False), seed=seed)
        for k, value in zip(chosen, values, strict=True):
            agent.tell(GRID.decode(GRID.points()[k]), float(value))
        said.append(agent.message().vector)
    rows = federation.features(GRID.points()[chosen])
    sigma = rows.T @ rows + 0.2 * np.eye(8)
    mean, cov = np.linalg.solve(sigma, rows.T @ values), 0.2 * np.linalg.inv(sigma)
    sample = np.asarray(said)
    error = (sample.mean(axis=0) - mean) / np.sqrt(np.diag(cov) / 1500)
    assert np.abs(error).max() < 4.5
    assert np.abs(np.cov(sample.T) - cov).max() < 0.12


def test_an_agent_that_is_asked_twice_says_the_same() -> None:
    agent = told(Agent(study(), 0, seed=0))
    first = agent.message()
    assert agent.message().to_bytes() == first.to_bytes()
    agent.tell(agent.ask(), 3.0)  # even after it has learnt more
    assert agent.message(0).to_bytes() == first.to_bytes()


def test_an_agent_never_says_two_things_in_one_round() -> None:
    agent = told(Agent(study(), 0, seed=0))
    first = agent.message(0)
    agent.message(1)
    try:
        second = agent.message(0)
    except WrongRound:
        return
    assert second.to_bytes() == first.to_bytes()


def test_in_the_next_round_an_agent_says_something_else() -> None:
    agent = told(Agent(study(), 0, seed=0))
    first = agent.message()
    agent.receive(broadcast(agent.study))
    second = agent.message()
    assert (first.round, second.round) == (0, 1)
    assert not np.allclose(first.vector, second.vector)
    assert (second.agent, second.study) == (0, agent.study.fingerprint)
    assert second.vector.shape == (20,)


def test_an_agent_that_missed_rounds_can_speak_in_a_later_one() -> None:
    agent = told(Agent(study(), 0, seed=0))
    assert agent.message(4).round == 4


def test_the_same_seed_repeats_and_another_does_not() -> None:
    def run(seed: int | None) -> tuple[list[dict[str, Any]], bytes]:
        agent = Agent(study(PLANE), 2, surrogate=Surrogate(KERNEL), seed=seed)
        asked = []
        for _ in range(5):
            asked.append(agent.ask())
            agent.tell(asked[-1], height(asked[-1]))
        return asked, agent.message().to_bytes()

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert run(None) != run(None)


# what it refuses


def refused(
    agent: Agent,
    tmp_path: Path,
    error: type[Exception],
    call: Callable[[], object],
    text: str | None = None,
) -> None:
    """The call raises exactly that error, and the agent is as it was."""
    before = state(agent, tmp_path)
    with pytest.raises(error, match=text) as caught:
        call()
    assert caught.type is error
    assert state(agent, tmp_path) == before


@pytest.mark.parametrize("index", [-1, 4, 1.0, "0", None])
def test_an_index_outside_the_study_is_refused(index: Any) -> None:
    with pytest.raises(UnknownAgent, match="numbered 0 to 3"):
        Agent(study(), index)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float64("nan"),
        "3",
        True,
        np.bool_(True),
        1j,
        [1.0],
        np.asarray([1.0, 2.0]),
        10**400,
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_value_that_is_not_a_finite_number_is_refused(value: Any, tmp_path: Path) -> None:
    agent = Agent(study(), 0, seed=0)
    params = agent.ask()
    refused(agent, tmp_path, InvalidInput, lambda: agent.tell(params, value), "finite number")


@pytest.mark.parametrize("value", [3, np.int64(3), np.float32(3.0), 3.0])
def test_any_real_number_is_a_value(value: Any) -> None:
    agent = Agent(study(), 0, seed=0)
    params = agent.ask()
    agent.tell(params, value)
    assert agent.best == (params, 3.0)


@pytest.mark.parametrize("penalty", [1e200, 1.7e308])
def test_an_enormous_value_is_refused_or_survived(penalty: float) -> None:
    # a very large penalty for a failed trial is common; it must not turn messages into NaN
    agent = told(Agent(study(), 0, surrogate=Surrogate(KERNEL), seed=0), more=1)
    try:
        for sign in (1, -1, -1):
            agent.tell(agent.ask(), sign * penalty)
    except InvalidInput:
        pass
    assert np.all(np.isfinite(agent.message().vector))
    assert GRID.encode(agent.ask()).shape == (1,)


@pytest.mark.parametrize(
    "params",
    [
        {"rate": 2.0, "C": 1.0, "depth": 2, "kernel": "rbf"},
        {"rate": 0.1, "C": 1.0, "depth": 9, "kernel": "rbf"},
        {"rate": 0.1, "C": 1.0, "depth": 2.5, "kernel": "rbf"},
        {"rate": 0.1, "C": 1.0, "depth": 2, "kernel": "sigmoid"},
        {"rate": 0.1, "C": 1.0, "depth": 2},
        {"rate": 0.1, "C": 1.0, "depth": 2, "kernel": "rbf", "more": 1},
        {},
    ],
)
def test_values_outside_the_space_are_refused(params: dict[str, Any], tmp_path: Path) -> None:
    agent = Agent(study(MIXED), 0, seed=0)
    refused(agent, tmp_path, SpaceError, lambda: agent.tell(params, 1.0))
    assert agent.observations == 0


def test_there_is_no_best_before_the_first_value() -> None:
    with pytest.raises(InvalidInput, match="no best before the first value"):
        _ = Agent(study(), 0).best


def test_an_agent_does_not_speak_before_its_initial_trials(tmp_path: Path) -> None:
    agent = Agent(study(), 1, seed=0)
    for _ in range(2):
        agent.tell(agent.ask(), 1.0)
    refused(agent, tmp_path, ProtocolError, agent.message, "after its 3 initial trials.* told of 2")
    agent.tell(agent.ask(), 1.0)
    assert agent.message().round == 0


# failed trials


def test_a_failed_trial_counts_as_a_query_and_not_as_an_observation() -> None:
    agent = Agent(study(), 0, seed=0)
    agent.tell(agent.ask(), None)
    assert (agent.trials, agent.observations) == (1, 0)
    told(agent, more=-1)
    assert (agent.trials, agent.observations) == (3, 2)
    assert not agent.starting
    assert agent.message().round == 0


@pytest.mark.parametrize(("direction", "best"), [("maximize", 2.0), ("minimize", -1.0)])
def test_the_best_is_never_a_failed_trial(direction: Direction, best: float) -> None:
    agent = Agent(study(), 0, direction=direction, seed=0)
    agent.tell(agent.ask(), None)
    with pytest.raises(InvalidInput, match="no best before the first value"):
        _ = agent.best
    for value in (-1.0, None, 2.0, None, 0.0):
        params = agent.ask()
        agent.tell(params, value)
    assert agent.best[1] == best


def test_a_failed_trial_out_of_the_space_is_refused(tmp_path: Path) -> None:
    agent = Agent(study(), 0, seed=0)
    refused(agent, tmp_path, SpaceError, lambda: agent.tell({"x": 2.0}, None))


@pytest.mark.parametrize(
    "surrogate", [Surrogate(KERNEL), Surrogate(), Surrogate(standardise=False)]
)
@pytest.mark.parametrize("space", [PLANE, GRID, MIXED], ids=["plane", "grid", "mixed"])
def test_an_agent_whose_trials_all_failed_draws_from_its_prior(
    space: Space, surrogate: Surrogate
) -> None:
    federation = study(space)
    agent = Agent(federation, 0, surrogate=surrogate, seed=0)
    for number in range(5):
        for _ in range(3 if number == 0 else 1):
            agent.tell(agent.ask(), None)
        vector = agent.message(number).vector
        assert 1 < np.linalg.norm(vector) < 10  # of 20 standard normals
        agent.receive(broadcast(federation, number))
    assert (agent.trials, agent.observations) == (7, 0)


def test_a_failed_trial_changes_nothing_in_what_an_agent_believes() -> None:
    # the same values with and without failures among them, and no draws: the same mean
    def silent(name: str, number: int, recipe: Recipe) -> tuple[Array, ...]:
        return tuple(np.zeros_like(array) for array in recipe(np.random.default_rng(0), 1))

    spoken = []
    for failures in (0, 4):
        agent = Agent(study(), 0, draws=silent)
        for x in np.linspace(0, 1, failures):
            agent.tell(GRID.decode(np.asarray([x])), None)
        for x in (0.0, 0.25, 0.5):
            params = GRID.decode(GRID.snap(np.asarray([x])))
            agent.tell(params, height(params))
        spoken.append(agent.message().vector)
    assert np.linalg.norm(spoken[0]) > 0.1
    np.testing.assert_allclose(spoken[1], spoken[0], atol=1e-12)


def test_an_agent_saved_with_failed_trials_goes_on_as_if_never_stopped(tmp_path: Path) -> None:
    agent = Agent(study(MIXED), 1, seed=3)
    for value in (None, 1.0, None, 0.5, None):
        agent.tell(agent.ask(), value)
    agent.save(tmp_path / "agent.json")
    assert json.loads((tmp_path / "agent.json").read_text())["values"][:2] == [None, 1.0]
    restored = Agent.load(tmp_path / "agent.json", study(MIXED))
    assert (restored.trials, restored.observations) == (5, 2)
    assert goes_on(restored) == goes_on(agent)


# points tried before


@pytest.mark.parametrize("repeats", ["allow", "replace"])
@pytest.mark.parametrize("space", [PLANE, MIXED, GRID], ids=["plane", "mixed", "grid"])
def test_an_agent_tries_a_point_again_only_if_it_may(space: Space, repeats: str) -> None:
    # an objective whose slope towards a corner is far steeper than what the agent doubts
    surrogate = Surrogate(Kernel(3.0, 1.0, 1e-4), standardise=False)
    federation = FederatedStudy(space, small(TS, repeats=repeats), 1, 6)
    agent = Agent(federation, 0, surrogate=surrogate, seed=0)
    seen = []
    for _ in range(12):
        params = agent.ask()
        seen.append(tuple(params.values()))
        agent.tell(params, 1000 * float(np.sum(space.encode(params)[:3])))
    assert (len(set(seen[2:])) == 10) == (repeats == "replace")


def test_every_point_of_a_finite_space_is_tried_before_any_is_tried_again() -> None:
    space = Space([Integer("n", 1, 9)])
    agent = Agent(FederatedStudy(space, small(TS, initial=1, repeats="replace"), 1, 6), 0, seed=0)
    seen = []
    for _ in range(12):
        seen.append(agent.ask()["n"])
        agent.tell({"n": seen[-1]}, float(seen[-1]))
    assert sorted(seen[:9]) == list(range(1, 10))


def test_a_point_that_failed_is_not_tried_again_either() -> None:
    space = Space([Integer("n", 1, 9)])
    agent = Agent(FederatedStudy(space, small(TS, initial=1, repeats="replace"), 1, 6), 0, seed=0)
    for _ in range(9):
        agent.tell(agent.ask(), None)
    assert len({float(point[0]) for point in agent._points()}) == 9


def test_an_agent_that_goes_alone_says_nothing(tmp_path: Path) -> None:
    agent = told(Agent(study(method=TS), 0, seed=0))
    refused(agent, tmp_path, ProtocolError, agent.message, "its agents go alone")


def test_an_agent_does_not_speak_in_a_round_that_is_past(tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    agent.receive(broadcast(agent.study, 2))
    refused(agent, tmp_path, WrongRound, lambda: agent.message(2), "at round 3, asked for 2")
    assert agent.message(3).round == 3


def test_an_agent_does_not_speak_in_a_round_beyond_the_study(tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    refused(agent, tmp_path, WrongRound, lambda: agent.message(6))


def test_the_same_broadcast_twice_does_no_harm(tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    agent.receive(broadcast(agent.study))
    before = state(agent, tmp_path)
    agent.receive(broadcast(agent.study))
    assert state(agent, tmp_path) == before


def test_a_broadcast_of_a_past_round_is_refused(tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    agent.receive(broadcast(agent.study, 3))
    stale = broadcast(agent.study, 1)
    refused(agent, tmp_path, WrongRound, lambda: agent.receive(stale), "at round 4, got 1")


@pytest.mark.parametrize("number", [-1, 6, 100])
def test_a_broadcast_of_a_round_the_study_does_not_have_is_refused(
    number: int, tmp_path: Path
) -> None:
    agent = told(Agent(study(), 0, seed=0))
    heard = broadcast(agent.study, number)
    refused(agent, tmp_path, WrongRound, lambda: agent.receive(heard), "numbered 0 to 5")


@pytest.mark.parametrize("shape", [(1, 20), (2, 19), (20,), (2, 20, 1), (4, 20)])
def test_a_broadcast_of_another_shape_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    heard = broadcast(agent.study, vectors=np.zeros(shape))
    refused(agent, tmp_path, ProtocolError, lambda: agent.receive(heard), r"shape \(2, 20\)")


@pytest.mark.parametrize("entry", [math.nan, math.inf])
def test_a_broadcast_that_is_not_finite_is_refused(entry: float, tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    vectors = np.zeros((2, 20))
    vectors[1, 7] = entry
    heard = broadcast(agent.study, vectors=vectors)
    refused(agent, tmp_path, ProtocolError, lambda: agent.receive(heard), "must be finite")


def test_another_studys_broadcast_is_refused(tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    heard = broadcast(replace(agent.study, feature_seed=1))
    refused(agent, tmp_path, StudyMismatch, lambda: agent.receive(heard), "its study is")


@pytest.mark.parametrize("refit", [0, -1])
def test_a_surrogate_is_refitted_after_at_least_one_value(refit: int) -> None:
    with pytest.raises(InvalidInput, match="refit must be at least 1"):
        Surrogate(refit=refit)


def test_a_fitted_kernel_is_refitted_when_enough_values_have_come() -> None:
    agent = told(Agent(study(PLANE, TS), 0, surrogate=Surrogate(refit=3), seed=0))
    assert agent._batch.own.kernel is None
    kernels: list[Kernel | None] = []
    for _ in range(7):
        params = agent.ask()
        kernels.append(agent._batch.own.kernel)
        agent.tell(params, height(params))
    assert [kernels[k] is kernels[0] for k in range(7)] == [True] * 3 + [False] * 4
    assert [kernels[k] is kernels[3] for k in range(7)] == [False] * 3 + [True] * 3 + [False]


# saving


def goes_on(agent: Agent, rounds: int = 3) -> list[Any]:
    """What an agent does from here, with broadcasts that do not depend on it."""
    did: list[Any] = []
    while agent.starting:
        did.append(agent.ask())
        agent.tell(did[-1], height(did[-1]))
    for number in range(agent.round, agent.round + rounds):
        did.append(agent.message(number).to_bytes())
        agent.receive(broadcast(agent.study, number, seed=number))
        did.append(agent.ask())
        agent.tell(did[-1], height(did[-1]))
    return [*did, agent.best]


@pytest.mark.parametrize(
    "surrogate", [Surrogate(KERNEL), Surrogate(refit=2), Surrogate(standardise=False)]
)
@pytest.mark.parametrize("space", [MIXED, GRID], ids=["mixed", "grid"])
@pytest.mark.parametrize("moment", ["new", "started", "told", "asked", "said", "heard"])
def test_a_saved_agent_goes_on_as_if_never_stopped(
    space: Space, surrogate: Surrogate, moment: str, tmp_path: Path
) -> None:
    federation = study(space, solo=SoloProbability("constant", 0.5))
    agent = Agent(federation, 1, direction="minimize", surrogate=surrogate, seed=8)
    if moment == "started":
        agent.tell(agent.ask(), 0.5)
    elif moment != "new":
        told(agent, more=1)
        if moment == "asked":
            agent.ask()
        if moment in ("said", "heard"):
            agent.message()
        if moment == "heard":
            agent.receive(broadcast(federation))
            agent.tell(agent.ask(), 0.25)
    agent.save(tmp_path / "agent.json")
    restored = Agent.load(tmp_path / "agent.json", federation, surrogate)
    assert state(restored, tmp_path) == (tmp_path / "agent.json").read_text()
    assert goes_on(restored) == goes_on(agent)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])  # noqa: S301
@pytest.mark.parametrize("space", [MIXED, GRID], ids=["mixed", "grid"])
def test_a_copied_or_pickled_agent_goes_on_as_the_first_would(
    space: Space, copied: Callable[[Agent], Agent]
) -> None:
    agent = told(Agent(study(space), 1, seed=8), more=1)
    agent.message()
    other = copied(agent)
    assert goes_on(other) == goes_on(agent)


def test_saving_leaves_one_file_and_replaces_it_whole(tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    agent.save(tmp_path / "agent.json")
    agent.tell(agent.ask(), 1.0)
    agent.save(tmp_path / "agent.json")
    assert [path.name for path in tmp_path.iterdir()] == ["agent.json"]
    assert Agent.load(tmp_path / "agent.json", agent.study).observations == 4


def test_a_file_that_cannot_be_written_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    agent = told(Agent(study(), 0, seed=0))
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for target in ("missing/agent.json", "file/agent.json", "folder"):
        with pytest.raises(StorageError, match="could not be written"):
            agent.save(tmp_path / target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        Agent.load(tmp_path / "agent.json", study())


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    agent = told(Agent(study(), 0, surrogate=Surrogate(KERNEL), seed=0))
    agent.message()
    agent.receive(broadcast(agent.study))
    agent.save(tmp_path / "agent.json")
    return tmp_path / "agent.json"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_half_a_file_is_refused(share: float, saved: Path) -> None:
    text = saved.read_text()
    saved.write_text(text[: int(share * len(text))])
    with pytest.raises(StorageError, match="is not a saved agent"):
        Agent.load(saved, study())


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[]", b"null", b"{}", b"3"])
def test_a_file_that_is_something_else_is_refused(content: bytes, saved: Path) -> None:
    saved.write_bytes(content)
    with pytest.raises(StorageError):
        Agent.load(saved, study())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", 1),
        ("schema", None),
        ("points", [[0.1], [0.2]]),  # fewer than values
        ("points", [[0.1, 0.5]] * 3),  # of another dimension
        ("points", [["a"]] * 3),
        ("points", 5),
        ("values", [1.0, 2.0]),
        ("values", [1.0, 2.0, math.nan]),
        ("values", [1.0, "x", 2.0]),
        ("initial", [[0.5], [0.5]]),  # fewer than there are
        ("initial", [[0.5], [0.5], [1.5]]),
        ("initial", [[0.5], [0.5], [math.nan]]),
        ("initial", [0.5, 0.5, 0.5]),
        ("initial", "x"),
        ("random", {}),
        ("random", None),
        ("own", [[1.0], 3]),
        ("own", [["a", "b", "c", "d"], 3]),
        ("own", [None, None]),
        ("own", [None]),
        ("joint", None),
        ("said", "zz"),
        ("said", "00ff"),
        ("said", 5),
        ("broadcast", "00ff"),
        ("index", 99),
        ("index", "0"),
        ("direction", "up"),
    ],
)
def test_a_damaged_entry_is_refused(key: str, value: Any, saved: Path) -> None:
    content = json.loads(saved.read_text())
    assert key in content
    saved.write_text(json.dumps({**content, key: value}))
    with pytest.raises(StorageError):
        Agent.load(saved, study())


@pytest.mark.parametrize("key", ["said", "broadcast"])
def test_a_remembered_message_of_another_study_is_refused(key: str, saved: Path) -> None:
    content = json.loads(saved.read_text())
    other = told(Agent(replace(study(), feature_seed=3), 0, seed=0))
    bytes_of = {"said": other.message().to_bytes(), "broadcast": broadcast(other.study).to_bytes()}
    saved.write_text(json.dumps({**content, key: bytes_of[key].hex()}))
    with pytest.raises((StorageError, StudyMismatch)):
        Agent.load(saved, study())


@pytest.mark.parametrize(
    "other",
    [
        study(agents=5),
        replace(study(), feature_seed=1),
        study(method=DP_FTS_DE),
        study(PLANE),
    ],
)
def test_another_studys_agent_is_refused(other: FederatedStudy, saved: Path) -> None:
    with pytest.raises(StudyMismatch, match="belongs to another study"):
        Agent.load(saved, other)


def test_another_broadcast_for_the_same_round_is_refused_as_a_second_release() -> None:
    federation = study(GRID)
    agent = told(Agent(federation, 0, seed=0))
    agent.receive(broadcast(federation, seed=1))
    with pytest.raises(ProtocolError, match="with other content"):
        agent.receive(broadcast(federation, seed=2))
    assert agent.round == 1


def test_an_agent_saved_with_another_surrogate_is_refused(tmp_path: Path) -> None:
    federation = study(GRID)
    told(Agent(federation, 0, surrogate=Surrogate(KERNEL), seed=0)).save(tmp_path / "agent.json")
    with pytest.raises(StorageError, match="another surrogate"):
        Agent.load(tmp_path / "agent.json", federation)
    assert Agent.load(tmp_path / "agent.json", federation, Surrogate(KERNEL)).observations > 0


def test_a_saved_agent_is_for_its_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Agent(study(), 1).save(tmp_path / "agent.json")
    finally:
        os.umask(before)
    assert (tmp_path / "agent.json").stat().st_mode & 0o077 == 0
