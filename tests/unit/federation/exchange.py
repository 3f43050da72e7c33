"""A round as its parties live through it."""

from __future__ import annotations

from collections.abc import Sequence

from sottovoce.federation.agent import Agent
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.server import Server


def exchanged(
    server: Server, agents: Sequence[Agent], number: int, deaf: Sequence[int] = ()
) -> Broadcast:
    """All agents say their vectors for the round, and all but the deaf hear its broadcast."""
    assert server.open_round() == number
    for agent in agents:
        server.submit(agent.message(number))
    heard = server.close_round()
    for agent in agents:
        if agent.index not in deaf:
            agent.receive(heard)
    return heard
