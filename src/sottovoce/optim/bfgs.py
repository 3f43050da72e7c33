"""Many small maximisations inside boxes at once: projected BFGS with dense inverse Hessians.

Symbols: D dimensions; x point, f value, g gradient, H inverse Hessian of −f (..., D, D), d
direction, α step length; s = x₊ − x, r = g − g₊ (gradient change of −f).

Every iteration evaluates all problems once, each at a trial point of its own: where the trial is
good enough (Armijo) that problem moves and learns curvature, elsewhere its α shrinks. So no
problem waits for another's line search, and the cost per iteration does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable

from array_api_compat import device

from sottovoce.arrays import Array, array_namespace

_ARMIJO = 1e-4
_SHRINK = 0.3
_GROW = 4.0
_CURVED = 1e-6


def ascend(
    value_and_gradient: Callable[[Array], tuple[Array, Array]],
    start: Array,
    lower: Array,
    upper: Array,
    iterations: int = 100,
    tolerance: float | Array = 1e-9,
    radius: float = 0.1,
    running: Callable[[Array, Array], Array] | None = None,
) -> tuple[Array, Array]:
    """Local maxima x (..., D) and their values (...), each from its own start (..., D).

    lower, upper: finite bounds that broadcast against start, kept to exactly. The value is never
    below the one at the start. `value_and_gradient` maps (..., D) to (...) and (..., D); where
    either is not finite the trial counts as too long a step. A problem has converged when the
    gain its next step promises is at most `tolerance` (a number or (...)); `iterations` bounds
    the evaluations after the first. `radius` is the first step's length in units of the box.
    `running`, in place of the tolerance, says from values and promised gains (...) which
    problems have not converged.
    """
    xp = array_namespace(start)
    x = xp.minimum(xp.maximum(start, lower), upper)
    f, g = value_and_gradient(x)
    fine = _finite(f, g)
    g = xp.where(fine[..., None], g, 0.0)  # a problem that starts badly stays where it is
    H = _first_guess(x, g, lower, upper, radius)
    alpha = xp.ones_like(f)
    for i in range(iterations):
        free = xp.where(g > 0, x < upper, x > lower)  # false: held by a bound
        uphill = xp.where(free, g, 0.0)
        d = xp.matmul(H, (alpha[..., None] * uphill)[..., None])[..., 0]
        d = xp.where(free, d, 0.0)
        promise = xp.vecdot(uphill, d)
        active = running(f, promise) if running else promise > tolerance
        if not bool(xp.any(active)):
            break
        trial = xp.minimum(xp.maximum(x + d, lower), upper)
        f1, g1 = value_and_gradient(trial)
        if not (bool(xp.all(xp.isfinite(f1))) and bool(xp.all(xp.isfinite(g1)))):
            fine = _finite(f1, g1)
            f1, g1 = xp.where(fine, f1, -xp.inf), xp.where(fine[..., None], g1, g)
        s = trial - x
        slope = xp.vecdot(uphill, s)
        # one that has converged stays, so that its answer does not depend on its neighbours
        moves = active & (f1 >= f + _ARMIJO * slope)
        H = _learned(H, s, xp.where(free, g - g1, 0.0), slope, moves, i == 0)
        alpha = xp.where(moves, 1.0, _SHRINK * alpha)
        x = xp.where(moves[..., None], trial, x)
        g = xp.where(moves[..., None], g1, g)
        f = xp.where(moves, f1, f)
    return x, f


def _finite(f: Array, g: Array) -> Array:
    """Where the value and the whole gradient are finite, (...)."""
    xp = array_namespace(f)
    return xp.isfinite(f) & xp.all(xp.isfinite(g), axis=-1)


def _first_guess(x: Array, g: Array, lower: Array, upper: Array, radius: float) -> Array:
    """The diagonal H whose first step is `radius` long in units of the box, (..., D, D)."""
    xp = array_namespace(x)
    width = upper - lower
    uphill = width * g
    length = xp.sqrt(xp.vecdot(uphill, uphill))[..., None]
    scale = radius / xp.where(length > 0, length, 1.0)
    eye = xp.eye(x.shape[-1], dtype=x.dtype, device=device(x))
    return (scale * width * width)[..., None] * eye


def _learned(H: Array, s: Array, r: Array, slope: Array, moves: Array, first: bool) -> Array:
    """H after a step s changed the gradient by −r.

    Held coordinates have s = r = 0, so the block of H over the free ones sees an ordinary BFGS
    update of the problem without the held ones. Where −f is not convex along s there is nothing
    to fit, and H grows so that the next step is longer. Before the first update H, so far a
    guess, is scaled to the curvature found.
    """
    xp = array_namespace(H)
    Hr = xp.matmul(H, r[..., None])[..., 0]
    sr, rHr = xp.vecdot(s, r), xp.vecdot(r, Hr)
    curved = moves & (sr > _CURVED * xp.abs(slope))
    rho = xp.where(curved, 1.0, 0.0) / xp.where(curved, sr, 1.0)
    gamma = xp.where(moves ^ curved, _GROW, 1.0)
    if first:
        gamma = xp.where(curved, sr / xp.where(curved, rHr, 1.0), gamma)
    # H₊ = γH + u sᵀ + s uᵀ, the BFGS formula multiplied out
    pull = rho * gamma
    along = 0.5 * rho * (1.0 + pull * rHr)
    u = along[..., None] * s - pull[..., None] * Hr
    outer = u[..., :, None] * s[..., None, :]
    return gamma[..., None, None] * H + outer + outer.mT
