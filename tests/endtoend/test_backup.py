"""An old backup of the coordinator's ledger and its head is restored: nobody is heard twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.endtoend.parties import AGENTS, DELTA, EVERYBODY, FILES, LEDGER, Parties

from sottovoce.errors import LedgerError
from sottovoce.federation.aggregate import planned_event
from sottovoce.privacy.accountant import epsilon


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
