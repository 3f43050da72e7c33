from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sottovoce.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerError,
    ProtocolError,
    StorageError,
    UnknownAgent,
)
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.methods import DP_FTS
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.coordinator.coordinator import GRACE, Coordinator, alone
from sottovoce.flower.coordinator.journal import Journal, read_journal
from sottovoce.flower.studyfile import Step, StudyFile
from sottovoce.flower.wire import Reply
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.budget import Budget
from sottovoce.privacy.ledger import read_ledger
from sottovoce.privacy.release import Mechanism
from sottovoce.space import Float, Space

AGENTS, FEATURES, ROUNDS = 3, 4, 2
METHOD = replace(
    DP_FTS, features=FEATURES, initial=2, mechanism=Mechanism(clip=5.0, participation=0.5)
)
STUDY = FederatedStudy(Space([Float("x", 0.0, 1.0)]), METHOD, AGENTS, ROUNDS)
PLENTY = Budget(1000.0, 1e-5, "moments")
FILE = StudyFile(STUDY, PLENTY.epsilon, PLENTY.delta, direction="minimize", trial_limit=7.0)
SITES = {900 + agent: agent for agent in range(AGENTS)}  # node -> agent
STRANGER = 77


def begun(folder: Path, budget: Budget = PLENTY, sites: dict[int, int] = SITES) -> Coordinator:
    """A real coordinator: a ledger on disk, noise from the operating system."""
    server = Server(STUDY, folder / "ledger.db", budget)
    return Coordinator(FILE, server, sites, folder / "journal.jsonl")


def rehearsed(folder: Path, file: StudyFile = FILE) -> Coordinator:
    server = Server.simulation(file.study, 5, folder / "ledger.db")
    return Coordinator(file, server, SITES, folder / "journal.jsonl", seed=5)


def vector(agent: int, number: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng([agent, number]).standard_normal(FEATURES)


def reply(agent: int, number: int = 0, **changes: Any) -> Reply:
    said = Reply(STUDY.fingerprint, number, agent, "vector", vector(agent, number))
    return replace(said, **changes)


def done(agent: int) -> Reply:
    return Reply(STUDY.fingerprint, ROUNDS, agent, "done")


def play(coordinator: Coordinator, agents: tuple[int, ...] = tuple(range(AGENTS))) -> Step:
    """One whole step with those agents."""
    step = coordinator.open()
    for node, agent in SITES.items():
        if agent in agents:
            said = done(agent) if step.round == ROUNDS else reply(agent, step.round)
            coordinator.take(node, said)
    coordinator.close()
    return step


def events(folder: Path) -> list[tuple[str, int | None]]:
    """All but that a site answered."""
    lines = read_journal(folder / "journal.jsonl")
    return [(line["event"], line["round"]) for line in lines if line["event"] != "answered"]


def answered(folder: Path) -> list[tuple[int, int]]:
    lines = read_journal(folder / "journal.jsonl")
    return [(line["round"], line["agent"]) for line in lines if line["event"] == "answered"]


def last_line(folder: Path) -> dict[str, Any]:
    return read_journal(folder / "journal.jsonl")[-1]


# a whole study


def test_a_study_runs_from_its_first_step_to_its_last(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    steps = []
    while coordinator.next_step() is not None:
        steps.append(play(coordinator))
    assert steps == [Step(0, 2), Step(1, 1), Step(2, 1)] == FILE.steps
    assert [entry.round for entry in read_ledger(tmp_path / "ledger.db").entries] == [0, 1]
    assert coordinator.server.events[0].source == "os-entropy"
    with pytest.raises(ProtocolError, match="the study is over"):
        coordinator.open()
    assert events(tmp_path) == [
        ("opened", 0),
        ("closed", 0),
        ("opened", 1),
        ("closed", 1),
        ("opened", 2),
        ("finished", 2),
    ]
    coordinator.stop()


def test_each_site_is_called_with_the_last_broadcast_and_its_own_number(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    calls = [coordinator.call(node) for node in SITES]
    assert [call.agent for call in calls] == [0, 1, 2]
    assert all(call.broadcast is None and call.seed is None for call in calls)
    assert calls[0].constants == FILE.constants
    assert (calls[0].study, calls[0].round) == (STUDY.fingerprint, 0)
    coordinator.take(900, reply(0))
    heard = coordinator.close()
    coordinator.open()
    again = [coordinator.call(node) for node in SITES]
    assert all(call.broadcast == heard and call.round == 1 for call in again)
    coordinator.stop()


def test_a_simulations_calls_carry_its_seed(tmp_path: Path) -> None:
    coordinator = rehearsed(tmp_path)
    coordinator.open()
    assert coordinator.call(900).seed == 5
    coordinator.stop()


def test_nobody_is_called_outside_a_step_and_no_stranger_ever(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    with pytest.raises(ProtocolError, match="no step is open"):
        coordinator.call(900)
    assert coordinator.waiting == set()
    coordinator.open()
    with pytest.raises(UnknownAgent, match="node 77 is not among the sites"):
        coordinator.call(STRANGER)
    assert coordinator.waiting == set(SITES)
    with pytest.raises(ProtocolError, match="still open"):
        coordinator.open()
    coordinator.stop()


def test_sites_are_given_the_time_of_their_trials_and_some_grace(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    assert coordinator.limit(Step(0, 2)) == 14.0 + GRACE
    coordinator.stop()


def test_absent_sites_count_as_zero_and_are_counted(tmp_path: Path) -> None:
    whole = Mechanism(clip=1e6, participation=1.0, noise=0.0)
    study = replace(STUDY, method=replace(METHOD, mechanism=whole))
    coordinator = rehearsed(tmp_path, replace(FILE, study=study))
    coordinator.open()
    coordinator.take(901, reply(1, study=study.fingerprint))
    heard = coordinator.close()
    assert heard is not None
    assert np.allclose(heard.vectors[0], vector(1) / AGENTS)
    assert last_line(tmp_path)["absent"] == 2
    assert coordinator.counts == {
        "replied": 1,
        "spoke": 1,
        "done": 0,
        "absent": 2,
        "rejected": 0,
        "refused": 0,
        "left": 0,
    }
    coordinator.stop()


def test_a_coordinator_needs_a_site_for_each_agent_and_a_server_of_its_study(
    tmp_path: Path,
) -> None:
    server = Server.simulation(STUDY, 0)
    for sites in ({900: 0}, {900: 0, 901: 1, 902: 1}, {900: 1, 901: 2, 902: 3}):
        with pytest.raises(InvalidInput, match="each of the 3 agents must be one site"):
            Coordinator(FILE, server, sites, tmp_path / "journal.jsonl")
    other = Server.simulation(replace(STUDY, rounds=9), 0)
    with pytest.raises(InvalidInput, match="same study"):
        Coordinator(FILE, other, SITES, tmp_path / "journal.jsonl")
    assert list(tmp_path.iterdir()) == []


# replies that are refused

BAD = {
    "NaN": reply(1, vector=np.asarray([1.0, math.nan, 0.0, 0.0])),
    "huge": reply(1, vector=np.full(FEATURES, 1e200)),
    "wrong shape": reply(1, vector=np.ones(FEATURES + 1)),
    "no vector": reply(1, vector=None),
    "another agent": reply(2),
    "no agent": replace(reply(1), agent=-1),
    "a later round": reply(1, 1),
    "another study": reply(1, study="0" * 64),
    "refused": reply(1, answer="refused", vector=None, reason="epsilon differs"),
    "left": reply(1, answer="left", vector=None, reason="it left the study"),
}
REASONS = {
    "NaN": "finite",
    "huge": "exceed",
    "wrong shape": "shape",
    "no vector": "said nothing",
    "another agent": "the site is agent 1, its reply is of agent 2",
    "no agent": "of agent -1",
    "a later round": "round 0 is open, got a message for round 1",
    "another study": "its study is '000000000000'",
    "refused": "epsilon differs",
    "left": "it left the study",
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_reply_is_noted_and_its_site_counts_as_zero(what: str, tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    clean, attacked = rehearsed(tmp_path / "clean"), rehearsed(tmp_path)
    play(clean, (0, 2))
    attacked.open()
    attacked.take(900, reply(0))
    attacked.take(901, BAD[what])
    noted = last_line(tmp_path)
    assert noted["event"] == (what if what in ("refused", "left") else "rejected")
    assert REASONS[what] in noted["reason"]
    assert (noted["round"], noted["agent"]) == (0, 1)
    assert attacked.waiting == {902}  # who answered is not called again
    attacked.take(902, reply(2))
    attacked.close()
    assert attacked.server.broadcast(0) == clean.server.broadcast(0)
    # who took part is counted, not what was said: an unfit vector is presence like any other
    spoke = 3 if what in ("NaN", "huge", "wrong shape") else 2
    assert (attacked.counts["spoke"], attacked.counts["replied"]) == (spoke, 3)
    clean.stop()
    attacked.stop()


def test_a_node_that_is_not_registered_is_never_counted(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    coordinator.take(STRANGER, reply(1))
    assert "node 77 is not among the sites" in last_line(tmp_path)["reason"]
    assert coordinator.waiting == set(SITES)
    with pytest.raises(ProtocolError, match="no site took part"):
        coordinator.close()
    coordinator.stop()


def test_who_sends_twice_is_heard_once(tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    clean, attacked = rehearsed(tmp_path / "clean"), rehearsed(tmp_path)
    play(clean)
    attacked.open()
    for node, agent in SITES.items():
        attacked.take(node, reply(agent))
        attacked.take(node, reply(agent, vector=np.full(FEATURES, 3.0)))
        assert "already answered" in last_line(tmp_path)["reason"]
    attacked.close()
    assert attacked.server.broadcast(0) == clean.server.broadcast(0)
    assert attacked.counts["rejected"] == AGENTS
    clean.stop()
    attacked.stop()


def test_a_late_reply_is_noted_and_nothing_else(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    play(coordinator, (0, 2))
    coordinator.take(901, reply(1))
    assert last_line(tmp_path)["event"] == "late"
    coordinator.open()
    coordinator.take(901, reply(1))
    assert last_line(tmp_path)["event"] == "late"
    assert coordinator.waiting == set(SITES)  # it may still speak in this round
    coordinator.take(901, reply(1, 1))
    assert coordinator.waiting == {900, 902}
    coordinator.close()
    assert coordinator.counts["spoke"] == 1
    coordinator.stop()


def test_a_busy_site_is_waited_for(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    coordinator.take(900, reply(0, answer="busy", vector=None))
    assert coordinator.waiting == set(SITES)
    coordinator.take(900, reply(0))
    assert coordinator.waiting == {901, 902}
    coordinator.stop()


def test_a_site_whose_vector_was_unfit_may_still_send_a_good_one(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    coordinator.take(900, reply(0, vector=np.full(FEATURES, math.nan)))
    coordinator.take(900, reply(0))
    coordinator.close()
    assert (coordinator.counts["spoke"], coordinator.counts["rejected"]) == (1, 1)
    coordinator.stop()


def test_a_call_that_came_to_nothing_leaves_the_site_waited_for(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    coordinator.failed(901, "Flower's error 5")
    assert last_line(tmp_path)["event"] == "failed"
    assert coordinator.waiting == set(SITES)
    coordinator.stop()


class Strange:
    """Not Flower's records at all."""

    @property
    def config_records(self) -> object:
        raise RuntimeError("secret data")


def test_whatever_a_site_sends_stops_nobody_but_itself(tmp_path: Path) -> None:
    from flwr.app import ConfigRecord, RecordDict

    coordinator = begun(tmp_path)
    coordinator.open()
    strange: Any = Strange()
    coordinator.take(900, RecordDict())
    assert "must hold a record" in last_line(tmp_path)["reason"]
    coordinator.take(901, strange)
    assert last_line(tmp_path)["reason"] == "its reply cannot be read: RuntimeError"
    coordinator.take(901, RecordDict({"sottovoce": ConfigRecord({"schema": 1})}))
    coordinator.take(902, reply(2).to_records())
    assert coordinator.waiting == set()
    coordinator.close()
    assert (coordinator.counts["spoke"], coordinator.counts["rejected"]) == (1, 3)
    coordinator.stop()


def test_nothing_is_said_in_the_last_step(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    play(coordinator)
    play(coordinator)
    coordinator.open()
    coordinator.take(900, reply(0, ROUNDS))
    assert "nothing is to be said after round 1" in last_line(tmp_path)["reason"]
    coordinator.take(901, done(1))
    coordinator.take(901, done(1))
    assert "already answered" in last_line(tmp_path)["reason"]
    assert coordinator.close() is None
    assert len(coordinator.server.events) == 2
    coordinator.stop()


def test_the_journal_says_who_has_answered_while_the_step_is_open(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    coordinator.take(902, reply(2))
    coordinator.take(900, reply(0, vector=np.zeros(FEATURES)))  # zeros are presence like any other
    coordinator.take(901, Reply(STUDY.fingerprint, 0, 1, "refused", np.zeros(0), "words"))
    assert answered(tmp_path) == [(0, 2), (0, 0)]
    coordinator.close()
    play(coordinator)
    coordinator.open()
    coordinator.take(901, done(1))
    assert answered(tmp_path) == [(0, 2), (0, 0), (1, 0), (1, 1), (1, 2), (2, 1)]
    coordinator.stop()


def test_no_vector_and_nobody_sampled_is_in_the_journal(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    for node, agent in SITES.items():
        coordinator.take(node, reply(agent, vector=np.full(FEATURES, 0.123456789 + agent)))
    coordinator.take(901, reply(1, vector=np.full(FEATURES, 0.123456789)))
    coordinator.close()
    coordinator.stop()
    text = (tmp_path / "journal.jsonl").read_text()
    assert "123456789" not in text
    known = {"time", "event", "round", "trials", "reason", "agent"}
    counts = {"replied", "spoke", "done", "absent", "rejected", "refused", "left"}
    assert {key for line in text.splitlines() for key in json.loads(line)} == known | counts


ANSWERS = st.builds(
    lambda node, agent, number, answer, scale, study: (
        node,
        Reply(study, number, agent, answer, np.full(FEATURES, scale), "words"),
    ),
    st.sampled_from([*SITES, STRANGER]),
    st.integers(-1, AGENTS),
    st.integers(-1, ROUNDS + 1),
    st.sampled_from(["vector", "done", "busy", "refused", "left"]),
    st.sampled_from([0.0, 1.0, 2.0, math.nan, 1e150]),
    st.sampled_from([STUDY.fingerprint] * 4 + ["other"]),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(ANSWERS, max_size=12), min_size=1, max_size=ROUNDS))
def test_each_agent_is_counted_at_most_once_and_only_in_the_open_round(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[int, Reply]]]
) -> None:
    whole = Mechanism(clip=1e200, participation=1.0, noise=0.0)
    study = replace(STUDY, method=replace(METHOD, mechanism=whole))
    file = replace(FILE, study=study)
    folder = tmp_path_factory.mktemp("any")
    coordinator = rehearsed(folder, file)
    for answers in rounds:
        step = coordinator.open()
        wanted: dict[int, float] = {}
        settled: set[int] = set()
        unfit: set[int] = set()
        for node, each in answers:
            if each.study == STUDY.fingerprint:
                each = replace(each, study=study.fingerprint)
            coordinator.take(node, each)
            agent = SITES.get(node)
            fits = each.study == study.fingerprint and each.round == step.round
            if agent is None or agent != each.agent or not fits or agent in settled:
                continue
            value = float(each.vector[0]) if each.vector is not None else 0.0
            if each.answer == "done":
                settled.add(agent)
            elif each.answer == "vector" and value in (0.0, 1.0, 2.0):
                settled.add(agent)
                wanted[agent] = value
            if each.answer == "vector" and agent not in settled:
                unfit.add(agent)
            elif each.answer != "busy":
                unfit.discard(agent)
        before = len(coordinator.server.events)
        try:
            heard = coordinator.close()
        except ProtocolError as error:
            most_left = "have left or refused" in str(error)
            assert most_left or not wanted
            assert len(coordinator.server.events) == before
            break
        assert heard is not None
        assert np.allclose(heard.vectors[0], sum(wanted.values()) / AGENTS)
        assert coordinator.counts["spoke"] == len(wanted) + len(unfit)
    coordinator.stop()


def leaving(n: int, round_number: int = 0) -> Reply:
    return reply(n, round_number, answer="left", vector=None, reason="it left the study")


def test_a_study_that_most_sites_have_left_stops_and_spends_nothing_more(tmp_path: Path) -> None:
    coordinator = rehearsed(tmp_path)
    coordinator.open()
    coordinator.take(900, reply(0))
    coordinator.take(901, leaving(1))
    coordinator.close()  # one of three has left: the others go on
    coordinator.open()
    coordinator.take(900, reply(0, 1))
    coordinator.take(902, leaving(2, 1))  # the other one is gone, and need not say so again
    with pytest.raises(
        ProtocolError, match=r"2 of 3 sites have left or refused.*nothing was spent"
    ):
        coordinator.close()
    assert len(coordinator.server.events) == 1
    assert last_line(tmp_path)["event"] == "stopped"
    coordinator.stop()


def test_a_site_that_left_and_came_back_does_not_count_as_gone(tmp_path: Path) -> None:
    coordinator = rehearsed(tmp_path)
    coordinator.open()
    for node, each in {900: reply(0), 901: leaving(1), 902: reply(2)}.items():
        coordinator.take(node, each)
    coordinator.close()
    coordinator.open()
    for node, each in {900: reply(0, 1), 901: reply(1, 1), 902: leaving(2, 1)}.items():
        coordinator.take(node, each)
    assert coordinator.close() is not None
    coordinator.stop()


@pytest.mark.parametrize("said", [0.0, 1.0, math.nan], ids=["zeros", "ones", "unfit"])
def test_whether_a_study_stops_depends_on_who_is_there_and_not_on_what_they_say(
    said: float, tmp_path: Path
) -> None:
    coordinator = rehearsed(tmp_path)
    coordinator.open()
    coordinator.take(900, leaving(0))
    for node, n in {901: 1, 902: 2}.items():
        coordinator.take(node, reply(n, vector=np.full(FEATURES, said)))
    assert coordinator.close() is not None
    coordinator.stop()


# stopping, and going on


def stages(coordinator: Coordinator, stage: int) -> None:
    """What a coordinator has done when it dies: nothing, opened, heard some, heard all."""
    if stage >= 1:
        coordinator.open()
    for node, agent in list(SITES.items())[: {2: 1, 3: AGENTS}.get(stage, 0)]:
        coordinator.take(node, reply(agent))


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("played", [0, 1, 2])
def test_a_coordinator_goes_on_where_its_ledger_ends(
    stage: int, played: int, tmp_path: Path
) -> None:
    first = begun(tmp_path)
    for _ in range(played):
        play(first)
    sent = [first.server.broadcast(number).to_bytes() for number in range(played)]
    stages(first, stage)
    spent = len(first.server.events)
    first.stop()  # without a word to anybody
    second = begun(tmp_path)
    assert second.next_step() == FILE.steps[played]
    assert len(second.server.events) == spent == played
    assert [second.server.broadcast(number).to_bytes() for number in range(played)] == sent
    second.open()
    heard = second.call(901).broadcast
    assert (None if heard is None else heard.to_bytes()) == (sent[-1] if sent else None)
    assert second.waiting == set(SITES)  # what the first one heard died with it
    second.stop()


def test_a_study_that_is_over_stays_over(tmp_path: Path) -> None:
    first = begun(tmp_path)
    for _ in FILE.steps:
        play(first)
    first.stop()
    second = begun(tmp_path)
    assert second.next_step() is None
    second.stop()


def test_sites_that_were_absent_at_the_end_are_called_once_more_by_the_next_run(
    tmp_path: Path,
) -> None:
    first = begun(tmp_path)
    play(first)
    play(first)
    play(first, (0, 2))
    assert first.next_step() == FILE.steps[-1]
    first.stop()
    second = begun(tmp_path)
    assert play(second) == FILE.steps[-1]
    assert second.next_step() is None
    assert len(second.server.events) == 2
    second.stop()


def test_an_old_studys_end_is_not_this_ones(tmp_path: Path) -> None:
    first = begun(tmp_path)
    for _ in FILE.steps:
        play(first)
    first.stop()
    for name in ("ledger.db", "ledger.db.head"):
        (tmp_path / name).unlink()
    second = begun(tmp_path)
    play(second)
    play(second)
    assert second.next_step() == FILE.steps[-1]
    second.stop()


def test_when_nobody_took_part_nothing_is_released_and_the_next_run_goes_on(
    tmp_path: Path,
) -> None:
    first = begun(tmp_path)
    play(first)
    first.open()
    with pytest.raises(ProtocolError, match=r"round 1: nothing was released, nothing was spent"):
        first.close()
    assert len(first.server.events) == 1
    first.stop()
    assert last_line(tmp_path)["event"] == "stopped"
    second = begun(tmp_path)
    assert play(second) == Step(1, 1)
    second.stop()


def test_when_all_refuse_the_reason_is_told_and_nothing_is_spent(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    for node, agent in SITES.items():
        said = reply(agent, answer="refused", vector=None, reason="rounds is 9 there and 2 here")
        coordinator.take(node, said)
    assert coordinator.waiting == set()
    with pytest.raises(ProtocolError, match="rounds is 9 there and 2 here"):
        coordinator.close()
    assert coordinator.server.events == []
    coordinator.stop()


@pytest.mark.parametrize(
    "said",
    [
        {"vector": np.full(FEATURES, math.nan)},
        {"vector": np.zeros(FEATURES)},
        {"vector": np.full(FEATURES, 1e-300)},
        {"answer": "done"},
    ],
)
def test_whether_a_round_is_released_does_not_depend_on_what_was_said(
    said: dict[str, Any], tmp_path: Path
) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    coordinator.take(900, reply(0, **said))
    assert coordinator.waiting == {901, 902}
    assert coordinator.close() is not None
    assert len(coordinator.server.events) == 1
    coordinator.stop()


def test_zeros_leave_the_same_trace_as_any_vector(tmp_path: Path) -> None:
    lines = []
    for name, said in (("zeros", np.zeros(FEATURES)), ("other", vector(0))):
        (tmp_path / name).mkdir()
        coordinator = begun(tmp_path / name)
        coordinator.open()
        coordinator.take(900, reply(0, vector=said))
        coordinator.take(900, reply(0, vector=said))
        coordinator.close()
        coordinator.stop()
        journal = read_journal(tmp_path / name / "journal.jsonl")
        lines.append([{**line, "time": None} for line in journal])
    assert lines[0] == lines[1]


def test_when_all_have_left_nothing_is_released_and_nothing_is_spent(tmp_path: Path) -> None:
    coordinator = begun(tmp_path)
    coordinator.open()
    for node, agent in SITES.items():
        said = reply(agent, answer="left", vector=None, reason="it left the study")
        coordinator.take(node, said)
    assert coordinator.waiting == set()
    with pytest.raises(ProtocolError, match=r"it left the study.*nothing was spent"):
        coordinator.close()
    assert coordinator.server.events == []
    assert last_line(tmp_path)["left"] == AGENTS
    coordinator.stop()


def test_a_round_beyond_the_budget_stops_the_study_before_anyone_is_asked(tmp_path: Path) -> None:
    granted = epsilon([planned_event(STUDY, "x")], 1e-5, "moments") + 1e-9
    coordinator = begun(tmp_path, Budget(granted, 1e-5, "moments"))
    play(coordinator)
    with pytest.raises(BudgetExceeded, match="the budget is"):
        coordinator.open()
    assert "the budget is" in last_line(tmp_path)["reason"]
    assert coordinator.waiting == set()
    with pytest.raises(ProtocolError, match="no step is open"):
        coordinator.close()
    coordinator.stop()


def test_a_full_disk_stops_the_run_and_a_restart_goes_on(tmp_path: Path) -> None:
    study = replace(STUDY, method=replace(METHOD, features=2000))
    file = replace(FILE, study=study)
    loud: dict[str, Any] = {"study": study.fingerprint, "vector": np.ones(2000)}
    first = rehearsed(tmp_path, file)
    first.open()
    first.take(900, reply(0, **loud))
    db = first.server._ledger._db
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")  # as far as the ledger can see, it is full
    with pytest.raises(LedgerError, match=r"could not be committed.*not sent.*full"):
        first.close()
    assert last_line(tmp_path)["event"] == "stopped"
    first.stop()
    second = rehearsed(tmp_path, file)
    assert second.open() == FILE.steps[0]
    second.take(900, reply(0, **loud))
    assert second.close() is not None
    second.stop()


def test_a_round_whose_head_could_not_be_written_is_sent_by_the_next_run(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.open()
    first.take(900, reply(0))
    in_the_way = tmp_path / "ledger.db.head.part"
    in_the_way.mkdir()
    with pytest.raises(LedgerError, match="could not be written"):
        first.close()
    committed = first.server.broadcast(0)
    first.stop()
    in_the_way.rmdir()
    second = begun(tmp_path)
    assert second.open() == FILE.steps[1]  # the round is spent, and is not played again
    assert second.call(900).broadcast == committed
    second.stop()


def test_a_second_coordinator_of_the_same_ledger_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "coordinator"
    with (
        alone(folder),
        pytest.raises(LedgerError, match="in use by another coordinator"),
        alone(folder),
    ):
        pass
    with alone(folder):
        pass


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="cannot be held"), alone(tmp_path / "file"):
        pass


# the journal


def test_a_journal_goes_on_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"event": "opened", "round": 0}\n{"event": "clo')
    journal = Journal(path)
    journal.write("closed", 0, spoke=3)
    journal.close()
    assert [line["event"] for line in read_journal(path)] == ["opened", "closed"]


def test_a_journal_that_cannot_be_written_keeps_nobody_from_being_counted(
    tmp_path: Path,
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs a device that is always full")
    server = Server(STUDY, tmp_path / "ledger.db", PLENTY)
    (tmp_path / "journal.jsonl").symlink_to(full)
    coordinator = Coordinator(FILE, server, SITES, tmp_path / "journal.jsonl")
    coordinator.open()
    coordinator.take(900, reply(0))
    coordinator.take(901, reply(2))
    coordinator.close()
    assert coordinator.counts["spoke"] == 1
    coordinator.stop()


def test_lines_that_were_lost_are_counted_in_the_next(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    with Path("/dev/full").open("ab", buffering=0) as full:
        kept, journal._file = journal._file, full
        journal.write("opened", 0)
        journal.write("rejected", 0)
        journal._file = kept
    journal.write("closed", 0)
    journal.write("opened", 1)
    journal.close()
    assert [line.get("lost") for line in read_journal(path)] == [2, None]


def test_a_journal_of_nonsense_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert read_journal(path) == []
    path.write_bytes(b'[1]\n\xff\xfe\nnull\n{"event": "opened"}\n' + b"[" * 100_000 + b"\n")
    assert read_journal(path) == [{"event": "opened"}]
    with pytest.raises(StorageError, match="cannot be read"):
        read_journal(tmp_path)
    with pytest.raises(StorageError, match="cannot be written"):
        Journal(tmp_path)
