"""Functions with the shapes that tuning has, on any space: what they are built on.

A score is a function of each parameter's coordinate z: a number's place in its range, in [0, 1]
and logarithmic where the range is; a choice's index. Scores are at most about 1, which is the
maximum, and NaN where trials fail. Agent n has its own z from the coordinate u of a trial: a
number's is u − s_n, clipped to [0, 1], with s_n uniform in [−shift, shift]; a choice's is as it is.
Three kinships: "near", just this; "opposed": every second agent sees the space reversed, 1 − u, the
last choice first; "strangers": each agent sees its parameters reversed at random, its choices in an
order of its own, and a shift as large as keeps a maximiser in the space.

The optimum is exact: all combinations of integers and choices are tried, each with the best
floats for it, which a function knows.

Symbols: N agents, s points, D coordinates of the space, K combinations.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import check
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.problems.options import NamedProblem
from sottovoce.simulation.problem import Setting
from sottovoce.space import Category, Float, Space

FloatArray = NDArray[np.float64]
Coordinates: TypeAlias = Mapping[str, NDArray[np.float64]]  # z of each parameter, by name

AT_ONCE = 2**20  # scores
FREE = 0.3  # how far integers are shifted where agents have nothing in common


@dataclass(frozen=True, kw_only=True)
class ShapedFunction(NamedProblem):
    """A score of the parameters' coordinates, a little different for each agent."""

    shift: float = 0.05
    noise: float = 0.01
    kinship: Literal["near", "opposed", "strangers"] = "near"
    space: ClassVar[Space]

    def __post_init__(self) -> None:
        super().__post_init__()
        most = min(min(room) for room in self._room.values())
        rule = f"{self.kind}: shift must be in [0, {most:.4f}], to keep a maximiser in the space"
        check(0 <= self.shift <= most, rule, shift=self.shift)
        check(self.noise >= 0, f"{self.kind}: noise must be at least 0", noise=self.noise)

    @abstractmethod
    def score(self, z: Coordinates) -> FloatArray:
        """What is to be maximised; NaN where a trial fails."""

    @abstractmethod
    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The best floats for the integers and choices in z."""

    @property
    def setting(self) -> Setting:
        """Kernels are fitted."""
        return Setting(self.space, Surrogate())

    @property
    def combinations(self) -> dict[str, FloatArray]:
        """The coordinates of all integers and choices, in every combination, (K,) each."""
        discrete = [p for p in self.space.parameters if not isinstance(p, Float)]
        sizes = [p.size for p in discrete]
        grid = np.indices(sizes, dtype=np.float64).reshape(len(sizes), math.prod(sizes))
        return {
            p.name: k if isinstance(p, Category) else np.asarray(p._place(k))[..., 0]
            for p, k in zip(discrete, grid, strict=True)
        }

    @property
    def _room(self) -> dict[str, tuple[float, float]]:
        """How far below and above the best floats of any combination there is space."""
        best = self.best_floats(self.combinations)
        return {name: (float(np.min(z)), float(1 - np.max(z))) for name, z in best.items()}

    def draw(self, agents: int, random: np.random.Generator) -> ShapedObjectives:
        """What each agent sees of the space."""
        check(agents >= 1, "agents must be at least 1", agents=agents)
        parameters = self.space.parameters
        shifts = random.uniform(-self.shift, self.shift, size=(agents, len(parameters)))
        reversed_ = np.zeros((agents, len(parameters)), dtype=bool)
        orders = [np.tile(np.arange(_choices(p)), (agents, 1)) for p in parameters]
        if self.kinship == "opposed":
            reversed_[1::2] = True
            for order in orders:
                order[1::2] = order[1::2, ::-1]
        elif self.kinship == "strangers":
            room = self._room
            low, high = np.asarray([room.get(p.name, (FREE, FREE)) for p in parameters]).T
            shifts = random.uniform(-low, high, size=shifts.shape)
            reversed_ = random.random(shifts.shape) < 0.5
            orders = [random.permuted(order, axis=1) for order in orders]
        return ShapedObjectives(self, shifts, reversed_, tuple(orders))


def _choices(parameter: object) -> int:
    return parameter.size if isinstance(parameter, Category) else 1


@dataclass(frozen=True)
class ShapedObjectives:
    """A function as N agents see it, p of the space's parameters.

    shifts, reversed (N, p): what is done to numbers. orders: of each parameter, the choice that
    each agent sees in the place of each, (N, choices).
    """

    function: ShapedFunction
    shifts: FloatArray
    reversed: NDArray[np.bool_]
    orders: tuple[NDArray[np.int64], ...]

    @property
    def noise(self) -> float:
        """The function's."""
        return self.function.noise

    def values(self, points: FloatArray) -> FloatArray:
        """The score of each agent's own coordinates: (N, s, D) -> (N, s)."""
        space = self.function.space
        ends = [*accumulate(p.width for p in space.parameters)]
        seen = {}
        for k, (p, end) in enumerate(zip(space.parameters, ends, strict=True)):
            u = points[..., end - p.width : end]
            one = np.argmax(u, axis=-1) if isinstance(p, Category) else u[..., 0]
            seen[p.name] = self._seen(k, one)
        return np.asarray(self.function.score(seen))

    def _seen(self, k: int, u: NDArray[np.float64] | NDArray[np.int64]) -> FloatArray:
        """z of parameter k: (N, s) places of numbers, or indices of choices -> (N, s)."""
        if isinstance(self.function.space.parameters[k], Category):
            return np.take_along_axis(self.orders[k], u.astype(np.int64), axis=1).astype(np.float64)
        turned = np.where(self.reversed[:, k : k + 1], 1 - u, u)
        return np.clip(turned - self.shifts[:, k : k + 1], 0.0, 1.0)

    @cached_property
    def optimum(self) -> FloatArray:
        """The largest score of all combinations, (N,)."""
        combinations = [len(z) for z in self.function.combinations.values()]
        size = max(1, AT_ONCE // max(combinations, default=1))
        parts = range(0, len(self.shifts), size)
        return np.concatenate([self._part(slice(k, k + size))._largest() for k in parts])

    def _part(self, who: slice) -> ShapedObjectives:
        """Of some agents."""
        orders = tuple(order[who] for order in self.orders)
        return ShapedObjectives(self.function, self.shifts[who], self.reversed[who], orders)

    def _largest(self) -> FloatArray:
        function, agents = self.function, len(self.shifts)
        place = {name: k for k, name in enumerate(function.space.names)}
        known = {
            name: self._seen(place[name], np.tile(z, (agents, 1)))
            for name, z in function.combinations.items()
        }
        shape = next(iter(known.values())).shape if known else (agents, 1)
        best = {
            name: np.broadcast_to(np.asarray(z, dtype=np.float64), shape)
            for name, z in function.best_floats(known).items()
        }
        return np.asarray(np.nanmax(function.score({**known, **best}), axis=1))
