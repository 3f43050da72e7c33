"""Chance that is the same whenever it is asked about: decided by what it is of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def chance(
    training: int, agents: NDArray[np.int64], points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Two numbers of [0, 1) for each pair of an agent and a point, as if at random: (s,), (s,).

    By the finaliser of SplitMix64 over the bits of all that decides them.
    """
    state = _mixed(np.full(len(points), training, dtype=np.uint64))
    for part in (agents.astype(np.uint64), *(points + 0.0).T.copy().view(np.uint64)):
        state = _mixed(state ^ part)
    one, other = (_mixed(state + np.uint64(k)) >> np.uint64(11) for k in (1, 2))
    return np.asarray(one * 2.0**-53), np.asarray(other * 2.0**-53)


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = state + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(state ^ (state >> np.uint64(31)))
