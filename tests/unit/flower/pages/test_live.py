from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from optuna.trial import Trial
from tests.unit.flower.pages.elements import words
from tests.unit.flower.pages.made_up import HOSTILE, site
from tests.unit.flower.pages.staged import AGENTS, ROUNDS, Staged

from sottovoce.errors import StorageError
from sottovoce.flower.pages import glimpse as glimpse_module
from sottovoce.flower.pages.glimpse import glimpse, mark_of
from sottovoce.flower.pages.live import navigation, site_page
from sottovoce.flower.pages.site import SiteView, seconds_left
from sottovoce.flower.pages.watcher import Watcher
from sottovoce.privacy.ledger import read_ledger


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """A whole study."""
    staged = Staged(tmp_path_factory.mktemp("over"))
    staged.run()
    return staged


def read(watcher: Watcher, name: str | None = None) -> str:
    return words(watcher.shown(name).main)


def test_a_whole_study_is_told_from_every_side(over: Staged) -> None:
    watcher = Watcher(over.project)
    assert watcher.names() == ["the coordinator", "site-1", "site-2", "site-3"]
    releases = len(over.file.study.release_rounds)
    text = read(watcher)
    assert "The study is over. 3 of 3 sites ran all trials." in text
    assert f"Releases {releases} of {releases}" in text
    assert text.count("This round said nothing") + text.count("of it is signal") == releases
    spent = over.file.budget.spent(
        [e.release.event for e in read_ledger(over.folder / "ledger.db").entries]
    )
    assert f"ε for a site {spent:.2f} of 4.00 granted" in text
    assert "ε for a person 9.0" in text
    text = read(watcher, "site-2")
    planned = over.file.study.method.initial + ROUNDS
    assert f"All {planned} trials are done." in text
    assert f"Trials {planned} of {planned} none failed" in text
    assert "penalty" in text


def test_the_coordinators_page_has_no_value_and_no_parameter_of_a_site(over: Staged) -> None:
    watcher = Watcher(over.project)
    shown = watcher.shown("the coordinator").main
    assert "penalty" not in shown
    assert "best" not in words(shown).lower()
    for n in range(AGENTS):
        value = read(watcher, f"site-{n + 1}").split("Best value ")[1].split()[0]
        assert value not in shown


def test_a_step_under_way_says_who_has_answered_and_until_when_others_may(tmp_path: Path) -> None:
    staged = Staged(tmp_path)
    watcher = Watcher(staged.stage)
    assert "Nothing has begun here yet" in read(watcher)
    coordinator = staged.coordinator()
    coordinator.open()
    text = read(watcher)
    assert "Release 1 of 2 is being prepared: 0 of 3 sites have answered." in text
    assert "Releases 0 of 2" in text
    assert "at the latest until" in text
    staged.ask(coordinator, 1)
    text = read(watcher)
    assert "1 of 3 sites have answered" in text
    assert "site-2 answered 1 none" in text
    assert "site-1 not yet 0 none" in text
    assert watcher.names() == ["the coordinator", "site-2"]
    assert "4 of 8 trials are done; waiting for the other sites." in read(watcher, "site-2")
    coordinator.close()
    text = read(watcher)
    assert "1 of 2 releases are made; no round is open." in text
    assert "site-1 absent" in text
    coordinator.stop()


def test_refusals_are_told_with_who_and_why_and_mean_no_harm(tmp_path: Path) -> None:
    def broken(trial: Trial) -> float:
        raise RuntimeError(f"patient 12345 {HOSTILE}")

    staged = Staged(tmp_path)
    staged.sites[2] = staged.site(2, broken)
    coordinator = staged.coordinator()
    staged.step(coordinator)
    coordinator.open()
    coordinator.failed(901, HOSTILE)
    coordinator.stop()
    watcher = Watcher(staged.stage)
    shown = watcher.shown(None)
    assert "<script" not in shown.main
    text = words(shown.main)
    assert "left site-3 it left the study" in text
    assert f"failed site-2 {HOSTILE}" in text
    assert "12345" not in text
    text = read(watcher, "site-3")
    assert "This site has left the study." in text
    assert "patient 12345" in text  # its own page, on its own disk


def test_a_damaged_or_lost_ledger_is_said_to_be_so(over: Staged, tmp_path: Path) -> None:
    stage = tmp_path / "rehearsal"
    shutil.copytree(over.stage, stage)
    ledger = stage / "hub" / "coordinator" / "ledger.db"
    watcher = Watcher(stage)
    assert "The study is over" in read(watcher)
    content = ledger.read_bytes()
    ledger.write_bytes(content[:-4096])
    text = read(watcher)
    assert "cannot be told from it" in text
    assert str(ledger) in text
    assert "3 of 3" not in text
    assert "ε for a site" not in text
    assert "site-1 answered" in text  # the journal still says that
    ledger.unlink()
    assert "ledger.db is not there" in read(watcher)


def test_a_study_that_stopped_says_why(tmp_path: Path) -> None:
    staged = Staged(tmp_path)
    staged.run(steps=1)
    coordinator = staged.coordinator()
    coordinator.open()
    with pytest.raises(Exception, match="no site took part"):
        coordinator.close()
    coordinator.stop()
    text = read(Watcher(staged.stage))
    assert "The study has stopped before its end; it can be started again." in text
    assert "Stopped: no site took part in round" in text


def test_what_nobody_knows_is_answered_with_words(over: Staged, tmp_path: Path) -> None:
    watcher = Watcher(over.stage)
    assert "There is nothing of <b> here" in words(watcher.shown("<b>").main)
    assert "Nothing has begun here yet" in read(Watcher(tmp_path))
    (over.stage / "site-1" / "study.toml").rename(over.stage / "site-1" / "kept")
    try:
        assert "nothing of site-1 here" in read(watcher, "site-1")
    finally:
        (over.stage / "site-1" / "kept").rename(over.stage / "site-1" / "study.toml")


def test_another_study_toml_is_named(over: Staged, tmp_path: Path) -> None:
    stage = tmp_path / "rehearsal"
    shutil.copytree(over.stage, stage)
    path = stage / "site-1" / "study.toml"
    path.write_text(path.read_text().replace("feature_seed = ", "feature_seed = 1"))
    assert "belongs to study" in read(Watcher(stage), "site-1")
    path.write_text("[study")
    assert "is not valid TOML" in read(Watcher(stage), "site-1")


def test_nothing_is_read_again_while_nothing_changed(
    over: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(over.stage)
    first = watcher.shown("site-1")
    monkeypatch.setattr("sottovoce.flower.pages.watcher._look", None)
    assert watcher.shown("site-1") is first


# a look that takes no lock


def test_a_look_changes_nothing_on_the_disk(over: Staged) -> None:
    def disk() -> dict[Path, tuple[int, int]]:
        found = (path for path in over.stage.rglob("*") if path.is_file())
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    before = disk()
    watcher = Watcher(over.stage)
    for name in watcher.names():
        watcher.shown(name)
    assert disk() == before


def test_a_look_neither_waits_for_a_writer_nor_keeps_it_waiting(over: Staged) -> None:
    home = over.home(0)
    with sqlite3.connect(home / "study.db", isolation_level=None, timeout=0) as db:
        db.execute("BEGIN EXCLUSIVE")  # under which no reader of SQLite gets in
        with glimpse(home) as copy:
            with sqlite3.connect(copy / "study.db", isolation_level=None, timeout=0) as there:
                assert there.execute("SELECT count(*) FROM trials").fetchone()[0] > 0
            there.close()
            db.execute("ROLLBACK")
            db.execute("BEGIN EXCLUSIVE")  # while a look is under way
            db.execute("ROLLBACK")
    db.close()
    assert not copy.exists()


WRITER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("CREATE TABLE pairs (a INTEGER, b BLOB)")
print("begun", flush=True)
k = 0
while True:
    k += 1
    db.execute("BEGIN")
    db.execute("INSERT INTO pairs VALUES (?, ?)", (k, bytes(3000)))
    db.execute("INSERT INTO pairs VALUES (?, ?)", (k, bytes(3000)))
    db.execute("COMMIT")
    time.sleep(0.005)
"""


def test_every_copy_of_a_database_that_is_written_is_of_one_moment(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "study.db")], stdout=subprocess.PIPE
    )
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        end, counts = time.monotonic() + 2.0, []
        while time.monotonic() < end:
            with suppress(StorageError), glimpse(tmp_path) as copy:  # it may never rest
                if (copy / "study.db-journal").exists():
                    continue  # the reader would say so
                db = sqlite3.connect(f"file:{copy / 'study.db'}?mode=ro", uri=True)
                assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                odd = "SELECT count(*) FROM (SELECT a FROM pairs GROUP BY a HAVING count(*) != 2)"
                assert db.execute(odd).fetchone() == (0,)
                counts.append(db.execute("SELECT count(*) FROM pairs").fetchone()[0])
                db.close()
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        if writer.stdout is not None:
            writer.stdout.close()
    assert counts == sorted(counts)
    assert len(set(counts)) > 1


def test_a_write_that_was_under_way_before_a_copy_and_ends_during_it_is_not_torn_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, journal = tmp_path / "study.db", tmp_path / "study.db-journal"
    head, old, new = b"h" * 100, b"old", b"new"
    database.write_bytes(head + old)  # the head is written already, the rest is not
    journal.write_bytes(b"under way")
    read = Path.read_bytes

    def commits_meanwhile(path: Path) -> bytes:
        content = read(path)
        if path == database and journal.exists():
            database.write_bytes(head + new)
            journal.unlink()
        return content

    monkeypatch.setattr(Path, "read_bytes", commits_meanwhile)
    with glimpse(tmp_path) as copy:
        assert read(copy / "study.db") == head + new


def test_a_database_that_never_rests_is_not_copied_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, writes = tmp_path / "study.db", itertools.count(1)
    database.write_bytes(bytes(200))
    read = Path.read_bytes

    def commits_meanwhile(path: Path) -> bytes:
        content = read(path)
        if path == database:
            database.write_bytes(next(writes).to_bytes(100) + bytes(100))
        return content

    monkeypatch.setattr(Path, "read_bytes", commits_meanwhile)
    monkeypatch.setattr(glimpse_module, "PATIENCE", 0.1)
    with pytest.raises(StorageError, match=r"is written without a pause"), glimpse(tmp_path):
        pass


def test_a_mark_changes_with_every_commit_however_soon(tmp_path: Path) -> None:
    marks = set()
    with sqlite3.connect(tmp_path / "study.db", isolation_level=None) as db:
        db.execute("CREATE TABLE numbers (a INTEGER)")
        for k in range(20):
            db.execute("DELETE FROM numbers")
            db.execute("INSERT INTO numbers VALUES (?)", (k,))
            marks.add(mark_of(tmp_path))
    db.close()
    assert len(marks) == 20


# the pieces


def test_the_time_left_is_of_the_trials_to_come_at_the_pace_so_far() -> None:
    trials = site().trials  # a minute apart
    assert seconds_left(trials, 16) == 4 * 60
    assert seconds_left(trials, 12) == 0
    assert seconds_left(trials[:1], 16) is None
    assert seconds_left(trials[:1], 16, cadence=600) == 15 * 600


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(3.0, "≈ a minute"), (240.0, "≈ 4 min"), (7300.0, "≈ 2 h 0 min"), (None, "not known yet")],
)
def test_the_time_left_is_told_as_roughly_as_it_is_known(seconds: float | None, shown: str) -> None:
    view = SiteView(site(), ({"penalty": 0.25, HOSTILE: "a"},), 2, seconds, None)
    text = words(site_page(view).main)
    assert shown in text
    assert "Trial 13 of 16 is running." in text
    assert "penalty = 0.25" in text.replace("\xa0", " ")
    between = words(site_page(replace(view, running=())).main)
    assert "12 of 16 trials are done; the next one is being chosen." in between
    waits = words(site_page(replace(view, running=(), spoke=8)).main)
    assert "12 of 16 trials are done; waiting for the other sites." in waits
    several = replace(view, running=({"penalty": 0.25}, {"penalty": 0.5}))
    text = words(site_page(several).main).replace("\xa0", " ")
    assert "12 of 16 trials are done; 2 are running." in text
    assert "penalty = 0.25 penalty = 0.5" in text


def test_optunas_dashboard_is_offered_where_it_is_installed(
    over: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.flower.pages.site.find_spec", lambda name: None)
    assert "optuna-dashboard" not in read(Watcher(over.stage), "site-1")
    monkeypatch.setattr("sottovoce.flower.pages.site.find_spec", lambda name: object())
    text = read(Watcher(over.stage), "site-1")
    assert (
        f"optuna-dashboard 'sqlite:///{(over.home(0) / 'study.db').as_uri()}?mode=ro&uri=true'"
        in text
    )


def test_links_hold_a_partys_name_and_nothing_that_could_break_out_of_them() -> None:
    made = navigation(["the coordinator", HOSTILE], HOSTILE)
    assert "<script" not in made
    assert 'href="/party/the%20coordinator"' in made
    assert made.count("aria-current") == 1
    assert navigation(["this site"], "this site") == ""


def test_a_journal_that_nobody_wrote_does_not_stop_the_page(over: Staged, tmp_path: Path) -> None:
    stage = tmp_path / "rehearsal"
    shutil.copytree(over.stage, stage)
    lines = [
        {"event": "opened", "round": "x"},
        {"event": "opened", "round": 2, "trials": 10**400, "time": "never"},
        {"event": "answered", "agent": 99},
        {"event": "answered", "agent": "1"},
        {"event": "rejected", "agent": -1, "round": [1], "reason": ["x" * 5000], "time": 7},
    ]
    journal = stage / "hub" / "coordinator" / "journal.jsonl"
    with journal.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    text = read(Watcher(stage))
    assert "is being prepared" in text
    assert "x" * 400 not in text
