from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import (
    BudgetExceeded,
    DuplicateMessage,
    InvalidInput,
    LedgerError,
    ProtocolError,
    RejectedVector,
    SimulationOnly,
    StudyMismatch,
    UnknownAgent,
    WrongRound,
)
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.messages import Broadcast, Message
from sottovoce.federation.methods import (
    CONTROL,
    DP_FTS,
    DP_FTS_DE,
    FTS,
    FTS_DE,
    FTS_SERVER,
    METHODS,
    TS,
    Method,
)
from sottovoce.federation.schedule import ReleaseSchedule
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.budget import Budget
from sottovoce.privacy.events import DataFree, NonPrivate, SubsampledGaussian
from sottovoce.privacy.ledger import read_ledger
from sottovoce.privacy.noise import Seeded, SystemEntropy
from sottovoce.privacy.release import Mechanism
from sottovoce.space import Float, Space

SPACE = Space([Float("x", 0.0, 1.0)])
AGENTS, FEATURES = 6, 6
PLENTY = Budget(1000.0, 1e-5, "moments")


def study(method: Method = DP_FTS_DE, rounds: int = 4, **changes: Any) -> FederatedStudy:
    count = 1 if method.basis == "effects" else FEATURES  # or as many as the space has
    return FederatedStudy(SPACE, replace(method, features=count, **changes), AGENTS, rounds)


def vector(agent: int, round_number: int = 0, features: int = FEATURES) -> NDArray[np.float64]:
    return np.random.default_rng([agent, round_number]).standard_normal(features)


def message(study: FederatedStudy, agent: int, round_number: int = 0, **changes: Any) -> Message:
    said = vector(agent, round_number, study.method.features)
    sent = Message(study.fingerprint, round_number, agent, said)
    return replace(sent, **changes)


def play(server: Server, agents: list[int] | None = None) -> Broadcast:
    """One whole round with those agents, or all."""
    number = server.open_round()
    for agent in range(AGENTS) if agents is None else agents:
        server.submit(message(server.study, agent, number))
    return server.close_round()


# whole federations


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].shared.exchanges])
def test_a_simulated_server_plays_all_rounds_of_every_method(name: str) -> None:
    server = Server.simulation(study(METHODS[name]), seed=3)
    rows = AGENTS if name == "fts" else server.study.method.regions
    learns = server.study.method.shared.cumulative
    spoken = [0, 2] if learns else [0, 1, 2, 3]
    for k, number in enumerate(spoken):
        assert server.next_round() == number
        heard = play(server)
        assert heard.round == number
        assert heard.study == server.study.fingerprint
        assert heard.vectors.shape == (k + 1 if learns else rows, server.study.method.features)
    assert len(server.events) == len(spoken)
    assert server.next_round() is None


def test_the_same_seed_gives_the_same_federation() -> None:
    def run(seed: int) -> list[bytes]:
        server = Server.simulation(study(), seed)
        return [play(server).to_bytes() for _ in range(4)]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_the_original_fts_passes_on_every_vector_and_zero_for_the_absent() -> None:
    server = Server.simulation(study(FTS), seed=0)
    heard = play(server, [0, 2, 5])
    for agent in range(AGENTS):
        wanted = vector(agent) if agent in (0, 2, 5) else np.zeros(FEATURES)
        assert np.array_equal(heard.vectors[agent], wanted)
    assert server.events == [NonPrivate()]


def test_a_server_without_protection_sends_the_weighted_mean() -> None:
    server = Server.simulation(study(FTS_DE), seed=0)
    heard = play(server)
    stacked = np.stack([vector(agent) for agent in range(AGENTS)])
    assert np.allclose(heard.vectors, server.study.weights(0) @ stacked)
    assert server.events == [NonPrivate()]
    assert server.spent(1e-5) == math.inf


def test_the_controls_broadcast_is_the_same_whatever_is_sent() -> None:
    loud, silent = (Server.simulation(study(CONTROL), seed=5) for _ in range(2))
    assert play(loud).vectors.tobytes() == play(silent, []).vectors.tobytes()
    assert loud.events == [DataFree()]
    assert loud.spent(1e-5) == 0.0


def test_the_controls_noise_is_as_large_as_its_methods() -> None:
    control, method = (Server.simulation(study(m), seed=5) for m in (CONTROL, DP_FTS_DE))
    noise = [play(control, []).vectors for _ in range(4)]
    silence = [play(method, []).vectors for _ in range(4)]
    assert np.std(noise) == pytest.approx(np.std(silence), rel=0.5)


def test_absent_agents_count_as_zero_and_never_shrink_the_head_count() -> None:
    whole = Mechanism(clip=1e6, participation=1.0, noise=0.0)
    for method in (study(FTS_SERVER), study(DP_FTS, mechanism=whole)):
        server = Server.simulation(method, seed=0)
        heard = play(server, [1, 4])
        wanted = (vector(1) + vector(4)) / AGENTS
        assert np.allclose(heard.vectors[0], wanted, rtol=1e-12)


def test_the_sum_is_divided_by_the_chance_not_by_who_came() -> None:
    mechanism = Mechanism(clip=1e6, participation=0.5, noise=0.0)
    server = Server.simulation(study(DP_FTS, rounds=40, mechanism=mechanism), seed=0)
    coins = Seeded(0)
    sizes = set()
    for number in range(40):
        chosen = coins.coins(AGENTS, 0.5)
        stacked = np.stack([vector(agent, number) for agent in range(AGENTS)])
        weights = server.study.weights(number)
        coins.add_gaussian(np.zeros((1, FEATURES)), 0.0)
        assert np.allclose(play(server).vectors, weights[:, chosen] @ stacked[chosen] / 0.5)
        sizes.add(int(chosen.sum()))
    assert len(sizes) > 3


def test_an_empty_sample_publishes_noise() -> None:
    mechanism = Mechanism(clip=1.0, participation=1e-9, noise=1.0)
    server = Server.simulation(study(DP_FTS, mechanism=mechanism), seed=0)
    heard = play(server)
    assert np.all(np.isfinite(heard.vectors))
    assert np.abs(heard.vectors).min() > 0
    assert server.events == [SubsampledGaussian(1.0, 1e-9, AGENTS)]


# messages that are refused

Wrong = Callable[[FederatedStudy], Message]


def with_vector(values: Any) -> Wrong:
    return lambda study: message(study, 2, vector=values)


def fractional(sent: Message) -> Message:
    changed: Any = {"agent": 2.0}
    return replace(sent, **changed)


WRONG: dict[str, tuple[type[Exception], str, Wrong]] = {
    "NaN": (RejectedVector, "finite", with_vector(np.asarray([1.0, math.nan, 0, 0, 0, 0]))),
    "infinity": (RejectedVector, "finite", with_vector(np.asarray([1.0, math.inf, 0, 0, 0, 0]))),
    "-infinity": (RejectedVector, "finite", with_vector(np.asarray([-math.inf, 0.0, 0, 0, 0, 0]))),
    "1e200": (RejectedVector, "exceed", with_vector(np.asarray([1.0, 1e200, 0, 0, 0, 0]))),
    "short": (RejectedVector, "shape", with_vector(np.ones(FEATURES - 1))),
    "long": (RejectedVector, "shape", with_vector(np.ones(FEATURES + 1))),
    "empty": (RejectedVector, "shape", with_vector(np.ones(0))),
    "two-dimensional": (RejectedVector, "shape", with_vector(np.ones((1, FEATURES)))),
    "integers": (RejectedVector, "real numbers", with_vector(np.ones(FEATURES, dtype=int))),
    "complex": (RejectedVector, "real numbers", with_vector(np.ones(FEATURES, dtype=complex))),
    "objects": (RejectedVector, "real numbers", with_vector(np.ones(FEATURES, dtype=object))),
    "words": (RejectedVector, "real numbers", with_vector(np.asarray(["a"] * FEATURES))),
    "a list": (RejectedVector, "real numbers", with_vector([1.0] * FEATURES)),
    "nothing": (RejectedVector, "real numbers", with_vector(None)),
    "past round": (WrongRound, "round 1 is open", lambda s: message(s, 2, 0)),
    "future round": (WrongRound, "round 1 is open", lambda s: message(s, 2, 2)),
    "unknown agent": (
        UnknownAgent,
        "0 to 5, got 6",
        lambda s: replace(message(s, 2), agent=AGENTS),
    ),
    "negative agent": (UnknownAgent, "got -1", lambda s: replace(message(s, 2), agent=-1)),
    "agent beyond 64 bits": (UnknownAgent, "0 to 5", lambda s: replace(message(s, 2), agent=2**70)),
    "fractional agent": (UnknownAgent, "got 2.0", lambda s: fractional(message(s, 2))),
    "other study": (
        StudyMismatch,
        "its study is '000000000000', this one",
        lambda s: replace(message(s, 2), study="0" * 64),
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_bad_message_is_refused_and_its_sender_counts_as_absent(what: str) -> None:
    error, text, make = WRONG[what]
    clean, attacked = (Server.simulation(study(), seed=7) for _ in range(2))
    assert play(clean).to_bytes() == play(attacked).to_bytes()
    others = [0, 1, 3, 4, 5]
    without = play(clean, others)
    number = attacked.open_round()
    for agent in others[:2]:
        attacked.submit(message(attacked.study, agent, number))
    bad = make(attacked.study)
    if "round" not in what:
        bad = replace(bad, round=number)
    with pytest.raises(error, match=text) as caught:
        attacked.submit(bad)
    assert caught.type is error
    for agent in others[2:]:
        attacked.submit(message(attacked.study, agent, number))
    assert attacked.close_round().to_bytes() == without.to_bytes()


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("others", [[5, 0, 4, 1, 3], [0], []], ids=str)
def test_of_many_messages_at_once_a_bad_one_alone_is_refused(what: str, others: list[int]) -> None:
    error, text, make = WRONG[what]
    clean, attacked = (Server.simulation(study(), seed=7) for _ in range(2))
    assert play(clean).to_bytes() == play(attacked).to_bytes()
    number = attacked.open_round()
    batch = [message(attacked.study, agent, number) for agent in others]
    bad = make(attacked.study)
    batch.insert(1, bad if "round" in what else replace(bad, round=number))
    place = min(1, len(others))
    refused = attacked.submit_all(batch)
    assert list(refused) == [place]
    assert type(refused[place]) is error
    assert text in str(refused[place])
    assert attacked.close_round().to_bytes() == play(clean, others).to_bytes()


@pytest.mark.parametrize("agents", [[0, 1, 2, 3, 4, 5], [3, 5, 0, 1, 2, 4], [4, 1], [2], []])
def test_many_messages_at_once_are_as_good_as_one_by_one(agents: list[int]) -> None:
    single, many = (Server.simulation(study(), seed=7) for _ in range(2))
    for _ in range(2):
        number = many.open_round()
        assert many.submit_all([message(many.study, n, number) for n in agents]) == {}
        assert many.close_round().to_bytes() == play(single, agents).to_bytes()


def test_many_messages_at_once_may_be_one_agents_and_then_only_its_first_is_heard() -> None:
    single, many = (Server.simulation(study(), seed=7) for _ in range(2))
    many.open_round()
    batch = [message(many.study, n) for n in (2, 0, 2, 1)]
    refused = many.submit_all([*batch[:2], replace(batch[2], vector=vector(4)), batch[3]])
    assert list(refused) == [2]
    assert isinstance(refused[2], DuplicateMessage)
    assert list(many.submit_all(batch)) == [0, 1, 2, 3]  # nor in another batch
    again = [replace(batch[0], vector=vector(4)), message(many.study, 4)]  # each agent once
    assert list(many.submit_all(again)) == [0]
    assert many.submit_all([message(many.study, 5)]) == {}
    assert many.close_round().to_bytes() == play(single, [0, 1, 2, 4, 5]).to_bytes()


def test_when_everybody_speaks_at_once_and_one_badly_nothing_of_that_stays() -> None:
    clean, attacked = (Server.simulation(study(), seed=7) for _ in range(2))
    attacked.open_round()
    batch = [message(attacked.study, agent) for agent in range(AGENTS)]
    batch[2] = replace(batch[2], vector=np.full(FEATURES, 1e200))
    batch[4] = replace(batch[4], vector=vector(4).astype(np.float32))
    refused = attacked.submit_all(batch)
    assert list(refused) == [2]
    without = clean.open_round()
    for agent in (0, 1, 3, 4, 5):
        said = vector(4).astype(np.float32) if agent == 4 else vector(agent)
        clean.submit(message(clean.study, agent, without, vector=said))
    assert attacked.close_round().to_bytes() == clean.close_round().to_bytes()


def test_true_is_one_agent_and_not_all() -> None:
    plain, odd = (Server.simulation(study(), seed=7) for _ in range(2))
    odd.open_round()
    odd.submit(replace(message(odd.study, 1), agent=True))
    assert odd.close_round().to_bytes() == play(plain, [1]).to_bytes()
    number = odd.open_round()
    assert odd.submit_all([replace(message(odd.study, 1, number), agent=True)]) == {}
    assert odd.close_round().to_bytes() == play(plain, [1]).to_bytes()


def test_no_batch_is_taken_before_a_round_is_open() -> None:
    server = Server.simulation(study(), seed=0)
    refused = server.submit_all([message(server.study, 0)])
    assert isinstance(refused[0], WrongRound)


def test_a_vector_of_zeros_is_taken_like_any_other_and_adds_nothing() -> None:
    without, zeros = (Server.simulation(study(), seed=7) for _ in range(2))
    zeros.open_round()
    for agent in range(AGENTS):
        said = np.zeros(FEATURES) if agent == 2 else vector(agent)
        zeros.submit(message(zeros.study, agent, vector=said))
    with pytest.raises(DuplicateMessage):  # it has spoken
        zeros.submit(message(zeros.study, 2))
    absent = play(without, [0, 1, 3, 4, 5])
    assert zeros.close_round().to_bytes() == absent.to_bytes()


def test_after_a_refused_vector_its_sender_may_still_send_a_good_one() -> None:
    clean, attacked = (Server.simulation(study(), seed=7) for _ in range(2))
    attacked.open_round()
    with pytest.raises(RejectedVector):
        attacked.submit(message(attacked.study, 2, vector=np.full(FEATURES, math.nan)))
    for agent in range(AGENTS):
        attacked.submit(message(attacked.study, agent))
    assert attacked.close_round().to_bytes() == play(clean).to_bytes()


def test_an_agent_that_sends_twice_is_heard_once() -> None:
    clean, attacked = (Server.simulation(study(), seed=7) for _ in range(2))
    attacked.open_round()
    for agent in range(AGENTS):
        attacked.submit(message(attacked.study, agent))
    with pytest.raises(DuplicateMessage, match="agent 3 has already answered in round 0"):
        attacked.submit(message(attacked.study, 3, vector=np.full(FEATURES, 5.0)))
    assert attacked.close_round().to_bytes() == play(clean).to_bytes()


def test_what_a_sender_does_to_its_array_later_changes_nothing() -> None:
    clean, attacked = (Server.simulation(study(), seed=7) for _ in range(2))
    attacked.open_round()
    for agent in range(AGENTS):
        sent = message(attacked.study, agent)
        attacked.submit(sent)
        sent.vector[:] = 1e5
    assert attacked.close_round().to_bytes() == play(clean).to_bytes()


@pytest.mark.parametrize("kind", [np.float16, np.float32, ">f8"])
def test_any_kind_of_float_is_a_vector(kind: Any) -> None:
    server = Server.simulation(study(FTS), seed=0)
    server.open_round()
    server.submit(message(server.study, 0, vector=vector(0).astype(kind)))
    assert np.allclose(server.close_round().vectors[0], vector(0), atol=1e-2)


def test_a_message_over_the_wire_is_as_good_as_one_in_memory() -> None:
    near, far = (Server.simulation(study(), seed=1) for _ in range(2))
    far.open_round()
    for agent in range(AGENTS):
        far.submit(Message.from_bytes(message(far.study, agent).to_bytes()))
    assert far.close_round().to_bytes() == play(near).to_bytes()


# the order of things


def test_no_message_is_taken_before_a_round_is_open() -> None:
    server = Server.simulation(study(), seed=0)
    with pytest.raises(WrongRound, match="no round is open"):
        server.submit(message(server.study, 0))
    play(server)
    with pytest.raises(WrongRound, match="no round is open"):
        server.submit(message(server.study, 0))


def test_a_round_is_opened_once_and_closed_once() -> None:
    server = Server.simulation(study(), seed=0)
    with pytest.raises(ProtocolError, match="no round is open"):
        server.close_round()
    server.open_round()
    with pytest.raises(ProtocolError, match="round 0 is still open"):
        server.open_round()
    server.close_round()
    with pytest.raises(ProtocolError, match="no round is open"):
        server.close_round()
    assert len(server.events) == 1


def test_what_was_sent_in_one_round_is_gone_in_the_next() -> None:
    server = Server.simulation(study(FTS), seed=0)
    play(server)
    assert np.all(play(server, []).vectors == 0)


def test_a_closed_round_is_resent_as_it_was() -> None:
    server = Server.simulation(study(), seed=0)
    sent = [play(server).to_bytes() for _ in range(3)]
    assert [server.broadcast(number).to_bytes() for number in (0, 1, 2)] == sent
    assert [server.broadcast(number).to_bytes() for number in (0, 1, 2)] == sent
    assert len(server.events) == 3


@pytest.mark.parametrize("number", [-1, 1, 99])
def test_a_round_that_is_not_released_cannot_be_sent(number: int) -> None:
    server = Server.simulation(study(), seed=0)
    play(server)
    server.open_round()
    with pytest.raises(WrongRound, match="has not been released"):
        server.broadcast(number)


def test_a_study_that_is_over_opens_no_more_rounds() -> None:
    server = Server.simulation(study(rounds=2), seed=0)
    play(server)
    play(server)
    with pytest.raises(ProtocolError, match="the study is over"):
        server.open_round()


def test_only_rounds_that_speak_are_opened() -> None:
    server = Server.simulation(study(rounds=9, releases=ReleaseSchedule(every=2, last=5)), seed=0)
    assert [play(server).round for _ in range(3)] == [0, 2, 4]
    assert server.next_round() is None


def test_a_method_whose_agents_go_alone_has_no_server(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'ts' has no server"):
        Server.simulation(study(TS), seed=0)
    with pytest.raises(InvalidInput, match="'ts' has no server"):
        Server(study(TS), tmp_path / "ledger.db", PLENTY)
    assert list(tmp_path.iterdir()) == []


def test_each_method_plans_what_its_rounds_then_spend() -> None:
    assert planned_event(study(TS), "x") == DataFree()
    for name in METHODS:
        if METHODS[name].shared.exchanges:
            server = Server.simulation(study(METHODS[name]), seed=0)
            play(server)
            assert server.events == [planned_event(server.study, "x")]


# real servers


def test_a_real_server_takes_no_seeded_randomness(tmp_path: Path) -> None:
    with pytest.raises(SimulationOnly, match="takes no seeded randomness, got simulation-only"):
        Server(study(), tmp_path / "ledger.db", PLENTY, Seeded(0))
    assert list(tmp_path.iterdir()) == []


def test_a_real_server_plays_a_round_and_records_it_before_it_is_sent(tmp_path: Path) -> None:
    server = Server(study(), tmp_path / "ledger.db", PLENTY, SystemEntropy())
    heard = play(server)
    assert heard.vectors.shape == (2, FEATURES)
    assert server.events == [SubsampledGaussian(1.0, 0.25, AGENTS)]
    assert server.events[0].source == "os-entropy"
    assert heard.head in (tmp_path / "ledger.db.head").read_text()
    server.close()


def test_two_real_servers_never_draw_the_same_noise(tmp_path: Path) -> None:
    servers = [Server(study(), tmp_path / name, PLENTY) for name in ("a.db", "b.db")]
    one, two = (play(server).vectors for server in servers)
    assert not np.any(one == two)
    for server in servers:
        server.close()


def test_a_round_that_would_overspend_is_refused_before_anyone_sends(tmp_path: Path) -> None:
    event = planned_event(study(), "x")
    granted = epsilon([event] * 2, 1e-5, "moments") + 1e-9
    server = Server(study(), tmp_path / "ledger.db", Budget(granted, 1e-5, "moments"))
    play(server)
    sent = play(server).to_bytes()
    with pytest.raises(BudgetExceeded, match="the budget is"):
        server.open_round()
    with pytest.raises(WrongRound, match="no round is open"):
        server.submit(message(server.study, 0, 2))
    assert server.spent(1e-5, "moments") <= granted
    assert server.broadcast(1).to_bytes() == sent  # what is done can still be resent
    server.close()


def test_a_reopened_server_goes_on_at_the_next_round_with_what_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first = Server(study(), path, PLENTY)
    sent = [play(first).to_bytes() for _ in range(2)]
    first.open_round()  # and dies with the round open
    first.submit(message(first.study, 0, 2))
    spent = first.spent(1e-5, "moments")
    first.close()
    second = Server(study(), path, PLENTY)
    assert second.next_round() == 2
    assert second.spent(1e-5, "moments") == spent
    assert [second.broadcast(number).to_bytes() for number in (0, 1)] == sent
    assert play(second).round == 2
    assert second.spent(1e-5, "moments") > spent
    second.close()


def test_a_reopened_server_still_keeps_its_budget(tmp_path: Path) -> None:
    granted = Budget(epsilon([planned_event(study(), "x")], 1e-5, "rdp") + 1e-9, 1e-5, "rdp")
    first = Server(study(), tmp_path / "ledger.db", granted)
    play(first)
    first.close()
    second = Server(study(), tmp_path / "ledger.db", granted)
    with pytest.raises(BudgetExceeded):
        second.open_round()
    second.close()


@pytest.mark.parametrize(
    "method", [FTS, FTS_SERVER, FTS_DE, replace(DP_FTS, mechanism=Mechanism(noise=0.0))]
)
def test_a_method_without_protection_fits_no_budget(method: Method, tmp_path: Path) -> None:
    server = Server(study(method), tmp_path / "ledger.db", PLENTY)
    with pytest.raises(BudgetExceeded, match="ε to inf"):
        server.open_round()
    assert server.events == []
    server.close()


def test_another_studys_ledger_is_refused(tmp_path: Path) -> None:
    Server(study(), tmp_path / "ledger.db", PLENTY).close()
    with pytest.raises(LedgerError, match="belongs to another study: rounds is 4 there"):
        Server(study(rounds=5), tmp_path / "ledger.db", PLENTY)


def test_a_simulations_ledger_is_never_a_real_servers(tmp_path: Path) -> None:
    simulated = Server.simulation(study(), 0, tmp_path / "ledger.db")
    play(simulated)
    simulated.close()
    with pytest.raises(LedgerError, match="simulation is True there"):
        Server(study(), tmp_path / "ledger.db", PLENTY)
    Server(study(), tmp_path / "real.db", PLENTY).close()
    with pytest.raises(LedgerError, match="simulation is None there"):
        Server.simulation(study(), 0, tmp_path / "real.db")


def test_a_simulation_keeps_a_budget_too_when_it_has_one() -> None:
    server = Server.simulation(study(FTS_DE), 0, budget=PLENTY)
    with pytest.raises(BudgetExceeded):
        server.open_round()


def test_a_round_whose_head_could_not_be_written_is_closed_again_with_the_same_bytes(
    tmp_path: Path,
) -> None:
    server = Server(study(), tmp_path / "ledger.db", PLENTY)
    server.open_round()
    for agent in range(AGENTS):
        server.submit(message(server.study, agent))
    in_the_way = tmp_path / "ledger.db.head.part"
    in_the_way.mkdir()
    with pytest.raises(LedgerError, match="could not be written"):
        server.close_round()
    in_the_way.rmdir()
    heard = server.close_round()
    assert heard.round == 0
    assert server.events == [SubsampledGaussian(1.0, 0.25, AGENTS)]
    assert heard.to_bytes() == server.broadcast(0).to_bytes()
    server.close()


def test_a_ledger_is_not_reopened_with_another_budget(tmp_path: Path) -> None:
    Server(study(), tmp_path / "ledger.db", PLENTY).close()
    for other in (replace(PLENTY, epsilon=2000.0), replace(PLENTY, delta=1e-4)):
        with pytest.raises(LedgerError, match=r"budget.(epsilon|delta) is .* there and"):
            Server(study(), tmp_path / "ledger.db", other)
    with pytest.raises(LedgerError, match=r"'moments'.* there and .*'rdp'.* here"):
        Server(study(), tmp_path / "ledger.db", replace(PLENTY, accountant="rdp"))
    Server(study(), tmp_path / "ledger.db", Budget(1000, 1e-5, "moments")).close()


def test_what_was_granted_is_in_the_ledger(tmp_path: Path) -> None:
    Server(study(), tmp_path / "real.db", PLENTY).close()
    granted = {"epsilon": 1000, "delta": 1e-5, "accountant": "moments"}
    assert read_ledger(tmp_path / "real.db").constants["budget"] == granted
    Server.simulation(study(), 0, tmp_path / "free.db").close()
    assert "budget" not in read_ledger(tmp_path / "free.db").constants
    Server.simulation(study(), 0, tmp_path / "bound.db", PLENTY).close()
    assert read_ledger(tmp_path / "bound.db").constants["budget"] == granted


def test_the_last_broadcast_is_the_newest_that_was_committed() -> None:
    server = Server.simulation(study(), seed=0)
    assert server.last_broadcast() is None
    play(server)
    second = play(server)
    server.open_round()
    assert server.last_broadcast() == second
