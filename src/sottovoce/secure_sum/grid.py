"""From a vector to whole numbers with their share of the noise, and from the sum back.

Everything that the guarantee rests on happens in whole numbers: a site's contribution has a norm of
at most L = 2^bits steps, checked as such; its noise is a discrete Gaussian of scale zL/√(N − k)
steps. So the noise of any N − k sites together covers L as one Gaussian with multiplier z would.

Symbols: N sites, k that may be absent, careless or in league; d = P·M numbers of a contribution;
z noise multiplier; Δ sensitivity of the sum, so that a step is Δ/L; U speakers of a round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import check
from sottovoce.privacy.events import SharedGaussian
from sottovoce.privacy.noise import ShareSource
from sottovoce.privacy.release import Mechanism, clipped, sensitivity

FINEST = 40  # bits: a step of Δ·2⁻⁴⁰ is far below what anybody could use
ROOM = 1 << 59  # a plausible sum is at most this long, and a residue's sign is told up to 2⁶⁰
TAIL = 8.0  # the norm of d Gaussians is above √d + 8 with probability below e⁻³²


@dataclass(frozen=True)
class Grid:
    """The whole numbers of one study's sums; all public."""

    agents: int  # N
    unreliable: int  # k
    noise: float  # z
    numbers: int  # d
    bits: int

    def __post_init__(self) -> None:
        rule = "bits must leave room for a sum, and for noise that is finer than itself"
        event = self.event("planned")  # N, k, z and the noise of one share are sane
        check(longest(self, self.agents) <= ROOM and event.bits <= FINEST, rule, bits=self.bits)

    @property
    def limit(self) -> int:
        """L: the norm of a contribution, in steps."""
        return 1 << self.bits

    @property
    def share(self) -> float:
        """The scale of one site's noise, in steps; rounded up."""
        return self.noise * self.limit / math.sqrt(self.agents - self.unreliable) * (1 + 2.0**-50)

    def event(self, source: str) -> SharedGaussian:
        """What one release spends."""
        return SharedGaussian(
            self.noise, self.agents, self.unreliable, self.numbers, self.bits, source
        )


def grid_for(agents: int, unreliable: int, noise: float, numbers: int) -> Grid:
    """The finest grid, of at most 40 bits, that has room for the sum of all."""
    unit = _longest(agents, unreliable, noise, numbers, 0, agents)
    check(unit < ROOM, "so many sites with so much noise have no grid", agents=agents, z=noise)
    bits = min(FINEST, math.floor(math.log2(ROOM / unit)))
    return Grid(agents, unreliable, noise, numbers, bits)


def longest(grid: Grid, speakers: int) -> float:
    """The most steps that the sum of so many speakers can be long, with their noise."""
    return _longest(grid.agents, grid.unreliable, grid.noise, grid.numbers, grid.bits, speakers)


def _longest(
    agents: int, unreliable: int, noise: float, numbers: int, bits: int, speakers: int
) -> float:
    check(0 <= unreliable < agents, "k must be in [0, N)", k=unreliable, N=agents)
    spread = noise * math.sqrt(speakers / (agents - unreliable)) * (math.sqrt(numbers) + TAIL)
    return float((speakers + spread) * 2.0**bits)


def rounded(
    vector: NDArray[np.float64],
    agent: int,
    weights: NDArray[np.float64],
    mechanism: Mechanism,
    grid: Grid,
) -> NDArray[np.int64]:
    """An agent's contribution (d,) in steps: clipped, weighted (P, N), rounded towards zero.

    Rounding cannot lengthen it. What floating point may have added before is far below a step;
    `spoken` checks all the same, in whole numbers.
    """
    limit = mechanism.clip / math.sqrt(len(weights))
    weighted = weights[:, agent, None] * clipped(vector[None, :], limit)
    scaled = weighted.ravel() / sensitivity(weights, mechanism) * grid.limit
    steps: NDArray[np.int64] = np.trunc(scaled).astype(np.int64)
    check(len(steps) == grid.numbers, "a contribution must be of the grid's size", size=len(steps))
    return steps


def spoken(steps: NDArray[np.int64], grid: Grid, source: ShareSource) -> NDArray[np.int64]:
    """The contribution with the site's own share of the noise: what is split and sent."""
    check(_square(steps) <= grid.limit**2, "a contribution must keep to the clip")
    return source.add_discrete_gaussian(steps, grid.share)


def plausible(total: NDArray[np.int64], grid: Grid, speakers: int) -> bool:
    """Whether clipped contributions of so many speakers, and their noise, can add up to this."""
    return _square(total) <= math.floor(longest(grid, speakers)) ** 2


def released(
    total: NDArray[np.int64], weights: NDArray[np.float64], mechanism: Mechanism, grid: Grid
) -> NDArray[np.float64]:
    """The sum (P, M) that is published."""
    step = sensitivity(weights, mechanism) / grid.limit
    return (total.astype(np.float64) * step).reshape(len(weights), -1)


def _square(steps: NDArray[np.int64]) -> int:
    """The squared norm, exactly."""
    return sum(int(step) ** 2 for step in steps)
