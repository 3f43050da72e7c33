"""Agents that lie: they know what all honest agents say, and say the opposite, as loud as counts.

Agent n lies if n mod 5 = 0. A liar searches like the others; what it sends is −S times the
direction of the honest agents' clipped mean, with S the clip: of all vectors that the server
takes, none turns the sum further back.
"""

from __future__ import annotations

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import Method
from sottovoce.privacy.release import clipped
from sottovoce.simulation.engine import Tamper

ONE_IN = 5


def one_in_five(method: Method) -> Tamper:
    """What such agents make of a round's vectors, (N, M) -> (N, M)."""
    if method.mechanism is None:
        raise InvalidInput(f"{method.name} has no clip: a single agent may send what it likes")
    limit = method.mechanism.clip

    def tampered(vectors: Array) -> Array:
        xp = array_namespace(vectors)
        said, liars = clipped(vectors, limit), slice(0, None, ONE_IN)
        honest = [said[k::ONE_IN] for k in range(1, ONE_IN)]
        mean = xp.sum(xp.concat(honest), axis=0)
        length = xp.sqrt(xp.sum(mean * mean))
        if float(length) == 0.0:
            return said
        said = xp.asarray(said, copy=True)
        said[liars] = -limit * mean / length
        return said

    return tampered
