"""Standard test functions: Branin, Hartmann-3, Hartmann-6, Ackley.

Each is negated, so that it is to be maximised, and scaled by public constants to values from 0
to 1, where 1 is the maximum. Agent n's objective is f(x − s_n), with x in the unit cube and s_n
uniform in [−shift, shift]^D. Where x − s_n leaves the cube it is clipped to it, coordinate by
coordinate: nothing beyond the function's domain is evaluated, so no value can exceed 1, and,
unlike a reflection, clipping puts no mirror image of a hill beside it. The shift may be so
large only that a maximiser stays in the cube for every agent; so the optimum is known exactly.

Observations carry noise of standard deviation `noise` in units of the scaled function. Agents
fit their kernels, as users would.

Symbols: N agents, D dimensions, s points; u points of the cube, (..., D).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.errors import check
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.problems.options import NamedProblem
from sottovoce.simulation.problem import Setting
from sottovoce.space import Float, Space


@dataclass(frozen=True)
class MovedFunction:
    """Objectives that are one function of the cube, moved by shifts (N, D)."""

    function: Callable[[FloatArray], FloatArray]  # (..., D) -> (...)
    shifts: FloatArray
    maximiser: FloatArray  # of the function, (D,)
    noise: float

    @property
    def optimum(self) -> FloatArray:
        """The value at each agent's own maximiser, (N,)."""
        return self.values((self.maximiser + self.shifts)[:, None, :])[:, 0]

    def values(self, points: FloatArray) -> FloatArray:
        """The function at the points less the shifts: (N, s, D) -> (N, s)."""
        return self.function(np.clip(points - self.shifts[:, None, :], 0.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class StandardFunction(NamedProblem):
    """A test function, shifted for each agent."""

    shift: float = 0.05
    noise: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        inside = float(np.min(np.minimum(self.maximiser, 1 - self.maximiser)))
        rule = f"{self.kind}: shift must be in [0, {inside:.4f}], to keep a maximiser in the cube"
        check(0 <= self.shift <= inside, rule, shift=self.shift)
        check(self.noise >= 0, f"{self.kind}: noise must be at least 0", noise=self.noise)

    @property
    @abstractmethod
    def domain(self) -> tuple[tuple[float, float], ...]:
        """The ends of each parameter's range."""

    @property
    @abstractmethod
    def maximiser(self) -> FloatArray:
        """A point of the cube where the function is largest, (D,); the innermost if several."""

    @abstractmethod
    def scaled(self, u: FloatArray) -> FloatArray:
        """The function, negated and scaled: (..., D) in the cube -> (...)."""

    @property
    def setting(self) -> Setting:
        """The function's customary domain; kernels are fitted."""
        ends = enumerate(self.domain, start=1)
        return Setting(Space([Float(f"x{d}", low, high) for d, (low, high) in ends]), Surrogate())

    def draw(self, agents: int, random: np.random.Generator) -> MovedFunction:
        """A shift for each agent."""
        check(agents >= 1, "agents must be at least 1", agents=agents)
        best = self.maximiser
        shifts = random.uniform(-self.shift, self.shift, size=(agents, best.size))
        return MovedFunction(self.scaled, shifts, best, self.noise)


# f = (x₂ − b x₁² + c x₁ − 6)² + 10 (1 − t) cos x₁ + 10, least where the square is 0, cos x₁ = −1
_B, _C, _T = 5.1 / (4 * math.pi**2), 5 / math.pi, 1 / (8 * math.pi)
BRANIN_LEAST = 10 * _T
BRANIN_GREATEST = (25 * _B + 5 * _C + 6) ** 2 + 10 * (1 - _T) * math.cos(5) + 10  # at (−5, 0)


@dataclass(frozen=True, kw_only=True)
class Branin(StandardFunction):
    """Branin, D = 2, with three maximisers."""

    kind: ClassVar[str] = "branin"
    domain = ((-5.0, 10.0), (0.0, 15.0))
    maximiser = np.asarray([(math.pi + 5) / 15, 2.275 / 15])  # the farthest from the sides

    def scaled(self, u: FloatArray) -> FloatArray:
        """From the least and the greatest value on the domain to 1 and 0."""
        x, y = 15 * u[..., 0] - 5, 15 * u[..., 1]
        f = (y - _B * x**2 + _C * x - 6) ** 2 + 10 * (1 - _T) * np.cos(x) + 10
        return np.asarray((BRANIN_GREATEST - f) / (BRANIN_GREATEST - BRANIN_LEAST))


# A and P as published; the maximisers by Newton's method, to rounding
_A3 = np.asarray([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_P3 = 1e-4 * np.asarray(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
_BEST_3 = np.asarray([0.11458887665506896, 0.5556488946169301, 0.8525469846866774])
HARTMANN3_GREATEST = 3.862779787332663

_A6 = np.asarray(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P6 = 1e-4 * np.asarray(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_BEST_6 = (
    0.20168951100670543,
    0.15001069182345797,
    0.47687397422189703,
    0.2753324304940561,
    0.31165161660011326,
    0.6573005340656204,
)
HARTMANN6_GREATEST = 3.322368011415515


@dataclass(frozen=True, kw_only=True)
class Hartmann(StandardFunction):
    """Σ_i α_i exp(−Σ_d A_id (u_d − P_id)²), four hills, divided by its maximum."""

    heights: ClassVar[FloatArray] = np.asarray([1.0, 1.2, 3.0, 3.2])  # α
    steepness: ClassVar[FloatArray]  # A, (4, D)
    centres: ClassVar[FloatArray]  # P, (4, D)
    greatest: ClassVar[float]

    @property
    def domain(self) -> tuple[tuple[float, float], ...]:
        """The cube itself."""
        return ((0.0, 1.0),) * self.maximiser.size

    def scaled(self, u: FloatArray) -> FloatArray:
        """Divided by its maximum."""
        exponent = np.sum(self.steepness * (u[..., None, :] - self.centres) ** 2, axis=-1)
        return np.asarray(np.sum(self.heights * np.exp(-exponent), axis=-1)) / self.greatest


@dataclass(frozen=True, kw_only=True)
class Hartmann3(Hartmann):
    """Hartmann, D = 3."""

    kind: ClassVar[str] = "hartmann3"
    steepness, centres, greatest = _A3, _P3, HARTMANN3_GREATEST
    maximiser = _BEST_3


@dataclass(frozen=True, kw_only=True)
class Hartmann6(Hartmann):
    """Hartmann, D = 6."""

    kind: ClassVar[str] = "hartmann6"
    steepness, centres, greatest = _A6, _P6, HARTMANN6_GREATEST
    maximiser = np.asarray(_BEST_6)


ACKLEY_GREATEST = 20 + math.e - 1 / math.e  # a bound, nearly reached in the corners
_REACH = 32.768


@dataclass(frozen=True, kw_only=True)
class Ackley(StandardFunction):
    """Ackley, one narrow funnel in a plain full of small hills."""

    kind: ClassVar[str] = "ackley"
    dims: int = 2

    def __post_init__(self) -> None:
        # first, as all else is made from it; its type is the base's to check
        within = not isinstance(self.dims, int) or 1 <= self.dims <= 6
        check(within, "ackley: dims must be from 1 to 6", dims=self.dims)
        super().__post_init__()

    @property
    def domain(self) -> tuple[tuple[float, float], ...]:
        """The customary one."""
        return ((-_REACH, _REACH),) * self.dims

    @property
    def maximiser(self) -> FloatArray:
        """The origin, the middle of the cube."""
        return np.full(self.dims, 0.5)

    def scaled(self, u: FloatArray) -> FloatArray:
        """From 0 and the bound to 1 and 0."""
        x = _REACH * (2 * u - 1)
        distance = np.sqrt(np.mean(x**2, axis=-1))
        ripples = np.mean(np.cos(2 * math.pi * x), axis=-1)
        f = 20 + math.e - 20 * np.exp(-0.2 * distance) - np.exp(ripples)
        return np.asarray(1 - f / ACKLEY_GREATEST)
