"""The coordinator on Flower's own link, in memory: what it asks, whom it believes."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Error, Message, RecordDict
from flwr.proto.task_pb2 import Task
from flwr.server.superlink.linkstate import InMemoryLinkState, LinkStateFactory
from flwr.server.superlink.linkstate.in_memory_linkstate import RunRecord
from flwr.serverapp import Grid
from flwr.supercore.constant import FLWR_IN_MEMORY_DB_NAME, NOOP_FEDERATION_ID
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.federation import NoOpFederationManager
from flwr.superlink.grid import InMemoryGrid

from sottovoce.errors import InvalidInput, LedgerError, ProtocolError, SimulationOnly, StorageError
from sottovoce.flower.coordinator import app as serverapp
from sottovoce.flower.coordinator import coordinator as coordination
from sottovoce.flower.coordinator.app import Settings, main
from sottovoce.flower.coordinator.coordinator import alone
from sottovoce.flower.coordinator.journal import read_journal
from sottovoce.flower.studyfile import Step, read_study
from sottovoce.flower.wire import Call, Reply
from sottovoce.privacy.ledger import read_ledger

AGENTS = 3
STUDY = """
[study]
agents = 3
rounds = 2
epsilon = 3.0
delta = 1e-3
direction = "minimize"
method = "dp-fts"
features = 4
participation = 1.0
trial_limit = 0.1

[[space.parameters]]
name = "x"
type = "float"
low = 0.0
high = 1.0
"""

Answer = Callable[[Call, int], Reply | Error | RecordDict | None]


class Deployed(Grid):
    """The same link, as from another process: it is not the simulation engine's."""

    def __init__(self, inner: InMemoryGrid) -> None:
        self._inner = inner

    def set_run(self, run: Run) -> None:
        self._inner.set_run(run)

    @property
    def run(self) -> Run:
        return self._inner.run

    def create_message(self, *given: Any, **named: Any) -> Message:
        return self._inner.create_message(*given, **named)

    def get_node_ids(self) -> Iterable[int]:
        return self._inner.get_node_ids()

    def get_nodes(self) -> Iterable[Any]:
        return self._inner.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return self._inner.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self._inner.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return self._inner.send_and_receive(messages, timeout=timeout)


class Link:
    """A SuperLink in memory with nodes that answer as they are told to."""

    def __init__(self, nodes: int = AGENTS) -> None:
        factory = LinkStateFactory(
            FLWR_IN_MEMORY_DB_NAME, NoOpFederationManager(), ObjectStoreFactory()
        )
        state = factory.state()
        if not isinstance(state, InMemoryLinkState):
            raise TypeError("the link must be in memory")
        self.state = state
        run = Run.create_empty(7)
        run.primary_task_id, run.federation_id = 1, NOOP_FEDERATION_ID
        state.run_ids[7] = RunRecord(run=run)
        state.task_store[1] = Task(task_id=1, run_id=7)
        TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 7, 1, 1
        self.grid = InMemoryGrid(factory)
        self.grid.set_run(run)
        self.nodes = sorted(self.join() for _ in range(nodes))
        self.calls: list[tuple[int, Call]] = []
        self.seen: list[Message] = []

    def join(self) -> int:
        node = self.state.create_node("aid", "name", secrets.token_bytes(32), 1e6)
        self.state.acknowledge_node_heartbeat(node, 1e6)
        return node

    def serve(self, answer: Answer) -> None:
        """Let every node answer what has come for it."""
        for node in self.nodes:
            for message in self.state.get_message_ins(node, limit=1):
                self.seen.append(message)
                call = Call.from_records(message.content)
                self.calls.append((node, call))
                said = answer(call, node)
                if said is not None:
                    content = said.to_records() if isinstance(said, Reply) else said
                    self.push(Message(content, reply_to=message))

    def push(self, message: Message) -> None:
        message.metadata.__dict__["_message_id"] = secrets.token_hex(8)
        self.state.store_message_res(message)

    @contextmanager
    def answering(self, answer: Answer) -> Iterator[Link]:
        over = threading.Event()

        def work() -> None:
            while not over.is_set():
                self.serve(answer)
                time.sleep(0.01)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield self
        finally:
            over.set()
            worker.join()

    def context(self, **config: Any) -> Context:
        return Context(7, 0, {}, RecordDict(), config)


def honest(call: Call, node: int) -> Reply:
    if call.round == 2:
        return Reply(call.study, call.round, call.agent, "done")
    vector = np.random.default_rng([call.agent, call.round]).standard_normal(4)
    return Reply(call.study, call.round, call.agent, "vector", vector)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serverapp, "POLL", 0.02)
    monkeypatch.setattr(serverapp, "AGAIN", 0.1)
    monkeypatch.setattr(coordination, "GRACE", 20.0)  # a busy machine must not look absent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    return folder


def listed(project: Path, link: Link) -> None:
    lines = [f"site-{k} = {node}" for k, node in enumerate(link.nodes)]
    (project / "sites.toml").write_text("\n".join(["[sites]", *lines]))


def deployed(project: Path, link: Link, answer: Answer = honest, **config: Any) -> None:
    if not (project / "sites.toml").exists():
        listed(project, link)
    with link.answering(answer):
        config = {"project": str(project), "join-limit": 1, **config}
        main_of(Deployed(link.grid), link.context(**config))


def main_of(grid: Grid, context: Context) -> None:
    main(grid, context)


def counts(folder: Path, event: str = "closed") -> list[dict[str, Any]]:
    return [line for line in read_journal(folder / "journal.jsonl") if line["event"] == event]


# a study on Flower's link


def test_a_deployed_study_runs_to_its_end_and_says_what_was_spent(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = Link()
    deployed(project, link)
    view = read_ledger(project / "coordinator" / "ledger.db")
    assert [entry.round for entry in view.entries] == [0, 1]
    assert view.entries[0].release.event.source == "os-entropy"
    assert view.constants["budget"] == {"epsilon": 3, "delta": 1e-3, "accountant": "pld"}
    out = capsys.readouterr().out
    assert "2 rounds were released" in out
    assert "of 3 granted (pld, δ = 0.001, zero-out adjacency)" in out
    assert [line["spoke"] for line in counts(project / "coordinator")] == [3, 3]
    agents = {node: k for k, node in enumerate(link.nodes)}
    assert all(call.agent == agents[node] and call.seed is None for node, call in link.calls)
    assert len(link.calls) == 9
    heads = {call.broadcast.head for _, call in link.calls if call.broadcast is not None}
    assert heads == {entry.digest for entry in view.entries}


@pytest.fixture
def lasted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of each step, from its first call to its release."""
    real, found = serverapp.collect, list[float]()

    def timed(grid: Grid, coordinator: coordination.Coordinator, step: Step) -> None:
        began = time.monotonic()
        real(grid, coordinator, step)
        found.append(time.monotonic() - began)

    monkeypatch.setattr(serverapp, "collect", timed)
    return found


@pytest.mark.parametrize("slow", [0.0, 0.6])
def test_with_a_cadence_a_step_ends_at_its_time_whoever_has_answered(
    project: Path, monkeypatch: pytest.MonkeyPatch, lasted: list[float], slow: float
) -> None:
    monkeypatch.setattr(coordination, "GRACE", 4.0)
    text = STUDY.replace("trial_limit = 0.1", "trial_limit = 60\ncadence = 0.1")
    (project / "study.toml").write_text(text)
    link = Link()

    def answer(call: Call, node: int) -> Reply:
        time.sleep(slow if node == link.nodes[0] else 0.0)
        return honest(call, node)

    deployed(project, link, answer)
    trials = [step.trials for step in read_study(project / "study.toml").steps]
    late = [seconds - (4 + 0.1 * n) for seconds, n in zip(lasted, trials, strict=True)]
    assert min(late) >= 0
    assert max(late) < 2  # a busy machine may wake it late


def test_without_a_cadence_a_step_ends_when_all_have_answered(
    project: Path, lasted: list[float]
) -> None:
    deployed(project, Link())
    assert max(lasted) < 15  # of 20 and more


def test_with_a_cadence_a_study_that_must_stop_does_so_at_once(project: Path) -> None:
    text = STUDY.replace("trial_limit = 0.1", "cadence = 60")
    (project / "study.toml").write_text(text)

    def ahead(call: Call, node: int) -> Reply:
        return replace(honest(call, node), heard=1, head="0" * 64)

    began = time.monotonic()
    with pytest.raises(LedgerError, match="has heard the broadcast of round 1"):
        deployed(project, Link(), ahead)
    assert time.monotonic() - began < 30


def test_a_coordinator_leaves_nothing_that_other_users_of_its_machine_can_read(
    project: Path,
) -> None:
    before = os.umask(0)
    try:
        deployed(project, Link())
    finally:
        os.umask(before)
    left = [project / "coordinator", *(project / "coordinator").iterdir()]
    names = {"ledger.db", "ledger.db.head", "ledger.lock", "journal.jsonl"}
    assert names <= {path.name for path in left}
    assert [path for path in left if path.stat().st_mode & 0o077] == []


def test_a_study_that_is_over_asks_nobody(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = Link()
    deployed(project, link)
    asked = len(link.calls)
    deployed(project, link)
    assert len(link.calls) == asked
    assert capsys.readouterr().out.count("The study is over") == 2


def test_a_simulation_numbers_its_nodes_by_rank(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = Link()
    with link.answering(honest):
        folder = str(tmp_path / "simulated")
        main_of(link.grid, link.context(project=str(project), folder=folder, seed=4))
    view = read_ledger(tmp_path / "simulated" / "ledger.db")
    assert view.constants["simulation"] is True
    assert len(view.entries) == 2
    assert {(node, call.agent) for node, call in link.calls} == set(
        zip(link.nodes, range(3), strict=True)
    )
    assert {call.seed for _, call in link.calls} == {4}
    assert "its seeded noise protects nobody" in capsys.readouterr().out


def test_a_simulation_has_only_so_many_calls_under_way_and_asks_all(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serverapp, "AT_ONCE", 2)
    pushed, real = [], InMemoryGrid.push_messages

    def push(self: InMemoryGrid, messages: Iterable[Message]) -> Iterable[str]:
        pushed.append(len(list(messages)))
        return real(self, messages)

    monkeypatch.setattr(InMemoryGrid, "push_messages", push)
    link = Link()
    with link.answering(honest):
        config = {"project": str(project), "folder": str(tmp_path / "simulated"), "seed": 4}
        main_of(link.grid, link.context(**config))
    assert max(pushed) == 2
    assert sum(pushed) == 3 * AGENTS
    assert len(read_ledger(tmp_path / "simulated" / "ledger.db").entries) == 2


def test_the_same_seed_gives_the_same_simulation(project: Path, tmp_path: Path) -> None:
    vectors = []
    for name in ("one", "two"):
        link = Link()
        with link.answering(honest):
            config = {"project": str(project), "folder": str(tmp_path / name), "seed": 4}
            main_of(link.grid, link.context(**config))
        entries = read_ledger(tmp_path / name / "ledger.db").entries
        vectors.append([entry.release.vectors.tobytes() for entry in entries])
    assert vectors[0] == vectors[1]


def test_a_call_lives_no_longer_than_its_step(project: Path) -> None:
    link = Link()
    deployed(project, link)
    assert all(0 < message.metadata.ttl <= 21.0 for message in link.seen)


# sites that do not answer, or not well


def test_an_absent_site_is_waited_for_and_then_counts_as_zero(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordination, "GRACE", 2.0)
    link = Link()

    def mute(call: Call, node: int) -> Reply | None:
        return None if call.agent == 1 else honest(call, node)

    deployed(project, link, mute)
    assert [line["absent"] for line in counts(project / "coordinator")] == [1, 1]


def test_a_busy_site_and_one_whose_call_failed_are_called_again(project: Path) -> None:
    link, tries = Link(), dict.fromkeys(range(AGENTS), 0)

    def slow(call: Call, node: int) -> Reply | Error:
        tries[call.agent] += 1
        if call.agent == 1 and tries[1] <= 2:
            return Reply(call.study, call.round, call.agent, "busy")
        if call.agent == 2 and tries[2] == 1:
            return Error(code=2, reason="the patient's name is")
        return honest(call, node)

    deployed(project, link, slow)
    assert [line["spoke"] for line in counts(project / "coordinator")] == [3, 3]
    assert tries == {0: 3, 1: 5, 2: 4}
    text = (project / "coordinator" / "journal.jsonl").read_text()
    assert "Flower's error 2" in text
    assert "patient" not in text


def test_a_site_that_restarts_is_called_again(project: Path) -> None:
    link, lost = Link(), [True]

    def forgetful(call: Call, node: int) -> Reply | None:
        if call.agent == 1 and lost:
            lost.clear()
            link.state.deactivate_node(node)
            link.state.activate_node(node, 1e6)
            return None
        return honest(call, node)

    deployed(project, link, forgetful)
    assert [line["spoke"] for line in counts(project / "coordinator")] == [3, 3]


def test_a_site_that_connects_during_a_step_is_called_too(project: Path) -> None:
    link = Link()
    listed(project, link)
    late = link.nodes[1]
    link.state.deactivate_node(late)
    waited = [0]

    def helpful(call: Call, node: int) -> Reply:
        waited[0] += 1
        if waited[0] == 1:
            link.state.activate_node(late, 1e6)
        return honest(call, node)

    deployed(project, link, helpful, **{"join-limit": 0})
    assert [line["spoke"] for line in counts(project / "coordinator")] == [3, 3]


def test_a_node_that_is_not_listed_is_never_called(project: Path) -> None:
    link = Link()
    listed(project, link)
    stranger = link.join()
    link.nodes.append(stranger)
    deployed(project, link)
    assert stranger not in {node for node, _ in link.calls}


def test_nobody_can_answer_for_another_site(project: Path) -> None:
    """The sender that a reply names is unchecked on its way; only the token binds it."""
    link = Link()
    forgeries = [0]

    def forging(call: Call, node: int) -> Reply | None:
        if call.agent == 1 and forgeries[0] < 2:  # somebody else is faster, in agent 1's name
            forgeries[0] += 1
            forged = Message(honest(call, node).to_records(), reply_to=link.seen[-1])
            forged.metadata.__dict__["_group_id"] = "0" * 32
            link.push(forged)
            return None
        return honest(call, node)

    deployed(project, link, forging)
    folder = project / "coordinator"
    assert [line["spoke"] for line in counts(folder)] == [3, 3]
    noted = [line["reason"] for line in counts(folder, "failed")]
    assert noted == ["its reply does not bring back the token of its call"] * 2


def test_each_call_has_a_token_of_its_own(project: Path) -> None:
    link = Link()
    deployed(project, link)
    tokens = [message.metadata.group_id for message in link.seen]
    assert len(set(tokens)) == len(tokens) == 9
    assert all(len(token) == 32 for token in tokens)


def test_a_reply_that_cannot_be_unpacked_spoils_no_other(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, broken = Link(), [True]
    pull = Deployed.pull_messages

    def spoilt(self: Deployed, message_ids: Iterable[str]) -> Iterable[Message]:
        found = list(pull(self, message_ids))
        if found and broken:
            broken.clear()
            raise ValueError("Mismatch in children object IDs")
        return found

    monkeypatch.setattr(Deployed, "pull_messages", spoilt)
    deployed(project, link)
    assert [line["spoke"] for line in counts(project / "coordinator")] == [3, 3]
    assert len(counts(project / "coordinator", "failed")) == 1


@pytest.mark.slow
def test_a_reply_that_never_comes_whole_keeps_nobody_waiting(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flower waits for hours until a reply that was announced has been uploaded."""
    link, over = Link(), threading.Event()
    pull = Deployed.pull_messages

    def waiting(self: Deployed, message_ids: Iterable[str]) -> Iterable[Message]:
        found = list(pull(self, message_ids))
        if any(Reply.from_records(reply.content).agent == 1 for reply in found):
            over.wait(60)
        return found

    monkeypatch.setattr(Deployed, "pull_messages", waiting)
    try:
        deployed(project, link)
    finally:
        over.set()
    closed = counts(project / "coordinator")
    assert [(line["spoke"], line["absent"]) for line in closed] == [(2, 1), (2, 1)]


def test_when_all_refuse_the_run_stops_with_their_reason_and_can_go_on(project: Path) -> None:
    link = Link()

    def unwilling(call: Call, node: int) -> Reply:
        return Reply(call.study, call.round, call.agent, "refused", reason="epsilon is 9 here")

    with pytest.raises(ProtocolError, match=r"epsilon is 9 here.*nothing was spent; run again"):
        deployed(project, link, unwilling)
    assert read_ledger(project / "coordinator" / "ledger.db").entries == ()
    deployed(project, link)
    assert len(read_ledger(project / "coordinator" / "ledger.db").entries) == 2


def test_a_site_that_has_heard_more_than_the_ledger_holds_stops_the_run_at_once(
    project: Path,
) -> None:
    link = Link()

    def ahead(call: Call, node: int) -> Reply | None:
        said = Reply(call.study, call.round, call.agent, "refused", reason="an old ledger?")
        return replace(said, heard=1, head="a" * 64) if call.agent == 2 else None

    began = time.monotonic()
    with pytest.raises(LedgerError, match="agent 2 has heard the broadcast of round 1"):
        deployed(project, link, ahead)
    assert time.monotonic() - began < 15.0  # the others, who never answer, are not waited for
    assert read_ledger(project / "coordinator" / "ledger.db").entries == ()


def test_without_any_site_connected_nothing_is_begun(project: Path) -> None:
    link = Link()
    listed(project, link)
    for node in link.nodes:
        link.state.deactivate_node(node)
    with pytest.raises(ProtocolError, match="none of the 3 sites is connected after 0 seconds"):
        deployed(project, link, honest, **{"join-limit": 0})
    assert link.calls == []


# what is refused at the start


def test_a_deployment_without_a_list_of_sites_is_refused(project: Path, tmp_path: Path) -> None:
    link = Link()
    with pytest.raises(InvalidInput, match=r"a deployment needs .*sites.toml"):
        main_of(Deployed(link.grid), link.context(project=str(project), folder=str(tmp_path)))
    assert not (project / "coordinator").exists()


def test_a_deployment_takes_no_seed(project: Path, tmp_path: Path) -> None:
    link = Link()
    config = {"project": str(project), "folder": str(tmp_path / "new"), "seed": 0}
    with pytest.raises(SimulationOnly, match="seed=0"):
        main_of(Deployed(link.grid), link.context(**config))
    listed(project, link)
    for grid in (link.grid, Deployed(link.grid)):
        with pytest.raises(SimulationOnly, match="must not be repeatable"):
            main_of(grid, link.context(**config))
    assert not (tmp_path / "new").exists()
    assert link.calls == []


def test_a_simulation_needs_a_folder_and_as_many_nodes_as_agents(
    project: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="needs a folder for its ledger"):
        main_of(Link().grid, Link().context(project=str(project)))
    for nodes in (AGENTS - 1, AGENTS + 1):
        link = Link(nodes)
        config = {"project": str(project), "folder": str(tmp_path / "s"), "join-limit": 0}
        with pytest.raises(InvalidInput, match=f"needs 3 nodes, got nodes={nodes}"):
            main_of(link.grid, link.context(**config))


def test_a_second_coordinator_is_refused(project: Path) -> None:
    link = Link()
    with (
        alone(project / "coordinator"),
        pytest.raises(LedgerError, match="in use by another coordinator"),
    ):
        deployed(project, link)
    assert link.calls == []


def test_a_study_whose_budget_was_changed_is_refused(project: Path) -> None:
    deployed(project, Link())
    text = (project / "study.toml").read_text()
    (project / "study.toml").write_text(text.replace("epsilon = 3.0", "epsilon = 4.0"))
    with pytest.raises(LedgerError, match=r"budget\.epsilon is 3 there and 4 here"):
        deployed(project, Link())


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "project must be the full path"),
        ({"project": "here"}, "project must be the full path"),
        ({"project": 3}, "project must be a path"),
        ({"project": "/nowhere/at/all"}, "a folder that exists"),
        ({"folder": "here"}, "folder must be a full path"),
        ({"folder": True}, "folder must be a path"),
        ({"seed": -2}, "seed must be"),
        ({"seed": 1.5}, "seed must be"),
        ({"seed": True}, "seed must be"),
        ({"join-limit": -1}, "join-limit must be"),
        ({"join-limit": "long"}, "join-limit must be"),
        ({"join-limit": float("inf")}, "join-limit must be"),
        ({"join-limit": float("nan")}, "join-limit must be"),
    ],
)
def test_a_bad_run_config_is_refused(config: dict[str, Any], words: str, tmp_path: Path) -> None:
    given = config if words.startswith("project") else {"project": str(tmp_path), **config}
    with pytest.raises(InvalidInput, match=words):
        Settings.read(given)


def test_the_run_config_has_defaults(tmp_path: Path) -> None:
    assert Settings.read({"project": str(tmp_path)}) == Settings(tmp_path, None, None, 600.0)


def test_a_project_without_a_study_is_an_error_of_ours(tmp_path: Path) -> None:
    link = Link()
    with pytest.raises(StorageError, match=r"study\.toml cannot be read"):
        main_of(link.grid, link.context(project=str(tmp_path)))
