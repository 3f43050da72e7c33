"""What travels: one vector up, P vectors down, each with its study's fingerprint and its round.

On the wire a message is one line of JSON, then the raw little-endian doubles: nothing in it can
run, and equal messages are equal bytes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import ProtocolError

_SCHEMA = 1


class _Wired:
    """Compared by its bytes, as arrays do not compare to a plain yes or no."""

    def to_bytes(self) -> bytes:
        """The wire form."""
        raise TypeError(f"{type(self).__name__} has no wire form")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())


@dataclass(frozen=True, eq=False)
class Message(_Wired):
    """An agent's vector for one round.

    Args:
        study, round: the fingerprint of its study; which round it is for.
        agent: who sends it, 0 to N − 1.
        vector: (M,).

    Example:
        >>> message = Message("fingerprint", round=0, agent=3, vector=np.zeros(50))
        >>> Message.from_bytes(message.to_bytes()) == message
        True
    """

    study: str
    round: int
    agent: int
    vector: NDArray[np.float64]

    def to_bytes(self) -> bytes:
        """The wire form."""
        return _packed(
            "message", {"study": self.study, "agent": self.agent}, self.round, self.vector
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Message:
        """The message that `to_bytes` wrote; anything else is refused."""
        header, vector = _unpacked("message", data, 1, {"study": str, "agent": int})
        return cls(header["study"], header["round"], header["agent"], vector)


@dataclass(frozen=True, eq=False)
class Broadcast(_Wired):
    """What the server sends to all.

    Args:
        study, round: the fingerprint of its study; which round was released.
        vectors: ω^(i) for each region, (P, M); for peers all vectors, (N, M); for a pooled model
            all releases so far, (k, M).
        head: the ledger's newest digest when this round was committed.

    Example:
        >>> broadcast = Broadcast("fingerprint", round=0, vectors=np.zeros((2, 50)), head="digest")
        >>> Broadcast.from_bytes(broadcast.to_bytes()) == broadcast
        True
    """

    study: str
    round: int
    vectors: NDArray[np.float64]
    head: str

    def to_bytes(self) -> bytes:
        """The wire form."""
        return _packed(
            "broadcast", {"study": self.study, "head": self.head}, self.round, self.vectors
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Broadcast:
        """The broadcast that `to_bytes` wrote; anything else is refused."""
        header, vectors = _unpacked("broadcast", data, 2, {"study": str, "head": str})
        return cls(header["study"], header["round"], vectors, header["head"])


def _packed(
    kind: str, fields: dict[str, Any], round_number: int, values: NDArray[np.float64]
) -> bytes:
    array = np.ascontiguousarray(values, dtype="<f8")
    header = {
        "kind": kind,
        "schema": _SCHEMA,
        "round": round_number,
        "shape": array.shape,
        **fields,
    }
    return json.dumps(header, sort_keys=True).encode() + b"\n" + array.tobytes()


def _unpacked(
    kind: str, data: bytes, axes: int, fields: dict[str, type]
) -> tuple[dict[str, Any], NDArray[np.float64]]:
    line, _, body = data.partition(b"\n")
    try:
        header = json.loads(line)
        right = header["kind"] == kind and header["schema"] == _SCHEMA
        typed = all(type(header[name]) is kept for name, kept in {**fields, "round": int}.items())
        shape = header["shape"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProtocolError(f"not a {kind}: its header cannot be read ({error})") from error
    if not right or not typed:
        raise ProtocolError(f"not a {kind} of schema {_SCHEMA}: its header says otherwise")
    counts = type(shape) is list and all(type(n) is int and n >= 1 for n in shape)
    if not counts or len(shape) != axes:
        wanted = f"{axes} whole numbers, each at least 1"
        raise ProtocolError(f"the shape of a {kind} must be {wanted}, got {shape!r}")
    if len(body) != 8 * math.prod(shape):
        raise ProtocolError(
            f"a {kind} of shape {shape} must hold {8 * math.prod(shape)} bytes, got {len(body)}"
        )
    return header, np.frombuffer(body, dtype="<f8").reshape(shape)
