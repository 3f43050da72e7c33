"""More standard test functions: Levy, Rosenbrock, Styblinski-Tang, camel, Shekel, and others.

They are shifted, scaled and noised as those in `functions` are; noise is smaller, as that of a
validation score is. Where a function's largest values are out of all proportion (Rosenbrock, the
camel), what is scaled is log(1 + f − least).

Symbols: D dimensions; u points of the cube, (..., D); x of the function's domain.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.lab.problems.functions import StandardFunction


@dataclass(frozen=True, kw_only=True)
class PlainFunction(StandardFunction):
    """A function to be minimised on a box with equal sides, by its least value and a bound."""

    noise: float = 0.01
    dims: ClassVar[int]
    ends: ClassVar[tuple[float, float]]
    least: ClassVar[float]
    greatest: ClassVar[float]  # or a bound above it
    logarithmic: ClassVar[bool] = False

    @property
    def domain(self) -> tuple[tuple[float, float], ...]:
        """The same for all parameters."""
        return (self.ends,) * self.dims

    @property
    @abstractmethod
    def minimiser(self) -> tuple[float, ...]:
        """Where the function is least, in its own domain."""

    @abstractmethod
    def f(self, x: FloatArray) -> FloatArray:
        """The function itself: (..., D) -> (...)."""

    @property
    def maximiser(self) -> FloatArray:
        """The minimiser in the cube."""
        low, high = np.asarray(self.domain).T
        return np.asarray((np.asarray(self.minimiser) - low) / (high - low))

    def scaled(self, u: FloatArray) -> FloatArray:
        """From the least value and the bound to 1 and 0."""
        low, high = np.asarray(self.domain).T
        above, most = self.f(low + (high - low) * u) - self.least, self.greatest - self.least
        if self.logarithmic:  # rounding may leave the least value a little below itself
            return np.asarray(1 - np.log1p(np.maximum(above, 0.0)) / math.log1p(most))
        return np.asarray(1 - above / most)


@dataclass(frozen=True, kw_only=True)
class Levy(PlainFunction):
    """Levy, D = 4: a bowl with ripples across it."""

    kind: ClassVar[str] = "levy"
    dims: ClassVar[int] = 4
    ends: ClassVar[tuple[float, float]] = (-10.0, 10.0)
    least: ClassVar[float] = 0.0
    greatest: ClassVar[float] = 1 + 2.75**2 * (3 * 11 + 2)

    @property
    def minimiser(self) -> tuple[float, ...]:
        """One in all coordinates."""
        return (1.0,) * self.dims

    def f(self, x: FloatArray) -> FloatArray:
        """w = 1 + (x − 1)/4; sin²πw₁ + Σ (w − 1)² (1 + 10 sin²(πw + 1)) + the last's."""
        w = 1 + (x - 1) / 4
        head, tail = w[..., :-1], w[..., -1]
        middle = (head - 1) ** 2 * (1 + 10 * np.sin(math.pi * head + 1) ** 2)
        last = (tail - 1) ** 2 * (1 + np.sin(2 * math.pi * tail) ** 2)
        return np.asarray(np.sin(math.pi * w[..., 0]) ** 2 + np.sum(middle, axis=-1) + last)


@dataclass(frozen=True, kw_only=True)
class Rosenbrock(PlainFunction):
    """Rosenbrock, D = 4: a bent valley, in the logarithm."""

    kind: ClassVar[str] = "rosenbrock"
    dims: ClassVar[int] = 4
    ends: ClassVar[tuple[float, float]] = (-5.0, 10.0)
    least: ClassVar[float] = 0.0
    greatest: ClassVar[float] = 3 * (100 * 105.0**2 + 81)
    logarithmic: ClassVar[bool] = True

    @property
    def minimiser(self) -> tuple[float, ...]:
        """One in all coordinates."""
        return (1.0,) * self.dims

    def f(self, x: FloatArray) -> FloatArray:
        """Σ 100 (x_{i+1} − x_i²)² + (1 − x_i)²."""
        head, tail = x[..., :-1], x[..., 1:]
        return np.asarray(np.sum(100 * (tail - head**2) ** 2 + (1 - head) ** 2, axis=-1))


_TANG = -2.9035340277711770  # root of 2x³ − 16x + 5/2
TANG_LEAST = (_TANG**4 - 16 * _TANG**2 + 5 * _TANG) / 2


@dataclass(frozen=True, kw_only=True)
class StyblinskiTang(PlainFunction):
    """Styblinski-Tang, D = 5: 2⁵ valleys, one of them the deepest."""

    kind: ClassVar[str] = "styblinski"
    dims: ClassVar[int] = 5
    ends: ClassVar[tuple[float, float]] = (-5.0, 5.0)
    least: ClassVar[float] = 5 * TANG_LEAST
    greatest: ClassVar[float] = 5 * 125.0

    @property
    def minimiser(self) -> tuple[float, ...]:
        """The same in all coordinates."""
        return (_TANG,) * self.dims

    def f(self, x: FloatArray) -> FloatArray:
        """Σ (x⁴ − 16x² + 5x)/2."""
        return np.asarray(np.sum(x**4 - 16 * x**2 + 5 * x, axis=-1) / 2)


@dataclass(frozen=True, kw_only=True)
class Camel(PlainFunction):
    """The six-hump camel, D = 2, in the logarithm; two of its valleys are the deepest."""

    kind: ClassVar[str] = "camel"
    dims: ClassVar[int] = 2
    ends: ClassVar[tuple[float, float]] = (-3.0, 3.0)
    least: ClassVar[float] = -1.031628453489877
    greatest: ClassVar[float] = 162.9
    logarithmic: ClassVar[bool] = True

    @property
    def domain(self) -> tuple[tuple[float, float], ...]:
        """The customary one."""
        return (-3.0, 3.0), (-2.0, 2.0)

    @property
    def minimiser(self) -> tuple[float, ...]:
        """One of the two."""
        return 0.08984201368301331, -0.7126564032704135

    def f(self, x: FloatArray) -> FloatArray:
        """(4 − 2.1x² + x⁴/3) x² + xy + 4 (y² − 1) y²."""
        a, b = x[..., 0], x[..., 1]
        return np.asarray((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + 4 * (b**2 - 1) * b**2)


_C = np.asarray(
    [
        [4, 4, 4, 4],
        [1, 1, 1, 1],
        [8, 8, 8, 8],
        [6, 6, 6, 6],
        [3, 7, 3, 7],
        [2, 9, 2, 9],
        [5, 5, 3, 3],
        [8, 1, 8, 1],
        [6, 2, 6, 2],
        [7, 3.6, 7, 3.6],
    ]
)
_BETA = np.asarray([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10
_SHEKEL = (4.000746531592, 4.000592934138, 3.999663398040, 3.999509800586)  # to within 1e-9
SHEKEL_LEAST = -10.536409816692023


@dataclass(frozen=True, kw_only=True)
class Shekel(PlainFunction):
    """Shekel, D = 4: ten wells in a plain."""

    kind: ClassVar[str] = "shekel"
    dims: ClassVar[int] = 4
    ends: ClassVar[tuple[float, float]] = (0.0, 10.0)
    least: ClassVar[float] = SHEKEL_LEAST
    greatest: ClassVar[float] = 0.0

    @property
    def minimiser(self) -> tuple[float, ...]:
        """The bottom of the deepest well."""
        return _SHEKEL

    def f(self, x: FloatArray) -> FloatArray:
        """−Σ_i 1 / (β_i + Σ_d (x_d − C_id)²)."""
        wells = _BETA + np.sum((x[..., None, :] - _C) ** 2, axis=-1)
        return np.asarray(-np.sum(1 / wells, axis=-1))


_MICHALEWICZ = (2.2029055201726093, math.pi / 2, 1.2849915705529245)
MICHALEWICZ_LEAST = -2.76039467999456


@dataclass(frozen=True, kw_only=True)
class Michalewicz(PlainFunction):
    """Michalewicz, D = 3: a steep gorge in every parameter, in a plain."""

    kind: ClassVar[str] = "michalewicz"
    dims: ClassVar[int] = 3
    ends: ClassVar[tuple[float, float]] = (0.0, math.pi)
    least: ClassVar[float] = MICHALEWICZ_LEAST
    greatest: ClassVar[float] = 0.0

    @property
    def minimiser(self) -> tuple[float, ...]:
        """Where the deepest gorges cross."""
        return _MICHALEWICZ

    def f(self, x: FloatArray) -> FloatArray:
        """−Σ sin x_i (sin(i x_i²/π))²⁰."""
        i = np.arange(1, self.dims + 1)
        return np.asarray(-np.sum(np.sin(x) * np.sin(i * x**2 / math.pi) ** 20, axis=-1))


@dataclass(frozen=True, kw_only=True)
class Griewank(PlainFunction):
    """Griewank near its middle, D = 3, where its waves are all there is; not centred."""

    kind: ClassVar[str] = "griewank"
    dims: ClassVar[int] = 3
    ends: ClassVar[tuple[float, float]] = (-6.0, 9.0)
    least: ClassVar[float] = 0.0
    greatest: ClassVar[float] = 2 + 3 * 81 / 4000

    @property
    def minimiser(self) -> tuple[float, ...]:
        """The origin."""
        return (0.0,) * self.dims

    def f(self, x: FloatArray) -> FloatArray:
        """1 + Σ x²/4000 − Π cos(x_i/√i)."""
        waves = np.prod(np.cos(x / np.sqrt(np.arange(1, self.dims + 1))), axis=-1)
        return np.asarray(1 + np.sum(x**2, axis=-1) / 4000 - waves)
