from __future__ import annotations

import json
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from sottovoce.cli.status import look, status
from sottovoce.errors import InvalidInput, LedgerError
from sottovoce.federation.messages import Message
from sottovoce.federation.methods import DP_FTS, FTS_SERVER
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.coordinator.coordinator import Coordinator
from sottovoce.flower.studyfile import StudyFile
from sottovoce.flower.wire import Reply
from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.budget import Budget, paper_delta
from sottovoce.privacy.events import SubsampledGaussian
from sottovoce.privacy.ledger import Ledger, read_ledger
from sottovoce.privacy.release import Mechanism
from sottovoce.space import Float, Space

AGENTS, FEATURES = 3, 40
MECHANISM = Mechanism(clip=5.0, participation=1.0, noise=2.0)
METHOD = replace(DP_FTS, features=FEATURES, mechanism=MECHANISM)
STUDY = FederatedStudy(Space([Float("x", 0.0, 1.0)]), METHOD, AGENTS, 2, 4)
BUDGET = Budget(9.0, 1e-3)
SITES = {90 + agent: agent for agent in range(AGENTS)}  # node -> agent


def begun(folder: Path) -> Coordinator:
    file = StudyFile(STUDY, BUDGET.epsilon, BUDGET.delta, direction="minimize")
    server = Server(STUDY, folder / "ledger.db", BUDGET)
    return Coordinator(file, server, SITES, folder / "journal.jsonl")


def play(coordinator: Coordinator, scale: float = 1.0) -> None:
    """A step in which agent 2 is absent, and agent 1 sends nonsense after its vector."""
    step = coordinator.open()
    for node, agent in list(SITES.items())[:2]:
        if step.round == STUDY.rounds:
            coordinator.take(node, Reply(STUDY.fingerprint, step.round, agent, "done"))
        else:
            vector = np.full(FEATURES, scale)
            reply = Reply(STUDY.fingerprint, step.round, agent, "vector", vector)
            coordinator.take(node, reply)
    coordinator.take(91, Reply("another", step.round, 1, "vector", np.ones(FEATURES)))
    coordinator.close()


def said(capsys: pytest.CaptureFixture[str], ledger: Path, **options: bool) -> str:
    status([ledger], **options)
    return " ".join(capsys.readouterr().out.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with a ledger and a journal, after the first of two rounds."""
    coordinator = begun(tmp_path)
    play(coordinator)
    coordinator.stop()
    return tmp_path


def test_the_status_says_where_the_study_stands_and_what_was_spent(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = said(capsys, folder / "ledger.db")
    found = look(folder / "ledger.db")
    assert f"dp-fts, {AGENTS} agents, 2 rounds, feature seed 4" in text
    assert STUDY.fingerprint[:12] in text
    assert "Released: 1 of 2 rounds; the study is not over." in text
    spent = {name: epsilon(found_events(folder), 1e-3, name) for name in ("pld", "rdp", "moments")}
    assert f"ε = {spent['pld']:.2f} (pld)" in text
    assert f"{spent['moments']:.2f} (moments), {spent['rdp']:.2f} (rdp)" in text
    assert f"9 granted, {9 - spent['pld']:.4g} left; δ = 0.001, zero-out adjacency." in text
    replaced = replace_one(found_events(folder), 1e-3)
    assert f"ε = {spent['pld']:.2f} (pld): a site's whole contribution is hidden" in text
    assert f"ε = {replaced:.2f} (pld): one record at a site is hidden" in text
    assert f"Newest digest: {found['head']}" in text
    assert "an estimate" in text
    assert "simulation" not in text


def found_events(folder: Path) -> list[Any]:
    server = Server(STUDY, folder / "ledger.db", BUDGET)
    events = server.events
    server.close()
    return events


def test_the_json_has_every_number(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, folder / "ledger.db", as_json=True))
    assert (found["method"], found["agents"], found["rounds"]) == ("dp-fts", 3, 2)
    assert (found["released"], found["releases"], found["over"]) == (1, 2, False)
    assert found["fingerprint"] == STUDY.fingerprint
    assert found["epsilon"] == found["epsilon_by_accountant"]["pld"]
    assert set(found["epsilon_by_accountant"]) == {"moments", "rdp", "pld"}
    half = [SubsampledGaussian(1.0, 1.0, AGENTS)]
    assert found["replace_one"] == {
        name: epsilon(half, 1e-3, name) for name in ("moments", "rdp", "pld")
    }
    assert found["left"] == pytest.approx(9 - found["epsilon"])
    (first,) = found["by_round"]
    assert (first["replied"], first["spoke"]) == (2, 2)
    assert (first["absent"], first["rejected"]) == (1, 1)
    assert first["digest"] == found["head"]
    assert first["time"].startswith("20")


def test_nothing_is_touched(folder: Path) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    look(folder / "ledger.db")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_without_a_journal_who_was_there_is_unknown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "journal.jsonl").unlink()
    found = look(folder / "ledger.db")
    assert found["by_round"][0]["spoke"] is None
    text = said(capsys, folder / "ledger.db")
    assert "unknown" in text
    assert "There is no journal beside the ledger" in text


def test_a_journal_of_nonsense_is_as_good_as_none(folder: Path) -> None:
    lines = [
        {"event": "closed", "round": 0, "spoke": "many", "time": 3},
        {"event": "closed", "round": [0]},
        {"round": 0},
    ]
    (folder / "journal.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    first = look(folder / "ledger.db")["by_round"][0]
    assert (first["spoke"], first["time"]) == (None, "3")


def test_a_study_that_is_over_is_said_to_be(folder: Path) -> None:
    coordinator = begun(folder)
    play(coordinator)
    assert look(folder / "ledger.db")["over"] is False  # the last trials are still to be run
    play(coordinator)
    coordinator.stop()
    assert look(folder / "ledger.db")["over"] is True
    (folder / "journal.jsonl").unlink()
    assert look(folder / "ledger.db")["over"] is True


def test_why_a_study_stopped_is_said_until_it_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    coordinator = begun(folder)
    coordinator.open()
    with pytest.raises(Exception, match="no site took part"):
        coordinator.close()
    coordinator.stop()
    assert "stopped: no site took part in round 1" in said(capsys, folder / "ledger.db")
    again = begun(folder)
    again.open()
    assert look(folder / "ledger.db")["stopped"] is None
    again.stop()


def test_before_the_first_round_nothing_is_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path).stop()
    text = said(capsys, tmp_path / "ledger.db")
    assert "Released: 0 of 2 rounds" in text
    assert "ε = 0.00 (pld)" in text
    assert "9 left" in text


def test_silence_has_hardly_a_signal(tmp_path: Path) -> None:
    server = Server.simulation(STUDY, 3, tmp_path / "ledger.db")
    for _ in range(2):
        server.open_round()
        server.close_round()
    server.close()
    found = look(tmp_path / "ledger.db")["by_round"]
    assert np.mean([each["signal_to_noise"] for each in found]) < 0.6


def test_a_loud_signal_shows(tmp_path: Path) -> None:
    loud = replace(STUDY, method=replace(METHOD, mechanism=replace(MECHANISM, noise=0.1)))
    server = Server.simulation(loud, 3, tmp_path / "ledger.db")
    server.open_round()
    for agent in range(AGENTS):
        server.submit(Message(loud.fingerprint, 0, agent, np.full(FEATURES, 1.0)))
    server.close_round()
    server.close()
    ratio = look(tmp_path / "ledger.db")["by_round"][0]["signal_to_noise"]
    wanted = 5.0 / (0.1 * 5.0 / AGENTS * np.sqrt(FEATURES))  # all agree: the mean has norm 5
    assert ratio == pytest.approx(wanted, rel=0.1)


def test_a_simulations_ledger_is_labelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Server.simulation(STUDY, 3, tmp_path / "ledger.db").close()
    found = look(tmp_path / "ledger.db")
    assert found["simulation"] is True
    assert (found["granted"], found["left"]) == (None, None)
    assert found["delta"] == paper_delta(AGENTS)
    text = said(capsys, tmp_path / "ledger.db")
    assert "simulation of a study" in text
    assert "Its seeded noise protects nobody." in text
    assert "no budget was set" in text


def test_a_study_without_protection_has_spent_without_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, mechanism in (("none", None), ("still", replace(MECHANISM, noise=0.0))):
        method = replace(FTS_SERVER, features=FEATURES, mechanism=mechanism)
        open_door = replace(STUDY, method=method)
        server = Server.simulation(open_door, 3, tmp_path / f"{name}.db")
        server.open_round()
        server.submit(Message(open_door.fingerprint, 0, 0, np.ones(FEATURES)))
        server.close_round()
        server.close()
        found = look(tmp_path / f"{name}.db")
        assert found["epsilon"] is None
        assert set(found["replace_one"].values()) == {None}
        assert found["by_round"][0]["signal_to_noise"] is None
        assert "ε = ∞ (pld)" in said(capsys, tmp_path / f"{name}.db")


def test_fixed_samples_are_accounted_by_rdp(tmp_path: Path) -> None:
    fixed = replace(MECHANISM, sampling="fixed", participation=0.4)
    study = replace(STUDY, method=replace(METHOD, mechanism=fixed))
    server = Server.simulation(study, 3, tmp_path / "ledger.db")
    server.open_round()
    server.submit(Message(study.fingerprint, 0, 0, np.ones(FEATURES)))
    server.close_round()
    server.close()
    found = look(tmp_path / "ledger.db")
    assert (found["accountant"], found["adjacency"]) == ("rdp", "replace-one")
    assert found["epsilon"] is not None
    assert set(found["epsilon_by_accountant"]) == {"rdp"}
    assert found["replace_one"] == found["epsilon_by_accountant"]


def test_pure_noise_is_said_to_say_nothing_and_a_loud_release_much(tmp_path: Path) -> None:
    words = []
    for seed in range(40):
        server = Server.simulation(STUDY, seed, tmp_path / f"{seed}.db")
        server.open_round()
        server.close_round()
        server.close()
        words.append(look(tmp_path / f"{seed}.db")["by_round"][0]["said"])
    assert 34 <= words.count("nothing: it cannot be told from noise") < 40  # one in twenty is off
    loud = replace(STUDY, method=replace(METHOD, mechanism=replace(MECHANISM, noise=0.1)))
    server = Server.simulation(loud, 3, tmp_path / "loud.db")
    server.open_round()
    server.submit(Message(loud.fingerprint, 0, 0, np.full(FEATURES, 1.0)))
    server.close_round()
    server.close()
    found = look(tmp_path / "loud.db")["by_round"][0]["said"]
    assert found.startswith("much: ")
    assert found.endswith("% of it is signal")


# folders, and several ledgers


def test_a_coordinators_folder_stands_for_its_ledger(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    shutil.copytree(folder, project / "coordinator", ignore=lambda *_: ["project"])
    status([project], as_json=True)
    assert json.loads(capsys.readouterr().out) == look(folder / "ledger.db")
    monkeypatch.chdir(project)
    status()
    assert "Released: 1 of 2 rounds" in capsys.readouterr().out


def test_a_folder_without_a_ledger_says_where_one_would_be(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"has no ledger: none of coordinator/ledger\.db"):
        status([tmp_path])
    (tmp_path / "site").mkdir()
    with pytest.raises(LedgerError, match="is a site's folder"):
        status([tmp_path])
    with pytest.raises(LedgerError, match="there is no ledger or folder"):
        status([tmp_path / "missing"])


def test_reading_a_folder_or_nothing_as_a_ledger_says_so(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is a folder"):
        read_ledger(tmp_path)
    with pytest.raises(LedgerError, match="is not there"):
        read_ledger(tmp_path / "missing")


def test_several_ledgers_are_composed_for_who_was_in_all(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(STUDY, feature_seed=5)
    server = Server(other, tmp_path / "other.db", Budget(9.0, 1e-4))
    for _ in range(2):
        server.open_round()
        server.close_round()
    server.close()
    paths = [folder / "ledger.db", tmp_path / "other.db"]
    status(paths, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [each["released"] for each in found["ledgers"]] == [1, 2]
    three = [SubsampledGaussian(2.0, 1.0, AGENTS)] * 3
    assert found["together"] == {
        "delta": 1e-4,
        "epsilon": epsilon(three, 1e-4),
        "replace_one": replace_one(three, 1e-4),
    }
    status(paths)
    text = " ".join(capsys.readouterr().out.split())
    assert "All 2 together, for a site that spoke in every round of each: ε = " in text
    assert f"{epsilon(three, 1e-4):.2f} for all that it said" in text
    with pytest.raises(InvalidInput, match="given once"):
        status([paths[0], paths[0]])


# ledgers that cannot be trusted


def missing(folder: Path) -> None:
    (folder / "ledger.db").unlink()


def damaged(folder: Path) -> None:
    (folder / "ledger.db").write_bytes(b"no ledger" * 300)


def tampered(folder: Path) -> None:
    with sqlite3.connect(folder / "ledger.db") as db:
        db.execute("DROP TRIGGER no_update")
        db.execute("UPDATE entries SET payload = zeroblob(320) WHERE seq = 1")
    db.close()


def cut(folder: Path) -> None:
    with sqlite3.connect(folder / "ledger.db") as db:
        db.execute("DROP TRIGGER no_delete")
        db.execute("DELETE FROM entries WHERE seq = 1")
    db.close()


def another(folder: Path) -> None:
    for name in ("ledger.db", "ledger.db.head"):
        (folder / name).unlink()
    Ledger(folder / "ledger.db", {"agents": 3}).close()


@pytest.mark.parametrize("spoil", [missing, damaged, tampered, cut, another])
def test_a_ledger_that_cannot_be_trusted_is_refused(
    spoil: Callable[[Path], None], folder: Path
) -> None:
    spoil(folder)
    with pytest.raises(LedgerError):
        status([folder / "ledger.db"])


# watching


def test_watching_ends_when_the_study_is_over(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def go_on() -> None:
        time.sleep(0.3)
        coordinator = begun(folder)
        play(coordinator)
        play(coordinator)
        coordinator.stop()

    worker = threading.Thread(target=go_on)
    worker.start()
    text = said(capsys, folder / "ledger.db", watch=True)
    worker.join()
    assert "the study is over" in text


def test_watching_can_be_interrupted(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(typer.Exit) as caught:
        status([folder / "ledger.db"], watch=True)
    assert caught.value.exit_code == 130
    assert "the study goes on" in capsys.readouterr().err


def test_a_copy_of_the_ledger_tells_the_same(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy"
    shutil.copytree(folder, other)
    assert look(other / "ledger.db") == look(folder / "ledger.db")
