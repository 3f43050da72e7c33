"""What the paper's synthetic problems share: a grid, a kernel, and functions drawn on it.

Symbols: K = 1000 points of the grid, N agents, r rank of the kernel on the grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.acquisition.thompson import exact_table
from sottovoce.arrays import FloatArray, IntArray
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.simulation.problem import Setting
from sottovoce.space import Float, Space

KERNEL = Kernel(lengthscale=0.03, variance=1.0, noise=0.01)
SPACE = Space([Float("x", 0.0, 1.0, steps=1000)])
NOISE = 0.1
# agents know the kernel and take values as they come, as in the paper
SETTING = Setting(SPACE, Surrogate(KERNEL, standardise=False))


@dataclass(frozen=True)
class Table:
    """Objectives given by their values on the grid, (N, K)."""

    table: FloatArray
    noise: float = NOISE

    @property
    def optimum(self) -> FloatArray:
        """The largest value of each row."""
        return np.asarray(self.table.max(axis=1))

    def at(self, index: IntArray) -> FloatArray:
        """The table's entries at rows of the grid: (N, s) -> (N, s)."""
        return np.take_along_axis(self.table, index, axis=1)

    def values(self, points: FloatArray) -> FloatArray:
        """The table's entries at points of the cube: (N, s, 1) -> (N, s)."""
        return self.at(SPACE.index(points))


def drawn_functions(count: int, random: np.random.Generator) -> FloatArray:
    """Independent functions of the GP, each scaled to [0, 1], by their values: (count, K)."""
    factor = exact_table(KERNEL, SPACE)
    f = (factor @ random.standard_normal((count, factor.shape[1])).T).T
    low, high = f.min(axis=1, keepdims=True), f.max(axis=1, keepdims=True)
    return np.asarray((f - low) / (high - low))
