"""The coordinator's part of a federation, without the engine that moves its messages.

A `Coordinator` says which step is next, what each site is asked, and takes what they answer. Where
it is it knows from the ledger alone, so one that was killed goes on where its ledger ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sottovoce.errors import (
    LedgerError,
    ProtocolError,
    RejectedVector,
    SottovoceError,
    UnknownAgent,
    WrongRound,
    check,
)
from sottovoce.federation.messages import Broadcast, check_turn
from sottovoce.federation.server import Server
from sottovoce.files import locked
from sottovoce.flower.coordinator.journal import Journal, read_journal
from sottovoce.flower.studyfile import Step, StudyFile
from sottovoce.flower.wire import Call, Reply, read_safely
from sottovoce.privacy.notes import ANSWERS

if TYPE_CHECKING:
    from flwr.app import RecordDict

GRACE = 30.0  # seconds for a step beside its trials: starting up, travelling

Presence = Literal["spoke", "done", "unfit", "out"]
# Whoever said a vector, or had none to say, was there; "out" is who refused or left, or whose reply
# did not fit the round. Presence is public, and whether a round is released may depend on it, but
# never on what was said: zero-out adjacency compares a site with one that is there and says zeros.
# A vector of zeros, or one that is unfit to be used, counts as presence like any other.
_PRESENT = ("spoke", "done", "unfit")


class Coordinator:
    """One study's coordinator. `sites` are the Flower nodes it calls, with their agent numbers."""

    kind: ClassVar[str] = "train"  # of Flower's messages

    def __init__(
        self,
        file: StudyFile,
        server: Server,
        sites: Mapping[int, int],
        journal: str | Path,
        seed: int | None = None,
    ) -> None:
        agents = file.study.agents
        same = server.study.fingerprint == file.study.fingerprint
        check(same, "the server must be of the same study")
        rule = f"each of the {agents} agents must be one site"
        check(sorted(sites.values()) == list(range(agents)), rule, agents=sorted(sites.values()))
        self.file, self.server, self.sites = file, server, dict(sites)
        self.parties = self.sites  # node -> number, of all who are called for anything
        self._seed = seed
        self._step: Step | None = None
        self._presence: dict[int, Presence] = {}  # by agent, in the open step
        self._lines = Counter[str]()  # of the open step, by event
        self._reason = ""
        self._ahead: str | None = None  # that a site has heard more than the ledger holds, in words
        self._gone: set[int] = set()  # agents that left or refused, and were not there since
        self.counts: dict[str, int] = {}  # what became of the sites in the step closed last
        self._path = Path(journal)
        self._journal = Journal(journal)

    def next_step(self) -> Step | None:
        """The first step that is not behind it; None when the study is over."""
        number = self.server.next_round()
        if number is not None:
            return next(step for step in self.file.steps if step.round == number)
        return None if self._finished() else self.file.steps[-1]

    def limit(self, step: Step) -> float:
        """How many seconds sites are given for a step."""
        return self.file.seconds(step) + GRACE

    def open(self) -> Step:
        """Begin the next step. Refused, before anyone is asked, if it would break the budget."""
        self._check_ledger()
        if self._step is not None:
            raise ProtocolError(f"the step of round {self._step.round} is still open")
        step = self.next_step()
        if step is None:
            raise ProtocolError("the study is over: all its rounds are released, all sites done")
        if step.round < self.file.study.rounds:
            with self._stopping(step):
                self.server.open_round()
        self._step, self._presence, self._reason = step, {}, ""
        if step.round >= self.file.study.rounds:  # who was done in an earlier run may be gone
            self._presence = dict.fromkeys(self._done(), "done")
        self._lines.clear()
        self._journal.write("opened", step.round, trials=step.trials)
        return step

    @property
    def waiting(self) -> set[int]:
        """The nodes that have not given a final answer in the open step; none if it is in vain."""
        if self._step is None or self.in_vain:
            return set()
        return {node for node, agent in self.sites.items() if agent not in self._presence}

    @property
    def expected(self) -> set[int]:
        """The nodes of whom something is to be asked: after the last release, sites not done."""
        step = self.next_step()
        if step is None or step.round < self.file.study.rounds:
            return set(self.parties)
        done = self._done()
        return {node for node, agent in self.sites.items() if agent not in done}

    @property
    def in_vain(self) -> bool:
        """Whether a site has heard what the ledger does not hold, so that nothing is released."""
        return self._ahead is not None

    def call(self, node: int) -> Call:
        """What a site is asked in the open step: the same for all but the agent's number."""
        if self._step is None:
            raise ProtocolError("no step is open")
        if node not in self.sites:
            raise UnknownAgent(f"node {node} is not among the sites")
        last = self.server.last_broadcast()
        return Call(
            self.file.study.fingerprint,
            self._step.round,
            self.sites[node],
            self.file.constants,
            last,
            self._seed,
            () if last is None else self.server.chain,
            b"" if last is None else self.server.noted(last.round, ANSWERS) or b"",
        )

    def take(self, node: int, reply: Reply | RecordDict) -> None:
        """Count a reply of a node, or refuse it with a line in the journal; never raises."""
        agent = self.sites.get(node)
        if agent is None:
            self._note("rejected", f"node {node} is not among the sites")
            return
        try:
            said = reply if isinstance(reply, Reply) else read_safely(Reply.from_records, reply)
            self._count(agent, said)
        except RejectedVector as error:
            self._presence[agent] = "unfit"
            self._note("rejected", str(error), agent=agent)
        except ProtocolError as error:
            self._note("rejected", str(error), agent=agent)
            if self._step is not None:
                self._presence.setdefault(agent, "out")

    def failed(self, node: int, reason: str) -> None:
        """Note that a call came to nothing on its way; the site may be called again."""
        self._note("failed", reason, agent=self.sites.get(node))

    def settle(self) -> Any:
        """What comes before the open step can be closed; None: nothing, this one sums itself."""
        return None

    def close(self) -> Broadcast | None:
        """End the open step: release its round. None after the last, which releases nothing.

        If nobody was there, or most sites have left, or a site has heard what the ledger does not
        hold, nothing is released, nothing is spent, and the study stops.
        """
        step = self._step
        if step is None:
            raise ProtocolError("no step is open")
        self._check_ledger()
        if not any(was in _PRESENT for was in self._presence.values()):
            raise self._nobody(step)
        self._check_gone(step)
        last = step.round >= self.file.study.rounds
        with self._stopping(step):
            released = None if last else self.server.close_round()
        self.counts, self._step = self._counts(), None
        if last:
            done = sorted(agent for agent, was in self._presence.items() if was == "done")
            head = self._head()
            self._journal.write("finished", step.round, head=head, agents=done, **self.counts)
        else:
            self._journal.write("closed", step.round, **self.counts)
        return released

    def stop(self) -> None:
        """Let go of the ledger and the journal."""
        self._journal.close()
        self.server.close()

    def _count(self, agent: int, reply: Reply) -> None:
        step = self._step
        self.file.study.check_same(reply.study)
        if reply.agent != agent:
            raise UnknownAgent(f"the site is agent {agent}, its reply is of agent {reply.agent}")
        self._compare(agent, reply)
        if step is None or reply.round < step.round:
            self._note("late", f"its reply is for round {reply.round}", agent=agent)
            return
        answered = [n for n, was in self._presence.items() if was in ("spoke", "done")]
        check_turn(agent, reply.round, step.round, answered)
        if reply.answer in ("refused", "left"):
            self._note(reply.answer, reply.reason, agent=agent)
            self._presence[agent] = "out"
            self._gone.add(agent)
        elif reply.answer == "done":
            self._presence[agent] = "done"
        elif reply.answer in ("vector", "sealed"):
            self._speak(agent, reply, step)
        if self._presence.get(agent) in ("spoke", "done"):
            self._journal.write("answered", step.round, agent=agent)

    def _compare(self, agent: int, reply: Reply) -> None:
        """Stop the study if a site has heard a broadcast that the ledger does not hold.

        The ledger is then older than what was released, and going on would release a round twice.
        A site can make that up, and nothing could prove it wrong: the ledger that would is the one
        that may be lost. So it is believed, and named, and its operator or ours has to act.
        """
        if reply.heard == -1:
            return
        if reply.heard not in [step.round for step in self.file.steps[:-1]]:
            raise WrongRound(f"round {reply.heard} is never broadcast, and it says it heard that")
        held = self.server.digest(reply.heard)
        if held == reply.head:
            return
        what = "does not hold" if held is None else "holds with other content"
        self._ahead = (
            f"agent {agent} has heard the broadcast of round {reply.heard}, which this ledger "
            f"{what}. So it is older than what was released, and nothing more is: put the newest "
            f"ledger and its head in place; without them this study is over. If it is the site "
            f"that is not to be believed, unregister its node"
        )
        self._note("ahead", self._ahead, agent=agent)

    def _check_ledger(self) -> None:
        if self._ahead is not None:
            number = None if self._step is None else self._step.round
            self._journal.write("stopped", number, reason=self._ahead)
            raise LedgerError(self._ahead)

    def _speak(self, agent: int, reply: Reply, step: Step) -> None:
        if step.round >= self.file.study.rounds:
            raise WrongRound(f"nothing is to be said after round {step.round - 1}")
        self.server.submit(reply.message)
        self._presence[agent] = "spoke"

    def _note(self, event: str, reason: str, **facts: object) -> None:
        self._lines[event] += 1
        self._reason = reason
        number = None if self._step is None else self._step.round
        self._journal.write(event, number, reason=reason, **facts)

    @contextmanager
    def _stopping(self, step: Step) -> Iterator[None]:
        """What ends the study is in the journal too."""
        try:
            yield
        except SottovoceError as error:
            self._journal.write("stopped", step.round, reason=str(error))
            raise

    def _counts(self) -> dict[str, int]:
        """What became of the sites in the open step, as numbers."""
        agents, count = self.file.study.agents, Counter(self._presence.values())
        return {
            "replied": len(self._presence),
            "spoke": count["spoke"] + count["unfit"],  # who took part, not what was said
            "done": count["done"],
            "absent": agents - len(self._presence),
            "rejected": self._lines["rejected"],
            "refused": self._lines["refused"],
            "left": self._lines["left"],
        }

    def _nobody(self, step: Step) -> ProtocolError:
        why = f" (the last word was: {self._reason})" if self._reason else ""
        text = (
            f"no site took part in round {step.round}{why}: nothing was released, nothing was "
            f"spent; run again to go on from there"
        )
        self._journal.write("stopped", step.round, reason=text, **self._counts())
        return ProtocolError(text)

    def _check_gone(self, step: Step) -> None:
        """Stop a study that more than half of its sites have left, before its budget is gone.

        Public: it depends on who said "left" or "refused" and has not been there since, never on
        what was said. A site that says zeros is there, so under zero-out adjacency both federations
        stop alike, and what was released until then is a part of what was accounted for. Why a
        site left is not covered, as its presence never is. After the last release nothing is to be
        saved: the others finish their trials.
        """
        for agent, was in self._presence.items():
            if was in _PRESENT:
                self._gone.discard(agent)
        agents, gone = self.file.study.agents, len(self._gone)
        if step.round >= self.file.study.rounds or 2 * gone <= agents:
            return
        text = (
            f"{gone} of {agents} sites have left or refused (the last word was: {self._reason}): "
            f"nothing was released in round {step.round}, nothing was spent for it; run again when "
            f"they are back"
        )
        self._journal.write("stopped", step.round, reason=text, **self._counts())
        raise ProtocolError(text)

    def _head(self) -> str:
        last = self.server.last_broadcast()
        return "" if last is None else last.head

    def _finished(self) -> bool:
        """Whether all sites were done before; until then each run calls the others once more."""
        return len(self._done()) == self.file.study.agents

    def _done(self) -> set[int]:
        """The agents that were done in an earlier run, or in this one, after the last release."""
        head = self._head()
        found = (
            line.get("agents")
            for line in read_journal(self._path)
            if line.get("event") == "finished" and line.get("head") == head
        )
        named = {agent for agents in found if isinstance(agents, list) for agent in agents}
        return {agent for agent in named if agent in self.sites.values()}


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a coordinator's folder: a second coordinator of the same ledger is refused."""
    with ExitStack() as kept:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held = kept.enter_context(locked(folder / "ledger.lock"))
        except OSError as error:
            raise LedgerError(f"{folder} cannot be held: {error}") from error
        if not held:
            raise LedgerError(
                f"{folder / 'ledger.db'} is in use by another coordinator: two would release a "
                f"round twice"
            )
        yield
