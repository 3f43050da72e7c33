"""The weight-space posterior, and draws from the exact GP posterior.

Symbols: B batch, t observations, M features, D dimensions, K points, F frequencies of a prior
draw, r rank. Φ (..., t, M) features of the history, y (..., t) observations, λ noise variance,
Σ = ΦᵀΦ + λI, ν = Σ⁻¹Φᵀy, β scale of the draw's spread; ω0, ε standard normals; R (..., t, t) the
inverse root of ΦΦᵀ + λI: lower triangular, RᵀR = (ΦΦᵀ + λI)⁻¹.

All go through the dual (Matheron) form, which costs O(t²M): a prior draw, corrected by what it
got wrong at the observations, ω = βω0 + Φᵀ(ΦΦᵀ + λI)⁻¹(y − β(Φω0 + √λ ε)), is N(ν, β²λΣ⁻¹).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import device
from numpy.typing import NDArray

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import check
from sottovoce.gp.features import cosine, cosine_and_sine, in_blocks
from sottovoce.gp.kernel import Kernel, covariance, lifted


def mean(phi: Array, y: Array, lam: float | Array) -> Array:
    """ν, (..., M), from phi (..., t, M), y (..., t) and λ, a number or a batch (...).

    Where there is no observation, the row of phi and the entry of y are zero: such rows change
    nothing, so histories of different lengths share one array. t = 0 is allowed.
    """
    return _pulled_back(phi, _solved(phi, y, lam))


def draw(
    phi: Array,
    y: Array,
    lam: float | Array,
    prior: Array,
    noise: Array,
    scale: float | Array = 1.0,
    root: Array | None = None,
) -> Array:
    """A draw ω ~ N(ν, β²λΣ⁻¹), (..., M).

    phi, y and lam as in `mean`; prior (..., M) and noise (..., t) are standard normals, scale
    is β, a number or a batch (...). Whoever has kept R gives it as root, and saves the O(t³).
    """
    xp = array_namespace(phi, y)
    start = lifted(scale, 1) * prior
    seen = xp.matmul(phi, start[..., None])[..., 0]
    error = y - seen - lifted(scale * lam**0.5, 1) * noise
    solved = _solved(phi, error, lam) if root is None else _refined(root, phi, error, lam)
    return start + _pulled_back(phi, solved)


def next_root_row(root: Array, similar: Array, lam: float) -> Array:
    """The row that one more observation adds to R: (..., t, t) -> (..., t + 1).

    similar (..., t + 1) are its inner products φ·φ_i with the t before it, and with itself.
    """
    xp = array_namespace(root, similar)
    across = xp.matmul(root, similar[..., :-1, None])
    # what is left of its variance is never below λ but by rounding
    left = similar[..., -1] + lam - xp.vecdot(across[..., 0], across[..., 0])
    left = xp.where(left > lam, left, xp.full_like(left, lam))[..., None]
    back = xp.matmul(xp.matrix_transpose(root), across)[..., 0]
    return xp.concat([-back, xp.ones_like(left)], axis=-1) / xp.sqrt(left)


def _refined(root: Array, phi: Array, y: Array, lam: float | Array) -> Array:
    """(ΦΦᵀ + λI)⁻¹y, (..., t), by R and one step of refinement.

    The step makes up for the rounding that R gathers while it grows, so that the answer is as
    good as a solution from scratch.
    """
    xp = array_namespace(phi, y)

    def times_inverse(error: Array) -> Array:
        inner = xp.matmul(root, error[..., None])
        return xp.matmul(xp.matrix_transpose(root), inner)[..., 0]

    x = times_inverse(y)
    seen = xp.matmul(phi, _pulled_back(phi, x)[..., None])[..., 0]
    return x + times_inverse(y - seen - lifted(lam, 1) * x)


def _solved(phi: Array, y: Array, lam: float | Array) -> Array:
    """(ΦΦᵀ + λI)⁻¹y, (..., t)."""
    xp = array_namespace(phi, y)
    if getattr(lam, "ndim", 0) == 0:
        check(float(lam) > 0, "lam must be above 0", lam=lam)
    eye = xp.eye(phi.shape[-2], dtype=phi.dtype, device=device(phi))
    gram = xp.matmul(phi, xp.matrix_transpose(phi)) + lifted(lam, 2) * eye
    return xp.linalg.solve(gram, y[..., None])[..., 0]


def _pulled_back(phi: Array, coefficients: Array) -> Array:
    """Φᵀ times coefficients (..., t), (..., M)."""
    xp = array_namespace(phi)
    return xp.matmul(xp.matrix_transpose(phi), coefficients[..., None])[..., 0]


def exact_features(kernel: Kernel, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """A factor (K, r) with factor · factorᵀ = k(points, points) to rounding.

    On a finite domain it turns the weight-space posterior into the exact GP: `draw` with
    phi = factor[history], lam = kernel.noise and M = r gives ω, and factor · ω is a draw of the
    GP posterior at all K points. For one kernel with a single length scale, not a batch.
    """
    check(
        getattr(kernel.lengthscale, "ndim", 0) == 0 and getattr(kernel.variance, "ndim", 0) == 0,
        "exact features are for one kernel, not a batch",
    )
    values, vectors = np.linalg.eigh(covariance(kernel, points, points))
    kept = values > 1e-14 * values[-1]
    # an eigenvector's sign is the library's whim; here it is fixed
    towards = np.sin(np.arange(1.0, len(points) + 1)) @ vectors[:, kept]
    signs = np.where(towards < 0, -1.0, 1.0)
    return np.asarray(vectors[:, kept] * (signs * np.sqrt(values[kept])))


@dataclass(frozen=True)
class PathwiseDraw:
    """A drawn function: Σ_j c_j cos(s_j·x + b_j) + Σ_i v_i k(x, x_i), one per batch entry.

    frequencies s (B, F, D), phases b (B, F), amplitudes c (B, F); points x_i (B, t, D) and
    coefficients v (B, t), zero where there is no observation.
    """

    frequencies: Array
    phases: Array
    amplitudes: Array
    points: Array
    coefficients: Array
    kernel: Kernel
    _parts: tuple[Array, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        xp = array_namespace(self.frequencies)
        z = self.kernel.scaled(self.points)
        parts = (
            xp.matrix_transpose(0.5 * self.frequencies),
            0.5 * self.phases[:, None, :],
            self.amplitudes[..., None],
            xp.matrix_transpose(z),
            0.5 * xp.vecdot(z, z)[:, None, :],
            (lifted(self.kernel.variance, 1) * self.coefficients)[:, None, :],
            self.kernel.scaled(z),
        )
        object.__setattr__(self, "_parts", parts)

    def values(self, x: Array) -> Array:
        """The function at x: (B, K, D) -> (B, K)."""
        return in_blocks(self._part, x)

    def _part(self, entries: slice) -> Callable[[Array], Array]:
        """The functions of some entries of the batch."""
        parts = tuple(part[entries] for part in self._parts)
        xp = array_namespace(self.frequencies)
        return partial(_path, xp, self.kernel.part(entries), parts)

    def values_and_gradients(self, x: Array) -> tuple[Array, Array]:
        """The function and its gradient at x: (B, K, D) -> (B, K) and (B, K, D)."""
        xp = array_namespace(x)
        frequencies, phases, amplitudes, points, half_square, v, pull = self._parts
        angle = xp.matmul(x, frequencies)
        angle += phases
        cos, sin = cosine_and_sine(angle, xp)
        wave = xp.matmul(cos, amplitudes)
        sin *= amplitudes.mT
        z = self.kernel.scaled(x)
        near = _bumps(z, points, half_square, xp)
        near *= v
        bump = xp.sum(near, axis=-1, keepdims=True)
        # ∇k(x, x_i) = k(x, x_i) (x_i − x)/ℓ²
        gradient = xp.matmul(near, pull) - self.kernel.scaled(bump * z)
        gradient -= xp.matmul(sin, self.frequencies)
        return (wave + bump)[..., 0], gradient


def _path(xp: Any, kernel: Kernel, parts: tuple[Array, ...], x: Array) -> Array:
    """The drawn functions with these parts at x: (b, K, D) -> (b, K)."""
    frequencies, phases, amplitudes, points, half_square, v, _ = parts
    angle = xp.matmul(x, frequencies)
    angle += phases
    wave = xp.matmul(cosine(angle, xp), amplitudes)
    near = _bumps(kernel.scaled(x), points, half_square, xp)
    return (wave + xp.matmul(near, v.mT))[..., 0]


def _bumps(z: Array, points: Array, half_square: Array, xp: Any) -> Array:
    """exp(−½‖z − z_i‖²), (B, K, t), by one matrix product: x and x_i in units of ℓ."""
    exponent = xp.matmul(z, points)
    exponent -= half_square
    exponent -= 0.5 * xp.vecdot(z, z)[..., None]
    return xp.exp(exponent)


def pathwise_draw(
    kernel: Kernel,
    points: Array,
    y: Array,
    mask: Array,
    frequencies: Array,
    amplitudes: Array,
    noise: Array,
    scale: float | Array = 1.0,
) -> PathwiseDraw:
    """A draw from the GP posterior GP(μ, β²σ²) as a function of x.

    points (B, t, D), y (B, t), mask (B, t) true where there is an observation (what stands
    elsewhere must be finite, and changes nothing); frequencies (B, F, D), amplitudes (B, F, 2)
    and noise (B, t) are standard normals; scale is β, a number or (B,). The prior draw is
    f0 = sqrt(σ²/F) Σ_j (a_j cos s_j·x + a'_j sin s_j·x); the correction at the data is exact.
    """
    xp = array_namespace(points, y)
    path = _prior_path(kernel, frequencies, amplitudes, scale)
    error = y - _along(path, points) - lifted(scale * kernel.noise**0.5, 1) * noise
    v = xp.linalg.solve(_gram(kernel, points, mask), xp.where(mask, error, 0.0)[..., None])
    return PathwiseDraw(*path, points, v[..., 0], kernel)


def pathwise_mean(kernel: Kernel, points: Array, y: Array, mask: Array) -> PathwiseDraw:
    """The mean of that posterior, μ(x) = Σ_i v_i k(x, x_i), as a function of x; no draws."""
    xp = array_namespace(points, y)
    like = {"dtype": points.dtype, "device": device(points)}
    still = xp.zeros((points.shape[0], 1, points.shape[-1]), **like)  # one wave of no height
    flat = xp.zeros((points.shape[0], 1, 2), **like)
    return pathwise_draw(kernel, points, y, mask, still, flat, xp.zeros_like(y))


@dataclass(frozen=True)
class SharedTerm:
    """A shared function, and the draws of how an agent's function leans on it."""

    seen: Array  # (B, t), its values at the observations
    normals: Array  # (B, 2), standard normals: of the factor on it, and of the level


def pathwise_joint(
    kernel: Kernel,
    points: Array,
    y: Array,
    mask: Array,
    term: SharedTerm,
    draws: tuple[Array, Array, Array],
    scale: float | Array = 1.0,
) -> tuple[PathwiseDraw, Array]:
    """A draw from the posterior of own part + factor · shared function + level.

    As `pathwise_draw`, with its frequencies, amplitudes and noise as `draws`; the factor's prior
    variance is the kernel's trust, (B,), the level's is the mean square m of y, as in
    `fit.fit_joint`. Returns the own part and the factor, (B,); where the sum is largest
    does not depend on the level.
    """
    xp = array_namespace(points, y)
    frequencies, amplitudes, noise = draws
    path = _prior_path(kernel, frequencies, amplitudes, scale)
    y, shared = xp.where(mask, y, 0.0), xp.where(mask, term.seen, 0.0)
    count = xp.sum(xp.astype(mask, y.dtype), axis=-1)
    m = xp.vecdot(y, y) / xp.where(count > 0, count, 1.0)
    trust, level = kernel.trust + xp.zeros_like(m), xp.where(m > 0, m, 1.0)
    factor = scale * xp.sqrt(trust) * term.normals[:, 0]
    at_zero = scale * xp.sqrt(level) * term.normals[:, 1]
    error = y - _along(path, points) - lifted(scale * kernel.noise**0.5, 1) * noise
    error = error - factor[:, None] * shared - at_zero[:, None]
    both = xp.logical_and(mask[:, :, None], mask[:, None, :])
    gram = _gram(kernel, points, mask) + xp.where(both, level[:, None, None], 0.0)
    gram = gram + trust[:, None, None] * shared[:, :, None] * shared[:, None, :]
    v = xp.linalg.solve(gram, xp.where(mask, error, 0.0)[..., None])[..., 0]
    return PathwiseDraw(*path, points, v, kernel), factor + trust * xp.vecdot(v, shared)


def _prior_path(
    kernel: Kernel, frequencies: Array, amplitudes: Array, scale: float | Array
) -> tuple[Array, Array, Array]:
    """The frequencies, phases and amplitudes of the cosines that a prior draw is made of."""
    xp = array_namespace(frequencies)
    a, b = amplitudes[..., 0], amplitudes[..., 1]
    # a cos θ + b sin θ = hypot(a, b) cos(θ − atan2(b, a)): one cosine in place of two
    spread = lifted(scale * kernel.variance**0.5, 1) / frequencies.shape[-2] ** 0.5
    return kernel.scaled(frequencies), -xp.atan2(b, a), spread * xp.sqrt(a * a + b * b)


def _along(path: tuple[Array, Array, Array], points: Array) -> Array:
    """A prior draw at points: (B, t, D) -> (B, t)."""
    xp = array_namespace(points)
    s, phases, c = path
    angle = xp.matmul(points, 0.5 * xp.matrix_transpose(s)) + 0.5 * phases[:, None, :]
    return xp.matmul(cosine(angle, xp), c[..., None])[..., 0]


def _gram(kernel: Kernel, points: Array, mask: Array) -> Array:
    """k + λI at points, (B, t, t); only λ on the diagonal where there is no observation."""
    xp = array_namespace(points)
    both = xp.logical_and(mask[:, :, None], mask[:, None, :])
    eye = xp.eye(points.shape[-2], dtype=points.dtype, device=device(points))
    near = xp.where(both, covariance(kernel, points, points), 0.0)
    return near + lifted(kernel.noise, 2) * eye
