"""What travels between the coordinator and a site, as Flower's typed records. Never a pickle.

Down goes a `Call`: the round to speak in, the study's public constants, the last broadcast and the
digests of the ledger up to it. Up comes a `Reply`: one vector for that round, or a word on why
there is none, and which broadcast the site has heard last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import ProtocolError
from sottovoce.federation.messages import (
    LARGEST_ARRAY,
    Broadcast,
    Message,
    array_from,
    check_fields,
    checked_field,
)

if TYPE_CHECKING:
    from flwr.app import ArrayRecord, RecordDict

SCHEMA = 2
RECORD = "sottovoce"  # name of the record of plain values

Read = TypeVar("Read")
Answer = Literal["vector", "sealed", "done", "busy", "refused", "left"]
_ANSWERS: tuple[str, ...] = get_args(Answer)
TEXT = 500  # characters of a reason that are kept
_DIGEST = 64  # characters of a digest
_HEX = re.compile(f"[0-9a-f]{{{_DIGEST}}}")


@dataclass(frozen=True)
class Call:
    """What the coordinator asks of one site."""

    study: str  # fingerprint
    round: int  # to speak in; T: nothing is to be said any more
    agent: int  # which of the study's agents the site is
    constants: Mapping[str, Any]
    broadcast: Broadcast | None = None  # the last one released
    seed: int | None = None  # simulation only: of the draws of all
    chain: tuple[str, ...] = ()  # the ledger's digests up to the broadcast, the study's own first
    answers: bytes = b""  # of a sum that nobody can open alone: what gave the broadcast

    def to_records(self) -> RecordDict:
        """Flower's form."""
        plain: dict[str, Any] = {
            "study": self.study,
            "round": self.round,
            "agent": self.agent,
            "constants": json.dumps(self.constants, sort_keys=True, allow_nan=False),
        }
        if self.seed is not None:
            plain["seed"] = self.seed
        if self.broadcast is None:
            return records_of(plain, {})
        plain |= {"broadcast-round": self.broadcast.round, "head": self.broadcast.head}
        plain["chain"] = list(self.chain)
        if self.answers:
            plain["answers"] = self.answers
        return records_of(plain, {"broadcast": self.broadcast.vectors})

    @classmethod
    def from_records(cls, records: RecordDict) -> Call:
        """The call in Flower's form; anything else is refused."""
        plain = plain_of(records, {"agent": int, "constants": str})
        try:
            constants = json.loads(plain["constants"])
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"the constants of a call cannot be read: {error}") from error
        if not isinstance(constants, dict):
            raise ProtocolError("the constants of a call must be a table")
        seed = checked_field(plain, "seed", int) if "seed" in plain else None
        broadcast, chain, answers = None, tuple[str, ...](), b""
        if "broadcast" in records:
            vectors = _array(records, "broadcast", 2)
            number, head = (
                checked_field(plain, "broadcast-round", int),
                checked_field(plain, "head", str),
            )
            broadcast, chain = Broadcast(plain["study"], number, vectors, head), _chain(plain)
            answers = checked_field(plain, "answers", bytes) if "answers" in plain else b""
        study, number, agent = plain["study"], plain["round"], plain["agent"]
        return cls(study, number, agent, constants, broadcast, seed, chain, answers)


@dataclass(frozen=True)
class Reply:
    """What a site answers.

    vector: what it says; sealed: the same, as packets to the members; done: nothing is to be said
    in this round; busy: it is still at an earlier trial; refused: it does not take part as asked,
    for the reason given; left: it does not take part, by its own decision.
    """

    study: str  # fingerprint
    round: int
    agent: int
    answer: Answer
    vector: NDArray[np.float64] | None = None  # (M,)
    reason: str = ""
    heard: int = -1  # round of the last broadcast it heard; -1: none, or it could not look
    head: str = ""  # the ledger's newest digest in that broadcast
    packets: tuple[bytes, ...] = ()

    @property
    def message(self) -> Message:
        """What it says, as the server takes it."""
        if self.vector is None:
            raise ProtocolError(f"agent {self.agent} said nothing in round {self.round}")
        return Message(self.study, self.round, self.agent, self.vector)

    def to_records(self) -> RecordDict:
        """Flower's form."""
        plain: dict[str, Any] = {
            "study": self.study,
            "round": self.round,
            "agent": self.agent,
            "answer": self.answer,
            "reason": self.reason[:TEXT],
            "heard": self.heard,
            "head": self.head,
        }
        if self.packets:
            plain["packets"] = list(self.packets)
        return records_of(plain, {} if self.vector is None else {"vector": self.vector})

    @classmethod
    def from_records(cls, records: RecordDict) -> Reply:
        """The reply in Flower's form; anything else is refused."""
        kinds = {"agent": int, "answer": str, "reason": str}
        plain = plain_of(records, {**kinds, "heard": int, "head": str})
        if plain["answer"] not in _ANSWERS:
            got = plain["answer"][:40]
            raise ProtocolError(f"an answer must be one of {_ANSWERS}, got {got!r}")
        vector = _array(records, "vector", 1) if plain["answer"] == "vector" else None
        answer = cast(Answer, plain["answer"])
        reason, head = printable(plain["reason"][:TEXT]), printable(plain["head"][:_DIGEST])
        packets = packets_in(plain) if answer == "sealed" else ()
        study, number, agent = plain["study"], plain["round"], plain["agent"]
        return cls(study, number, agent, answer, vector, reason, plain["heard"], head, packets)


def read_safely(read: Callable[[RecordDict], Read], records: RecordDict) -> Read:
    """What `read` makes of a reply; whatever a party sends, it stops nobody but itself."""
    try:
        return read(records)
    except ProtocolError:
        raise
    except Exception as error:
        raise ProtocolError(f"its reply cannot be read: {type(error).__name__}") from error


def packets_in(plain: Mapping[str, Any], largest: int = LARGEST_ARRAY) -> tuple[bytes, ...]:
    """Packets to members, or to one member from all speakers."""
    packets = checked_field(plain, "packets", list)
    if not all(isinstance(each, bytes) for each in packets):
        raise ProtocolError("'packets' of a message must hold bytes")
    size = sum(map(len, packets))
    if size > largest:
        raise ProtocolError(f"'packets' must hold at most {largest} bytes, got {size}")
    return tuple(packets)


def records_of(plain: dict[str, Any], arrays: Mapping[str, NDArray[np.float64]]) -> RecordDict:
    """Plain values and arrays as Flower's typed records."""
    from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

    records: dict[str, Any] = {RECORD: ConfigRecord({"schema": SCHEMA, **plain})}
    for name, values in arrays.items():
        array = np.ascontiguousarray(values, dtype="<f8")
        typed = Array(dtype="<f8", shape=array.shape, stype="raw", data=array.tobytes())
        records[name] = ArrayRecord({name: typed})
    return RecordDict(records)


def plain_of(records: RecordDict, kinds: Mapping[str, type]) -> dict[str, Any]:
    """The plain values, each of its type; those of every message are looked at first."""
    if RECORD not in records.config_records:
        raise ProtocolError(f"a message must hold a record {RECORD!r}")
    plain: dict[str, Any] = dict(records.config_records[RECORD])
    check_fields(plain, SCHEMA, kinds)
    return plain


def _chain(plain: Mapping[str, Any]) -> tuple[str, ...]:
    """The digests of a ledger, each as hexadecimal digits."""
    chain = checked_field(plain, "chain", list)
    if not all(isinstance(each, str) and _HEX.fullmatch(each) for each in chain):
        raise ProtocolError(f"'chain' of a message must hold digests of {_DIGEST} hex digits")
    return tuple(chain)


def _array(records: RecordDict, name: str, axes: int) -> NDArray[np.float64]:
    """The array of a record, from raw little-endian doubles."""
    found: ArrayRecord | None = records.array_records.get(name)
    array = None if found is None else found.get(name)
    if array is None:
        raise ProtocolError(f"a message with {name!r} must hold an array of that name")
    if array.dtype != "<f8" or array.stype != "raw":
        got = f"{array.stype[:20]!r} {array.dtype[:20]!r}"  # as long as its sender likes
        raise ProtocolError(f"{name!r} must hold raw '<f8', got {got}")
    return array_from(name, array.data, tuple(array.shape), axes)


def printable(text: str) -> str:
    """Words from outside, without what could rewrite a log or a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)
