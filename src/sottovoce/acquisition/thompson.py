"""Thompson sampling: where a draw of a posterior is largest, for a batch of agents at once.

What is drawn is an agent's own Gaussian process, or the shared function that a broadcast tells
of. Random draws come in as arguments.

Symbols: B batch (agents), t observations, D dimensions, M shared features, P regions, K points
of a finite space or random candidates, r rank of the exact features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from array_api_compat import device
from numpy.typing import NDArray

from sottovoce.acquisition.maximise import RegionalDraw, over_boxes, over_points
from sottovoce.arrays import Array, array_namespace
from sottovoce.gp import posterior
from sottovoce.gp.features import Features
from sottovoce.gp.history import History, masked_rows
from sottovoce.gp.kernel import Kernel
from sottovoce.space import Regions, Space

CANDIDATES = 1000  # random points that a maximisation begins with
FREQUENCIES = 128  # of a pathwise prior draw


@dataclass(frozen=True)
class PathDraws:
    """The standard normals and the uniform candidates of one pathwise Thompson step."""

    frequencies: Array  # (B, F, D)
    amplitudes: Array  # (B, F, 2)
    noise: Array  # (B, t)
    candidates: Array  # (B, K, D), uniform in the cube


def own_in_box(
    kernel: Kernel, history: History, draws: PathDraws, everywhere: Regions, scale: float
) -> Array:
    """The maximiser, (B, D), of a pathwise draw of each agent's posterior over the whole cube."""
    drawn = posterior.pathwise_draw(
        kernel,
        history.points,
        history.values,
        history.mask,
        draws.frequencies,
        draws.amplitudes,
        draws.noise,
        scale,
    )
    return over_boxes(drawn, draws.candidates, everywhere)[0]


def shared_in_box(features: Features, regions: Regions, vectors: Array, candidates: Array) -> Array:
    """The maximiser, (B, D), of φ(x)ᵀω^(i[x]) over all boxes: vectors (B, P, M)."""
    return over_boxes(RegionalDraw(features, regions, vectors), candidates, regions)[0]


@lru_cache(maxsize=4)
def exact_table(kernel: Kernel, space: Space) -> NDArray[np.float64]:
    """The exact features of a finite space under one kernel, (K, r); a second's work, kept."""
    return posterior.exact_features(kernel, space.points())


def own_in_list(
    table: Array,
    kernel: Kernel,
    history: History,
    prior: Array,
    noise: Array,
    scale: float,
    root: Array | None = None,
) -> Array:
    """Index of the best point of a finite space under an exact draw of each agent's posterior.

    table (K, r) are the exact features of the space; prior (B, r), noise (B, t) normals; root
    (B, t, t), if it has been kept: see `posterior.draw`.
    """
    xp = array_namespace(table)
    rows = masked_rows(table, history)
    weights = posterior.draw(rows, history.values, kernel.noise, prior, noise, scale, root)
    return over_points(xp.matmul(weights, table.T))


def shared_in_list(table: Array, box_of_point: Array, vectors: Array) -> Array:
    """Index of the best point of a finite space under broadcasts: vectors (B, P, M) -> (B,).

    table (K, M) is φ at the points; box_of_point (K,) the region each lies in.
    """
    xp = array_namespace(table)
    values = xp.matmul(vectors, table.T)
    boxes = xp.arange(vectors.shape[1], device=device(table))
    own = (box_of_point[None, :] == boxes[:, None])[None, :, :]
    return over_points(xp.sum(xp.where(own, values, xp.zeros_like(values)), axis=1))
