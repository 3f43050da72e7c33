"""The squared exponential kernel, one or a batch of them.

Symbols: B batch, s and t numbers of points, D dimensions; ℓ length scale, σ² variance of the
function, λ variance of the observation noise. k(x, z) = σ² exp(−½ Σ_d ((x_d − z_d)/ℓ_d)²).
An agent that knows of a common function may take its own to be a multiple of it plus a draw of
the GP; the trust s² is the variance of the factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import check


def lifted(value: float | Array, axes: int) -> float | Array:
    """A number as it is; a batch (...) of numbers with `axes` axes of length 1 behind it."""
    batch: Array = value
    return batch if getattr(batch, "ndim", 0) == 0 else batch[(..., *(None,) * axes)]


@dataclass(frozen=True)
class Kernel:
    """A squared exponential kernel with its observation noise, or a batch of B of them.

    Numbers are checked; arrays are taken as they come.

    Args:
        lengthscale: ℓ, a number, (B,), or (B, D) for one per dimension.
        variance, noise: σ² of the function and λ of the observation noise, numbers or (B,).
        trust: s², variance of the factor on a shared function, a number or (B,).

    Example:
        >>> Kernel(np.array([0.1, 0.3]), variance=2.0).one(1).lengthscale
        0.3
    """

    lengthscale: float | Array
    variance: float | Array = 1.0
    noise: float | Array = 1e-2
    trust: float | Array = 0.0

    def __post_init__(self) -> None:
        for name in ("lengthscale", "variance", "noise"):
            value = getattr(self, name)
            if getattr(value, "ndim", 0) == 0:
                rule = f"{name} must be finite and above 0"
                check(math.isfinite(value) and value > 0, rule, **{name: value})
        if getattr(self.trust, "ndim", 0) == 0:
            rule = "trust must be finite and at least 0"
            check(math.isfinite(self.trust) and self.trust >= 0, rule, trust=self.trust)

    @property
    def parts(self) -> tuple[float | Array, ...]:
        """ℓ, σ², λ, s²."""
        return self.lengthscale, self.variance, self.noise, self.trust

    def part(self, which: Array) -> Kernel:
        """The kernels of some of the batch, by mask or index; what all share stays as it is."""
        parts: tuple[Array, ...] = self.parts
        return Kernel(*(p if getattr(p, "ndim", 0) == 0 else p[which] for p in parts))

    def one(self, k: int = 0) -> Kernel:
        """Entry k of the batch as a kernel of numbers (for one length scale, not per dimension)."""
        return Kernel(*(float(part) for part in self.part(k).parts))

    def scaled(self, x: Array) -> Array:
        """The points x (..., s, D) in units of the length scale."""
        length: Array = self.lengthscale
        per_dimension = getattr(length, "ndim", 0) == 2
        return x / (length[:, None, :] if per_dimension else lifted(length, 2))


def covariance(kernel: Kernel, x: Array, z: Array) -> Array:
    """k between all pairs of points: (..., s, D) and (..., t, D) -> (..., s, t).

    Built from differences, so that it is exactly symmetric and exactly σ² where x = z.
    """
    xp = array_namespace(x, z)
    a, b = kernel.scaled(x), kernel.scaled(z)
    # one dimension at a time: no (s, t, D) array is ever made
    distance = (a[..., :, None, 0] - b[..., None, :, 0]) ** 2
    for d in range(1, x.shape[-1]):
        distance = distance + (a[..., :, None, d] - b[..., None, :, d]) ** 2
    return lifted(kernel.variance, 2) * xp.exp(-0.5 * distance)
