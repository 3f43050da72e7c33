"""Everything that travels, key for key and byte for byte: nothing else may leave a site."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from optuna.trial import Trial

from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import SOTTOVOCE
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.coordinator.coordinator import Coordinator
from sottovoce.flower.site.memory import Memory
from sottovoce.flower.site.site import Site
from sottovoce.flower.studyfile import StudyFile
from sottovoce.flower.wire import Call, Reply
from sottovoce.privacy.budget import Budget
from sottovoce.privacy.release import Mechanism
from sottovoce.space import Float, Space

ROUNDS = 4  # speaks in rounds 0 and 2
METHOD = replace(SOTTOVOCE, initial=3, mechanism=Mechanism(clip=1.0, participation=1.0, noise=2.0))
STUDY = FederatedStudy(Space([Float("x", 0.0, 1.0)]), METHOD, agents=1, rounds=ROUNDS)
FILE = StudyFile(STUDY, 100.0, 1e-5, direction="minimize")
NOTHING_HEARD = {"heard": -1, "head": ""}
optuna.logging.set_verbosity(optuna.logging.WARNING)


def bowl(trial: Trial) -> float:
    return (trial.suggest_float("x", 0.0, 1.0) - 0.123) ** 2


def other(trial: Trial) -> float:
    return 77.0 - trial.suggest_float("x", 0.0, 1.0)


def broken(trial: Trial) -> float:
    raise RuntimeError(f"patient 12345 at {trial.suggest_float('x', 0.0, 1.0)}")


def otherwise(trial: Trial) -> float:
    return trial.suggest_float("x", 0.0, 2.0)


def content(records: RecordDict) -> dict[str, Any]:
    """All that is in the records, of whatever kind."""
    whole: dict[str, Any] = {}
    for name, record in records.items():
        if isinstance(record, ArrayRecord):
            whole[name] = {
                key: (each.dtype, tuple(each.shape), each.stype, each.data)
                for key, each in record.items()
            }
        else:
            assert isinstance(record, ConfigRecord)
            whole[name] = {key: (type(value), value) for key, value in record.items()}
    return whole


def plain(**values: Any) -> dict[str, Any]:
    return {key: (type(value), value) for key, value in values.items()}


def replied(number: int, answer: str, reason: str = "", **heard: Any) -> dict[str, Any]:
    """The plain record of a reply of agent 0, whole."""
    return plain(
        schema=2,
        study=STUDY.fingerprint,
        round=number,
        agent=0,
        answer=answer,
        reason=reason,
        **(heard or NOTHING_HEARD),
    )


@pytest.fixture
def coordinator(tmp_path: Path) -> Any:
    server = Server(STUDY, tmp_path / "ledger.db", Budget(100.0, 1e-5, "moments"))
    found = Coordinator(FILE, server, {900: 0}, tmp_path / "journal.jsonl")
    yield found
    found.stop()


def advance(coordinator: Coordinator, site: Site, steps: int) -> Call:
    """Play so many steps; the call of the next."""
    for _ in range(steps):
        coordinator.open()
        coordinator.take(900, site.answer(coordinator.call(900)))
        coordinator.close()
    coordinator.open()
    return coordinator.call(900)


def head_of(coordinator: Coordinator) -> dict[str, Any]:
    last = coordinator.server.last_broadcast()
    assert last is not None
    return {"heard": last.round, "head": last.head}


def spoken(folder: Path, number: int, call: Call) -> bytes:
    """What an agent says that was told the same, and has heard the same."""
    agent = Agent(STUDY, 0, direction="minimize")
    with Memory(folder, "sqlite", STUDY, direction="minimize") as memory:
        for told in memory.told:
            agent.tell(told.params, told.value)
    if call.broadcast is not None:
        agent.receive(call.broadcast)
    return agent.message(number).vector.astype("<f8").tobytes()


def test_a_vector_is_all_that_a_site_says_in_the_first_round(
    tmp_path: Path, coordinator: Coordinator
) -> None:
    site = Site(FILE, bowl, tmp_path / "site")
    call = advance(coordinator, site, 0)
    said = content(site.answer(call).to_records())
    vector = ("<f8", (6,), "raw", spoken(tmp_path / "site", 0, call))
    assert said == {"sottovoce": replied(0, "vector"), "vector": {"vector": vector}}


def test_a_vector_and_what_was_heard_is_all_that_a_site_says_later(
    tmp_path: Path, coordinator: Coordinator
) -> None:
    site = Site(FILE, bowl, tmp_path / "site")
    call = advance(coordinator, site, 1)
    said = content(site.answer(call).to_records())
    vector = ("<f8", (6,), "raw", spoken(tmp_path / "site", 2, call))
    plain = replied(2, "vector", **head_of(coordinator))
    assert said == {"sottovoce": plain, "vector": {"vector": vector}}


def test_that_the_study_is_over_is_all_that_a_site_says_at_its_end(
    tmp_path: Path, coordinator: Coordinator
) -> None:
    site = Site(FILE, bowl, tmp_path / "site")
    call = advance(coordinator, site, 2)
    done = replied(ROUNDS, "done", "the study is over", **head_of(coordinator))
    for _ in range(2):
        assert content(site.answer(call).to_records()) == {"sottovoce": done}


def test_that_it_is_busy_is_all_that_a_busy_site_says(
    tmp_path: Path, coordinator: Coordinator
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(trial: Trial) -> float:
        begun.set()
        go_on.wait(30)
        return bowl(trial)

    call = advance(coordinator, Site(FILE, slow, tmp_path / "site"), 0)
    first = threading.Thread(target=lambda: Site(FILE, slow, tmp_path / "site").answer(call))
    first.start()
    begun.wait(30)
    said = Site(FILE, bowl, tmp_path / "site", patience=0.05).answer(call)
    go_on.set()
    first.join(30)
    busy = replied(0, "busy", "an earlier call of this site still runs")
    assert content(said.to_records()) == {"sottovoce": busy}


def test_that_it_left_is_all_that_a_site_says_whose_trials_failed(
    tmp_path: Path, coordinator: Coordinator
) -> None:
    site = Site(FILE, broken, tmp_path / "site")
    said = site.answer(advance(coordinator, site, 0))
    left = replied(0, "left", "it left the study")
    assert content(said.to_records()) == {"sottovoce": left}


REFUSALS: dict[str, tuple[Callable[[Call], Call], Any, str]] = {
    "other constants": (
        lambda call: replace(call, constants={**call.constants, "epsilon": 1.0}),
        bowl,
        "StudyMismatch: the public constants differ: epsilon is 1.0 there and 100.0 here",
    ),
    "a seed": (
        lambda call: replace(call, seed=1),
        bowl,
        "SimulationOnly: a site of a real federation takes no seed",
    ),
    "other declarations": (
        lambda call: call,
        otherwise,
        "SpaceError: the objective does not ask for its parameters as the study's space declares "
        "them; how they differ is in the site's own log",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_the_reason_is_all_that_a_site_says_that_refuses(
    tmp_path: Path, coordinator: Coordinator, what: str
) -> None:
    change, objective, reason = REFUSALS[what]
    site = Site(FILE, objective, tmp_path / "site")
    said = site.answer(change(advance(coordinator, site, 0)))
    assert content(said.to_records()) == {"sottovoce": replied(0, "refused", reason)}


def test_the_kind_is_all_that_is_said_of_an_error_that_is_not_ours(
    tmp_path: Path, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> None:
        raise ValueError("patient 12345")

    site = Site(FILE, bowl, tmp_path / "site")
    call = advance(coordinator, site, 1)
    monkeypatch.setattr(Agent, "ask", fails)
    refused = replied(2, "refused", "ValueError", **head_of(coordinator))
    assert content(site.answer(call).to_records()) == {"sottovoce": refused}


def test_a_round_that_was_heard_is_refused_with_what_was_heard_and_nothing_else(
    tmp_path: Path, coordinator: Coordinator
) -> None:
    site = Site(FILE, bowl, tmp_path / "site")
    first = advance(coordinator, site, 0)
    coordinator.take(900, site.answer(first))
    coordinator.close()
    coordinator.open()
    site.answer(coordinator.call(900))
    reason = (
        "WrongRound: this site has heard the broadcast of round 0, and does not speak in round 0 "
        "again: was an old ledger restored?"
    )
    refused = replied(0, "refused", reason, **head_of(coordinator))
    assert content(site.answer(first).to_records()) == {"sottovoce": refused}


def test_but_for_the_vector_nothing_that_is_said_depends_on_the_data(
    tmp_path: Path, coordinator: Coordinator
) -> None:
    sites = [Site(FILE, bowl, tmp_path / "one"), Site(FILE, other, tmp_path / "two")]
    for _ in FILE.steps:
        coordinator.open()
        call = coordinator.call(900)
        replies = [site.answer(call) for site in sites]
        one, two = (content(replace(reply, vector=None).to_records()) for reply in replies)
        assert one == two
        coordinator.take(900, replies[0])
        coordinator.close()


def test_the_app_sends_the_sites_records_and_nothing_else(tmp_path: Path) -> None:
    from flwr.app import Context, Message, MessageType
    from flwr.supercore.task_identity import TaskIdentity

    from sottovoce.flower.site.app import app

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 7, 1
    message = Message(RecordDict(), 7, MessageType.TRAIN, group_id="token")
    node: Any = {"project": str(tmp_path)}
    reply = app(message, Context(1, 7, node, RecordDict(), {}))
    reason = "ProtocolError: a message must hold a record 'sottovoce'"
    whole = plain(
        schema=2, study="", round=-1, agent=-1, answer="refused", reason=reason, **NOTHING_HEARD
    )
    assert content(reply.content) == {"sottovoce": whole}


# what goes down


def called(number: int, **more: Any) -> dict[str, Any]:
    constants = json.dumps(FILE.constants, sort_keys=True)
    study = STUDY.fingerprint
    return plain(schema=2, study=study, round=number, agent=0, constants=constants, **more)


def test_the_first_call_holds_the_public_constants_and_nothing_else(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    call = advance(coordinator, Site(FILE, bowl, tmp_path / "site"), 0)
    assert content(call.to_records()) == {"sottovoce": called(0)}
    seeded = content(replace(call, seed=3).to_records())
    assert seeded == {"sottovoce": called(0, seed=3)}


def test_a_later_call_holds_the_releases_and_the_ledgers_digests_and_nothing_else(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    call = advance(coordinator, Site(FILE, bowl, tmp_path / "site"), 2)
    entries = coordinator.server._ledger.entries
    vectors = np.concatenate([entry.release.vectors for entry in entries]).astype("<f8")
    chain = coordinator.server._ledger.digests
    more = {"broadcast-round": 2, "head": entries[-1].digest, "chain": chain}
    assert chain[1:] == [entry.digest for entry in entries]
    assert content(call.to_records()) == {
        "sottovoce": called(ROUNDS, **more),
        "broadcast": {"broadcast": ("<f8", (2, 6), "raw", vectors.tobytes())},
    }


def test_a_reply_that_arrived_is_pinned_as_well() -> None:
    """Whatever else a sender puts in is not looked at."""
    said = Reply(STUDY.fingerprint, 0, 0, "left", None, "it left the study")
    records = said.to_records()
    records["more"] = ConfigRecord({"best": 0.5})
    assert Reply.from_records(records) == said
