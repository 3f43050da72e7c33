"""Fourier features of the squared exponential kernel, shared through one public seed.

Symbols: M features, D dimensions; s_j frequencies ~ N(0, I/ℓ²), (M, D); b_j phases ~ U[0, 2π),
(M,); φ(x)_j = sqrt(2/M) cos(s_j·x + b_j), scaled so that ‖φ(x)‖ = 1 for every x.
Frequencies are drawn at random, as in the paper, or quasi-random over their distribution with a
cosine and a sine for each, which leaves less to the luck of the draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from array_api_compat import device, is_numpy_array
from scipy.special import ndtri

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import check
from sottovoce.gp.quasirandom import public_uniforms, quasirandom_points

Basis = Literal["random", "quasirandom", "effects"]
BASES: tuple[Basis, ...] = ("random", "quasirandom", "effects")

# Part of what the seed means: changing it, or anything below, changes every study's features.
_LABEL = b"sottovoce/features/v1"

# Points are valued in blocks of this many: the (BLOCK, M) arrays in between stay in the cache,
# and small enough for malloc to keep their pages, as fresh pages cost more than the arithmetic.
BLOCK = 125


def in_blocks(part: Callable[[slice], Callable[[Array], Array]], x: Array) -> Array:
    """part(entries)(x[entries]) for points x (B, K, D), a block at a time, joined: (B, K, ...).

    NumPy takes the entries of the batch one by one, for the reason above; on a device they stay
    together, to keep it busy.
    """
    xp = array_namespace(x)
    B, K = x.shape[:2]
    size = 1 if is_numpy_array(x) else B
    rows = []
    for b in range(0, B, size):
        some = slice(b, b + size)
        values = part(some)
        row = [values(x[some, i : i + BLOCK]) for i in range(0, K, BLOCK)]
        rows.append(row[0] if len(row) == 1 else xp.concat(row, axis=1))
    return rows[0] if len(rows) == 1 else xp.concat(rows)


def cosine(half: Array, xp: Any) -> Array:
    """cos(2·half), as 2/(1 + tan²) − 1.

    To rounding the same as cos, and far faster: NumPy has a vectorised tangent in double
    precision but no vectorised cosine. At odd multiples of π/2 the tangent is large, never
    infinite, and the quotient falls to 0 as it should.
    """
    t = xp.tan(half)
    t *= t
    t += 1.0
    wave = 2.0 / t
    wave -= 1.0
    return wave


def cosine_and_sine(half: Array, xp: Any) -> tuple[Array, Array]:
    """cos(2·half) and sin(2·half) from one tangent."""
    t = xp.tan(half)
    r = 2.0 / (t * t + 1.0)
    return r - 1.0, t * r


@dataclass(frozen=True)
class Features:
    """The map φ: `frequencies` (M, D) and `phases` (M,)."""

    frequencies: Array
    phases: Array

    @property
    def count(self) -> int:
        """M, the number of features."""
        return int(self.phases.shape[0])

    def __call__(self, x: Array) -> Array:
        """φ(x), of unit norm: (..., D) -> (..., M)."""
        xp = array_namespace(x)
        frequencies = xp.asarray(self.frequencies, dtype=x.dtype, device=device(x))
        phases = xp.asarray(self.phases, dtype=x.dtype, device=device(x))
        # the factor sqrt(2/M) cancels in the scaling to unit norm
        wave = cosine(xp.matmul(x, 0.5 * frequencies.T) + 0.5 * phases, xp)
        square = xp.vecdot(wave, wave)[..., None]
        return wave / xp.sqrt(xp.where(square > 0, square, xp.ones_like(square)))


def shared_features(
    seed: int, count: int, dims: int, lengthscale: float, basis: Basis = "random"
) -> Features:
    """The M = `count` features that everybody who knows the seed has, on any machine."""
    check(count >= 1 and dims >= 1, "features and dims must be at least 1", M=count, D=dims)
    check(
        math.isfinite(lengthscale) and lengthscale > 0,
        "lengthscale must be finite and above 0",
        lengthscale=lengthscale,
    )
    check(
        isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0,
        "seed must be a non-negative integer",
        seed=seed,
    )
    check(basis in BASES, f"basis must be one of {BASES}", basis=basis)
    label = _LABEL + f"/{int(seed)}/{count}/{dims}".encode()
    if basis == "quasirandom":
        check(count % 2 == 0, "quasi-random features come in pairs: M must be even", M=count)
        waves = ndtri(quasirandom_points(label + b"/spread", count // 2, dims)) / lengthscale
        quarter = np.repeat([0.0, -0.5 * np.pi], count // 2)  # a cosine and a sine of each
        return Features(np.concatenate([waves, waves]), quarter)
    uniforms = public_uniforms(label, count * (dims + 1))
    normals = ndtri(uniforms[: count * dims]).reshape(count, dims)
    return Features(normals / lengthscale, 2.0 * np.pi * uniforms[count * dims :])
