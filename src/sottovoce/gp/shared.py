"""The shared model: a function that all agents have in common, learnt from sums over them.

Before anything is known, agents try the points of a public design, dealt out among them. Agent n
has n0 points with features Φ_n (n0, M) and values y_n, taken with mean 0 and variance 1. First it
says Φ_nᵀy_n, and all hear

    b = (1/N) Σ_n Φ_nᵀ y_n + e,    e ~ N(0, σ²I)  the noise of the release.

With y_n = Φ̃_n ω + what is its own (of variance 1, independent; Φ̃_n has its mean row subtracted,
as y_n has its mean), b has mean Gω and covariance G/N + σ²I, where G = (1/N) Σ Φ̃_nᵀΦ̃_n. Later it
says what its values tell beyond what all know by then (its residual), a times as loud. Told of no
more than its first points, that has mean aH(ω − μ), μ what all know, and own parts of covariance
a²H/N; H is the mean over agents of Φ_nᵀ(Φ_nΦ_nᵀ + 11ᵀ + λI)⁻¹Φ_n.

The design is public, hence G and H are, and everything below is arithmetic on what was broadcast:
it costs no privacy. From the prior ω ~ N(0, τ²I) follows the posterior, along the eigenvectors of
G, release by release. Where one has mean s(ω − μ) and covariance s/N + σ²/a², a variance v
becomes v(s/N + σ²/a²)/(s²v + s/N + σ²/a²), and μ moves by sv b/(s²v + s/N + σ²/a²). Of H its
diagonal is taken, as if it had the same eigenvectors.

Symbols: N agents, n0 initial points, M features, D dimensions, B batch, k releases; g, V
eigenvalues and eigenvectors of G, h the diagonal of VᵀHV.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from array_api_compat import device
from numpy.typing import NDArray

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import check
from sottovoce.gp.features import Features

RESIDUAL_GAIN = 2.5  # a: residuals are shorter than the first sums, and the clip is the same
_CHUNK = 4096  # agents at a time
_SOME = 100  # agents are enough for a mean over the design
_NEVER = 1e-15  # keeps 0/0 away where there is neither signal nor noise


@dataclass(frozen=True)
class SharedFunction:
    """A function that agents share: φ(x)ᵀω, its weights (M,) one for all."""

    features: Features
    weights: Array

    def at(self, points: Array) -> Array:
        """Its values: (B, t, D) -> (B, t)."""
        xp = array_namespace(points)
        weights = xp.asarray(self.weights, dtype=points.dtype, device=device(points))
        return xp.matmul(self.features(points), weights)


@dataclass(frozen=True)
class SharedPosterior:
    """The posterior of the weights ω of the function that all agents share: N(mean, RRᵀ)."""

    mean: NDArray[np.float64]  # (M,)
    root: NDArray[np.float64]  # (M, M), R

    def drawn(self, normals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Draws of ω from standard normals: (B, M) -> (B, M)."""
        return np.asarray(self.mean + normals @ self.root.T)


@dataclass(frozen=True, eq=False)
class PooledModel:
    """The public design and what follows from it.

    points (N, n0, D) of the cube; prior τ²: how much of an agent's variance is taken to be shared;
    regularisation λ: with which agents take in their values, for residuals.
    """

    points: NDArray[np.float64]
    features: Features
    prior: float
    regularisation: float

    def __post_init__(self) -> None:
        shape = self.points.shape
        check(
            len(shape) == 3 and shape[0] >= 1, "a design must be (agents, points, D)", shape=shape
        )
        check(0 < self.prior < math.inf, "the shared prior must be above 0", prior=self.prior)

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

    @cached_property
    def _residual_share(self) -> NDArray[np.float64]:
        """h: how much of what is missing an agent's first points tell, along each eigenvector."""
        rows = self.features(self.points[:_SOME])
        seen = rows @ np.swapaxes(rows, -1, -2) + 1.0 + self.regularisation * np.eye(rows.shape[1])
        along = rows @ self._spectrum[1]
        return np.asarray(np.sum(along * np.linalg.solve(seen, along), axis=1).mean(axis=0))

    def posterior(self, vectors: NDArray[np.float64], noise: float) -> SharedPosterior:
        """What all releases so far (k, M) say of ω; noise is σ, the same in each."""
        count, shape = self.features.count, vectors.shape
        check(len(shape) == 2 and shape[1] == count, "releases must be (k, M)", shape=shape)
        _, V = self._spectrum
        mean, left = np.zeros(count), np.full(count, self.prior)
        for k, release in enumerate(vectors @ V):
            share, loud = self._gain(k)
            seen = share * share * left + self._other_variance(k, noise)
            mean = mean + share * left / seen * release / loud
            left = left * self._other_variance(k, noise) / seen
        return SharedPosterior(V @ mean, V * np.sqrt(left))

    def revealed(self, noise: float, releases: int = 1) -> float:
        """The share of the shared function's variance that releases at noise σ are to reveal."""
        silence = np.zeros((releases, self.features.count))
        some = self.features(self.points[:_SOME]).reshape(-1, self.features.count)
        left = np.mean(np.sum((some @ self.posterior(silence, noise).root) ** 2, axis=1))
        return float(1.0 - left / self.prior)

    def signal(self, noise: float) -> float:
        """The norm of the first sum that the prior leads to expect, over that of its noise."""
        g, _ = self._spectrum
        expected = math.sqrt(self.prior * float(np.sum(g * g)))
        return expected / (noise * math.sqrt(len(g))) if noise > 0 else math.inf

    def _gain(self, release: int) -> tuple[NDArray[np.float64], float]:
        """How much of ω − μ the release has, along each eigenvector, and how loud."""
        return (self._spectrum[0], 1.0) if release == 0 else (self._residual_share, RESIDUAL_GAIN)

    def _other_variance(self, release: int, noise: float) -> NDArray[np.float64]:
        """The variance of what it has besides: own parts, and noise."""
        share, loud = self._gain(release)
        return np.asarray(share / len(self.points) + (noise / loud) ** 2 + _NEVER)
