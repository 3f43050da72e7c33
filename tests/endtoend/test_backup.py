"""An old backup of the coordinator's ledger and its head is restored: nobody is heard twice.

Real sites, coordinators, servers and ledgers on disk; calls and replies pass through Flower's
records, and only the engine that moves them is left out.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import Trial

from sottovoce.errors import LedgerError
from sottovoce.flower.coordinator import Coordinator
from sottovoce.flower.journal import read_journal
from sottovoce.flower.site import Site
from sottovoce.flower.studyfile import StudyFile
from sottovoce.flower.wire import Call, Reply
from sottovoce.methods import DP_FTS_DE, SOTTOVOCE, Method
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.ledger import read_ledger
from sottovoce.privacy.release import Mechanism
from sottovoce.server import Server, planned_event
from sottovoce.space import Float, Space
from sottovoce.study import Study

AGENTS, DELTA = 3, 1e-5
EVERYBODY = tuple(range(AGENTS))
LEDGER = ("ledger.db", "ledger.db.head")
optuna.logging.set_verbosity(optuna.logging.WARNING)


def study_of(method: Method, rounds: int) -> StudyFile:
    """A study whose budget lasts for its releases, and for not one more."""
    mechanism = Mechanism(clip=5.0, participation=1.0, noise=3.0)
    small = replace(method, initial=2, features=6, mechanism=mechanism)
    study = Study(Space([Float("x", 0.0, 1.0)]), small, AGENTS, rounds)
    events = [planned_event(study, "os-entropy")] * small.speaking.count(rounds)
    return StudyFile(study, epsilon(events, DELTA, "pld") + 1e-3, DELTA, maximise=False)


FILES = {"dp-fts-de": study_of(DP_FTS_DE, 3), "sottovoce": study_of(SOTTOVOCE, 8)}


def objective(trial: Trial) -> float:
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2


class Parties:
    """The coordinator's folder, the sites', and what has travelled between them."""

    def __init__(self, folder: Path, file: StudyFile) -> None:
        self.folder, self.file = folder / "coordinator", file
        self.folder.mkdir()
        self.sites = [Site(file, objective, folder / f"site-{n}") for n in EVERYBODY]
        self.reached: defaultdict[int, set[bytes]] = defaultdict(set)  # releases, by round
        self.said: defaultdict[tuple[int, int], set[bytes]] = defaultdict(set)

    def coordinator(self) -> Coordinator:
        server = Server(self.file.study, self.folder / "ledger.db", self.file.budget)
        nodes = {900 + n: n for n in EVERYBODY}
        return Coordinator(self.file, server, nodes, self.folder / "journal.jsonl")

    def ask(self, coordinator: Coordinator, n: int) -> Reply:
        records = coordinator.call(900 + n).to_records()
        call = Call.from_records(records)
        if call.broadcast is not None:
            count = 1 if self.file.study.method.hears == "learn" else len(call.broadcast.vectors)
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


@pytest.fixture(params=FILES)
def parties(request: pytest.FixtureRequest, tmp_path: Path) -> Parties:
    return Parties(tmp_path, FILES[request.param])


def test_a_restored_backup_makes_nobody_speak_again_and_releases_nothing(parties: Parties) -> None:
    parties.run(1)
    parties.save("old")
    parties.run(2)
    for _ in range(3):
        parties.restore("old")
        with pytest.raises(LedgerError, match="which this ledger does not hold"):
            parties.run()
    contents = [len(contents) for contents in parties.reached.values()]
    assert set(contents) == {1}, f"releases of each round that reached the sites: {contents}"
    events = [planned_event(parties.file.study, "os-entropy")] * sum(contents)
    assert epsilon(events, DELTA, "pld") <= parties.file.epsilon
    assert parties.released == 1


def test_one_site_that_has_heard_the_lost_round_stops_it_and_the_newest_ledger_goes_on(
    parties: Parties,
) -> None:
    parties.run(1)
    parties.save("old")
    parties.run(1)
    parties.run(1, present=(2,))  # it alone hears the second release
    parties.save("newest")
    parties.restore("old")
    lost = parties.file.steps[1].round
    with pytest.raises(
        LedgerError, match=f"agent 2 has heard the broadcast of round {lost}, which"
    ):
        parties.run()
    assert parties.released == 1
    (line,) = [line for line in parties.journal if line["event"] == "ahead"]
    assert (line["agent"], line["round"]) == (2, lost)
    assert parties.journal[-1]["event"] == "stopped"
    parties.restore("newest")
    parties.run()
    assert parties.released == len(parties.file.steps) - 1
    assert {len(contents) for contents in parties.reached.values()} == {1}
    assert {len(vectors) for vectors in parties.said.values()} == {1}
    assert parties.journal[-1]["done"] == AGENTS


def test_a_ledger_begun_anew_stops_at_the_first_reply(parties: Parties) -> None:
    parties.run(2)
    for name in LEDGER:
        (parties.folder / name).unlink()
    coordinator = parties.coordinator()
    coordinator.open()
    assert parties.ask(coordinator, 1).heard == 0
    assert coordinator.waiting == set()  # nobody else is asked
    with pytest.raises(LedgerError, match="agent 1 has heard the broadcast of round 0"):
        coordinator.close()
    coordinator.stop()
    assert parties.released == 0


def test_a_coordinator_that_died_before_it_committed_is_told_the_same_again(
    parties: Parties,
) -> None:
    parties.run(1)
    dying = parties.coordinator()
    dying.open()
    for n in EVERYBODY:
        parties.ask(dying, n)
    dying.stop()  # all was said, and nothing was released
    parties.run()
    assert {len(vectors) for vectors in parties.said.values()} == {1}
    assert parties.journal[-1]["done"] == AGENTS
    assert parties.released == len(parties.file.steps) - 1


def test_a_coordinator_that_died_after_it_committed_asks_for_the_next_round(
    parties: Parties,
) -> None:
    dying = parties.coordinator()
    parties.step(dying)
    dying.stop()  # released, and nobody has heard it
    parties.run()
    assert {len(vectors) for vectors in parties.said.values()} == {1}
    assert parties.journal[-1]["done"] == AGENTS


def test_a_site_that_makes_up_what_it_heard_is_named_and_without_it_the_study_goes_on(
    parties: Parties,
) -> None:
    parties.run(1)
    later = parties.file.steps[1].round
    for heard, head in ((later, "f" * 64), (0, "f" * 64)):
        coordinator = parties.coordinator()
        coordinator.open()
        parties.ask(coordinator, 0)
        lie = replace(parties.ask(coordinator, 1), answer="busy", vector=None)
        coordinator.take(902, replace(lie, agent=2, heard=heard, head=head).to_records())
        with pytest.raises(LedgerError, match=r"agent 2 has heard .* unregister its node"):
            coordinator.close()
        with pytest.raises(LedgerError, match="agent 2 has heard"):
            coordinator.open()
        coordinator.stop()
    assert parties.released == 1
    parties.run(present=(0, 1))  # its node is unregistered: it counts as zero
    assert parties.released == len(parties.file.steps) - 1


def test_a_site_that_says_it_heard_what_is_never_broadcast_stops_nobody(parties: Parties) -> None:
    coordinator = parties.coordinator()
    coordinator.open()
    for n, heard in enumerate((-2, parties.file.study.rounds, 10**9)):
        said = parties.sites[n].answer(coordinator.call(900 + n))
        coordinator.take(900 + n, replace(said, heard=heard).to_records())
        assert f"round {heard} is never broadcast" in parties.journal[-1]["reason"]
    assert parties.ask(coordinator, 0).answer == "vector"
    assert coordinator.close() is not None
    coordinator.stop()


def test_a_round_released_twice_while_all_who_heard_it_were_away_ends_the_study_for_them(
    parties: Parties,
) -> None:
    """Nobody who is there can know. The first who comes back stops it."""
    parties.run(1)
    parties.save("old")
    parties.run(1)
    parties.run(1, present=(2,))
    parties.restore("old")
    parties.run(1, present=(0, 1))
    coordinator = parties.coordinator()
    coordinator.open()
    reply = parties.ask(coordinator, 2)
    lost = parties.file.steps[1].round
    assert f"round {lost} was broadcast before, with other content" in reply.reason
    with pytest.raises(LedgerError, match=f"round {lost}, which this ledger holds with other"):
        coordinator.close()
    coordinator.stop()
