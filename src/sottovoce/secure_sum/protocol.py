"""What travels when nobody is to see a vector: packets to the members, their answers, the sum.

1. A speaker splits its noised contribution, seals one share to each member, signs each packet.
2. The coordinator fixes the set of speakers, and hands every member the packets that are for it.
3. A member opens them, adds up, and signs one summed share. It must never do so for two sets of one
   round: whoever calls `answered` keeps what it gave, on disk, before it gives it.
4. Any t answers give the sum; those beyond t must agree; a sum that cannot be is refused.

Everything is bound to the study, the round, the sender and the receiver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import ProtocolError, SumRefused, check
from sottovoce.secure_sum import field, sharing
from sottovoce.secure_sum.grid import Grid, plausible
from sottovoce.secure_sum.keys import SEALED, SIGNATURE, Identity, PublicKeys
from sottovoce.secure_sum.terms import Committee

_PACKET, _ANSWER = b"sottovoce/packet/v1", b"sottovoce/answer/v1"


@dataclass(frozen=True)
class Terms:
    """What all parties of a study's sums agree on."""

    study: str  # fingerprint
    grid: Grid
    committee: Committee
    keys: tuple[PublicKeys, ...]  # of all parties: the sites, then aggregators if there are any

    def __post_init__(self) -> None:
        known = range(len(self.keys))
        members = self.committee.members
        check(all(n in known for n in members), "members must be parties", members=members)
        check(len(known) >= self.grid.agents, "every site must have keys", keys=len(known))

    @property
    def fewest(self) -> int:
        """How many must have spoken: half of those not counted on may be absent."""
        return self.grid.agents - self.grid.unreliable // 2


@dataclass(frozen=True)
class Answer:
    """A member's summed share, signed; `member` is its number among the parties."""

    member: int
    share: bytes
    signature: bytes


def speech(
    terms: Terms,
    round_number: int,
    agent: int,
    spoken: NDArray[np.int64],
    identity: Identity,
) -> tuple[bytes, ...]:
    """One packet for each member, in the committee's order: sealed, and signed by the speaker."""
    committee, size = terms.committee, terms.grid.numbers
    check(spoken.shape == (size,), f"a contribution must have {size} numbers", shape=spoken.shape)
    random = field.uniform((committee.threshold - 1, size))
    shares = sharing.split(field.encode(spoken), random, len(committee.members))
    packets = []
    for member, share in zip(committee.members, shares, strict=True):
        context = _context(_PACKET, terms, round_number, agent, member)
        sealed = terms.keys[member].seal(field.to_bytes(share), context)
        packets.append(identity.sign(_content(context, sealed)) + sealed)
    return tuple(packets)


def check_speech(terms: Terms, round_number: int, agent: int, packets: Sequence[bytes]) -> None:
    """Refuse what is not one packet for each member, each signed by the agent for this round.

    And each of the one size that there is: another opens for nobody, and all would be handed it.
    """
    members, size = terms.committee.members, SIGNATURE + SEALED + 8 * terms.grid.numbers
    if len(packets) != len(members):
        raise ProtocolError(f"{len(members)} packets must come, got {len(packets)}")
    strange = next((len(each) for each in packets if len(each) != size), None)
    if strange is not None:
        raise ProtocolError(f"packets must be of {size} bytes each, got one of {strange}")
    for member, packet in zip(members, packets, strict=True):
        _signed_part(terms, round_number, agent, member, packet)


def answered(
    terms: Terms,
    round_number: int,
    member: int,
    packets: Mapping[int, bytes],
    identity: Identity,
) -> Answer:
    """A member's answer for the set of speakers whose packets it was handed, by agent.

    Refused if the set is too small, or if a packet is not its speaker's, or does not open.
    """
    check_set(terms, packets)
    rows = []
    for agent in sorted(packets):
        context = _context(_PACKET, terms, round_number, agent, member)
        sealed = _signed_part(terms, round_number, agent, member, packets[agent])
        opened = identity.open(sealed, context)
        row = None if opened is None else field.from_bytes(opened, terms.grid.numbers)
        if row is None:
            raise ProtocolError(f"the share of agent {agent} does not open, or is none")
        rows.append(row)
    share = field.to_bytes(field.total(rows, terms.grid.numbers))
    said = _statement(terms, round_number, member, sorted(packets), share)
    return Answer(member, share, identity.sign(said))


def check_set(terms: Terms, speakers: Mapping[int, object] | Sequence[int]) -> None:
    """Refuse a set of speakers that is too small to hide any of them, or not one of agents."""
    known = range(terms.grid.agents)
    if len(set(speakers)) != len(speakers) or not all(agent in known for agent in speakers):
        raise ProtocolError(f"speakers must be different agents, from 0 to {len(known) - 1}")
    if len(speakers) < terms.fewest:
        raise SumRefused(
            f"at least {terms.fewest} of {terms.grid.agents} sites must have spoken, got "
            f"{len(speakers)}: with fewer there would be too little noise"
        )


def check_answer(
    terms: Terms, round_number: int, speakers: Sequence[int], answer: Answer
) -> field.Residues:
    """The share in an answer; refused unless that member signed it for this set and round."""
    if answer.member not in terms.committee.members:
        raise ProtocolError(f"party {answer.member} is not of the committee")
    said = _statement(terms, round_number, answer.member, sorted(speakers), answer.share)
    if not terms.keys[answer.member].signed(answer.signature, said):
        raise ProtocolError(f"member {answer.member} did not sign this answer for this set")
    share = field.from_bytes(answer.share, terms.grid.numbers)
    if share is None:
        raise ProtocolError(f"the answer of member {answer.member} is no share")
    return share


def opened(
    terms: Terms, round_number: int, speakers: Sequence[int], answers: Sequence[Answer]
) -> NDArray[np.int64]:
    """The sum of what the speakers said, in steps; refused unless all answers agree on one."""
    check_set(terms, speakers)
    place = {member: j for j, member in enumerate(terms.committee.members)}
    shares: dict[int, field.Residues] = {}
    for answer in answers:
        share = check_answer(terms, round_number, speakers, answer)
        if place[answer.member] in shares:
            raise ProtocolError(f"member {answer.member} has answered twice")
        shares[place[answer.member]] = share
    total = field.decode(sharing.joined(shares, terms.committee.threshold))
    if not plausible(total, terms.grid, len(speakers)):
        raise SumRefused(
            f"{len(speakers)} clipped vectors and their noise cannot add up to this: a site did "
            f"not keep to the clip, or a member lied"
        )
    return total


def set_digest(terms: Terms, round_number: int, speakers: Sequence[int]) -> str:
    """What names a set of speakers of a round."""
    words = ",".join(map(str, sorted(speakers)))
    return hashlib.sha256(f"{terms.study}/{round_number}/{words}".encode()).hexdigest()


def _context(kind: bytes, terms: Terms, round_number: int, sender: int, receiver: int) -> bytes:
    words = f"{terms.study}/{round_number}/{sender}/{receiver}"
    return kind + b"/" + words.encode()


def _content(context: bytes, sealed: bytes) -> bytes:
    return context + b"/" + hashlib.sha256(sealed).digest()


def _signed_part(terms: Terms, round_number: int, agent: int, member: int, packet: bytes) -> bytes:
    """What is sealed in a packet, if its speaker signed it for this member and round."""
    signature, sealed = packet[:SIGNATURE], packet[SIGNATURE:]
    content = _content(_context(_PACKET, terms, round_number, agent, member), sealed)
    if len(signature) < SIGNATURE or not terms.keys[agent].signed(signature, content):
        raise ProtocolError(f"agent {agent} did not sign its packet to member {member}")
    return sealed


def _statement(
    terms: Terms, round_number: int, member: int, speakers: Sequence[int], share: bytes
) -> bytes:
    context = _context(_ANSWER, terms, round_number, member, 0)
    named = set_digest(terms, round_number, speakers).encode()
    return context + b"/" + named + b"/" + hashlib.sha256(share).digest()
