"""One party of a federation: what it answers, what it remembers, and what kills it."""

from __future__ import annotations

import json
import math
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import Trial, TrialState

from sottovoce.errors import SpaceError
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.methods import DP_FTS_DE, SOTTOVOCE
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.site import leaving
from sottovoce.flower.site.memory import ATTEMPTS, Memory
from sottovoce.flower.site.site import Site
from sottovoce.flower.site.storage import STORAGES
from sottovoce.flower.site.trying import OTHERWISE, Objective
from sottovoce.flower.studyfile import StudyFile
from sottovoce.flower.wire import Call, Reply
from sottovoce.privacy.budget import Budget
from sottovoce.privacy.chain import next_digest
from sottovoce.privacy.release import Mechanism, Release
from sottovoce.space import Float, Integer, Space

INITIAL, ROUNDS = 3, 3
SPACE = Space([Float("x", 0.0, 1.0), Integer("n", 1, 4)])
METHOD = replace(
    DP_FTS_DE, initial=INITIAL, features=10, mechanism=Mechanism(clip=5.0, participation=1.0)
)
FILE = StudyFile(
    FederatedStudy(SPACE, METHOD, agents=2, rounds=ROUNDS), 5.0, 1e-5, direction="minimize"
)
PLENTY = Budget(1e5, 1e-5, "moments")
optuna.logging.set_verbosity(optuna.logging.WARNING)


def quadratic(trial: Trial) -> float:
    x, n = trial.suggest_float("x", 0.0, 1.0), trial.suggest_int("n", 1, 4)
    return (x - 0.3) ** 2 + 0.1 * n


def call(
    number: int, broadcast: Broadcast | None = None, file: StudyFile = FILE, **changes: Any
) -> Call:
    constants = json.loads(json.dumps(file.constants))
    chain = () if broadcast is None else ("0" * 64,) * (broadcast.round + 1) + (broadcast.head,)
    whole = Call(file.study.fingerprint, number, 0, constants, broadcast, None, chain)
    return replace(whole, **changes)


def asked_after(*replies: Reply, file: StudyFile = FILE, releases: int = 1) -> Call:
    """The call that follows so many releases, with noise of their own, of these replies."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(file.study, Path(folder) / "ledger.db", PLENTY)
        for _ in range(releases):
            number = server.open_round()
            for reply in replies:
                server.submit(replace(reply.message, round=number))
            server.close_round()
        asked = next_call(server, file)
        server.close()
    return asked


def asked_after_more(asked: Call, *replies: Reply, file: StudyFile = FILE) -> Call:
    """The call after one more release, by the ledger that this one is of."""
    study, before = file.study, asked.broadcast
    assert before is not None
    other = asked_after(*replies, file=file, releases=len(asked.chain))
    new = other.broadcast
    assert new is not None
    event, rows = planned_event(study, "os-entropy"), len(before.vectors)
    vectors = new.vectors
    if study.method.shared_model == "pooled":
        vectors = np.concatenate([before.vectors, new.vectors[rows:]])
    last = vectors[-1:] if study.method.shared_model == "pooled" else vectors
    head = next_digest(asked.chain[-1], len(asked.chain), new.round, Release(last, event))
    broadcast = replace(new, vectors=vectors, head=head)
    return replace(other, broadcast=broadcast, chain=(*asked.chain, head))


def next_call(server: Server, file: StudyFile = FILE, agent: int = 0) -> Call:
    """What a site is asked when the server's ledger is as it is."""
    number, last = server.next_round(), server.last_broadcast()
    number = file.study.rounds if number is None else number
    asked = call(number, last, file, agent=agent)
    return replace(asked, chain=() if last is None else server.chain)


def trials(folder: Path, storage: str = "sqlite") -> list[optuna.trial.FrozenTrial]:
    """What anybody with Optuna reads of the site's study."""
    kept: Any = f"sqlite:///{folder / 'study.db'}"
    if storage == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(folder / "study.journal"))
        kept = optuna.storages.JournalStorage(backend)
    study = optuna.load_study(study_name="sottovoce", storage=kept)
    found = study.get_trials()
    if storage == "sqlite":
        optuna.storages.RDBStorage(kept).engine.dispose()
    return found


def finished(folder: Path, storage: str = "sqlite") -> list[int]:
    """The rounds of the trials with a value."""
    done = [t for t in trials(folder, storage) if t.state is TrialState.COMPLETE]
    return [t.user_attrs["round"] for t in done]


def dies(folder: Path, asked: Call, objective: Objective, storage: str = "sqlite") -> None:
    """Answer a call in a process that gets killed on the way."""
    child = os.fork()
    if child == 0:
        try:
            Site(FILE, objective, folder, storage=storage).answer(asked)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def killed(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
def test_a_site_goes_through_a_whole_study(tmp_path: Path, storage: str) -> None:
    server = Server(FILE.study, tmp_path / "ledger.db", PLENTY)
    sites = [Site(FILE, quadratic, tmp_path / str(n), storage=storage) for n in range(2)]
    for step in FILE.steps[:-1]:
        asked = [next_call(server, agent=n) for n in range(2)]
        assert server.open_round() == step.round
        for n, site in enumerate(sites):
            reply = site.answer(asked[n])
            assert (reply.answer, reply.agent, reply.reason) == ("vector", n, "")
            assert (reply.heard, reply.head) == (
                step.round - 1,
                server.chain[-1] * (step.round > 0),
            )
            server.submit(reply.message)
        server.close_round()
    ended = [site.answer(next_call(server, agent=n)) for n, site in enumerate(sites)]
    assert [(reply.answer, reply.round) for reply in ended] == [("done", ROUNDS)] * 2
    server.close()
    assert finished(tmp_path / "1", storage) == [0] * INITIAL + [1, 2, 3]
    for trial in trials(tmp_path / "0", storage):
        assert trial.params == trial.user_attrs["asked"]
        assert trial.value == (trial.params["x"] - 0.3) ** 2 + 0.1 * trial.params["n"]


def test_the_objective_may_read_which_site_it_is(tmp_path: Path) -> None:
    seen = []

    def objective(trial: Trial) -> float:
        seen.append(trial.study.user_attrs["site"])
        return quadratic(trial)

    Site(FILE, objective, tmp_path).answer(call(0, agent=1))
    assert seen == [1] * INITIAL


def test_a_call_delivered_twice_runs_nothing_more_and_gets_the_same_bytes(tmp_path: Path) -> None:
    first = Site(FILE, quadratic, tmp_path).answer(call(0))
    again = Site(FILE, quadratic, tmp_path).answer(call(0))
    assert first.message.to_bytes() == again.message.to_bytes()
    assert len(trials(tmp_path)) == INITIAL
    asked = asked_after(first)
    for _ in range(2):
        Site(FILE, quadratic, tmp_path).answer(asked)
    assert finished(tmp_path) == [0] * INITIAL + [1]


def test_a_round_whose_broadcast_was_heard_is_never_spoken_in_again(tmp_path: Path) -> None:
    site = Site(FILE, quadratic, tmp_path)
    first = site.answer(call(0))
    assert site.answer(call(0)).message == first.message  # not heard yet: its ledger may lack it
    second = asked_after(first)
    spoken = site.answer(second)
    assert site.answer(second).message == spoken.message
    third = asked_after_more(second, first)
    for asked in (third, second, call(0), third, call(0)):
        reply = Site(FILE, quadratic, tmp_path).answer(asked)
        assert (reply.heard, reply.head) == (1, third.chain[-1])
        if asked is third:
            assert reply.answer == "vector"
        else:
            assert (reply.answer, reply.vector) == ("refused", None)
            assert reply.reason.startswith(
                "WrongRound: this site has heard the broadcast of round 1, and does not speak in "
                f"round {asked.round} again"
            )
    assert finished(tmp_path) == [0] * INITIAL + [1, 2]


def test_a_site_that_missed_rounds_speaks_in_none_of_them(tmp_path: Path) -> None:
    site = Site(FILE, quadratic, tmp_path)
    late = asked_after(releases=2)
    assert site.answer(late).answer == "vector"
    assert "has heard the broadcast of round 1" in site.answer(call(0)).reason
    assert finished(tmp_path) == [2] * (INITIAL + 1)


def test_a_late_joiner_makes_up_for_its_initial_trials_only(tmp_path: Path) -> None:
    site = Site(FILE, quadratic, tmp_path)
    late = asked_after(releases=2)
    assert site.answer(late).answer == "vector"
    assert finished(tmp_path) == [2] * (INITIAL + 1)
    assert site.answer(late).answer == "vector"
    assert len(trials(tmp_path)) == INITIAL + 1


LEARNING = replace(SOTTOVOCE, initial=INITIAL)
FILES = {
    "follow": FILE,
    "learn": replace(FILE, study=replace(FILE.study, method=LEARNING, rounds=8)),
}


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
@pytest.mark.parametrize("hears", FILES)
def test_a_site_that_was_sent_two_contents_of_a_round_refuses_all_later_calls(
    tmp_path: Path, hears: str, storage: str
) -> None:
    file = FILES[hears]

    def answer(asked: Call) -> Reply:
        return Site(file, quadratic, tmp_path, storage=storage).answer(asked)

    first = answer(call(0, file=file))
    asked = asked_after(first, file=file)
    assert answer(asked).answer == "vector"
    assert (
        answer(asked_after(first, file=file)).answer == "refused"
    )  # the same round, with fresh noise
    for later in (asked, asked_after_more(asked, first, file=file), call(0, file=file)):
        reply = answer(later)
        assert (reply.answer, reply.vector) == ("refused", None)
        assert "round 0 was broadcast before, with other content" in reply.reason
        assert "takes no further part" in reply.reason
        assert (reply.heard, reply.head) == (0, asked.chain[-1])
    assert finished(tmp_path, storage) == [0] * INITIAL + [asked.round] * asked.round


@pytest.mark.parametrize("hears", FILES)
def test_a_chain_that_does_not_extend_what_was_heard_shows_in_any_later_round(
    tmp_path: Path, hears: str
) -> None:
    file = FILES[hears]
    site = Site(file, quadratic, tmp_path)
    first = site.answer(call(0, file=file))
    assert site.answer(asked_after(first, file=file)).answer == "vector"
    forked = asked_after(first, file=file, releases=3)  # another round 0, long ago
    reply = site.answer(forked)
    assert "round 0 was broadcast before, with other content" in reply.reason


@pytest.mark.parametrize("hears", FILES)
def test_a_second_content_under_the_same_digests_shows(tmp_path: Path, hears: str) -> None:
    file = FILES[hears]
    first = Site(file, quadratic, tmp_path).answer(call(0, file=file))
    asked = asked_after(first, file=file)
    heard = asked.broadcast
    assert heard is not None
    forged = replace(asked, broadcast=replace(heard, vectors=heard.vectors + 1e-9))
    reply = Site(file, quadratic, tmp_path).answer(forged)
    assert "the ledger's digest of round 0 is not of what was sent" in reply.reason
    assert reply.heard == -1
    assert Site(file, quadratic, tmp_path).answer(asked).answer == "vector"
    reply = Site(file, quadratic, tmp_path).answer(forged)
    assert "round 0 was broadcast before, with other content" in reply.reason


def test_an_earlier_release_in_a_broadcast_is_checked_as_well(tmp_path: Path) -> None:
    file = FILES["learn"]
    asked = asked_after(file=file, releases=2)
    heard = asked.broadcast
    assert heard is not None
    vectors = heard.vectors.copy()
    vectors[0, 0] += 1e-9
    reply = Site(file, quadratic, tmp_path).answer(
        replace(asked, broadcast=replace(heard, vectors=vectors))
    )
    assert "the ledger's digest of round 0 is not of what was sent" in reply.reason


def test_a_release_with_less_noise_than_the_study_says_is_refused(tmp_path: Path) -> None:
    quiet = replace(METHOD, mechanism=Mechanism(clip=5.0, participation=1.0, noise=0.5))
    other = replace(FILE, study=replace(FILE.study, method=quiet))
    asked = asked_after(file=other)
    assert asked.broadcast is not None
    heard = replace(asked.broadcast, study=FILE.study.fingerprint)
    reply = Site(FILE, quadratic, tmp_path).answer(call(1, heard, chain=asked.chain))
    assert "the ledger's digest of round 0 is not of what was sent" in reply.reason


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        ((), "2 digests of the ledger must come, got 0"),
        (("0" * 64,) * 3, "2 digests of the ledger must come, got 3"),
        (("0" * 64,) * 2, "a broadcast's head must be the last of the ledger's digests"),
    ],
)
def test_a_chain_that_does_not_fit_its_broadcast_is_refused(
    tmp_path: Path, chain: tuple[str, ...], reason: str
) -> None:
    reply = Site(FILE, quadratic, tmp_path).answer(replace(asked_after(), chain=chain))
    assert reason in reply.reason
    assert reply.answer == "refused"


def changed(**values: Any) -> dict[str, Any]:
    constants: dict[str, Any] = json.loads(json.dumps(FILE.constants))
    return {**constants, **values}


MALFORMED = Broadcast(FILE.study.fingerprint, 0, np.full((2, 10), math.nan), "head")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (call(0, constants=changed(epsilon=9.0)), "epsilon is 9.0 there and 5.0 here"),
        (call(0, constants=changed(rounds=4)), "rounds is 4 there and 3 here"),
        (call(0, constants={}), "agents is missing there and 2 here"),
        (call(0, study="0" * 64), "fingerprint is not that of its constants"),
        (call(0, agent=2), "agents are numbered 0 to 1, got 2"),
        (call(0, seed=7), "SimulationOnly: a site of a real federation takes no seed"),
        (call(7), "nothing is to be done in round 7"),
        (call(-1), "nothing is to be done in round -1"),
        (call(1), "before round 1 comes broadcast 0, got None"),
        (call(0, MALFORMED), "before round 0 comes broadcast None, got 0"),
        (call(1, MALFORMED), "a broadcast must be finite"),
        (call(1, replace(MALFORMED, vectors=np.ones((1, 10)))), "of shape (2, 10), got (1, 10)"),
        (call(1, replace(MALFORMED, study="other")), "its study is 'other', this one"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_and_runs_nothing(
    tmp_path: Path, asked: Call, reason: str
) -> None:
    reply = Site(FILE, quadratic, tmp_path).answer(asked)
    assert reply.answer == "refused"
    assert reason in reply.reason
    assert (reply.study, reply.round, reply.agent) == (asked.study, asked.round, asked.agent)
    after = Site(FILE, quadratic, tmp_path).answer(call(0))
    assert after.answer == "vector"
    assert finished(tmp_path) == [0] * INITIAL


def test_a_site_is_always_the_same_agent_of_the_same_study(tmp_path: Path) -> None:
    Site(FILE, quadratic, tmp_path).answer(call(0))
    other = Site(FILE, quadratic, tmp_path).answer(call(0, agent=1))
    assert other.reason == "ProtocolError: this site has always been agent 0, it is called 1"
    longer = replace(FILE, study=replace(FILE.study, rounds=4))
    moved = Site(longer, quadratic, tmp_path).answer(call(0, file=longer))
    assert moved.answer == "refused"
    assert "this site's folder belongs to study" in moved.reason
    turned = replace(FILE, direction="maximize")
    reply = Site(turned, quadratic, tmp_path).answer(call(0, file=turned))
    assert "belongs to a study of the other direction" in reply.reason


def test_failed_and_pruned_trials_are_recorded_and_the_site_stays_in(tmp_path: Path) -> None:
    ways: list[Callable[[], Any]] = [
        lambda: math.nan,
        lambda: -math.inf,
        lambda: 1e200,
        lambda: 10**400,
        lambda: None,
        lambda: "0.5",
        lambda: 1 / 0,
    ]
    many = replace(METHOD, initial=len(ways) + 2)
    file = replace(FILE, study=replace(FILE.study, method=many))

    def objective(trial: Trial) -> Any:
        value = quadratic(trial)
        if trial.number < len(ways):
            return ways[trial.number]()
        if trial.number == len(ways):
            trial.report(0.1, 1)
            raise optuna.TrialPruned
        return value

    reply = Site(file, objective, tmp_path).answer(call(0, file=file))
    assert reply.answer == "vector"
    states = [trial.state for trial in trials(tmp_path)]
    assert states == [TrialState.FAIL] * len(ways) + [TrialState.PRUNED, TrialState.COMPLETE]
    assert trials(tmp_path)[6].user_attrs["error"] == "ZeroDivisionError: division by zero"
    assert "ZeroDivisionError" in (tmp_path / "site.log").read_text()
    assert Site(file, objective, tmp_path).answer(call(0, file=file)).message == reply.message


def broken(trial: Trial) -> float:
    raise RuntimeError("patient 12345\nand more")


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
@pytest.mark.parametrize("hears", FILES)
def test_a_site_whose_trials_all_failed_leaves_before_it_speaks(
    tmp_path: Path, hears: str, storage: str
) -> None:
    file = FILES[hears]
    reply = Site(file, broken, tmp_path, storage=storage).answer(call(0, file=file))
    assert (reply.answer, reply.vector, reply.reason) == ("left", None, "it left the study")
    assert leaving.why(tmp_path) == (
        f"This site left the study in round 0: none of its {INITIAL} trials gave a value. The last "
        f"error: RuntimeError: patient 12345. Its log is {tmp_path / 'site.log'}"
    )
    assert "Traceback" in (tmp_path / "site.log").read_text()
    late = Site(file, broken, tmp_path, storage=storage).answer(asked_after(file=file))
    assert (late.answer, late.vector, late.heard) == ("left", None, 0)
    assert finished(tmp_path, storage) == []


def test_a_site_that_left_begins_anew_when_its_objective_is_mended(tmp_path: Path) -> None:
    for _ in range(2):
        assert Site(FILE, broken, tmp_path).answer(call(0)).answer == "left"
    first = Site(FILE, quadratic, tmp_path).answer(call(0))
    assert first.answer == "vector"
    assert leaving.why(tmp_path) is None
    assert finished(tmp_path) == [0] * INITIAL
    asked = [json.dumps(trial.user_attrs["asked"]) for trial in trials(tmp_path)]
    assert len(asked) == 3 * INITIAL
    assert Site(FILE, broken, tmp_path).answer(asked_after(first)).answer == "vector"


def test_one_value_among_failures_is_enough_to_stay(tmp_path: Path) -> None:
    def rarely(trial: Trial) -> float:
        return quadratic(trial) if trial.number == INITIAL - 1 else broken(trial)

    first = Site(FILE, rarely, tmp_path).answer(call(0))
    assert first.answer == "vector"
    assert Site(FILE, broken, tmp_path).answer(asked_after(first)).answer == "vector"
    assert leaving.why(tmp_path) is None


def test_a_site_whose_trials_are_all_pruned_leaves_too(tmp_path: Path) -> None:
    def pruned(trial: Trial) -> float:
        raise optuna.TrialPruned

    assert Site(FILE, pruned, tmp_path).answer(call(0)).answer == "left"
    assert "The last error: all were pruned" in (leaving.why(tmp_path) or "")


def test_a_site_that_finds_nothing_but_failures_at_the_end_is_not_done(tmp_path: Path) -> None:
    assert Site(FILE, broken, tmp_path).answer(asked_after(releases=ROUNDS)).answer == "left"


def test_a_vector_of_zeros_is_said_like_any_other(tmp_path: Path) -> None:
    uninformed = replace(LEARNING, shared_model="consensus")  # constant values tell it nothing
    file = replace(FILE, study=replace(FILE.study, method=uninformed, rounds=8))
    reply = Site(file, lambda trial: 0.5 + 0 * quadratic(trial), tmp_path).answer(
        call(0, file=file)
    )
    assert (reply.answer, reply.reason) == ("vector", "")
    assert reply.vector is not None
    assert not np.any(reply.vector)


def undeclared(trial: Trial) -> float:
    return quadratic(trial) + trial.suggest_float("momentum", 0.0, 1.0)


def other_range(trial: Trial) -> float:
    return trial.suggest_float("x", 0.0, 2.0)


def other_kind(trial: Trial) -> float:
    return trial.suggest_float("n", 1.0, 4.0)


def single(trial: Trial) -> float:
    return trial.suggest_float("x", 0.5, 0.5)


@pytest.mark.parametrize(
    ("objective", "name"),
    [(undeclared, "momentum"), (other_range, "x"), (other_kind, "n"), (single, "x")],
)
def test_an_objective_that_declares_otherwise_than_the_study_is_refused_until_mended(
    tmp_path: Path, objective: Objective, name: str
) -> None:
    for _ in range(2):
        reply = Site(FILE, objective, tmp_path).answer(call(0))
        assert reply.answer == "refused"
        assert reply.reason == f"SpaceError: {OTHERWISE}"
        assert repr(name) in (tmp_path / "site.log").read_text()
    assert [trial.state for trial in trials(tmp_path)] == [TrialState.FAIL] * 2
    assert Site(FILE, quadratic, tmp_path).answer(call(0)).answer == "vector"
    assert finished(tmp_path) == [0] * INITIAL


RECORDS = 83_712  # of the site; nobody else's to know


def as_many_as_records(trial: Trial) -> float:
    return float(trial.suggest_int("n", 1, RECORDS))


def with_words_of_its_own(trial: Trial) -> float:
    raise SpaceError(f"record {RECORDS} lies outside")


@pytest.mark.parametrize("objective", [as_many_as_records, with_words_of_its_own])
def test_what_an_objective_asks_for_stays_at_the_site(tmp_path: Path, objective: Objective) -> None:
    reply = Site(FILE, objective, tmp_path).answer(call(0))
    assert (reply.answer, reply.reason) == ("refused", f"SpaceError: {OTHERWISE}")
    assert str(RECORDS) in (tmp_path / "site.log").read_text()


def test_an_objective_may_have_constants_of_its_own(tmp_path: Path) -> None:
    def objective(trial: Trial) -> float:
        return quadratic(trial) + trial.suggest_float("constant", 1.0, 1.0)

    assert Site(FILE, objective, tmp_path).answer(call(0)).answer == "vector"
    assert finished(tmp_path) == [0] * INITIAL


def test_a_parameter_that_an_objective_does_not_look_at_is_remembered(tmp_path: Path) -> None:
    def objective(trial: Trial) -> float:
        return trial.suggest_float("x", 0.0, 1.0)

    reply = Site(FILE, objective, tmp_path).answer(call(0))
    assert Site(FILE, objective, tmp_path).answer(asked_after(reply)).answer == "vector"
    assert all(set(trial.user_attrs["asked"]) == {"x", "n"} for trial in trials(tmp_path))


def test_words_of_the_objective_stay_at_the_site(tmp_path: Path) -> None:
    class Odd(BaseException):
        pass

    def odd(trial: Trial) -> float:
        raise Odd

    with pytest.raises(Odd):  # as an interrupt would pass
        Site(FILE, odd, tmp_path).answer(call(0))
    (tmp_path / "study.db").write_bytes(b"patient 12345")
    reply = Site(FILE, quadratic, tmp_path).answer(call(0))
    assert reply.answer == "refused"
    assert reply.reason == "StorageError: the site's storage failed (DatabaseError)"
    assert "Traceback" in (tmp_path / "site.log").read_text()


def test_two_calls_at_once_make_the_second_wait_then_go_away(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(trial: Trial) -> float:
        begun.set()
        go_on.wait(30)
        return quadratic(trial)

    replies: list[Reply] = []
    first = threading.Thread(
        target=lambda: replies.append(Site(FILE, slow, tmp_path).answer(call(0)))
    )
    first.start()
    begun.wait(30)
    second = Site(FILE, quadratic, tmp_path, patience=0.1).answer(call(0))
    go_on.set()
    first.join(60)
    assert (second.answer, second.vector) == ("busy", None)
    assert replies[0].answer == "vector"
    assert Site(FILE, quadratic, tmp_path).answer(call(0)).message == replies[0].message


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
def test_a_trial_whose_process_is_killed_is_tried_again_with_the_same_parameters(
    tmp_path: Path, storage: str
) -> None:
    def deadly(trial: Trial) -> float:
        value = trial.suggest_float("x", 0.0, 1.0)
        return killed() if trial.number == 1 else value

    dies(tmp_path, call(0), deadly, storage)
    reply = Site(FILE, quadratic, tmp_path, storage=storage).answer(call(0))
    assert reply.answer == "vector"
    found = trials(tmp_path, storage)
    lost = found[1]
    assert [trial.state for trial in found] == [
        *(TrialState.COMPLETE, TrialState.FAIL),
        *(TrialState.COMPLETE, TrialState.COMPLETE),
    ]
    assert lost.user_attrs["lost"] is True
    assert lost.params == {"x": lost.user_attrs["asked"]["x"]}
    assert found[2].params == lost.user_attrs["asked"]
    assert found[2].user_attrs["attempt"] == 2


def test_a_trial_that_always_kills_its_process_counts_as_failed_in_the_end(tmp_path: Path) -> None:
    def deadly(trial: Trial) -> float:
        first = trials(tmp_path)[0].user_attrs["asked"]
        return killed() if trial.suggest_float("x", 0.0, 1.0) == first["x"] else quadratic(trial)

    for _ in range(ATTEMPTS):
        dies(tmp_path, call(0), deadly)
    assert Site(FILE, deadly, tmp_path).answer(call(0)).answer == "vector"
    found = trials(tmp_path)
    assert len({json.dumps(trial.user_attrs["asked"]) for trial in found[:ATTEMPTS]}) == 1
    assert [trial.state for trial in found[:ATTEMPTS]] == [TrialState.FAIL] * ATTEMPTS
    assert finished(tmp_path) == [0] * (INITIAL - 1)


def test_a_trial_lost_in_an_earlier_round_is_not_tried_again(tmp_path: Path) -> None:
    site = Site(FILE, quadratic, tmp_path)
    reply = site.answer(call(0))
    second = asked_after(reply)
    dies(tmp_path, second, killed)
    assert site.answer(asked_after_more(second, reply)).answer == "vector"
    assert finished(tmp_path) == [0] * INITIAL + [2]


def before(name: str) -> Objective:
    return _struck(name, killed)


def after(name: str) -> Objective:
    real = getattr(Memory, name)
    return _struck(name, lambda *a, **k: (real(*a, **k), killed()))


def _struck(name: str, method: Callable[..., Any]) -> Objective:
    """An objective that, once it runs, lets the site die at a step of its memory."""

    def objective(trial: Trial) -> float:
        if trial.number >= 1:
            setattr(Memory, name, method)
        return quadratic(trial)

    return objective


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
@pytest.mark.parametrize(
    "objective", [before("begin"), after("begin"), before("end"), after("end"), before("say")]
)
def test_a_site_killed_between_two_steps_goes_on(
    tmp_path: Path, objective: Objective, storage: str
) -> None:
    dies(tmp_path, call(0), objective, storage)
    assert Site(FILE, quadratic, tmp_path, storage=storage).answer(call(0)).answer == "vector"
    assert finished(tmp_path, storage) == [0] * INITIAL


def test_what_was_about_to_be_said_when_the_site_was_killed_is_said(tmp_path: Path) -> None:
    dies(tmp_path, call(0), after("say"))
    first = Site(FILE, quadratic, tmp_path).answer(call(0))
    assert first.answer == "vector"
    assert Site(FILE, quadratic, tmp_path).answer(call(0)).message == first.message
    assert len(trials(tmp_path)) == INITIAL


def test_a_trial_that_began_without_its_parameters_is_no_attempt(tmp_path: Path) -> None:
    """As a process left it that an older version began, which wrote them afterwards."""
    with Memory(tmp_path, "sqlite", FILE.study, FILE.direction):
        pass
    kept = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    for _ in range(ATTEMPTS + 1):
        optuna.load_study(study_name="sottovoce", storage=kept).ask()
    kept.engine.dispose()
    assert Site(FILE, quadratic, tmp_path).answer(call(0)).answer == "vector"
    assert finished(tmp_path) == [0] * INITIAL
    assert len(trials(tmp_path)) == ATTEMPTS + 1 + INITIAL


def test_half_a_line_and_a_lock_left_in_a_journal_are_dropped(tmp_path: Path) -> None:
    first = Site(FILE, quadratic, tmp_path, storage="journal").answer(call(0))
    journal = tmp_path / "study.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code":4,"wor')
    (tmp_path / "study.journal.lock").symlink_to(journal)
    again = Site(FILE, quadratic, tmp_path, storage="journal").answer(call(0))
    assert again.message == first.message
    assert journal.read_bytes().startswith(whole)


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
def test_a_storage_whose_making_was_cut_short_is_made_anew(tmp_path: Path, storage: str) -> None:
    name = "study.db" if storage == "sqlite" else "study.journal"
    (tmp_path / f".part-{name}").write_bytes(b"half of something")
    (tmp_path / f".part-{name}-journal").write_bytes(b"half of something")
    reply = Site(FILE, quadratic, tmp_path, storage=storage).answer(call(0))
    assert (reply.answer, reply.reason) == ("vector", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", name]


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    Site(FILE, quadratic, tmp_path, storage="journal").answer(call(0))
    journal = tmp_path / "study.journal"
    journal.write_bytes(b"patient 12345\n" + journal.read_bytes())
    reply = Site(FILE, quadratic, tmp_path, storage="journal").answer(call(0))
    assert reply.reason == "StorageError: the site's journal is damaged"
    journal.write_bytes(b"")
    reply = Site(FILE, quadratic, tmp_path, storage="journal").answer(call(0))
    assert reply.reason == "StorageError: the site's storage failed (KeyError)"


def test_a_full_disk_is_refused_and_says_nothing_of_what_was_to_be_stored(tmp_path: Path) -> None:
    Site(FILE, quadratic, tmp_path).answer(call(0))
    late = asked_after(releases=2)
    child = os.fork()
    if child == 0:
        import resource

        try:
            size = (tmp_path / "study.db").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
            reply = Site(FILE, quadratic, tmp_path).answer(late)
            right = reply.answer == "refused" and reply.reason.startswith("StorageError: the site")
            os._exit(0 if right else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert Site(FILE, quadratic, tmp_path).answer(late).answer == "vector"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    reply = Site(FILE, quadratic, tmp_path / "file" / "site").answer(call(0))
    assert reply.reason == "StorageError: the site's storage failed (NotADirectoryError)"


@pytest.mark.parametrize(("first", "then"), [("sqlite", "journal"), ("journal", "sqlite")])
def test_a_site_has_one_memory_and_refuses_a_second(tmp_path: Path, first: str, then: str) -> None:
    spoken = Site(FILE, quadratic, tmp_path, storage=first).answer(call(0))
    reply = Site(FILE, quadratic, tmp_path, storage=then).answer(call(0))
    assert (reply.answer, reply.vector) == ("refused", None)
    assert f"this site's memory is {STORAGES[first]}, it is told to use {STORAGES[then]}" in (
        reply.reason
    )
    assert not (tmp_path / STORAGES[then]).exists()
    assert Site(FILE, quadratic, tmp_path, storage=first).answer(call(0)).message == spoken.message
    (tmp_path / STORAGES[then]).touch()  # of both, neither is known to be the right one
    reply = Site(FILE, quadratic, tmp_path, storage=first).answer(call(0))
    assert reply.reason.startswith("StorageError: this site's memory is")


def test_an_unknown_storage_is_refused(tmp_path: Path) -> None:
    reply = Site(FILE, quadratic, tmp_path, storage="oracle").answer(call(0))
    assert "storage must be one of ('sqlite', 'journal'), got storage='oracle'" in reply.reason


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["sqlite", "journal"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_site_killed_at_random_moments_ends_with_the_trials_of_the_study(
    tmp_path: Path, storage: str, workers: int
) -> None:
    random = np.random.default_rng(0)
    server = Server(FILE.study, tmp_path / "ledger.db", PLENTY)
    for step in FILE.steps:
        asked = next_call(server)
        for _ in range(6):
            child = os.fork()
            if child == 0:
                Site(FILE, quadratic, tmp_path, storage=storage, workers=workers).answer(asked)
                os._exit(0)
            threading.Event().wait(random.uniform(0.0, 0.4))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        reply = Site(FILE, quadratic, tmp_path, storage=storage, workers=workers).answer(asked)
        if step.round < ROUNDS:
            server.open_round()
            server.submit(reply.message)
            server.close_round()
    server.close()
    with Memory(tmp_path, storage, FILE.study, FILE.direction) as memory:
        rounds = [told.round for told in memory.told]
    assert rounds == [0] * INITIAL + [1, 2, 3]
