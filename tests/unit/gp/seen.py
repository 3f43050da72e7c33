"""Made-up histories on a grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sottovoce.gp.history import History
from sottovoce.space import Float, Space

Floats = NDArray[np.float64]
GRID = Space([Float("x", 0.0, 1.0, steps=60)])


def history(agents: int, t: int, seed: int = 0) -> History:
    """What agents have seen of a wave with some noise."""
    random = np.random.default_rng(seed)
    index = random.integers(60, size=(agents, t))
    points = GRID.points()[index]
    values = np.sin(7 * points[..., 0]) + 0.1 * random.standard_normal((agents, t))
    return History(points, values, np.ones((agents, t), dtype=np.bool_), index)


def random_trials(agents: int, t: int, seed: int) -> tuple[Floats, Floats]:
    """Points of the square (agents, t, 2), and values (agents, t)."""
    random = np.random.default_rng(seed)
    return random.random((agents, t, 2)), random.standard_normal((agents, t))
