"""The paper's synthetic problem (its appendix, "Detailed Experimental Setting").

One function from a GP with a squared exponential kernel, length scale 0.03, on 1000 equally
spaced points of [0, 1], scaled to [0, 1]; each agent's objective adds 0.02 or −0.02 to every
point, at even odds; observations carry Gaussian noise of variance 0.01. What is not said is
whether values are centred: `level` is subtracted from every one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import check
from sottovoce.lab.problems.grid import KERNEL, NOISE, SETTING, SPACE, drawn_functions
from sottovoce.lab.problems.options import NamedProblem
from sottovoce.simulation.problem import Setting

__all__ = ["KERNEL", "NOISE", "SHIFT", "SPACE", "Shifted", "Synthetic"]

SHIFT = 0.02
_BLOCK = 512  # agents whose objectives are held as doubles at a time


@dataclass(frozen=True)
class Shifted:
    """Objectives that shift one function point by point: base (K,), signs (N, K), ±1.

    A sign takes one byte: a million agents' fit in a gigabyte, in NumPy or on a device.
    """

    base: Array
    signs: Array
    noise: float = NOISE

    @property
    def table(self) -> Array:
        """The values at all points, (N, K)."""
        return self._shifted(self.base, self.signs)

    @property
    def optimum(self) -> Array:
        """The largest value of each agent, (N,)."""
        xp = array_namespace(self.base)
        blocks = (self.signs[k : k + _BLOCK] for k in range(0, self.signs.shape[0], _BLOCK))
        return xp.concat([xp.max(self._shifted(self.base, some), axis=1) for some in blocks])

    def at(self, index: Array) -> Array:
        """The values at rows of the grid: (N, s) -> (N, s)."""
        xp = array_namespace(self.base)
        base = xp.reshape(xp.take(self.base, xp.reshape(index, (-1,)), axis=0), index.shape)
        return self._shifted(base, xp.take_along_axis(self.signs, index, axis=1))

    def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values at points of the cube: (N, s, 1) -> (N, s)."""
        return np.asarray(self.at(SPACE.index(points)))

    def _shifted(self, base: Array, signs: Array) -> Array:
        xp = array_namespace(base)
        return base + SHIFT * xp.astype(signs, base.dtype)


@dataclass(frozen=True)
class Synthetic(NamedProblem):
    """The problem as published, if values are taken as they come; level=0.5 centres them."""

    kind: ClassVar[str] = "synthetic"
    level: float = 0.0

    @property
    def setting(self) -> Setting:
        """The grid, and the kernel the function came from."""
        return SETTING

    def draw(self, agents: int, random: np.random.Generator) -> Shifted:
        """One function, shifted point by point for each agent."""
        check(agents >= 1, "agents must be at least 1", agents=agents)
        base = drawn_functions(1, random)[0] - self.level
        return Shifted(base, _drawn_signs(agents, base.size, random))

    def draw_on_device(self, agents: int, random: np.random.Generator, stream: Any) -> Shifted:
        """The same, with signs that the device draws and keeps."""
        check(agents >= 1, "agents must be at least 1", agents=agents)
        base = drawn_functions(1, random)[0] - self.level
        signs = _drawn_signs(agents, base.size, stream)
        return Shifted(array_namespace(signs).asarray(base, device=signs.device), signs)


def _drawn_signs(agents: int, count: int, random: Any) -> Array:
    """±1 at even odds, (agents, count), as bytes; wide numbers are held for a few rows only."""
    rows = (min(_BLOCK, agents - k) for k in range(0, agents, _BLOCK))
    drawn = (random.integers(2, size=(n, count)) for n in rows)
    blocks = [array_namespace(up).astype(up * 2 - 1, array_namespace(up).int8) for up in drawn]
    return array_namespace(blocks[0]).concat(blocks)
