"""Problems from a given function, on any space and with any surrogate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.federation.surrogate import Surrogate
from sottovoce.simulation.problem import Setting
from sottovoce.space import Space

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]  # (N, s, D) -> (N, s); row n is agent n's


@dataclass(frozen=True)
class Given:
    """The objectives of N agents."""

    agents: int
    values: Function
    noise: float
    best: float

    @property
    def optimum(self) -> Floats:
        return np.full(self.agents, self.best)


@dataclass(frozen=True)
class GivenProblem:
    """The same function whatever the seed."""

    space: Space
    surrogate: Surrogate
    function: Function
    noise: float = 0.05
    best: float = np.inf
    name: str = "given"

    @property
    def setting(self) -> Setting:
        return Setting(self.space, self.surrogate)

    def draw(self, agents: int, random: np.random.Generator) -> Given:
        return Given(agents, self.function, self.noise, self.best)


def waves(points: Floats) -> Floats:
    """Smooth, and a little further for each agent."""
    phase = 0.1 * np.arange(len(points))[:, None]
    return np.asarray(np.sin(5 * points.sum(axis=-1) + phase) - (points[..., 0] - 0.4) ** 2)


def slope(points: Floats) -> Floats:
    """A rise towards a corner, far steeper than what agents' surrogates doubt."""
    return np.asarray(1000 * points[..., :3].sum(axis=-1))


def pitted(function: Function, mark: float = np.nan) -> Function:
    """The same with pits, in which trials give the mark of failure; agent 1's always do."""

    def values(points: Floats) -> Floats:
        pit = np.floor(7 * points.sum(axis=-1)) % 3 == 1
        pit[1:2] = True
        return np.where(pit, mark, function(points))

    return values
