"""Numbers that anyone who knows a public seed has, on any machine.

They come from SHAKE-256 over a label, not from a NumPy generator, whose streams may change from
version to version. Symbols: D dimensions.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


def public_uniforms(label: bytes, count: int) -> NDArray[np.float64]:
    """Uniforms in (0, 1), (count,): the midpoints of 2⁵³ equal cells."""
    digest = hashlib.shake_256(label).digest(8 * count)
    cells = np.frombuffer(digest, dtype="<u8") >> np.uint64(11)
    # a midpoint above ½ needs one bit more than a double has, and the last would round to 1
    midpoints = (cells.astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(np.minimum(midpoints, 1.0 - 2.0**-53))


def latin_points(label: bytes, sets: int, count: int, dims: int) -> NDArray[np.float64]:
    """Latin hypercubes, (sets, count, D): of each, every coordinate meets each of `count` cells.

    Each set lies well by itself, and no two coordinates go together in all of them.
    """
    u = public_uniforms(label, 2 * sets * count * dims).reshape(2, sets, count, dims)
    return np.asarray((np.argsort(u[0], axis=1) + u[1]) / count)


def quasirandom_points(label: bytes, count: int, dims: int) -> NDArray[np.float64]:
    """Points of the open cube that lie evenly, any run of them too: (count, D).

    Multiples of (1/g, 1/g², ..., 1/g^D) modulo 1, where g^(D+1) = g + 1, from a public start.
    """
    g = 2.0
    for _ in range(64):  # g = (1 + g)^(1/(D + 1)) contracts
        g = (1.0 + g) ** (1.0 / (dims + 1))
    steps = g ** -np.arange(1.0, dims + 1.0)
    points = (public_uniforms(label, dims) + np.arange(1, count + 1)[:, None] * steps) % 1.0
    return np.asarray(np.clip(points, 2.0**-53, 1.0 - 2.0**-53))
