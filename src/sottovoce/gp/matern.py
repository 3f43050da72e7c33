"""The Matérn kernel with a length scale for each parameter, fitted with priors: a batch at once.

Symbols: B batch, t observations, D coordinates, A parameters; ℓ_a length scale of a parameter, σ²
variance of the function, λ variance of the noise; r² = Σ_a d_a²/ℓ_a², where d_a is how far apart
two points are in parameter a: a difference of numbers in [0, 1], or 0 for the same choice and 1
for another. k = σ² (1 + √5 r + 5r²/3) exp(−√5 r), the Matérn kernel of smoothness 5/2.

θ (B, A + 2) holds log ℓ_a, log σ², log λ. What is maximised is log p(y) + log p(θ), for values y of
about unit variance, with log-normal priors: ℓ around √A/4, as points in a cube of more
dimensions lie further apart; σ² around 1; λ small but free to grow.

With something shared by all there are two models: alone, and together with κ times the shared
function, log κ a further number of θ. Which of them holds is decided for each history by the
density of its own values: together as long as log p is larger than alone by n/20 − 1 after n
values. So at first, when values say little, sharing is believed; later it has to be borne out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

from array_api_compat import device

from sottovoce.arrays import Array, array_namespace
from sottovoce.optim.bfgs import ascend

Objective = Callable[[Array], tuple[Array, Array]]

_ROOT5 = math.sqrt(5.0)
# (centre, standard deviation) of the priors' logarithms, and bounds
_LENGTH = (0.25, 1.0)  # times √A
_VARIANCE = (1.0, 1.0)
_NOISE = (1e-4, 2.0)
_TRUST = (0.7, 0.7)
_PROOF = (-1.0, 0.05)  # what the gain in log density must be to trust: at n = 0, and for each n
_BOUNDS = ((0.02, 50.0), (0.05, 20.0), (1e-6, 2.0), (0.02, 3.0))
# (ℓ/√A, σ², λ, κ) to climb from: smooth, wavy, mostly noise
_GUESSES = ((0.5, 1.0, 1e-3, 0.5), (0.2, 1.0, 1e-3, 0.5), (0.7, 0.5, 0.3, 0.5))


@dataclass(frozen=True)
class Coordinates:
    """Which parameter each coordinate of the cube belongs to, and what its square counts.

    owner: D numbers from 0 to A − 1. weight: D numbers: 1, or ½ for a choice's coordinates, as two
    choices differ in two of them.
    """

    owner: tuple[int, ...]
    weight: tuple[float, ...]

    @property
    def parameters(self) -> int:
        """A."""
        return max(self.owner) + 1

    def squares(self, points: Array) -> Array:
        """d_a² between all pairs of points: (B, t, D) -> (B, A, t, t)."""
        xp = array_namespace(points)
        parts: list[Array] = [None] * self.parameters
        for d, (a, weight) in enumerate(zip(self.owner, self.weight, strict=True)):
            square = weight * (points[:, :, None, d] - points[:, None, :, d]) ** 2
            parts[a] = square if parts[a] is None else parts[a] + square
        return xp.stack(parts, axis=1)


@dataclass(frozen=True)
class Matern:
    """A batch of kernels: lengthscale (B, A), variance and noise (B,)."""

    coordinates: Coordinates
    lengthscale: Array
    variance: Array
    noise: Array

    @cached_property
    def rates(self) -> Array:
        """What each coordinate is multiplied by, (B, 1, D), for r to be the distance."""
        xp, ell = array_namespace(self.lengthscale), self.lengthscale
        owner = xp.asarray(self.coordinates.owner, device=device(ell))
        weight = xp.asarray(self.coordinates.weight, dtype=ell.dtype, device=device(ell))
        return (xp.sqrt(weight) / xp.take(ell, owner, axis=1))[:, None, :]

    def part(self, which: Array | slice) -> Matern:
        """Of some of the batch."""
        sizes = (self.lengthscale[which], self.variance[which], self.noise[which])
        return Matern(self.coordinates, *sizes)


def bumps(square: Array) -> tuple[Array, Array]:
    """k/σ² at squared distances r², and e with ∂(k/σ²)/∂x = −e (x − z)/ℓ²."""
    xp = array_namespace(square)
    s = _ROOT5 * xp.sqrt(square)
    decay = xp.exp(-s)
    slope = (5.0 / 3.0) * (1.0 + s) * decay
    return (1.0 + s) * decay + (5.0 / 3.0) * square * decay, slope


@dataclass(frozen=True)
class Shared:
    """What is known of all functions, at each history's trials: mean (B, t), covariance (B, t, t).

    Each history's function has κ times that function besides what is its own; κ, its trust, is
    fitted too.
    """

    mean: Array
    covariance: Array


def fit_map(
    coordinates: Coordinates,
    points: Array,
    y: Array,
    mask: Array,
    shared: Shared | None = None,
    iterations: int = 40,
) -> tuple[Matern, Array | None]:
    """The kernel of highest posterior density of each history, and its trust (B,).

    points (B, t, D), y (B, t) of about unit variance, mask (B, t) true where there is an
    observation. It depends on the data alone: the climb begins at the best of a few guesses. A
    trust of 0: its values do not bear out what is shared, and the kernel is that of who is alone.
    """
    xp = array_namespace(points, y)
    A = coordinates.parameters
    density = partial(log_posterior, coordinates.squares(points), xp.where(mask, y, 0.0), mask)
    guesses = [_row(y, A, ell * math.sqrt(A), *sizes) for ell, *sizes in _GUESSES]
    starts = [guess + xp.zeros_like(y[:, :1]) for guess in guesses]
    bounds = [_row(y, A, *(b[k] for b in _BOUNDS)) for k in (0, 1)]

    def climbed(objective: Objective, starts: list[Array]) -> tuple[Array, Array]:
        start = _best(xp.stack(starts), xp.stack([objective(start)[0] for start in starts]))
        lower, upper = (bound[:, : start.shape[1]] for bound in bounds)
        return ascend(objective, start, lower, upper, iterations, tolerance=1e-3)

    theta, height = climbed(density, [start[:, :-1] for start in starts])
    trust = None
    if shared is not None:
        starts.append(xp.concat([theta, starts[0][:, -1:]], axis=1))
        joint, above = climbed(partial(density, shared=shared), starts)
        count = xp.sum(xp.astype(mask, y.dtype), axis=-1)
        trusts = above - height > _PROOF[0] + _PROOF[1] * count
        trust = xp.where(trusts, xp.exp(joint[:, -1]), 0.0)
        theta = xp.where(trusts[:, None], joint[:, :-1], theta)
    values = xp.exp(theta)
    return Matern(coordinates, values[:, :A], values[:, A], values[:, A + 1]), trust


def walked(kernel: Matern, points: Array, y: Array, moves: Array, chances: Array) -> Matern:
    """Kernels drawn from the posterior density of θ: where B random walks from one kernel end.

    kernel, points (1, t, D) and y (1, t) of one history. moves (steps, B, A + 2) are in units of
    the prior's deviation, chances (steps, B) uniform on [0, 1): a Metropolis step takes a move if
    the density there is larger, or by chance.
    """
    xp = array_namespace(points, y)
    A, t, B = kernel.coordinates.parameters, y.shape[-1], moves.shape[1]
    squares = xp.broadcast_to(kernel.coordinates.squares(points), (B, A, t, t))
    y, mask = xp.broadcast_to(y, (B, t)), xp.ones((B, t), dtype=xp.bool, device=device(y))
    sizes = [kernel.lengthscale, kernel.variance[:, None], kernel.noise[:, None]]
    theta = xp.broadcast_to(xp.log(xp.concat(sizes, axis=-1)), (B, A + 2))
    lower, upper = (_row(y, A, *(b[k] for b in _BOUNDS))[:, :-1] for k in (0, 1))
    spread = _prior(y, A)[1][:, :-1]
    height, _ = log_posterior(squares, y, mask, theta)
    for move, chance in zip(moves, chances, strict=True):
        moved = theta + spread * move
        inside = xp.all((moved >= lower) & (moved <= upper), axis=-1)
        moved = xp.where(inside[:, None], moved, theta)
        there, _ = log_posterior(squares, y, mask, moved)
        goes = chance < xp.exp(xp.minimum(there - height, xp.zeros_like(height)))
        theta, height = xp.where(goes[:, None], moved, theta), xp.where(goes, there, height)
    values = xp.exp(theta)
    return Matern(kernel.coordinates, values[:, :A], values[:, A], values[:, A + 1])


def log_posterior(
    squares: Array, y: Array, mask: Array, theta: Array, shared: Shared | None = None
) -> tuple[Array, Array]:
    """log p(y | θ) + log p(θ) up to a constant, (B,), and its gradient, as θ.

    squares (B, A, t, t) as of `Coordinates`; y (B, t) is 0 where the mask is false.
    """
    xp = array_namespace(theta)
    A = squares.shape[1]
    rates = xp.exp(-2.0 * theta[:, :A])
    variance, noise = xp.exp(theta[:, A]), xp.exp(theta[:, A + 1])
    pairs = xp.astype(mask[:, :, None] & mask[:, None, :], y.dtype)
    both = pairs * variance[:, None, None]
    flat = xp.reshape(squares, (*squares.shape[:2], -1))
    square = xp.reshape(xp.matmul(rates[:, None, :], flat), squares.shape[0:1] + squares.shape[2:])
    near, slope = bumps(square)
    near = near * both
    # where there is no observation K has a 1 on its diagonal and y is 0: nothing is added
    diagonal = xp.where(mask, noise[:, None], 1.0)
    eye = xp.eye(y.shape[-1], dtype=y.dtype, device=device(y))
    K = near + diagonal[:, :, None] * eye
    known = xp.astype(mask, y.dtype)
    if shared is not None:
        trust = xp.exp(theta[:, A + 2])[:, None]
        common = trust[..., None] ** 2 * shared.covariance * pairs
        K, y = K + common, y - trust * shared.mean * known
    root = xp.linalg.inv(xp.linalg.cholesky(K))
    half = xp.matmul(root, y[..., None])
    alpha = xp.matmul(root.mT, half)
    logs = xp.log(xp.linalg.diagonal(root))
    value = xp.sum(logs, axis=-1) - 0.5 * xp.sum(half[..., 0] ** 2, axis=-1)
    # ∂ log p/∂θ = ½ Σ (ααᵀ − K⁻¹) ∘ ∂K/∂θ
    pull = xp.matmul(alpha, alpha.mT) - xp.matmul(root.mT, root)
    pulled = xp.reshape(pull * slope * both, (y.shape[0], -1, 1))
    in_length = 0.5 * rates * xp.matmul(flat, pulled)[..., 0]
    in_variance = 0.5 * xp.sum(pull * near, axis=(-2, -1))[:, None]
    in_noise = (0.5 * noise * xp.vecdot(xp.linalg.diagonal(pull), known))[:, None]
    parts = [in_length, in_variance, in_noise]
    if shared is not None:
        by_mean = xp.vecdot(alpha[..., 0], trust * shared.mean * known)
        parts.append((by_mean + xp.sum(pull * common, axis=(-2, -1)))[:, None])
    centre, spread = _prior(y, A)
    off = (theta - centre[:, : theta.shape[1]]) / spread[:, : theta.shape[1]]
    gradient = xp.concat(parts, axis=-1) - off / spread[:, : theta.shape[1]]
    return value - 0.5 * xp.sum(off**2, axis=-1), gradient


def _best(thetas: Array, heights: Array) -> Array:
    """Of each history the highest: (k, B, ·) and (k, B) -> (B, ·)."""
    xp = array_namespace(thetas)
    first = xp.argmax(heights, axis=0)[None, :, None]
    return xp.take_along_axis(thetas, first, axis=0)[0]


def _prior(like: Array, A: int) -> tuple[Array, Array]:
    """The centre of θ's prior, and its standard deviation, (1, A + 3)."""
    xp = array_namespace(like)
    priors = (_VARIANCE, _NOISE, _TRUST)
    centre = _row(like, A, _LENGTH[0] * math.sqrt(A), *(prior[0] for prior in priors))
    spread = [[*[_LENGTH[1]] * A, *(prior[1] for prior in priors)]]
    return centre, xp.asarray(spread, dtype=like.dtype, device=device(like))


def _row(like: Array, A: int, length: float, variance: float, noise: float, trust: float) -> Array:
    """log ℓ A times, log σ², log λ, log κ: (1, A + 3)."""
    xp = array_namespace(like)
    values = [[math.log(v) for v in (*[length] * A, variance, noise, trust)]]
    return xp.asarray(values, dtype=like.dtype, device=device(like))
