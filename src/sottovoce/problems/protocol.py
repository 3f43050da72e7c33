"""What a problem must offer to be run: a space, and objectives for many agents at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import Array
from sottovoce.belief import Belief
from sottovoce.space import Space


class Objectives(Protocol):
    """The objectives of N agents, to be maximised."""

    @property
    def noise(self) -> float:
        """Standard deviation of what an observation adds to the truth."""

    @property
    def optimum(self) -> NDArray[np.float64]:
        """The largest value each agent can reach, (N,)."""

    def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The truth at s points of the cube for each agent: (N, s, D) -> (N, s)."""


@runtime_checkable
class Listing(Protocol):
    """Objectives on a finite space that can also be asked by the rows of its list of points."""

    def at(self, index: Array) -> Array:
        """The truth at s rows for each agent: (N, s) -> (N, s)."""


@dataclass(frozen=True)
class Setting:
    """What a problem fixes for its agents."""

    space: Space
    belief: Belief


class Problem(Protocol):
    """A family of objectives to draw from."""

    @property
    def name(self) -> str:
        """What the command line calls it."""

    @property
    def setting(self) -> Setting:
        """The space and how agents model it."""

    def draw(self, agents: int, random: np.random.Generator) -> Objectives:
        """Objectives for that many agents."""


@runtime_checkable
class DrawnOnDevice(Protocol):
    """A problem whose objectives, a `Listing`, can be drawn and kept on a device."""

    def draw_on_device(self, agents: int, random: np.random.Generator, stream: Any) -> Objectives:
        """Objectives for that many agents; what is drawn for each comes from the stream.

        The stream has NumPy's `standard_normal`, `random` and `integers`, and gives arrays that
        live on the device.
        """
