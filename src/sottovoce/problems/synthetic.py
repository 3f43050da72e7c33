"""The paper's synthetic problem (its appendix, "Detailed Experimental Setting").

One function from a GP with a squared exponential kernel, length scale 0.03, on 1000 equally
spaced points of [0, 1], scaled to [0, 1]; each agent's objective adds 0.02 or −0.02 to every
point, at even odds; observations carry Gaussian noise of variance 0.01.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.belief import Belief
from sottovoce.errors import check
from sottovoce.kernel import Kernel
from sottovoce.moves import exact_table
from sottovoce.problems.protocol import Setting
from sottovoce.space import Float, Space

KERNEL = Kernel(lengthscale=0.03, variance=1.0, noise=0.01)
SPACE = Space([Float("x", 0.0, 1.0, steps=1000)])
SHIFT = 0.02
NOISE = 0.1


@dataclass(frozen=True)
class Table:
    """Objectives given by their values on the grid, (N, 1000)."""

    table: NDArray[np.float64]
    noise: float = NOISE

    @property
    def optimum(self) -> NDArray[np.float64]:
        """The largest value of each row."""
        return np.asarray(self.table.max(axis=1))

    def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The table's entries at the points."""
        return np.take_along_axis(self.table, SPACE.index(points), axis=1)


@dataclass(frozen=True)
class Synthetic:
    """The problem as published."""

    name: str = "synthetic"

    @property
    def setting(self) -> Setting:
        """The grid; agents know the kernel and take values as they come, as in the paper."""
        return Setting(SPACE, Belief(KERNEL, standardise=False))

    def draw(self, agents: int, random: np.random.Generator) -> Table:
        """One function, shifted point by point for each agent."""
        check(agents >= 1, "agents must be at least 1", agents=agents)
        factor = exact_table(KERNEL, SPACE)
        f = factor @ random.standard_normal(factor.shape[1])
        f = (f - f.min()) / (f.max() - f.min())
        signs = random.integers(0, 2, size=(agents, f.size)) * 2 - 1
        return Table(f[None, :] + SHIFT * signs)
