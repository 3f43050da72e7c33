"""The parties of a federation in one process: all but the engine that moves what they say is real.

Sites, coordinators and ledgers are on disk; calls and replies pass through Flower's records.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.trial import Trial

from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.methods import DP_FTS_DE, SOTTOVOCE, Method
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.coordinator.coordinator import Coordinator
from sottovoce.flower.coordinator.journal import read_journal
from sottovoce.flower.site.site import Site
from sottovoce.flower.studyfile import StudyFile
from sottovoce.flower.wire import Call, Reply
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.ledger import read_ledger
from sottovoce.privacy.release import Mechanism
from sottovoce.space import Float, Space

AGENTS, DELTA = 3, 1e-5
EVERYBODY = tuple(range(AGENTS))
LEDGER = ("ledger.db", "ledger.db.head")
Objective = Callable[[Trial], float]
optuna.logging.set_verbosity(optuna.logging.WARNING)


def study_of(method: Method, rounds: int) -> StudyFile:
    """A study whose budget lasts for its releases, and for not one more."""
    mechanism = Mechanism(clip=5.0, participation=1.0, noise=3.0)
    small = replace(method, initial=2, mechanism=mechanism)
    if method.basis != "effects":  # whose number follows from the space
        small = replace(small, features=6)
    study = FederatedStudy(Space([Float("x", 0.0, 1.0)]), small, AGENTS, rounds)
    events = [planned_event(study, "os-entropy")] * small.releases.count(rounds)
    return StudyFile(study, epsilon(events, DELTA, "pld") + 1e-3, DELTA, direction="minimize")


FILES = {"dp-fts-de": study_of(DP_FTS_DE, 3), "sottovoce": study_of(SOTTOVOCE, 8)}


def bowl(trial: Trial) -> float:
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2


class Parties:
    """The coordinator's folder, the sites', and what has travelled between them."""

    def __init__(self, folder: Path, file: StudyFile, objective: Objective = bowl) -> None:
        self.folder, self.file = folder / "coordinator", file
        self.folder.mkdir()
        self.sites = [self.site(n, objective) for n in EVERYBODY]
        self.reached: defaultdict[int, set[bytes]] = defaultdict(set)  # releases, by round
        self.said: defaultdict[tuple[int, int], set[bytes]] = defaultdict(set)

    def site(self, n: int, objective: Objective = bowl) -> Site:
        return Site(self.file, objective, self.folder.parent / f"site-{n}")

    def coordinator(self) -> Coordinator:
        server = Server(self.file.study, self.folder / "ledger.db", self.file.budget)
        nodes = {900 + n: n for n in EVERYBODY}
        return Coordinator(self.file, server, nodes, self.folder / "journal.jsonl")

    def ask(self, coordinator: Coordinator, n: int) -> Reply:
        records = coordinator.call(900 + n).to_records()
        call = Call.from_records(records)
        if call.broadcast is not None:
            count = 1 if self.file.study.method.shared.cumulative else len(call.broadcast.vectors)
            last = np.ascontiguousarray(call.broadcast.vectors[-count:])
            self.reached[call.broadcast.round].add(last.tobytes())
        reply = self.sites[n].answer(call)
        if reply.vector is not None:
            self.said[n, call.round].add(reply.vector.tobytes())
        coordinator.take(900 + n, reply.to_records())
        return reply

    def step(self, coordinator: Coordinator, present: Sequence[int] = EVERYBODY) -> list[Reply]:
        """One whole step with those sites."""
        coordinator.open()
        replies = [self.ask(coordinator, n) for n in present]
        coordinator.close()
        return replies

    def run(self, steps: int | None = None, present: Sequence[int] = EVERYBODY) -> None:
        """A run of the coordinator, to the end of the study or over so many steps."""
        coordinator = self.coordinator()
        try:
            for _ in range(len(self.file.steps) if steps is None else steps):
                if coordinator.next_step() in (None, self.file.steps[-1]):
                    break
                self.step(coordinator, present)
            if steps is None:
                self.step(coordinator, present)
        finally:
            coordinator.stop()

    def save(self, name: str) -> None:
        (self.folder / name).mkdir()
        for file in LEDGER:
            shutil.copy2(self.folder / file, self.folder / name / file)

    def restore(self, name: str) -> None:
        for file in LEDGER:
            shutil.copy2(self.folder / name / file, self.folder / file)

    @property
    def journal(self) -> list[dict[str, Any]]:
        return read_journal(self.folder / "journal.jsonl")

    @property
    def released(self) -> int:
        return len(read_ledger(self.folder / "ledger.db").entries)
