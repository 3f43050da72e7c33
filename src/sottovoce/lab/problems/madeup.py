"""Made-up functions on any space, mixed or not: for whoever has a space and no data yet.

A function is drawn from a GP with a length scale for each parameter, by F random frequencies; two
choices are one unit apart, whatever their order. About two parameters in three matter. It is
scaled to [0, 1] by what a set of points finds; agent n has α f_n + (1 − α) f, all of the same GP.
Optima are numerical: the best of those points, and of steps from it.

Symbols: N agents, s points, D coordinates, F frequencies, A parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.errors import check
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.quasirandom import quasirandom_points
from sottovoce.simulation.problem import Setting
from sottovoce.space import Category, Space

FREQUENCIES = 256
POINTS = 2048
MATTER = 2 / 3  # of the parameters
FLAT = 5.0  # times the length scale: a parameter that hardly matters
SMOOTH = 0.5  # length scale of one parameter; more of them have longer ones
STEPS, RADII = 64, (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
NOISE = 0.03


@dataclass(frozen=True)
class MadeUp:
    """The problem: α is how far agents differ, from 0, not at all, to 1, in everything."""

    space: Space
    alpha: float = 0.3
    noise: float = NOISE
    name: str = "made-up"

    @property
    def setting(self) -> Setting:
        """Kernels are fitted."""
        return Setting(self.space, Surrogate())

    def draw(self, agents: int, random: np.random.Generator) -> MadeUpObjectives:
        """A function for all, and one of each agent's own."""
        check(agents >= 1, "agents must be at least 1", agents=agents)
        scales = self._scales(random)
        frequencies = random.standard_normal((FREQUENCIES, self.space.dims)) / scales
        phases = random.uniform(0.0, 2 * np.pi, FREQUENCIES)
        weights = random.standard_normal((agents + 1, FREQUENCIES))
        return MadeUpObjectives(self, frequencies, phases, weights[0], weights[1:])

    def _scales(self, random: np.random.Generator) -> FloatArray:
        """The length scale of each coordinate, (D,)."""
        parameters = self.space.parameters
        matters = random.random(len(parameters)) < MATTER
        matters[random.integers(len(parameters))] = True
        usual = SMOOTH * np.sqrt(max(int(matters.sum()), 1) / 2)
        scales = usual * np.exp(0.4 * random.standard_normal(len(parameters)))
        scales = np.where(matters, scales, FLAT * scales)
        units = [np.sqrt(2.0) if isinstance(p, Category) else 1.0 for p in parameters]
        return np.repeat(scales * units, [p.width for p in parameters])


@dataclass(frozen=True)
class MadeUpObjectives:
    """The functions of N agents: frequencies (F, D), phases (F,), weights (F,) and (N, F)."""

    problem: MadeUp
    frequencies: FloatArray
    phases: FloatArray
    common: FloatArray
    own: FloatArray

    @property
    def noise(self) -> float:
        """The problem's."""
        return self.problem.noise

    def values(self, points: FloatArray) -> FloatArray:
        """Of each agent's own points: (N, s, D) -> (N, s)."""
        waves = self._waves(points)
        own = np.matmul(waves, self.own[..., None])[..., 0]
        return self._mixed(waves @ self.common, own)

    def _waves(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.cos(points @ self.frequencies.T + self.phases))

    def _mixed(self, common: FloatArray, own: FloatArray) -> FloatArray:
        alpha, (low, high), (lows, highs) = self.problem.alpha, *self._ends
        first = (common - low) / (high - low)
        return np.asarray(alpha * (own - lows) / (highs - lows) + (1 - alpha) * first)

    @cached_property
    def _points(self) -> FloatArray:
        space = self.problem.space
        u = quasirandom_points(b"sottovoce/made-up/v1", POINTS, space.dims)
        return np.asarray(space.snap(u))

    @cached_property
    def _ends(self) -> tuple[tuple[float, float], tuple[FloatArray, FloatArray]]:
        """The least and largest of the common function, and of each agent's, (N, 1)."""
        waves = self._waves(self._points)
        common, own = waves @ self.common, self.own @ waves.T
        ends = own.min(axis=1, keepdims=True), own.max(axis=1, keepdims=True)
        return (float(common.min()), _above(common)), (ends[0], np.maximum(ends[1], ends[0] + 1e-9))

    @cached_property
    def optimum(self) -> FloatArray:
        """The largest value found, (N,): numerical."""
        waves, space = self._waves(self._points), self.problem.space
        values = self._mixed((waves @ self.common)[None], self.own @ waves.T)
        best, here = values.max(axis=1), self._points[values.argmax(axis=1)]
        random = np.random.default_rng(0)
        for radius in RADII:
            steps = radius * random.standard_normal((len(here), STEPS, space.dims))
            tried = np.asarray(space.snap(np.clip(here[:, None] + steps, 0.0, 1.0)))
            found = self.values(tried)
            where = found.argmax(axis=1)
            better = found.max(axis=1) > best
            here = np.where(better[:, None], tried[np.arange(len(here)), where], here)
            best = np.maximum(best, found.max(axis=1))
        return np.asarray(best)


def _above(values: FloatArray) -> float:
    """The largest, above the least also where all are equal."""
    return float(max(values.max(), values.min() + 1e-9))
