"""The search alone on what objectives should not be, and sometimes are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.federation.methods import GP
from sottovoce.federation.planning import sized
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.simulation import Draws, Setting, simulate
from sottovoce.simulation.problem import FunctionObjectives
from sottovoce.space import Category, Float, Integer, Space

FloatArray = NDArray[np.float64]
ROOM = Space([Float("x", 0.0, 1.0), Integer("n", 0, 1), Category("c", ("a", "b"))])
MANY = Space([Float(f"x{k}", 0.0, 1.0) for k in range(60)])
PAIR = Space([Integer("n", 0, 1)])


@dataclass(frozen=True)
class Odd:
    """One function of the cube for all agents."""

    space: Space
    function: Callable[[FloatArray], FloatArray]
    name: str = "odd"

    @property
    def setting(self) -> Setting:
        return Setting(self.space, Surrogate())

    def draw(self, agents: int, random: np.random.Generator) -> FunctionObjectives:
        return FunctionObjectives(self.function, np.ones(agents))


def first(points: FloatArray) -> FloatArray:
    return np.asarray(points[..., 0])


ODD: dict[str, tuple[Space, Callable[[FloatArray], FloatArray]]] = {
    "constant": (ROOM, lambda points: 0.0 * first(points) + 7.0),
    "all trials fail": (ROOM, lambda points: np.full(points.shape[:-1], np.nan)),
    "all but one fail": (ROOM, lambda points: np.where(first(points) > 0.8, 1.0, np.nan)),
    "sixty parameters": (MANY, first),
    "two integers, so that points repeat": (PAIR, first),
    "values out of proportion": (ROOM, lambda points: -(10.0 ** (100 * first(points)))),
}


@pytest.mark.parametrize("kind", ODD)
def test_the_search_goes_on_inside_the_space(kind: str) -> None:
    space, function = ODD[kind]
    study = FederatedStudy(space, sized(GP, space.dims), agents=2, rounds=4)
    outcome = simulate(study, Odd(space, function), Draws(0, 0))
    assert np.all(np.isfinite(outcome.points))
    assert np.array_equal(np.asarray(space.snap(outcome.points)), outcome.points)
