"""One mathematics: a simulated run is N separate agents and a server, given the same draws.

The agents and the server are `sottovoce.lab.contracts.parties`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.given import GivenProblem, pitted, slope, waves

from sottovoce.federation.aggregate import aggregate
from sottovoce.federation.methods import METHODS, Method
from sottovoce.federation.schedule import Exploration, ReleaseSchedule, SoloProbability
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.lab.contracts.parties import separately
from sottovoce.lab.problems import Problem
from sottovoce.lab.problems.synthetic import Synthetic
from sottovoce.simulation import Draws, Outcome, simulate
from sottovoce.simulation import engine as simulator
from sottovoce.space import Category, Float, Integer, Space

AGENTS, ROUNDS, INITIAL = 6, 5, 4
DRAWS = Draws(seed=11, run=2)


def close(one: NDArray[np.float64], two: NDArray[np.float64], within: float = 1e-9) -> bool:
    return bool(np.allclose(one, two, rtol=0.0, atol=within))


def at_once(
    study: FederatedStudy, problem: Problem, draws: Draws, monkeypatch: pytest.MonkeyPatch
) -> tuple[Outcome, dict[int, NDArray[np.float64]]]:
    """The simulator's run, and the vectors that its agents sent."""
    vectors: dict[int, NDArray[np.float64]] = {}
    real = aggregate

    def listening(study: FederatedStudy, number: int, sent: Any, source: Any, **more: Any) -> Any:
        vectors[number] = np.array(sent)
        return real(study, number, sent, source, **more)

    monkeypatch.setattr(simulator, "aggregate", listening)
    return simulate(study, problem, draws), vectors


def agree(
    method: Method,
    problem: Problem,
    monkeypatch: pytest.MonkeyPatch,
    rounds: int = ROUNDS,
    within: float = 1e-9,
) -> Outcome:
    study = FederatedStudy(problem.setting.space, method, AGENTS, rounds)
    outcome, vectors = at_once(study, problem, DRAWS, monkeypatch)
    played = separately(study, problem, DRAWS)
    assert close(outcome.points[:, :INITIAL], played.points[:, :INITIAL])
    assert vectors.keys() == played.vectors.keys() == outcome.broadcasts.keys()
    for number, sent in played.vectors.items():
        known = INITIAL + number + 1
        assert close(vectors[number], sent, within), f"vectors of round {number}"
        released = outcome.broadcasts[number]  # a broadcast may have earlier ones before it
        assert close(released, played.broadcasts[number][-len(released) :], within)
        assert close(outcome.points[:, :known], played.points[:, :known], within)
    assert close(outcome.points, played.points, within)
    assert outcome.events == played.events
    return outcome


def small(name: str, **changes: Any) -> Method:
    if METHODS[name].basis == "effects":  # whose number follows from the space
        changes.pop("features", None)
    return replace(METHODS[name], **{"initial": INITIAL, **changes})


@pytest.mark.parametrize(
    "name",
    [
        *("ts", "fts", "fts-server", "fts-de", "dp-fts", "dp-fts-de", "control"),
        *("gp", "pooled-ts", "pooled-ts-control", "sottovoce", "sottovoce-control"),
    ],
)
def test_agents_and_a_server_do_what_the_simulator_does_on_the_synthetic_problem(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(small(name), Synthetic(), monkeypatch)


def test_they_agree_when_rounds_are_left_out_and_speaking_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agree(
        small("fts-de", releases=ReleaseSchedule(every=2, last=3)),
        Synthetic(),
        monkeypatch,
        rounds=7,
    )


PLANE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
MIXED = Space([Float("x", 0.0, 1.0), Integer("n", 1, 4), Category("c", ("a", "b"))])
LIST = Space([Float("x", 0.0, 1.0, steps=15), Integer("n", 1, 4)])
FIXED = Surrogate(Kernel(0.3, 1.0, 0.01))
RAW = Surrogate(Kernel(3.0, 1.0, 1e-4), standardise=False)


@pytest.mark.parametrize(
    "name", ["ts", "gp", "fts-de", "dp-fts-de", "control", "pooled-ts", "sottovoce"]
)
@pytest.mark.parametrize("space", [PLANE, MIXED], ids=["plane", "mixed"])
def test_agents_and_a_server_do_what_the_simulator_does_on_a_continuous_problem(
    space: Space, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    regions = 2 if METHODS[name].regions > 1 else 1
    method = small(name, features=24, lengthscale=0.3, regions=regions)
    agree(method, GivenProblem(space, FIXED, waves), monkeypatch)


@pytest.mark.parametrize("name", ["ts", "gp", "fts-de", "pooled-ts", "sottovoce"])
@pytest.mark.parametrize("space", [PLANE, LIST], ids=["plane", "list"])
def test_they_agree_when_each_agent_fits_a_kernel_of_its_own(
    space: Space, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = small(name, features=24, lengthscale=0.3)
    agree(method, GivenProblem(space, Surrogate(refit=2), waves), monkeypatch)


@pytest.mark.parametrize("name", ["ts", "pooled-ts"])
@pytest.mark.parametrize("surrogate", [FIXED, Surrogate(refit=2)], ids=["fixed", "fitted"])
@pytest.mark.parametrize("space", [PLANE, LIST], ids=["plane", "list"])
def test_they_agree_when_they_explore_more_widely(
    space: Space, surrogate: Surrogate, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # p_t = 0, so that agents that learn search jointly with the shared function, or follow it
    method = small(name, features=24, lengthscale=0.3, solo=SoloProbability("constant", 0.0))
    wide = replace(method, exploration=Exploration("theorem", norm=9.0))
    # a function that is nine times as wild is summed up with more rounding, which differs between
    # one agent and a batch, and from processor to processor: tops move by 2e-8, messages by 3e-7
    within = 1e-5 if name == "pooled-ts" else 1e-9
    far = agree(wide, GivenProblem(space, surrogate, waves), monkeypatch, within=within)
    near = agree(method, GivenProblem(space, surrogate, waves), monkeypatch, within=within)
    assert not np.allclose(far.points, near.points)


@pytest.mark.parametrize("name", ["ts", "gp", "fts", "dp-fts-de", "pooled-ts", "sottovoce"])
@pytest.mark.parametrize(
    "surrogate", [FIXED, Surrogate(refit=2), RAW], ids=["fixed", "fitted", "raw"]
)
@pytest.mark.parametrize("space", [PLANE, MIXED, LIST], ids=["plane", "mixed", "list"])
def test_they_agree_when_trials_fail(
    space: Space, surrogate: Surrogate, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = small(name, features=24, lengthscale=0.3)
    # this raw surrogate is so far off that draws are sums of numbers a thousand times their size:
    # their rounding, which differs between one agent and a batch, moves the top by about 1e-7
    within = 1e-5 if surrogate is RAW and name == "pooled-ts" else 1e-9
    problem = GivenProblem(space, surrogate, pitted(waves))
    outcome = agree(method, problem, monkeypatch, within=within)
    failed = np.isnan(outcome.observed)
    assert np.all(failed[1])
    assert 0 < failed[2:].sum() < failed[2:].size


@pytest.mark.parametrize("name", ["ts", "fts", "dp-fts-de", "pooled-ts"])
@pytest.mark.parametrize("space", [PLANE, MIXED, LIST], ids=["plane", "mixed", "list"])
def test_they_agree_when_points_tried_before_are_replaced(
    space: Space, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = GivenProblem(space, RAW, slope, noise=0.0)
    method = small(name, features=24, lengthscale=0.3)
    again = agree(method, problem, monkeypatch, rounds=9)
    never = agree(replace(method, repeats="replace"), problem, monkeypatch, rounds=9)
    counts = [
        [len(np.unique(own[INITIAL:], axis=0)) for own in run.points] for run in (again, never)
    ]
    assert min(counts[0]) < 9
    assert counts[1] == [9] * AGENTS
