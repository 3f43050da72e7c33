"""Where the best of a shared function may lie, as far as all know it, and what is said of it then.

Of S public points each has a chance π_s: how often it is among the best in draws of the function
from what all know. Once something is known, an error matters where π is, so what is to be known
well is G, the covariance of the features there, with a rest for the whole space.

A message is W u, with u what an agent knows, of covariance K over agents, W any matrix. Under
isotropic noise of the sum, and with the mean square length of messages given, what noise adds to
the error, tr(G W⁻¹W⁻ᵀ), is least for WᵀW = K⁻¹ # G, the geometric mean of the two matrices; where
both are diagonal W_jj = (g_j/k_j)^¼. Of all such W the symmetric one is taken, which is one matrix,
whatever library finds it.

All of it is public: points and draws come from a label.

Symbols: M features, S points, n sets of points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sottovoce.gp.effects import Effects
from sottovoce.gp.quasirandom import public_uniforms

Matrix = NDArray[np.float64]
LABEL = b"sottovoce/promise/v1"  # of the points, too
_DRAWS = 256
_BEST = 0.03  # the share of points that are among the best of a draw
_FOCUS = 0.8  # what they count in G, beside the whole space
_NOWHERE = 1e-6  # of a variance: below it all of the best points are one
_APART = 0.1  # of K off its diagonal, what is not believed: it is of a few points alone
_LEAST = 1e-9  # of an eigenvalue, beside the largest


@dataclass(frozen=True, eq=False)
class Promise:
    """The public points (S, D), and the features that a shared function is made of."""

    points: Matrix
    features: Effects

    @cached_property
    def rows(self) -> Matrix:
        """φ at the points, (S, M)."""
        return np.asarray(self.features(self.points))

    @cached_property
    def _normals(self) -> Matrix:
        count = self.rows.shape[1]
        uniforms = public_uniforms(LABEL + b"/draws", _DRAWS * count)
        return np.asarray(ndtri(uniforms)).reshape(_DRAWS, count)

    def chances(self, mean: Matrix, covariance: Matrix) -> Matrix:
        """π, (S,), if the weights are N(mean (M,), covariance (M, M))."""
        jitter = 1e-12 * float(np.trace(covariance)) + 1e-300
        root = np.linalg.cholesky(covariance + jitter * np.eye(len(mean)))
        values = (mean + self._normals @ root.T) @ self.rows.T
        most = max(1, round(_BEST * len(self.points)))
        best = np.argpartition(-values, most - 1, axis=1)[:, :most]
        return np.bincount(best.ravel(), minlength=len(self.points)) / best.size

    def relevance(self, chances: Matrix | None) -> Matrix:
        """G, (M, M), of trace 1; None: all of the space matters alike."""
        everywhere = np.diag(self.features.variance / np.sum(self.features.variance))
        if chances is None:
            return everywhere
        apart = self.rows - chances @ self.rows
        there = (apart.T * chances) @ apart
        size = float(np.trace(there))
        if size < _NOWHERE:
            return everywhere
        return _FOCUS * there / size + (1.0 - _FOCUS) * everywhere

    def sets(self, chances: Matrix, sets: int, count: int) -> Matrix:
        """φ at points as likely as they promise much, (n, count, M)."""
        u = public_uniforms(LABEL + b"/sets", sets * count).reshape(sets, count)
        ends = np.cumsum(chances)
        chosen = np.searchsorted(ends, u * ends[-1], side="right")
        return np.asarray(self.rows[np.minimum(chosen, len(ends) - 1)])


def weighing(relevance: Matrix, said: Matrix) -> Matrix:
    """W, (M, M): G and K as above."""
    believed = (1.0 - _APART) * said + _APART * np.diag(np.diag(said))
    half, inverse = _powers(believed, 0.5), _powers(believed, -0.5)
    return _powers(inverse @ _powers(half @ relevance @ half, 0.5) @ inverse, 0.5)


def _powers(matrix: Matrix, exponent: float) -> Matrix:
    """A symmetric matrix to a power, its least eigenvalues lifted."""
    sizes, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    sizes = np.maximum(sizes, _LEAST * float(sizes[-1]) + 1e-300)
    return np.asarray((vectors * sizes**exponent) @ vectors.T)
