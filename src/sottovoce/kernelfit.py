"""Kernel hyperparameters by maximum marginal likelihood, for a batch of histories at once.

Symbols: B batch, t observations, D dimensions, A length scales (1, or D for one per dimension);
ℓ length scale, σ² variance, λ noise variance, K = σ²R + λI, R correlations; θ (B, A + 2) holds
log ℓ, log σ², log λ. log p(y) = −½ yᵀK⁻¹y − ½ log|K| − ½ t log 2π.

Bounds: ℓ in [0.01, 10] (points lie in the unit cube); with m = mean(y²), σ² in [0.01, 100]·m and
λ in [1e-6, 4]·m. They keep K's condition number below t·10⁸, so that no data, however degenerate,
makes the factorisation fail.
"""

from __future__ import annotations

import math
from functools import partial

from array_api_compat import device

from sottovoce.arrays import Array, array_namespace
from sottovoce.ascent import ascend
from sottovoce.kernel import Kernel

_LENGTHSCALE = (0.01, 10.0)
_VARIANCE = (0.01, 100.0)
_NOISE = (1e-6, 4.0)
# (ℓ, σ²/m, λ/m) tried besides the given start: the likelihood often has a hill that explains
# everything as noise and one that explains it as function
_GUESSES = ((0.1, 1.0, 0.01), (0.3, 1.0, 0.01), (1.0, 1.0, 0.01), (0.2, 0.5, 0.5))


def fit(
    points: Array,
    y: Array,
    mask: Array,
    start: Kernel | None = None,
    ard: bool = False,
    iterations: int = 50,
    tolerance: float = 1e-5,
) -> Kernel:
    """The most likely kernel of each history, within the bounds above.

    points (B, t, D), y (B, t), mask (B, t) true where there is an observation. Returns a batch:
    lengthscale (B,), or (B, D) with `ard`; variance and noise (B,). The climb begins at the most
    likely of `start` (moved inside the bounds) and a few guesses, so the result is never less
    likely than the start. `tolerance` is in units of log likelihood.
    """
    xp = array_namespace(points, y)
    y = xp.where(mask, y, 0.0)
    count = xp.sum(xp.astype(mask, y.dtype), axis=-1)
    m = xp.vecdot(y, y) / xp.where(count > 0, count, 1.0)
    m = xp.where(m > 0, m, 1.0)
    squares = _squares(points, ard)
    value_and_gradient = partial(_likelihood, squares, y / xp.sqrt(m)[:, None], mask)
    A = squares.shape[1]
    bounds = [*[_LENGTHSCALE] * A, _VARIANCE, _NOISE]
    lower, upper = (_row([math.log(b[side]) for b in bounds], y) for side in (0, 1))
    rows = [_row([math.log(v) for v in (*[g[0]] * A, *g[1:])], y) for g in _GUESSES]
    tries = [row + xp.zeros_like(m)[:, None] for row in rows]
    if start is not None:
        theta = _theta(start, m, A)
        tries.insert(0, xp.minimum(xp.maximum(theta, lower), upper))
    best, height = tries[0], value_and_gradient(tries[0])[0]
    for theta in tries[1:]:
        value = value_and_gradient(theta)[0]
        best = xp.where((value > height)[:, None], theta, best)
        height = xp.maximum(value, height)
    theta, _ = ascend(value_and_gradient, best, lower, upper, iterations, tolerance)
    values = xp.exp(theta)
    length = values[:, :A] if ard else values[:, 0]
    return Kernel(length, values[:, A] * m, values[:, A + 1] * m)


def log_marginal_likelihood(
    kernel: Kernel, points: Array, y: Array, mask: Array, ard: bool = False
) -> tuple[Array, Array]:
    """log p(y), (B,), and its gradient in θ, (B, A + 2), of each history under its kernel.

    points, y, mask as in `fit`; A is D with `ard` (one length scale then stands for all D),
    else 1.
    """
    xp = array_namespace(points, y)
    squares = _squares(points, ard)
    one = xp.ones(y.shape[0], dtype=y.dtype, device=device(y))
    theta = _theta(kernel, one, squares.shape[1])
    return _likelihood(squares, xp.where(mask, y, 0.0), mask, theta)


def _likelihood(squares: Array, y: Array, mask: Array, theta: Array) -> tuple[Array, Array]:
    """As above, from θ (B, A + 2) and squared differences (B, A, t, t)."""
    xp = array_namespace(theta)
    A = theta.shape[-1] - 2
    shrink = xp.exp(-2.0 * theta[:, :A])
    variance, noise = xp.exp(theta[:, A]), xp.exp(theta[:, A + 1])
    both = xp.logical_and(mask[:, :, None], mask[:, None, :])
    distance = xp.sum(shrink[:, :, None, None] * squares, axis=1)
    signal = variance[:, None, None] * xp.where(both, xp.exp(-0.5 * distance), 0.0)
    # where there is no observation K has a 1 on its diagonal and y is 0: nothing is added
    diagonal = xp.where(mask, noise[:, None], 1.0)
    eye = xp.eye(y.shape[-1], dtype=y.dtype, device=device(y))
    K = signal + diagonal[:, :, None] * eye
    inverse = xp.linalg.inv(K)
    alpha = xp.matmul(inverse, y[..., None])[..., 0]
    logs = xp.log(xp.linalg.diagonal(xp.linalg.cholesky(K)))
    known = xp.astype(mask, y.dtype)
    constant = 0.5 * math.log(2.0 * math.pi) * xp.sum(known, axis=-1)
    value = -0.5 * xp.vecdot(y, alpha) - xp.sum(logs, axis=-1) - constant
    # ∂ log p/∂θ = ½ Σ (ααᵀ − K⁻¹) ∘ ∂K/∂θ
    pull = alpha[:, :, None] * alpha[:, None, :] - inverse
    weighted = pull * signal
    in_length = shrink * xp.sum(weighted[:, None] * squares, axis=(-2, -1))
    in_variance = xp.sum(weighted, axis=(-2, -1))[:, None]
    in_noise = (noise * xp.vecdot(xp.linalg.diagonal(pull), known))[:, None]
    return value, 0.5 * xp.concat([in_length, in_variance, in_noise], axis=-1)


def _squares(points: Array, ard: bool) -> Array:
    """Squared differences between points, (B, A, t, t): per dimension, or summed over them."""
    xp = array_namespace(points)
    columns = xp.matrix_transpose(points)
    squares = (columns[..., :, None] - columns[..., None, :]) ** 2
    return squares if ard else xp.sum(squares, axis=1, keepdims=True)


def _theta(kernel: Kernel, m: Array, A: int) -> Array:
    """θ (B, A + 2) of a kernel whose variances are taken in units of m (B,)."""
    xp = array_namespace(m)
    length, variance, noise = (
        xp.log(xp.asarray(v, dtype=m.dtype, device=device(m)))
        for v in (kernel.lengthscale, kernel.variance, kernel.noise)
    )
    if length.ndim < 2:
        length = length[..., None]
    elif length.shape[-1] != A:
        length = xp.mean(length, axis=-1, keepdims=True)  # of the logs: the geometric mean
    columns = [xp.broadcast_to(length, (m.shape[0], A))]
    for part in (variance, noise):
        columns.append((part + xp.zeros_like(m) - xp.log(m))[:, None])
    return xp.concat(columns, axis=-1)


def _row(values: list[float], like: Array) -> Array:
    """(1, n), to broadcast over the batch."""
    xp = array_namespace(like)
    return xp.asarray([values], dtype=like.dtype, device=device(like))
