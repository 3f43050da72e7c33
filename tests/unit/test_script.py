from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput, UnknownAgent
from sottovoce.federation.agent import Agent
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.methods import FTS_DE, SOTTOVOCE, TS
from sottovoce.federation.schedule import ReleaseSchedule, SoloProbability
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.problems import Setting, problem_named
from sottovoce.simulation import Draws, simulate
from sottovoce.simulation.streams import draws_of_agent
from sottovoce.space import Float, Space

STUDY = FederatedStudy(Space([Float("x", 0, 1), Float("y", 0, 1)]), FTS_DE, agents=3, rounds=4)
BELIEF = Surrogate()


@dataclass(frozen=True)
class Slope:
    """The same bent slope for all."""

    space: Space
    name: str = "slope"
    noise: float = 0.1

    @property
    def setting(self) -> Setting:
        return Setting(self.space, BELIEF)

    @property
    def optimum(self) -> NDArray[np.float64]:
        return np.ones(8)

    def draw(self, agents: int, random: np.random.Generator) -> Slope:
        return self

    def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.sin(3 * points[..., 0]))


def test_a_trial_has_its_draws_whatever_was_drawn_before() -> None:
    in_order, alone = (draws_of_agent(Draws(7, 0), STUDY, 1, BELIEF) for _ in range(2))
    for number in range(12):
        in_order.begin_trial(number)
        first = in_order.random((1, 1, 1, 2) if number < 10 else None)
    alone.begin_trial(11)
    assert alone.random() == first
    alone.begin_trial(4)
    whole = Draws(7, 0).stream("start").random((3, 10, 1, 2))
    assert np.array_equal(alone.random((1, 1, 1, 2)), whole[1, 4][None, None])


def test_a_message_has_its_draws_whatever_was_drawn_before() -> None:
    draws = draws_of_agent(Draws(7, 0), STUDY, 2, BELIEF)
    draws.begin_message(3)
    first = draws.standard_normal((1, 5))
    draws.begin_trial(0)
    draws.begin_message(3)
    assert np.array_equal(draws.standard_normal((1, 5)), first)
    draws.begin_message(2)
    assert not np.array_equal(draws.standard_normal((1, 5)), first)


@pytest.mark.parametrize("n", [0, 3, 4])
def test_agents_of_later_chunks_take_the_streams_of_their_chunk(n: int) -> None:
    problem = problem_named("gp:dims=2")
    method = replace(TS, initial=2)
    study = FederatedStudy(problem.setting.space, method, agents=5, rounds=1)
    draws = Draws(3, 0, chunk=2)
    outcome = simulate(study, problem, draws)
    script = draws_of_agent(draws, study, n, problem.setting.surrogate)
    agent = Agent(study, n, surrogate=problem.setting.surrogate, random=script)
    for number in range(3):
        script.begin_trial(number)
        params = agent.ask()
        assert np.allclose(study.space.encode(params), outcome.points[n, number], atol=1e-9)
        agent.tell(params, outcome.observed[n, number])


@pytest.mark.parametrize("steps", [None, 9], ids=["cube", "list"])
def test_no_number_of_trials_makes_one_draw_look_like_another(steps: int | None) -> None:
    # with 2 trials noise is as long as the normals of `beside`, with 6 as those of a broadcast
    space = Space([Float("x", 0, 1, steps=steps)])
    problem = Slope(space)
    own, once = SoloProbability("constant", 0.3), ReleaseSchedule(last=0)
    method = replace(SOTTOVOCE, initial=1, features=6, solo=own, releases=once)
    study = FederatedStudy(space, method, agents=8, rounds=7)
    outcome = simulate(study, problem, Draws(1, 0))
    heard = Broadcast(study.fingerprint, 0, outcome.broadcasts[0], "")
    for n in range(study.agents):
        script = draws_of_agent(Draws(1, 0), study, n, BELIEF)
        agent = Agent(study, n, random=script)
        for number in range(8):
            script.begin_trial(number)
            params = agent.ask()
            assert np.allclose(space.encode(params), outcome.points[n, number], atol=1e-6)
            agent.tell(params, outcome.observed[n, number])
            agent.receive(heard)


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownAgent, match="agents are numbered 0 to 2, got 3"):
        draws_of_agent(Draws(7, 0), STUDY, 3, BELIEF)
    with pytest.raises(InvalidInput, match="must be at least 0, got number=-1"):
        draws_of_agent(Draws(7, 0), STUDY, 0, BELIEF).begin_trial(-1)


def test_an_agent_takes_one_generator_and_saves_only_its_own(tmp_path: Path) -> None:
    draws = draws_of_agent(Draws(7, 0), STUDY, 0, BELIEF)
    with pytest.raises(InvalidInput, match="give a seed or a generator, not both"):
        Agent(STUDY, 0, seed=1, random=draws)
    with pytest.raises(InvalidInput, match="only an agent with a generator of NumPy's"):
        Agent(STUDY, 0, random=draws).save(tmp_path / "agent.json")
    assert not list(tmp_path.iterdir())
