"""What a fitted Matérn kernel predicts: mean and standard deviation at any points, with gradients.

Symbols: B batch, t trials, D coordinates, S points asked for; K = k + λI over the trials,
R = L⁻¹ with K = LLᵀ, v = K⁻¹y.

A trial whose value is not known, one that still runs or one that failed, takes part in the
variance, as if its value were the mean there: so the mean does not depend on it, and nothing more
is to be learnt near it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import cast

from array_api_compat import device

from sottovoce.arrays import Array, array_namespace
from sottovoce.gp.effects import Effects, EffectsAt
from sottovoce.gp.matern import Matern, bumps

_LEAST = 1e-10  # of a variance, in units of σ²


@dataclass(frozen=True, eq=False)
class SharedPrior:
    """What all take for likely of their functions: κ φ(x)ᵀw + a level, w ~ N(mean, RRᵀ).

    mean (M,), root R (M, M); level: the variance of the level; trust κ: (B,), or 1 for all.
    """

    features: Effects
    mean: Array
    root: Array
    level: float = 0.3
    trust: Array | None = None

    def at(self, x: Array) -> SharedAt:
        """What it says at x (B, S, D)."""
        xp, there = array_namespace(x), self.features.at(x)
        phi, level = there.values, xp.full_like(x[..., :1], self.level**0.5)
        mean, rows = xp.matmul(phi, self.mean), xp.matmul(phi, self.root)
        if self.trust is not None:
            mean, rows = self.trust[:, None] * mean, self.trust[:, None, None] * rows
        return SharedAt(self, there, mean, xp.concat([rows, level], axis=-1))

    def part(self, which: slice) -> SharedPrior:
        """Of some of the batch."""
        return self if self.trust is None else replace(self, trust=self.trust[which])


@dataclass(frozen=True, eq=False)
class SharedAt:
    """A shared prior at S points: mean (B, S), rows u (B, S, M + 1) with covariance u(x)ᵀu(z)."""

    of: SharedPrior
    there: EffectsAt
    mean: Array
    rows: Array

    def pull(self, by_mean: Array, by_row: Array) -> Array:
        """The gradient in the points, (B, S, D), from derivatives by the mean and the rows."""
        xp, root, trust = array_namespace(by_row), self.of.root, self.of.trust
        weights = by_mean[..., None] * self.of.mean + xp.matmul(by_row[..., :-1], root.mT)
        slope = self.there.pull(weights)
        return slope if trust is None else trust[:, None, None] * slope


@dataclass(frozen=True)
class Predictive:
    """The posterior of each batch entry's function.

    points (B, t, D); y (B, t), read where known (B, t) is true; present (B, t): trials that there
    are, known or not; None: all are known. prior: what is known of all functions, if anything.
    """

    kernel: Matern
    points: Array
    y: Array
    known: Array
    present: Array | None = None
    prior: SharedPrior | None = None
    _scaled: Array = field(init=False, repr=False, compare=False)
    _rows: Array | None = field(init=False, repr=False, compare=False)
    _root: Array = field(init=False, repr=False, compare=False)
    _v: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        xp = array_namespace(self.points)
        scaled, y, rows = self.points * self.kernel.rates, self.y, None
        near = self.kernel.variance[:, None, None] * bumps(_squares(scaled, scaled))[0]
        if self.prior is not None:
            shared = self.prior.at(self.points)
            rows, y = shared.rows, y - shared.mean
            near = near + xp.matmul(rows, rows.mT)
        root = _root(near, self.kernel.noise, self.known)
        y = xp.where(self.known, y, 0.0)[..., None]
        v = xp.matmul(root.mT, xp.matmul(root, y))[..., 0]
        if self.present is not None:
            root = _root(near, self.kernel.noise, self.present)
        for name, value in {"_scaled": scaled, "_rows": rows, "_root": root, "_v": v}.items():
            object.__setattr__(self, name, value)

    def part(self, which: slice) -> Predictive:
        """Of some of the batch, nothing worked out anew."""
        some = object.__new__(Predictive)
        for each in fields(Predictive):
            value = getattr(self, each.name)
            if isinstance(value, Matern | SharedPrior):
                value = value.part(which)
            elif value is not None:
                value = value[which]
            object.__setattr__(some, each.name, value)
        return some

    def moments(self, x: Array) -> tuple[Array, Array]:
        """The mean and the standard deviation at x: (B, S, D) -> (B, S) twice."""
        return self._moments(self._nearness(x))[:2]

    def moments_and_pull(self, x: Array) -> tuple[Array, Array, Pull]:
        """The same, and what gives the gradient of a function of both."""
        near = self._nearness(x)
        mean, deviation, white = self._moments(near)
        # ∂σ/∂near = −K⁻¹ near / σ
        weights = array_namespace(x).matmul(white, self._root) / deviation[..., None]
        return mean, deviation, Pull(self, x, near, weights, deviation)

    def _nearness(self, x: Array) -> _Nearness:
        xp = array_namespace(x)
        square = _squares(x * self.kernel.rates, self._scaled)
        near, slope = bumps(square)
        variance = self.kernel.variance[:, None, None]
        there = xp.astype(self.known if self.present is None else self.present, x.dtype)
        size = there[:, None, :] * variance
        own = near * size
        if self.prior is None:
            return _Nearness(own, slope * size, own, None)
        shared = self.prior.at(x)
        common = xp.matmul(shared.rows, cast(Array, self._rows).mT) * there[:, None, :]
        return _Nearness(own, slope * size, own + common, shared)

    def _moments(self, at: _Nearness) -> tuple[Array, Array, Array]:
        """Mean, standard deviation, and R near, (B, S, t)."""
        xp = array_namespace(at.near)
        white = xp.matmul(at.near, self._root.mT)
        variance = self.kernel.variance[:, None]
        mean = xp.matmul(at.near, self._v[..., None])[..., 0]
        if at.shared is not None:
            variance = variance + xp.vecdot(at.shared.rows, at.shared.rows)
            mean = mean + at.shared.mean
        left = variance - xp.vecdot(white, white)
        deviation = xp.sqrt(xp.maximum(left, _LEAST * variance))
        return mean, deviation, white


@dataclass(frozen=True)
class _Nearness:
    """Of points x (B, S, D) to the trials."""

    own: Array  # k(x, trials), (B, S, t)
    slope: Array  # ∂own/∂x = −slope (x − trial) rates²
    near: Array  # covariance with the trials, (B, S, t), the shared part's included
    shared: SharedAt | None


@dataclass(frozen=True)
class Pull:
    """The gradient in x (B, S, D) of any function of the prediction there."""

    of: Predictive
    x: Array
    at: _Nearness
    weights: Array  # −∂σ/∂near
    deviation: Array

    def of_moments(self, by_mean: Array, by_deviation: Array) -> Array:
        """From the function's derivatives by mean and standard deviation, (B, S): (B, S, D)."""
        by_near = by_mean[..., None] * self.of._v[:, None, :]
        by_near = by_near - by_deviation[..., None] * self.weights
        slope, shared = self.of_own(by_near), self.at.shared
        if shared is None:
            return slope
        xp = array_namespace(self.x)
        by_row = (by_deviation / self.deviation)[..., None] * shared.rows
        by_row = by_row + xp.matmul(self._there(by_near), self.of._rows)
        return slope + shared.pull(by_mean, by_row)

    def of_own(self, by_own: Array) -> Array:
        """From its derivatives by the own part's covariances with the trials: (B, S, D)."""
        xp, rates = array_namespace(self.x), self.of.kernel.rates
        pull = by_own * self.at.slope
        towards = xp.matmul(pull, self.of.points)
        return rates**2 * (towards - xp.sum(pull, axis=-1, keepdims=True) * self.x)

    def _there(self, by_near: Array) -> Array:
        """0 for trials that there are not."""
        there = self.of.known if self.of.present is None else self.of.present
        return by_near * array_namespace(by_near).astype(there, by_near.dtype)[:, None, :]


def _squares(a: Array, b: Array) -> Array:
    """Squared distances, (B, S, D) and (B, t, D) -> (B, S, t), by one matrix product."""
    xp = array_namespace(a)
    square = xp.vecdot(a, a)[:, :, None] + xp.vecdot(b, b)[:, None, :]
    square = square - 2.0 * xp.matmul(a, b.mT)
    return xp.maximum(square, 0.0)


def _root(near: Array, noise: Array, mask: Array) -> Array:
    """R = L⁻¹ over the trials that the mask names, (B, t, t); elsewhere the identity."""
    xp = array_namespace(near)
    both = mask[:, :, None] & mask[:, None, :]
    diagonal = xp.where(mask, noise[:, None], 1.0)
    eye = xp.eye(near.shape[-1], dtype=near.dtype, device=device(near))
    K = xp.where(both, near, 0.0) + diagonal[:, :, None] * eye
    return xp.linalg.inv(xp.linalg.cholesky(K))
