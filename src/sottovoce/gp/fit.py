"""Kernel hyperparameters by maximum marginal likelihood, for a batch of histories at once.

Symbols: B batch, t observations, D dimensions, A length scales (1, or D for one per dimension);
ℓ length scale, σ² variance, λ noise variance, K = σ²R + λI, R correlations; θ (B, A + 2) holds
log ℓ, log σ², log λ. log p(y) = −½ yᵀK⁻¹y − ½ log|K| − ½ t log 2π.

Jointly with a shared function with values c at the points, K = σ²R + λI + s²ccᵀ + m11ᵀ: an agent's
function is then its own part, a multiple of the shared one, and any level; θ (B, A + 3) ends with
log s².

Bounds: ℓ in [0.01, 10] (points lie in the unit cube); with m = mean(y²), σ² in [0.01, 100]·m and
λ in [1e-6, 4]·m; s² in [1e-4, 100]·m. Without a shared function they keep K's condition number
below t·10⁸, so that no data, however degenerate, makes the factorisation fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

from array_api_compat import device

from sottovoce.arrays import Array, array_namespace
from sottovoce.gp.kernel import Kernel
from sottovoce.optim.bfgs import ascend

_LENGTHSCALE = (0.01, 10.0)
_VARIANCE = (0.01, 100.0)
_NOISE = (1e-6, 4.0)
_TRUST = (1e-4, 100.0)
# (ℓ, σ²/m, λ/m) tried besides the given start: the likelihood often has a hill that explains
# everything as noise and one that explains it as function
_GUESSES = ((0.1, 1.0, 0.01), (0.3, 1.0, 0.01), (1.0, 1.0, 0.01), (0.2, 0.5, 0.5))
# the same with s²/m: no trust, or a function that is mostly the shared one
_JOINT_GUESSES = (
    *((*guess, _TRUST[0]) for guess in _GUESSES),
    (0.3, 0.5, 0.01, 0.5),
    (0.3, 0.1, 0.05, 1.0),
    (0.3, 0.02, 0.3, 1.0),
)


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
    m = _mean_square(y, mask)
    squares = _squares(points, ard)
    value_and_gradient = partial(_likelihood, squares, y / xp.sqrt(m)[:, None], mask)
    A = squares.shape[1]
    bounds = [*[_LENGTHSCALE] * A, _VARIANCE, _NOISE]
    lower, upper = (_row([math.log(b[side]) for b in bounds], y) for side in (0, 1))
    rows = [_row([math.log(v) for v in (*[g[0]] * A, *g[1:])], y) for g in _GUESSES]
    if start is not None:
        rows.insert(0, _theta(start, m, A))
    theta = _climbed(value_and_gradient, rows, lower, upper, iterations, tolerance)
    values = xp.exp(theta)
    length = values[:, :A] if ard else values[:, 0]
    return Kernel(length, values[:, A] * m, values[:, A + 1] * m)


def fit_joint(
    points: Array,
    y: Array,
    mask: Array,
    shared: Array,
    start: Kernel | None = None,
    known: Kernel | None = None,
) -> Kernel:
    """The most likely kernel of each history jointly with a shared function, trust included.

    points, y, mask as in `fit`; shared (B, t) are the values of the shared function at the
    points. Of a known kernel (numbers, or (B,)) the length scale is kept, the noise too unless it
    is below the bound, and its variance is the most that the own part may have.
    """
    xp = array_namespace(points, y)
    y, shared = xp.where(mask, y, 0.0), xp.where(mask, shared, 0.0)
    m = _mean_square(y, mask)
    squares = _squares(points, False)
    climb = partial(_likelihood, squares, y / xp.sqrt(m)[:, None], mask, shared=shared)
    bounds = (_LENGTHSCALE, _VARIANCE, _NOISE, _TRUST)
    lower, upper = (
        _row([math.log(b[side]) for b in bounds], y) + xp.zeros_like(m)[:, None] for side in (0, 1)
    )
    if known is not None:
        theta = _theta(known, m, 1)
        fixed = [theta[:, :1], xp.maximum(theta[:, 2:3], lower[:, 2:3])]
        most = xp.maximum(theta[:, 1:2], lower[:, 1:2])
        lower = xp.concat([fixed[0], lower[:, 1:2], fixed[1], lower[:, 3:]], axis=-1)
        upper = xp.concat([fixed[0], most, fixed[1], upper[:, 3:]], axis=-1)
    tries = [_row([math.log(v) for v in guess], y) for guess in _JOINT_GUESSES]
    if start is not None:
        tries.insert(0, _theta(start, m, 1, trusted=True))
    values = xp.exp(_climbed(climb, tries, lower, upper, 50, 1e-5))
    return Kernel(values[:, 0], values[:, 1] * m, values[:, 2] * m, values[:, 3] * m)


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


def _mean_square(y: Array, mask: Array) -> Array:
    """m (B,), or 1 where there is nothing but zeros."""
    xp = array_namespace(y)
    count = xp.sum(xp.astype(mask, y.dtype), axis=-1)
    m = xp.vecdot(y, y) / xp.where(count > 0, count, 1.0)
    return xp.where(m > 0, m, 1.0)


def _climbed(
    value_and_gradient: Callable[[Array], tuple[Array, Array]],
    tries: Iterable[Array],
    lower: Array,
    upper: Array,
    iterations: int,
    tolerance: float,
) -> Array:
    """The top of the climb from the best of the tries, each moved inside the bounds."""
    xp = array_namespace(lower)
    best, height = None, None
    for each in tries:
        theta = xp.minimum(xp.maximum(each, lower), upper)
        value = value_and_gradient(theta)[0]
        if best is None:
            best, height = theta + xp.zeros_like(value)[:, None], value
        else:
            best = xp.where((value > height)[:, None], theta, best)
            height = xp.maximum(value, height)
    return ascend(value_and_gradient, best, lower, upper, iterations, tolerance)[0]


def _likelihood(
    squares: Array, y: Array, mask: Array, theta: Array, shared: Array | None = None
) -> tuple[Array, Array]:
    """As above, from θ and squared differences (B, A, t, t); with a shared function if any."""
    xp = array_namespace(theta)
    A = squares.shape[1]
    shrink = xp.exp(-2.0 * theta[:, :A])
    variance, noise = xp.exp(theta[:, A]), xp.exp(theta[:, A + 1])
    both = xp.logical_and(mask[:, :, None], mask[:, None, :])
    distance = xp.sum(shrink[:, :, None, None] * squares, axis=1)
    signal = variance[:, None, None] * xp.where(both, xp.exp(-0.5 * distance), 0.0)
    # where there is no observation K has a 1 on its diagonal and y is 0: nothing is added
    diagonal = xp.where(mask, noise[:, None], 1.0)
    eye = xp.eye(y.shape[-1], dtype=y.dtype, device=device(y))
    K = signal + diagonal[:, :, None] * eye
    if shared is not None:
        outer = xp.exp(theta[:, A + 2])[:, None, None] * shared[:, :, None] * shared[:, None, :]
        K = K + outer + xp.where(both, 1.0, 0.0)  # y is in units of √m
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
    columns = [in_length, in_variance, in_noise]
    if shared is not None:
        columns.append(xp.sum(pull * outer, axis=(-2, -1))[:, None])
    return value, 0.5 * xp.concat(columns, axis=-1)


def _squares(points: Array, ard: bool) -> Array:
    """Squared differences between points, (B, A, t, t): per dimension, or summed over them."""
    xp = array_namespace(points)
    columns = xp.matrix_transpose(points)
    squares = (columns[..., :, None] - columns[..., None, :]) ** 2
    return squares if ard else xp.sum(squares, axis=1, keepdims=True)


def _theta(kernel: Kernel, m: Array, A: int, trusted: bool = False) -> Array:
    """θ (B, A + 2) of a kernel whose variances are taken in units of m (B,); with s², A + 3."""
    xp = array_namespace(m)
    length, variance, noise = (
        xp.log(xp.asarray(v, dtype=m.dtype, device=device(m))) for v in kernel.parts[:3]
    )
    if length.ndim < 2:
        length = length[..., None]
    elif length.shape[-1] != A:
        length = xp.mean(length, axis=-1, keepdims=True)  # of the logs: the geometric mean
    columns = [xp.broadcast_to(length, (m.shape[0], A))]
    sizes = [variance, noise]
    if trusted:
        trust = xp.asarray(kernel.trust, dtype=m.dtype, device=device(m)) + xp.zeros_like(m)
        sizes.append(xp.log(xp.maximum(trust, _TRUST[0] * m)))
    for part in sizes:
        columns.append((part + xp.zeros_like(m) - xp.log(m))[:, None])
    return xp.concat(columns, axis=-1)


def _row(values: list[float], like: Array) -> Array:
    """(1, n), to broadcast over the batch."""
    xp = array_namespace(like)
    return xp.asarray([values], dtype=like.dtype, device=device(like))
