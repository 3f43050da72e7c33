"""Where a function is largest over a space with discrete parameters, none of them relaxed.

From the best of many candidates, all of them points of the space, numbers climb with the gradient
while discrete parameters are held; then one discrete parameter steps to where the function is
largest; and again, until nothing is gained.

Symbols: B batch, K candidates, S starts, D coordinates, m neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

from array_api_compat import device

from sottovoce.acquisition.maximise import Drawn
from sottovoce.arrays import Array, array_namespace
from sottovoce.optim.bfgs import ascend
from sottovoce.space import Space, discrete, neighbours

_STARTS = 8
_SWEEPS = 8
_ITERATIONS = 30


def over_mixed(
    function: Drawn, candidates: Array, space: Space, tried: Callable[[Array], Array]
) -> Array:
    """The maximiser, (B, D), of each batch entry's function among points not tried before.

    candidates (B, K, D) are points of the space. tried: (B, S, D) -> (B, S), true where an agent
    has been; such a point is chosen only if no other was met.
    """
    xp = array_namespace(candidates)

    def fresh(x: Array) -> Array:
        return xp.where(tried(x), -xp.inf, function.values(x))

    values = fresh(candidates)
    chosen = xp.argsort(-values, axis=-1)[:, :_STARTS]
    x = xp.take_along_axis(candidates, chosen[..., None], axis=1)
    value = xp.take_along_axis(values, chosen, axis=1)
    held = xp.asarray(discrete(space), device=device(x))
    for _ in range(_SWEEPS):
        before = value
        if not bool(xp.all(held)):
            x, value = _climbed(function, tried, x, value, held)
        x, value = _stepped(fresh, space, x, value)
        if not bool(xp.any(value > before)):
            break
    best = xp.argmax(value, axis=-1)[:, None, None]
    return xp.take_along_axis(x, best, axis=1)[:, 0, :]


def _climbed(
    function: Drawn, tried: Callable[[Array], Array], x: Array, value: Array, held: Array
) -> tuple[Array, Array]:
    """Each point moved uphill in the coordinates that are not held, if that gains anything.

    Not to where an agent has been: tops at the edge of the cube are met again and again.
    """
    xp = array_namespace(x)
    lower, upper = xp.where(held, x, 0.0), xp.where(held, x, 1.0)
    to, height = ascend(function.values_and_gradients, x, lower, upper, _ITERATIONS, tolerance=1e-4)
    gains = (height > value) & ~tried(to)
    return xp.where(gains[..., None], to, x), xp.where(gains, height, value)


def _stepped(
    fresh: Callable[[Array], Array], space: Space, x: Array, value: Array
) -> tuple[Array, Array]:
    """Each point, or that of its neighbours where the function is larger, and largest."""
    xp = array_namespace(x)
    around = neighbours(space, x)
    B, S, m, D = around.shape
    heights = xp.reshape(fresh(xp.reshape(around, (B, S * m, D))), (B, S, m))
    best = xp.argmax(heights, axis=-1)[..., None]
    height = xp.take_along_axis(heights, best, axis=-1)[..., 0]
    to = xp.take_along_axis(around, best[..., None], axis=2)[:, :, 0, :]
    gains = height > value
    return xp.where(gains[..., None], to, x), xp.where(gains, height, value)
