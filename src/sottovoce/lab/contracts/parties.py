"""A simulated run as N separate agents and a server live through it, given the same draws.

Each agent's draws are its slice of the simulator's streams; the server gets the simulator's seed.
Everything else is the real thing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.federation.agent import Agent
from sottovoce.federation.messages import Broadcast, Message
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.privacy.events import Event
from sottovoce.simulation import Draws, draws_of_agent
from sottovoce.simulation.problem import Objectives, Problem


@dataclass
class Parties:
    """The agents of a study, each by itself, and what they do and send."""

    study: FederatedStudy
    draws: Draws
    objectives: Objectives
    agents: list[Agent]
    points: FloatArray  # (N, N_init + T, D)
    vectors: dict[int, FloatArray] = field(default_factory=dict)  # sent, by round
    broadcasts: dict[int, FloatArray] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def try_next(self, count: int) -> None:
        """Each agent asks for its next trials and is told of them, one after the other."""
        known = self.agents[0].trials
        stream = self.draws.stream("observation", known)
        noise = stream.standard_normal((self.study.agents, count))
        for k in range(count):
            for n, agent in enumerate(self.agents):
                params = agent.ask()
                self.points[n, known + k] = self.study.space.encode(params)
                truth = self.objectives.values(self.points[:, known + k : known + k + 1])[n, 0]
                seen = truth + self.objectives.noise * noise[n, k]
                agent.tell(params, None if np.isnan(truth) else seen)

    def exchange(self, server: Server, number: int) -> None:
        """A round: vectors up, and one broadcast down."""
        server.open_round()
        sent = [Message.from_bytes(a.message(number).to_bytes()) for a in self.agents]
        for message in sent:
            if np.any(message.vector):  # of an agent that has nothing to say, silence
                server.submit(message)
        heard = Broadcast.from_bytes(server.close_round().to_bytes())
        self.vectors[number] = np.stack([message.vector for message in sent])
        self.broadcasts[number] = heard.vectors
        for agent in self.agents:
            agent.receive(heard)


def parties_of(study: FederatedStudy, problem: Problem, draws: Draws) -> Parties:
    """The parties before anybody has tried anything."""
    study = replace(study, feature_seed=study.feature_seed + draws.run)
    surrogate, everyone = problem.setting.surrogate, range(study.agents)
    sources = [draws_of_agent(draws, study.agents, n) for n in everyone]
    agents = [Agent(study, n, surrogate=surrogate, draws=sources[n]) for n in everyone]
    points = np.zeros((study.agents, study.method.initial + study.rounds, study.space.dims))
    objectives = problem.draw(study.agents, draws.stream("objectives"))
    return Parties(study, draws, objectives, agents, points)


def separately(study: FederatedStudy, problem: Problem, draws: Draws) -> Parties:
    """The whole run, by asks, tells, messages and broadcasts."""
    parties = parties_of(study, problem, draws)
    alone = not study.method.shared.exchanges
    server = None if alone else Server.simulation(parties.study, draws.seed_for("server"))
    parties.try_next(study.method.initial)
    for t in range(1, study.rounds + 1):
        if server is not None and server.next_round() == t - 1:
            parties.exchange(server, t - 1)
        parties.try_next(1)
    parties.events = [] if server is None else server.events
    return parties
