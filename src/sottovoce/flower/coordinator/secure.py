"""A coordinator that learns nothing but the noised sum: two exchanges a release.

First sites speak, in packets that only members can open. Who spoke is then settled: the packets are
on disk, the set is in the ledger, and only then are the members asked (`SumExchange`). One that was
killed goes on with the same set and the same packets. Any t answers give the sum.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sottovoce.errors import LedgerError, ProtocolError, StorageError, SumRefused, UnknownAgent
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.server import Server
from sottovoce.files import write_whole
from sottovoce.flower.coordinator.coordinator import GRACE, Coordinator
from sottovoce.flower.studyfile import Step, StudyFile
from sottovoce.flower.sumwire import SumCall, SumReply, answers_text
from sottovoce.flower.wire import Reply, read_safely
from sottovoce.privacy.chain import canonical
from sottovoce.privacy.notes import SPEAKERS
from sottovoce.secure_sum.protocol import Answer, Terms, check_answer, check_speech, opened

if TYPE_CHECKING:
    from flwr.app import RecordDict

EMPTY: Mapping[int, int] = {}
SURPLUS = 10.0  # seconds that members are waited for whose answers are only a check on the others
PACKETS = "packets-{}.json"  # of a round, until it is released

Packets = dict[int, tuple[bytes, ...]]  # by speaker, one for each member


class SecureCoordinator(Coordinator):
    """A coordinator that is trusted by nobody with a vector."""

    def __init__(
        self,
        file: StudyFile,
        server: Server,
        sites: Mapping[int, int],
        journal: str | Path,
        seed: int | None = None,
        aggregators: Mapping[int, int] = EMPTY,
    ) -> None:
        super().__init__(file, server, sites, journal, seed)
        self.parties = {**self.sites, **aggregators}
        self.terms: Terms = file.terms
        self._folder = Path(journal).parent
        self._spoken: Packets = {}
        self._settled = False
        self._second: SumExchange | None = None

    def open(self) -> Step:
        """Begin the next step; one whose speakers are settled goes on with them."""
        step = super().open()
        self._spoken, self._settled, self._second = {}, False, None
        noted = self.server.noted(step.round, SPEAKERS)
        if noted is not None:
            self._spoken = read_packets(self._packets_of(step), noted)
            self._settled = True
        return step

    @property
    def waiting(self) -> set[int]:
        """The nodes that have not given a final answer; none once the speakers are settled."""
        return set() if self._settled else super().waiting

    def settle(self) -> SumExchange | None:
        """Settle who spoke, for good; then members may be asked. None after the last release."""
        step = self._step
        if step is None:
            raise ProtocolError("no step is open")
        self._check_ledger()
        if step.round >= self.file.study.rounds:
            return None
        if not self._settled:
            self._check_gone(step)
            if len(self._spoken) < self.terms.fewest:
                raise self._too_few(step)
            with self._stopping(step):
                note = write_packets(self._packets_of(step), self._spoken)
                self.server.settle(note)
            self._settled = True
            self._journal.write("settled", step.round, speakers=sorted(self._spoken))
        self._second = SumExchange(self, step, self._spoken)
        return self._second

    def close(self) -> Broadcast | None:
        """End the open step: release its round from the members' answers."""
        step = self._step
        if step is None or step.round >= self.file.study.rounds:
            return super().close()
        if self._second is None:
            raise ProtocolError("who spoke must be settled, and members asked, before a release")
        self._check_ledger()
        speakers, answers = sorted(self._spoken), list(self._second.answers.values())
        needed = self.terms.committee.threshold
        if len(answers) < needed:
            raise self._unanswered(step, len(answers), needed)
        with self._stopping(step):
            total = opened(self.terms, step.round, speakers, answers)
            released = self.server.close_sum(total, answers_text(speakers, answers))
        counted = {**self._counts(), "spoke": len(speakers), "answered": len(answers)}
        counted["replied"] = max(counted["replied"], len(speakers))
        counted["absent"] = self.file.study.agents - counted["replied"]
        self.counts, self._step = counted, None
        with suppress(OSError):  # it is of no more use, and harms nobody
            self._packets_of(step).unlink(missing_ok=True)
        self._journal.write("closed", step.round, **self.counts)
        return released

    def note(self, event: str, reason: str, **facts: object) -> None:
        """A line in the journal, of the second exchange."""
        self._note(event, reason, **facts)

    def _packets_of(self, step: Step) -> Path:
        return self._folder / PACKETS.format(step.round)

    def _speak(self, agent: int, reply: Reply, step: Step) -> None:
        if reply.answer != "sealed":
            raise ProtocolError(f"agent {agent} sent a bare vector: it is not looked at")
        if self._settled:
            self._note("late", "who speaks in this round is settled", agent=agent)
            return
        check_speech(self.terms, step.round, agent, reply.packets)
        self._spoken[agent] = reply.packets
        self._presence[agent] = "spoke"

    def _too_few(self, step: Step) -> ProtocolError:
        why = f" (the last word was: {self._reason})" if self._reason else ""
        text = (
            f"{len(self._spoken)} of {self.file.study.agents} sites spoke in round {step.round}, "
            f"and at least {self.terms.fewest} must{why}: nothing was released, nothing was spent; "
            f"run again to go on from there"
        )
        self._journal.write("stopped", step.round, reason=text, **self._counts())
        return ProtocolError(text)

    def _unanswered(self, step: Step, answered: int, needed: int) -> ProtocolError:
        why = f" (the last word was: {self._reason})" if self._reason else ""
        text = (
            f"{answered} of {len(self.terms.committee.members)} members answered in round "
            f"{step.round}, and at least {needed} must{why}: nothing was released, nothing was "
            f"spent; run again to ask the same speakers' sum of them"
        )
        self._journal.write("stopped", step.round, reason=text, answered=answered)
        return ProtocolError(text)


class SumExchange:
    """The second exchange of a round: every member is handed its packets and answers once."""

    kind: ClassVar[str] = "query"

    def __init__(
        self,
        coordinator: SecureCoordinator,
        step: Step,
        packets: Packets,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._of, self._step, self._clock = coordinator, step, clock
        self._speakers = tuple(sorted(packets))
        self._packets = packets
        members = coordinator.terms.committee.members
        self._nodes = {node: n for node, n in coordinator.parties.items() if n in members}
        self.answers: dict[int, Answer] = {}
        self._out: set[int] = set()
        self._enough: float | None = None  # since when

    def limit(self, step: Step) -> float:
        """How many seconds members are given: as for a trial, since one may just run."""
        return self._of.file.trial_limit + GRACE

    @property
    def waiting(self) -> set[int]:
        """The nodes of members that have not answered; none some time after enough have."""
        if self._enough is not None and self._clock() > self._enough + SURPLUS:
            return set()
        over = self.answers.keys() | self._out
        return {node for node, member in self._nodes.items() if member not in over}

    def call(self, node: int) -> SumCall:
        """What a member is asked."""
        if node not in self._nodes:
            raise UnknownAgent(f"node {node} is no member's")
        member, terms = self._nodes[node], self._of.terms
        place = terms.committee.members.index(member)
        mine = tuple(self._packets[agent][place] for agent in self._speakers)
        return SumCall(terms.study, self._step.round, member, self._speakers, mine)

    def take(self, node: int, reply: SumReply | RecordDict) -> None:
        """Count a member's answer, or refuse it with a line in the journal; never raises."""
        member = self._nodes.get(node)
        if member is None:
            self._of.note("rejected", f"node {node} is no member's")
            return
        try:
            said = reply
            if not isinstance(said, SumReply):
                said = read_safely(SumReply.from_records, said)
            self._count(member, said)
        except (ProtocolError, SumRefused) as error:
            self._of.note("rejected", str(error), member=member)
            if member not in self.answers:
                self._out.add(member)

    def failed(self, node: int, reason: str) -> None:
        """Note that a call came to nothing on its way; the member may be called again."""
        self._of.note("failed", reason, member=self._nodes.get(node))

    def _count(self, member: int, reply: SumReply) -> None:
        if (reply.agent, reply.round) != (member, self._step.round) or member in self.answers:
            raise ProtocolError(f"it is not member {member}'s answer for round {self._step.round}")
        if reply.kind == "busy":
            return
        if reply.kind == "refused":
            self._of.note("refused", reply.reason, member=member)
            self._out.add(member)
            return
        check_answer(self._of.terms, self._step.round, self._speakers, reply.answer)
        self.answers[member] = reply.answer
        if len(self.answers) >= self._of.terms.committee.threshold and self._enough is None:
            self._enough = self._clock()


def write_packets(path: Path, packets: Packets) -> bytes:
    """Put the packets of a round on disk; gives what the ledger notes of them."""
    content = {str(agent): [each.hex() for each in mine] for agent, mine in packets.items()}
    text = canonical(content).encode()

    def writer(part: Path) -> None:
        with part.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, writer)
    digest = hashlib.sha256(text).hexdigest()
    return canonical({"packets": digest, "speakers": sorted(packets)}).encode()


def read_packets(path: Path, noted: bytes) -> Packets:
    """The packets of a round, as the ledger notes them."""
    try:
        text, note = path.read_bytes(), json.loads(noted)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read: it has what sites said in a round whose speakers are settled, "
            f"and nobody is asked for other speakers; put it back ({type(error).__name__})"
        ) from error
    if hashlib.sha256(text).hexdigest() != note["packets"]:
        raise LedgerError(f"{path} is not what the ledger notes of it")
    return {int(agent): tuple(map(bytes.fromhex, mine)) for agent, mine in json.loads(text).items()}
