"""The draws of one agent of a simulated run, for a party that lives by itself.

An `Agent` given an `AgentDraws` as its generator does what the simulator does with that agent.
Each trial and each message is addressed by its number, so a process may come and go in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.acquisition.moves import starting_tries
from sottovoce.errors import UnknownAgent, check
from sottovoce.federation.study import Study
from sottovoce.federation.surrogate import Belief
from sottovoce.simulation.streams import Draws

QUERY = ("belief", "prior", "shared", "coin", "repeat", "common", "beside")


class AgentDraws:
    """Agent n's slice of the simulator's streams, in the order in which an agent asks for it."""

    def __init__(self, draws: Draws, study: Study, n: int, belief: Belief) -> None:
        if not 0 <= n < study.agents:
            raise UnknownAgent(f"agents are numbered 0 to {study.agents - 1}, got {n}")
        self._draws, self._study = draws, study
        self._chunk, self._n = divmod(n, draws.chunk)
        self._count = min(draws.chunk, study.agents - self._chunk * draws.chunk)
        # where each agent has a kernel of its own, it has a rank of its own as well
        ranked = study.space.finite and belief.kernel is None
        self._points = len(study.space.points()) if ranked else 0
        self._streams: dict[str, np.random.Generator] = {}
        self._initial: NDArray[np.float64] | None = None
        self._normals, self._follows = 0, False

    def begin_trial(self, number: int) -> None:
        """Its next draws are those of this trial, 0 for the first of all."""
        method, space = self._study.method, self._study.space
        check(number >= 0, "a trial's number must be at least 0", number=number)
        self._streams, self._initial, self._normals, self._follows = {}, None, 0, False
        if number < method.initial:
            shape = (self._count, method.initial, starting_tries(space), space.dims)
            self._initial = self._stream("start", 0).random(shape)[self._n, number]
            return
        query = number - method.initial + 1
        self._streams = {name: self._stream(name, query) for name in QUERY}

    def begin_message(self, round_number: int) -> None:
        """Its next draws are those of its vector for this round."""
        self._streams = {"message": self._stream("message", round_number)}
        self._initial = None

    def standard_normal(self, size: tuple[int, ...]) -> NDArray[np.float64]:
        """What the simulator deals the agent, whose arrays have a first axis of one."""
        self._normals += 1
        self._follows = len(size) == 3 and size[1] == 1  # a path's parts have many rows
        name = self._kind()
        count = self._points if name == "prior" and self._points else size[1]
        whole = self._streams[name].standard_normal((self._count, count, *size[2:]))
        return self._mine(whole)[:, : size[1]]

    def _kind(self) -> str:
        """Which stream its normals come from, by how many it has asked for in this trial.

        A draw of its own belief: noise, and a prior, listed at the points or as a path's two
        parts. Beside what is common, two more. To follow what is common, a draw of that.
        """
        if "message" in self._streams:
            return "message"
        if self._follows:
            return "common"
        if self._study.space.finite:
            return ("belief", "prior", "beside")[self._normals - 1]
        return "beside" if self._normals == 4 else "belief"

    def random(self, size: tuple[int, ...] | None = None) -> Any:
        """An initial point, a coin, candidates, or a point in place of a repeated one."""
        if self._initial is not None:
            return self._initial[None, None]
        if size is None:
            return self._streams["coin"].random(self._count)[self._n]
        name = "belief" if self._normals and not self._follows else "shared"
        if len(size) == 2:  # one point, or one number for each point of a list
            name = "repeat"
        return self._mine(self._streams[name].random((self._count, *size[1:])))

    def integers(self, high: int) -> int:
        """Which of its peers it listens to."""
        return int(self._streams["shared"].integers(high, size=self._count)[self._n])

    def _stream(self, name: str, number: int) -> np.random.Generator:
        return self._draws.stream(name, number, self._chunk)

    def _mine(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values[self._n : self._n + 1]
