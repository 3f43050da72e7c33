"""A federation whose coordinator nobody trusts, in one process: real sites, members and ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import Trial

from sottovoce.federation.methods import POOLED_TS
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.coordinator.secure import SecureCoordinator, SumExchange
from sottovoce.flower.site.site import Site
from sottovoce.flower.site.summing import Member
from sottovoce.flower.sites import Roster
from sottovoce.flower.studyfile import StudyFile
from sottovoce.flower.sumwire import SumCall, SumReply
from sottovoce.flower.wire import Call, Reply
from sottovoce.privacy.budget import Budget
from sottovoce.privacy.release import Mechanism
from sottovoce.secure_sum.keys import Identity
from sottovoce.secure_sum.terms import SecureSum
from sottovoce.space import Float, Space

AGENTS, ROUNDS = 5, 3
PLENTY = Budget(1e5, 1e-5, "moments")
optuna.logging.set_verbosity(optuna.logging.WARNING)


@lru_cache(maxsize=1)
def identities() -> tuple[Identity, ...]:
    return tuple(Identity.generate() for _ in range(AGENTS))


def study_file(unreliable: int = 2, noise: float = 2.0, **changes: Any) -> StudyFile:
    method = replace(
        POOLED_TS,
        initial=3,
        features=16,
        lengthscale=0.3,
        mechanism=Mechanism(clip=5.0, participation=1.0, noise=noise),
        **changes,
    )
    names = tuple(f"site-{n}" for n in range(AGENTS))
    roster = Roster(names, tuple(party.public for party in identities()))
    sums = SecureSum(unreliable, roster.digest)
    study = FederatedStudy(Space([Float("x", 0.0, 1.0)]), method, AGENTS, ROUNDS, sums=sums)
    return StudyFile(study, PLENTY.epsilon, PLENTY.delta, "minimize", 5.0, roster=roster)


def quadratic(trial: Trial) -> float:
    return float((trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2)


@dataclass
class Secured:
    """All parties, under one folder."""

    folder: Path
    file: StudyFile = field(default_factory=study_file)
    journal: list[str] = field(default_factory=list)

    def coordinator(self) -> SecureCoordinator:
        """A coordinator as it is after a start: all it knows is on disk."""
        (self.folder / "hub").mkdir(parents=True, exist_ok=True)
        server = Server(self.file.study, self.folder / "hub" / "ledger.db", PLENTY)
        sites = {900 + agent: agent for agent in range(AGENTS)}
        return SecureCoordinator(self.file, server, sites, self.folder / "hub" / "journal.jsonl")

    def site(self, agent: int) -> Site:
        who = identities()[agent]
        return Site(self.file, quadratic, self.folder / str(agent), storage="journal", identity=who)

    def member(self, agent: int) -> Member:
        return Member(
            self.file,
            self.folder / str(agent),
            identities()[agent],
            storage="journal",
            patience=0.0,
        )

    def say(self, call: Call) -> Reply:
        """A site's reply, both ways through Flower's records."""
        there = Call.from_records(call.to_records())
        return Reply.from_records(self.site(call.agent).answer(there).to_records())

    def sum(self, call: SumCall) -> SumReply:
        """A member's answer, both ways through Flower's records."""
        there = SumCall.from_records(call.to_records())
        return SumReply.from_records(self.member(call.agent).answer(there).to_records())

    def speak(self, coordinator: SecureCoordinator, agents: Iterable[int] = range(AGENTS)) -> None:
        """The first exchange."""
        for node in sorted(coordinator.waiting):
            if coordinator.sites[node] in agents:
                coordinator.take(node, self.say(coordinator.call(node)))

    def add_up(
        self,
        second: SumExchange,
        agents: Iterable[int] = range(AGENTS),
        changed: Callable[[SumReply], SumReply] = lambda reply: reply,
    ) -> None:
        """The second exchange."""
        for node in sorted(second.waiting):
            if node - 900 in agents:
                second.take(node, changed(self.sum(second.call(node))))

    def release(self, coordinator: SecureCoordinator, agents: Iterable[int] = range(AGENTS)) -> Any:
        """One whole step."""
        coordinator.open()
        self.speak(coordinator, agents)
        second = coordinator.settle()
        if second is not None:
            self.add_up(second, agents)
        return coordinator.close()
