"""Functions of a GP on the unit cube that can be evaluated anywhere, and where they are largest.

f(x) = F^(−½) Σ_j (a_j cos s_j·x + b_j sin s_j·x) + offset, s_j ~ N(0, I/ℓ²), a_j, b_j ~ N(0, 1).
All N functions share the frequencies: given them they are independent, with mean 0, variance 1
and a covariance within about F^(−½) of the squared exponential kernel.

Symbols: N functions, D dimensions, K candidates, S starts, F frequencies s_j (F, D); weights a_j
and b_j, (N, F), with the factor F^(−½) in them; offset (N,).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.gp.features import BLOCK, cosine_and_sine
from sottovoce.optim.bfgs import ascend

_ROWS = 512  # points valued at a time, to bound memory
_FUNCTIONS = 64  # functions ranked at a time, likewise


@dataclass(frozen=True)
class Waves:
    """N functions over shared frequencies."""

    frequencies: FloatArray  # (F, D)
    cosines: FloatArray  # (N, F)
    sines: FloatArray  # (N, F)
    offset: FloatArray  # (N,)

    def values(self, x: FloatArray) -> FloatArray:
        """Each function at points of its own: (N, s, D) -> (N, s).

        Summed for one point of one function at a time, not by a matrix product, whose rounding
        depends on its shape: so that a value does not depend on what else is asked.
        """
        N, s, _ = x.shape
        out, step = np.empty((N, s)), max(1, _ROWS // max(1, s))
        for n in range(0, N, step):
            some = self.part(slice(n, n + step))
            for k in range(0, s, _ROWS):
                block = slice(n, n + step), slice(k, k + _ROWS)
                out[block] = some._values(x[block])
        return out

    def _values(self, x: FloatArray) -> FloatArray:
        half = 0.5 * self.frequencies.T
        angle = x[..., 0, None] * half[0]
        for d in range(1, len(half)):
            angle += x[..., d, None] * half[d]
        cos, sin = cosine_and_sine(angle, np)
        return self._summed(cos, sin)

    def _summed(self, cos: FloatArray, sin: FloatArray) -> FloatArray:
        wave = np.vecdot(cos, self.cosines[:, None]) + np.vecdot(sin, self.sines[:, None])
        return np.asarray(wave + self.offset[:, None])

    def values_and_gradients(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(N, s, D) -> (N, s) and (N, s, D)."""
        cos, sin = cosine_and_sine(x @ (0.5 * self.frequencies.T), np)
        slope = self.sines[:, None] * cos - self.cosines[:, None] * sin
        return self._summed(cos, sin), slope @ self.frequencies

    def at_all(self, points: FloatArray) -> FloatArray:
        """Every function at the same points: (K, D) -> (N, K)."""
        out = np.empty((len(self.offset), len(points)))
        for k in range(0, len(points), BLOCK):
            half = points[k : k + BLOCK] @ (0.5 * self.frequencies.T)
            cos, sin = cosine_and_sine(half, np)
            out[:, k : k + BLOCK] = self.cosines @ cos.T + self.sines @ sin.T
        return out + self.offset[:, None]

    def part(self, some: slice) -> Waves:
        """Some of the functions."""
        return Waves(self.frequencies, self.cosines[some], self.sines[some], self.offset[some])

    def times(self, factor: float | FloatArray) -> Waves:
        """The functions times a number, or each times its own, (N,)."""
        by = np.broadcast_to(factor, self.offset.shape)
        a, b = by[:, None] * self.cosines, by[:, None] * self.sines
        return Waves(self.frequencies, a, b, by * self.offset)

    def plus(self, other: Waves) -> Waves:
        """Sums of functions over the same frequencies; one function may be added to N."""
        a, b = self.cosines + other.cosines, self.sines + other.sines
        return Waves(self.frequencies, a, b, self.offset + other.offset)

    def raised(self, by: FloatArray) -> Waves:
        """The functions plus a constant each, (N,)."""
        return Waves(self.frequencies, self.cosines, self.sines, self.offset + by)


def drawn_waves(count: int, frequencies: FloatArray, random: np.random.Generator) -> Waves:
    """Independent functions of mean 0 and variance 1 over the frequencies (F, D)."""
    F = len(frequencies)
    a, b = random.standard_normal((2, count, F)) / F**0.5
    return Waves(frequencies, a, b, np.zeros(count))


def scaled_to_unit(waves: Waves, candidates: int, starts: int) -> Waves:
    """Each function with the least and greatest values that a search finds made 0 and 1."""
    high = highest_points(waves, candidates, starts)
    low = highest_points(waves.times(-1.0), candidates, starts)
    ends = waves.values(np.stack([low, high], axis=1))
    return waves.raised(-ends[:, 0]).times(1.0 / (ends[:, 1] - ends[:, 0]))


def highest_points(waves: Waves, candidates: int, starts: int) -> FloatArray:
    """Where each function is largest, (N, D), by a search.

    The best `starts` of K evenly spread `candidates` are climbed from, all the way; the result
    is never below a candidate. Several starts on one hill do no harm but to the search's width.
    """
    points = quasirandom_points(candidates, waves.frequencies.shape[1])
    found = []
    for n in range(0, len(waves.offset), _FUNCTIONS):
        some = waves.part(slice(n, n + _FUNCTIONS))
        best = np.argpartition(-some.at_all(points), starts, axis=1)[:, :starts]
        together = max(1, 128 // starts)  # climbs at a time: more would not fit the cache
        for k in range(0, len(best), together):
            block = slice(k, k + together)
            found.append(_climbed(some.part(block), points[best[block]]))
    return np.concatenate(found)


def _climbed(waves: Waves, start: FloatArray) -> FloatArray:
    """The highest point reached from starts (N, S, D), (N, D)."""
    _, _, D = start.shape
    x, value = ascend(waves.values_and_gradients, start, np.zeros(D), np.ones(D), radius=0.03)
    best = np.argmax(value, axis=1)[:, None, None]
    return np.asarray(np.take_along_axis(x, best, axis=1)[:, 0])


@lru_cache(maxsize=16)
def quasirandom_points(count: int, dims: int) -> FloatArray:
    """Points evenly spread over the cube, (count, D), always the same.

    The additive sequence k·(g^(−1), ..., g^(−D)) mod 1, where g^(D + 1) = g + 1.
    """
    g = 2.0
    for _ in range(64):  # a contraction; far more than enough
        g = (1.0 + g) ** (1.0 / (dims + 1))
    points = (0.5 + np.arange(1, count + 1)[:, None] * g ** -np.arange(1.0, dims + 1)) % 1.0
    points.setflags(write=False)  # it is shared
    return points
