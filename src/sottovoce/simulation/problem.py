"""What a problem must offer to be run: a space, and objectives for many agents at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import Array
from sottovoce.federation.surrogate import Surrogate
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
        """The truth at s points of the cube for each agent: (N, s, D) -> (N, s).

        NaN where a trial failed: whoever asked has then learnt nothing there.
        """


@dataclass(frozen=True)
class FunctionObjectives:
    """Objectives from a function, and what is the largest that each agent can reach of it."""

    values: Callable[[NDArray[np.float64]], NDArray[np.float64]]  # (N, s, D) -> (N, s)
    optimum: NDArray[np.float64]  # (N,)
    noise: float = 0.0


@runtime_checkable
class Listing(Protocol):
    """Objectives on a finite space that can also be asked by the rows of its list of points."""

    def at(self, index: Array) -> Array:
        """The truth at s rows for each agent: (N, s) -> (N, s)."""


@dataclass(frozen=True)
class Setting:
    """What a problem fixes for its agents.

    Args:
        space: what is searched.
        surrogate: how agents model their objectives.
        agents: how many there are, or None: as many as are asked for.
        measure: what `optimum` minus the best value so far is called.
        real_world: whether the paper's settings for its real data apply
            (`methods.for_real_world`), or those for its synthetic problem.

    Example:
        >>> Setting(Space([Float("x", 0.0, 1.0)]), Surrogate(), agents=29).measure
        'simple regret'
    """

    space: Space
    surrogate: Surrogate
    agents: int | None = None
    measure: str = "simple regret"
    real_world: bool = False


class Problem(Protocol):
    """A family of objectives to draw from: whatever has these members.

    What `draw` gives has `noise`, `optimum` (N,), and `values` of points (N, s, D) -> (N, s).

    Example:
        >>> class Bowl:  # the same for all agents
        ...     name, noise, optimum = "bowl", 0.01, np.zeros(4)
        ...     setting = Setting(Space([Float("x", 0.0, 1.0)]), Surrogate())
        ...     draw = lambda self, agents, random: self
        ...     values = lambda self, points: -((points[..., 0] - 0.3) ** 2)
        >>> study = FederatedStudy(Bowl.setting.space, TS, agents=4, rounds=3)
        >>> simulate(study, Bowl(), Draws(seed=0, run=0)).truth.shape
        (4, 13)
    """

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
