from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.given import GivenProblem

from sottovoce.arrays import Array
from sottovoce.errors import InvalidInput, UnknownAgent
from sottovoce.federation.agent import Agent
from sottovoce.federation.draws import COIN, MESSAGE, START
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.methods import FTS_DE, POOLED_TS, SOTTOVOCE, TS, Method
from sottovoce.federation.schedule import ReleaseSchedule, SoloProbability
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.problems import problem_named
from sottovoce.simulation import Draws, draws_of_agent, simulate
from sottovoce.simulation.streams import Dealer
from sottovoce.space import Float, Space

STUDY = FederatedStudy(Space([Float("x", 0, 1), Float("y", 0, 1)]), FTS_DE, agents=3, rounds=4)


def five(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    return (random.standard_normal((n, 5)),)


@pytest.mark.parametrize("name", [START, COIN, MESSAGE])
@pytest.mark.parametrize("agent", [0, 2])
def test_an_agents_draws_are_its_rows_of_the_stream_of_that_name(name: str, agent: int) -> None:
    (found,) = draws_of_agent(Draws(7, 1), 3, agent)(name, 4, five)
    whole = Draws(7, 1).stream(name, 4).standard_normal((3, 5))
    np.testing.assert_array_equal(found, whole[agent : agent + 1])


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_batches_of_any_size_are_dealt_their_rows_of_the_chunks(chunk: int) -> None:
    draws = Draws(3, 0, chunk=chunk)
    (whole,) = Dealer(draws, 7).to(slice(0, 7))(COIN, 1, five)
    parts = [
        draws.stream(COIN, 1, k).standard_normal((min(chunk, 7 - begin), 5))
        for k, begin in enumerate(range(0, 7, chunk))
    ]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    dealer = Dealer(draws, 7)
    for who in (slice(5, 7), slice(0, 4), slice(2, 6), slice(6, 7)):
        np.testing.assert_array_equal(dealer.to(who)(COIN, 1, five)[0], whole[who])


@pytest.mark.parametrize("n", [0, 3, 4])
def test_agents_of_later_chunks_take_the_streams_of_their_chunk(n: int) -> None:
    problem = problem_named("gp:dims=2")
    method = replace(TS, initial=2)
    study = FederatedStudy(problem.setting.space, method, agents=5, rounds=1)
    draws = Draws(3, 0, chunk=2)
    outcome = simulate(study, problem, draws)
    source = draws_of_agent(draws, study.agents, n)
    agent = Agent(study, n, surrogate=problem.setting.surrogate, draws=source)
    for number in range(3):
        params = agent.ask()
        assert np.allclose(study.space.encode(params), outcome.points[n, number], atol=1e-9)
        agent.tell(params, outcome.observed[n, number])


ONCE = ReleaseSchedule(last=0)
POOLING = replace(
    POOLED_TS, initial=1, features=6, solo=SoloProbability("constant", 0.3), releases=ONCE
)


@pytest.mark.parametrize(
    "method",
    [POOLING, replace(SOTTOVOCE, initial=3, releases=ONCE)],
    ids=["pooled-ts", "sottovoce"],
)
@pytest.mark.parametrize("steps", [None, 9], ids=["box", "list"])
def test_agents_that_come_and_go_do_what_the_simulated_ones_do(
    steps: int | None, method: Method
) -> None:
    # with 2 trials noise is as long as the normals of the joint draw, with 6 as a broadcast's
    space = Space([Float("x", 0, 1, steps=steps)])
    problem = GivenProblem(space, Surrogate(), lambda x: np.sin(3 * x[..., 0]), noise=0.1)
    study = FederatedStudy(space, method, agents=8, rounds=7)
    outcome = simulate(study, problem, Draws(1, 0))
    heard = Broadcast(study.fingerprint, 0, outcome.broadcasts[0], "")
    for n in range(study.agents):
        told: list[tuple[dict[str, float], float]] = []
        for number in range(outcome.points.shape[1]):
            agent = Agent(study, n, draws=draws_of_agent(Draws(1, 0), study.agents, n))
            for params, value in told:
                agent.tell(params, value)
            if number >= method.initial:
                agent.receive(heard)
            params = agent.ask()
            assert np.allclose(space.encode(params), outcome.points[n, number], atol=1e-6)
            told.append((params, float(outcome.observed[n, number])))


@pytest.mark.parametrize("n", [-1, 3])
def test_an_agent_that_does_not_exist_is_refused(n: int) -> None:
    with pytest.raises(UnknownAgent, match=f"agents are numbered 0 to 2, got {n}"):
        draws_of_agent(Draws(7, 0), 3, n)


def test_an_agent_takes_one_source_of_draws_and_saves_only_its_own(tmp_path: Path) -> None:
    draws = draws_of_agent(Draws(7, 0), STUDY.agents, 0)
    with pytest.raises(InvalidInput, match="give a seed or draws, not both"):
        Agent(STUDY, 0, seed=1, draws=draws)
    with pytest.raises(InvalidInput, match="only an agent with a generator of its own"):
        Agent(STUDY, 0, draws=draws).save(tmp_path / "agent.json")
    assert not list(tmp_path.iterdir())


def test_runs_that_start_anew_on_one_function_share_its_objectives_and_nothing_else() -> None:
    runs = [Draws(3, run, starts=2) for run in range(4)]
    functions = [draws.stream("objectives").random() for draws in runs]
    assert functions[0] == functions[1]
    assert functions[2] == functions[3]
    assert functions[0] != functions[2]
    assert functions[2] == Draws(3, 1).stream("objectives").random()
    others = [draws.stream("initial").random() for draws in runs]
    assert len(set(others)) == 4
    assert others == [Draws(3, run).stream("initial").random() for run in range(4)]
    with pytest.raises(InvalidInput, match="starts must be at least 1"):
        Draws(3, 0, starts=0)
