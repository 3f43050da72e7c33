"""Where a search for the largest of a function begins, and where agents have been before.

Symbols: n agents of the batch, t trials, D dimensions, S points, K points of a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from array_api_compat import device

from sottovoce.acquisition.maximise import Drawn, over_points
from sottovoce.arrays import Array, array_namespace
from sottovoce.federation import draws

if TYPE_CHECKING:
    from sottovoce.federation.batch import Batch

_SPREAD = 600  # candidates of a search for the largest expected improvement
_KEPT = 0.6  # chance that a candidate near a good point has a parameter of it
_CLOSE = 0.02  # width of the cube in which an agent looks for a point beside one it has tried


def near_and_far(batch: Batch, t: int, around: Array) -> Array:
    """Uniform points of the cube; a third of them with most parameters of those around which.

    around (n, D), which are among them -> (n, S, D).
    """
    space, xp = batch.study.space, batch.xp
    owner = batch.device.array(np.asarray(batch.study.coordinates.owner))
    (u, keep) = batch.draw(
        draws.CANDIDATES,
        t,
        lambda random, n: (
            random.random((n, _SPREAD, space.dims)),
            random.random((n, _SPREAD // 3, len(space.parameters))),
        ),
    )
    kept = xp.take(keep, owner, axis=2) < _KEPT
    near = xp.where(kept, around[:, None, :], u[:, : _SPREAD // 3])
    return xp.concat([u[:, _SPREAD // 3 :], near, around[:, None, :]], axis=1)


def visited(batch: Batch, x: Array) -> Array:
    """Where agents have been, or a trial of theirs still runs: (n, S, D) -> (n, S)."""
    xp, been = batch.xp, batch.domain.points()
    if batch.pending is not None:
        been = xp.concat([been, batch.pending], axis=1)
    rounding = batch.device.array(batch.study.space.rounding)
    found = xp.zeros(x.shape[:2], dtype=xp.bool, device=device(x))
    for k in range(been.shape[1]):  # no (n, S, t, D) array is ever made
        found |= xp.all(xp.abs(x - been[:, k : k + 1]) <= rounding, axis=-1)
    return found


def elsewhere(batch: Batch, function: Drawn, spread: Array, chosen: Array) -> Array:
    """What was chosen, (n, D), or for who has been there the best point close by.

    Late in a search the top may be at a known point to rounding, where nothing is to be learnt.
    spread (n, S, D): points of the cube, shrunk around the one chosen.
    """
    xp = batch.xp
    again = visited(batch, chosen[:, None])[:, 0]
    if not bool(xp.any(again)):
        return chosen
    close = xp.clip(chosen[:, None] + _CLOSE * (spread - 0.5), 0.0, 1.0)
    values = xp.where(visited(batch, close), -xp.inf, function.values(close))
    best = over_points(values)[:, None, None]
    other = xp.take_along_axis(close, best, axis=1)[:, 0]
    return xp.where(again[:, None], other, chosen)


def untried_row(tried: Array, u: Array) -> Array:
    """A uniform row of those that an agent has not tried, or of all once none is left: (n,).

    tried (n, t) are rows of a finite space of K points, u (n, K) uniforms in [0, 1).
    """
    known = visited_rows(tried, u.shape[1])
    return over_points(u - array_namespace(u).astype(known, u.dtype))


def visited_rows(tried: Array, count: int) -> Array:
    """Which of `count` rows are among those tried: (n, t) -> (n, count)."""
    xp = array_namespace(tried)
    every = xp.arange(count, dtype=tried.dtype, device=device(tried))
    visited = xp.zeros((tried.shape[0], count), dtype=xp.bool, device=device(tried))
    for k in range(tried.shape[1]):  # no (n, t, K) array is ever made
        visited |= tried[:, k : k + 1] == every
    return visited
