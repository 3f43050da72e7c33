"""What all agents have in common, learnt from one sum over them.

Before anything is known, agents try the points of a public design, dealt out among them. Agent n
has n0 points with features Φ_n (n0, M) and values y_n, taken with mean 0 and variance 1. It says
Φ_nᵀy_n, and hears

    b = (1/N) Σ_n Φ_nᵀ y_n + e,    e ~ N(0, σ²I)  the noise of the release.

With y_n = Φ̃_n ω + what is its own (of variance 1, independent; Φ̃_n has its mean row subtracted,
as y_n has its mean), b has mean Gω and covariance G/N + σ²I, where G = (1/N) Σ Φ̃_nᵀΦ̃_n. The
design is public, hence G is, and everything below is arithmetic on what was broadcast: it costs no
privacy. From the prior ω ~ N(0, τ²I) follows the posterior of ω, along the eigenvectors of G:
mean τ²g b/(τ²g² + g/N + σ²) and variance τ²(g/N + σ²)/(τ²g² + g/N + σ²).

Symbols: N agents, n0 initial points, M features, D dimensions, B batch; g, V eigenvalues and
eigenvectors of G.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import check
from sottovoce.features import Features

_CHUNK = 4096  # agents at a time
_NEVER = 1e-15  # keeps 0/0 away where there is neither signal nor noise


@dataclass(frozen=True)
class Common:
    """The posterior of the weights ω of the function that all agents share: N(mean, RRᵀ)."""

    mean: NDArray[np.float64]  # (M,)
    root: NDArray[np.float64]  # (M, M), R

    def drawn(self, normals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Draws of ω from standard normals: (B, M) -> (B, M)."""
        return np.asarray(self.mean + normals @ self.root.T)


@dataclass(frozen=True, eq=False)
class Pool:
    """The public design and what follows from it.

    points (N, n0, D) of the cube; prior τ²: how much of an agent's variance is taken to be common.
    """

    points: NDArray[np.float64]
    features: Features
    prior: float

    def __post_init__(self) -> None:
        shape = self.points.shape
        check(len(shape) == 3 and shape[0] >= 1, "a design must be (agents, points, D)", got=shape)
        check(0 < self.prior < math.inf, "the common prior must be above 0", prior=self.prior)

    @cached_property
    def _spectrum(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        total = np.zeros((self.features.count,) * 2)
        for k in range(0, len(self.points), _CHUNK):
            rows = self.features(self.points[k : k + _CHUNK])
            rows = rows - rows.mean(axis=1, keepdims=True)
            flat = rows.reshape(-1, rows.shape[-1])
            total += flat.T @ flat
        g, V = np.linalg.eigh(total / len(self.points))
        return np.maximum(g, 0.0), V

    def learnt(self, vector: NDArray[np.float64], noise: float) -> Common:
        """What the broadcast b (M,) says of ω; noise is σ."""
        check(vector.shape == (self.features.count,), "b must be (M,)", shape=vector.shape)
        (g, V), unclear = self._spectrum, self._unclear(noise)
        mean = V @ (self.prior * g / (self.prior * g * g + unclear) * (V.T @ vector))
        return Common(mean, V * np.sqrt(self._left(noise)))

    def revealed(self, noise: float) -> float:
        """The share of the common function's variance that a release at noise σ is to reveal."""
        _, V = self._spectrum
        some = self.features(self.points[: min(len(self.points), 100)]).reshape(-1, len(V))
        left = np.mean(((some @ V) ** 2) @ self._left(noise)) / self.prior
        return float(1.0 - left)

    def signal(self, noise: float) -> float:
        """The norm of the sum that the prior leads to expect, over that of a release's noise."""
        g, _ = self._spectrum
        expected = math.sqrt(self.prior * float(np.sum(g * g)))
        return expected / (noise * math.sqrt(len(g))) if noise > 0 else math.inf

    def _unclear(self, noise: float) -> NDArray[np.float64]:
        g, _ = self._spectrum
        return np.asarray(g / len(self.points) + noise * noise + _NEVER)

    def _left(self, noise: float) -> NDArray[np.float64]:
        """The posterior's variance along each eigenvector."""
        (g, _), unclear = self._spectrum, self._unclear(noise)
        return np.asarray(self.prior * unclear / (self.prior * g * g + unclear))
