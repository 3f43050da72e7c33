"""A site's part in sums that nobody can open alone: it seals what it says, and adds up shares.

Both are written to its disk before they are sent, and are the same bytes ever after: other noise on
what was said, or an answer for a second set of speakers, would be a second release.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import (
    InvalidInput,
    ProtocolError,
    SottovoceError,
    StudyMismatch,
    WrongRound,
)
from sottovoce.federation.aggregate import summed
from sottovoce.federation.messages import Broadcast
from sottovoce.flower.site.log import log_error
from sottovoce.flower.site.memory import Memory, lock
from sottovoce.flower.studyfile import StudyFile
from sottovoce.flower.sumwire import SumCall, SumReply, answers_in
from sottovoce.flower.wire import Call
from sottovoce.privacy.noise import Drawn, ShareSource, SystemEntropy
from sottovoce.secure_sum.grid import rounded, spoken
from sottovoce.secure_sum.keys import Identity
from sottovoce.secure_sum.protocol import answered, check_set, opened, set_digest, speech
from sottovoce.simulation import Draws
from sottovoce.simulation.streams import draws_of_agent, share_recipe

PATIENCE = 2.0  # seconds to wait for an earlier call to end


def check_identity(file: StudyFile, agent: int, identity: Identity | None) -> None:
    """Refuse to take part without the keys that the list of sites has of this agent."""
    if identity is None:
        raise InvalidInput(
            "where nobody is trusted a site needs its sealing key: `sottovoce join` takes the one "
            "beside its private key, NAME.seal"
        )
    _ = file.terms  # that all keys are there
    if file.roster is not None:
        file.roster.check_mine(agent, identity)


def sealed_once(
    file: StudyFile, call: Call, vector: NDArray[np.float64], memory: Memory, identity: Identity
) -> tuple[bytes, ...]:
    """What is said, clipped and with its share of the noise, as one packet for each member."""
    packets = memory.sealed(call.round)
    if packets is None:
        study, mechanism = file.study, file.study.method.mechanism
        if mechanism is None:
            raise InvalidInput("a sum in shares needs a mechanism")
        weights = study.weights(call.round)
        steps = rounded(vector, call.agent, weights, mechanism, study.grid)
        noised = spoken(steps, study.grid, _source(file, call))
        packets = speech(file.terms, call.round, call.agent, noised, identity)
        memory.seal(call.round, packets)
    return packets


def _source(file: StudyFile, call: Call) -> ShareSource:
    if call.seed is None:
        return SystemEntropy()
    deal = draws_of_agent(Draws(call.seed, 0), file.study.agents, call.agent)
    recipe = partial(share_recipe, size=file.study.grid.numbers)
    (normals,) = deal("share", call.round, recipe)
    return Drawn(np.asarray(normals)[0])


def check_sum(file: StudyFile, broadcast: Broadcast, answers: bytes) -> None:
    """Add up again: refuse a broadcast that is not what the members' signed answers give."""
    speakers, given = answers_in(answers)
    total = opened(file.terms, broadcast.round, speakers, given)
    newest = summed(file.study, broadcast.round, total, "").vectors
    if not np.array_equal(broadcast.vectors[-len(newest) :], newest):
        raise ProtocolError(
            f"the broadcast of round {broadcast.round} is not the sum that the answers give"
        )


class Member:
    """A site, or an aggregator, as one of those who add up shares."""

    def __init__(
        self,
        file: StudyFile,
        folder: str | Path,
        identity: Identity | None,
        *,
        storage: str = "sqlite",
        patience: float = PATIENCE,
    ) -> None:
        self._file, self._folder, self._identity = file, Path(folder), identity
        self._storage, self._patience = storage, patience

    def answer(self, call: SumCall) -> SumReply:
        """Its summed share for these speakers; the same again for the same, never for others."""
        try:
            identity = self._checked(call)
            with lock(self._folder, self._patience) as held:
                if not held:
                    return SumReply(call.study, call.round, call.agent, "busy")
                study, direction = self._file.study, self._file.direction
                with Memory(self._folder, self._storage, study, direction) as memory:
                    memory.claim(call.agent)
                    return self._answered(call, memory, identity)
        except Exception as error:
            log_error(self._folder, error)
            return sum_refusal(call, error)

    def _checked(self, call: SumCall) -> Identity:
        study = self._file.study
        study.check_same(call.study)
        if study.sums is None:
            raise StudyMismatch("in this study the coordinator sums, and sites are not asked to")
        if call.round not in study.release_rounds:
            raise WrongRound(f"nothing is summed in round {call.round}")
        if call.agent not in self._file.terms.committee.members:
            raise ProtocolError(f"party {call.agent} is not of the committee")
        check_set(self._file.terms, call.speakers)
        check_identity(self._file, call.agent, self._identity)
        if self._identity is None:
            raise InvalidInput("a member needs its sealing key")
        return self._identity

    def _answered(self, call: SumCall, memory: Memory, identity: Identity) -> SumReply:
        named = set_digest(self._file.terms, call.round, call.speakers)
        kept = memory.answered(call.round)
        if kept is None:
            packets = dict(zip(call.speakers, call.packets, strict=True))
            new = answered(self._file.terms, call.round, call.agent, packets, identity)
            kept = memory.answer(call.round, named, new.share, new.signature)
        if kept.speakers != named:
            raise ProtocolError(
                f"this site has answered for other speakers in round {call.round}, and does not "
                f"answer for two sets: their difference would be open to whoever asked"
            )
        share, signature = kept.share, kept.signature
        return SumReply(call.study, call.round, call.agent, "share", share, signature)


def sum_refusal(call: SumCall, error: Exception) -> SumReply:
    """Not to answer, and why, as far as others may know."""
    kind = type(error).__name__
    words = f"{kind}: {error}" if isinstance(error, SottovoceError) else kind
    return SumReply(call.study, call.round, call.agent, "refused", reason=words)
