"""What travels in the second exchange of a sum that nobody can open alone.

Down goes a `SumCall`: the speakers of a round, and their packets to one member. Up comes a
`SumReply`: the member's summed share, signed, or why there is none. What all members answered is
kept as text, for the ledger and for every site that adds up again.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from sottovoce.errors import ProtocolError
from sottovoce.federation.messages import LARGEST_ARRAY, checked_field
from sottovoce.flower.wire import TEXT, packets_in, plain_of, printable, records_of
from sottovoce.privacy.chain import canonical
from sottovoce.secure_sum.protocol import Answer

if TYPE_CHECKING:
    from flwr.app import RecordDict

LARGEST_CALL = 4 * LARGEST_ARRAY  # bytes: the packets of 100,000 speakers to one aggregator
Kind = Literal["share", "busy", "refused"]
_KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class SumCall:
    """What the coordinator asks of one member."""

    study: str  # fingerprint
    round: int
    agent: int  # the member's number among the parties
    speakers: tuple[int, ...]
    packets: tuple[bytes, ...]  # of each speaker, to this member

    def to_records(self) -> RecordDict:
        """Flower's form."""
        plain: dict[str, Any] = {
            "study": self.study,
            "round": self.round,
            "agent": self.agent,
            "speakers": list(self.speakers),
            "packets": list(self.packets),
        }
        return records_of(plain, {})

    @classmethod
    def from_records(cls, records: RecordDict) -> SumCall:
        """The call in Flower's form; anything else is refused."""
        plain = plain_of(records, {"agent": int})
        speakers, packets = (
            _numbers(checked_field(plain, "speakers", list)),
            packets_in(plain, LARGEST_CALL),
        )
        if len(speakers) != len(packets):
            raise ProtocolError(f"{len(speakers)} speakers must have as many packets")
        return cls(plain["study"], plain["round"], plain["agent"], speakers, packets)


@dataclass(frozen=True)
class SumReply:
    """What a member answers: its share; that it is at something else; or that it will not."""

    study: str  # fingerprint
    round: int
    agent: int
    kind: Kind
    share: bytes = b""
    signature: bytes = b""
    reason: str = ""

    @property
    def answer(self) -> Answer:
        """The share as the protocol takes it."""
        return Answer(self.agent, self.share, self.signature)

    def to_records(self) -> RecordDict:
        """Flower's form."""
        plain: dict[str, Any] = {
            "study": self.study,
            "round": self.round,
            "agent": self.agent,
            "kind": self.kind,
            "share": self.share,
            "signature": self.signature,
            "reason": self.reason[:TEXT],
        }
        return records_of(plain, {})

    @classmethod
    def from_records(cls, records: RecordDict) -> SumReply:
        """The reply in Flower's form; anything else is refused."""
        kinds = {"agent": int, "kind": str, "share": bytes, "signature": bytes, "reason": str}
        plain = plain_of(records, kinds)
        if plain["kind"] not in _KINDS:
            got = plain["kind"][:40]
            raise ProtocolError(f"a member's answer must be one of {_KINDS}, got {got!r}")
        if len(plain["share"]) > LARGEST_ARRAY:
            raise ProtocolError(f"a share must hold at most {LARGEST_ARRAY} bytes")
        return cls(
            plain["study"],
            plain["round"],
            plain["agent"],
            cast(Kind, plain["kind"]),
            plain["share"],
            plain["signature"],
            printable(plain["reason"][:TEXT]),
        )


def answers_text(speakers: Sequence[int], answers: Sequence[Answer]) -> bytes:
    """Who spoke and what the members answered, always as the same bytes."""
    ordered = sorted(answers, key=lambda answer: answer.member)
    parts = [[a.member, _text(a.share), _text(a.signature)] for a in ordered]
    return canonical({"answers": parts, "speakers": sorted(speakers)}).encode()


def answers_in(data: bytes) -> tuple[tuple[int, ...], tuple[Answer, ...]]:
    """The speakers and the answers that `answers_text` wrote; anything else is refused."""
    try:
        content = json.loads(data)
        speakers = _numbers(content["speakers"])
        answers = tuple(
            Answer(member, base64.b64decode(share), base64.b64decode(signature))
            for member, share, signature in content["answers"]
        )
        _numbers([answer.member for answer in answers])
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise ProtocolError(f"what gave the sum cannot be read: {type(error).__name__}") from error
    return speakers, answers


def _numbers(found: Sequence[object]) -> tuple[int, ...]:
    if not all(type(each) is int for each in found):
        raise ProtocolError("speakers and members must be numbers")
    return tuple(cast(Sequence[int], found))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
