"""What travels: one vector up, P vectors down, each with its study's fingerprint and its round.

On the wire a message is one line of JSON, then the raw little-endian doubles: nothing in it can
run, and equal messages are equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import DuplicateMessage, ProtocolError, WrongRound
from sottovoce.federation.study import FederatedStudy

_SCHEMA = 1
LARGEST_ARRAY = 1 << 26  # bytes; a larger one is not even looked at


class _Wired:
    """Compared by its bytes, as arrays do not compare to a plain yes or no."""

    __slots__ = ()

    def to_bytes(self) -> bytes:
        """The wire form."""
        raise TypeError(f"{type(self).__name__} has no wire form")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())


@dataclass(frozen=True, eq=False, slots=True)  # slots: servers look at 100,000 of them
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

    @property
    def digest(self) -> str:
        """What another content for the same round cannot have."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


class Known(NamedTuple):
    """What an agent knows of the broadcasts before."""

    digests: Mapping[int, str]  # by round
    chain: Sequence[str] = ()  # the ledger's digests, the study's own first
    last: Broadcast | None = None

    def contradicted(
        self, study: FederatedStudy, broadcast: Broadcast, chain: Sequence[str] = ()
    ) -> int | None:
        """The first round that has another content now.

        Fresh noise for the same round is a second release, which nobody accounted for.
        """
        rounds: list[int] = [0, *study.release_rounds]
        for number, old, new in zip(rounds, self.chain, chain, strict=False):
            if old != new:
                return number
        if self.digests.get(broadcast.round, broadcast.digest) != broadcast.digest:
            return broadcast.round
        if self.last is None or not study.method.shared.cumulative:
            return None
        before = self.last.vectors  # a later broadcast repeats them
        same = np.array_equal(broadcast.vectors[: len(before)], before)
        return None if same else self.last.round


def check_turn(
    agent: int, round_number: int, open_round: int | None, answered: Container[int]
) -> None:
    """Refuse what is not for the open round, or of an agent that has answered in it."""
    if open_round is None or round_number != open_round:
        now = "no round is open" if open_round is None else f"round {open_round} is open"
        raise WrongRound(f"{now}, got a message for round {round_number}")
    if agent in answered:
        raise DuplicateMessage(f"agent {agent} has already answered in round {open_round}")


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
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not a {kind}: its header cannot be read ({error})") from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        raise ProtocolError(f"not a {kind}: its header says otherwise")
    check_fields(header, _SCHEMA, {**fields, "shape": list})
    return header, array_from(kind, body, tuple(header["shape"]), axes)


def check_fields(fields: Mapping[str, Any], schema: int, kinds: Mapping[str, type]) -> None:
    """Refuse the plain values of a message unless it is of the schema, and each of its type."""
    checked_field(fields, "schema", int)
    if fields["schema"] != schema:
        raise ProtocolError(f"a message must be of schema {schema}, got {fields['schema']}")
    for name, kind in {"study": str, "round": int, **kinds}.items():
        checked_field(fields, name, kind)


def checked_field(fields: Mapping[str, Any], name: str, kind: type) -> Any:
    """A plain value of a message, of its type."""
    value = fields.get(name)
    if type(value) is not kind:
        got = type(value).__name__
        raise ProtocolError(f"{name!r} of a message must be of type {kind.__name__}, got {got}")
    return value


def array_from(name: str, data: bytes, shape: tuple[Any, ...], axes: int) -> NDArray[np.float64]:
    """The array whose raw little-endian doubles arrived, if its shape and size are right."""
    if len(data) > LARGEST_ARRAY:
        raise ProtocolError(f"{name!r} must hold at most {LARGEST_ARRAY} bytes, got {len(data)}")
    if len(shape) != axes:
        # the shape is not told: it is as long as its sender likes
        raise ProtocolError(f"the number of axes of {name!r} must be {axes}, got {len(shape)}")
    if not all(type(n) is int and n >= 1 for n in shape):
        raise ProtocolError(f"every axis of {name!r} must be at least 1, got shape {shape}")
    if max(shape) > LARGEST_ARRAY:  # the product of such could be too long to be written
        raise ProtocolError(f"no axis of {name!r} may be above {LARGEST_ARRAY}")
    wanted = 8 * math.prod(shape)
    if len(data) != wanted:
        what = f"{name!r} of shape {shape} and dtype '<f8'"
        raise ProtocolError(f"{what} must hold {wanted} bytes, got {len(data)}")
    return np.frombuffer(data, dtype="<f8").reshape(shape).astype(np.float64)
