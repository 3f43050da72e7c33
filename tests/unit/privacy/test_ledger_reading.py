"""Looking at a ledger without touching it."""

from __future__ import annotations

import hashlib
import json
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.privacy.ledgers import STUDY, a_ledger, a_release

from sottovoce.errors import LedgerError
from sottovoce.privacy.chain import canonical, entry_digest
from sottovoce.privacy.ledger import PATIENCE, Ledger, read_ledger

# killed within a commit: new pages are in the file, what they replace only in its journal
KILLED = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")  # pages go to the file at once
db.execute("BEGIN IMMEDIATE")
db.execute("CREATE TABLE IF NOT EXISTS entries (seq, round, header, payload, digest)")
db.execute("INSERT INTO entries VALUES (9, 9, '', zeroblob(100000), x'')")
os.kill(os.getpid(), signal.SIGKILL)
"""


def state(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        file.name: (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in folder.iterdir()
    }


def forged(path: Path, headers: list[str], payload: bytes = b"") -> None:
    """A ledger whose digests all fit, whatever it holds."""
    Ledger(path, STUDY).close()
    db = sqlite3.connect(path)
    db.execute("DROP TRIGGER no_delete")
    db.execute("DELETE FROM entries")
    previous = b"\0" * 32
    for seq, header in enumerate(headers):
        number = seq - 1 if seq else None
        body = payload if seq else b""
        previous = entry_digest(previous, seq, number, header, body)
        db.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (seq, number, header, body, previous)
        )
    db.commit()
    db.close()
    head = {"digest": previous.hex(), "entries": len(headers)}
    Path(f"{path}.head").write_text(json.dumps(head))


def test_what_is_read_is_what_was_written_and_nothing_is_touched(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    before = state(tmp_path)
    view = read_ledger(path)
    assert state(tmp_path) == before
    again = Ledger(path, STUDY)
    assert view.constants == STUDY
    assert [entry.round for entry in view.entries] == [0, 1, 2]
    assert view.head == again.head == view.entries[-1].digest
    for entry, wanted in zip(view.entries, again.entries, strict=True):
        assert entry.release.vectors.tobytes() == wanted.release.vectors.tobytes()
        assert entry.release.event == wanted.release.event
        assert entry.digest == wanted.digest
    again.close()


def test_a_ledger_whose_folder_has_a_strange_name_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "50% off? #1 & more"
    folder.mkdir()
    assert len(read_ledger(a_ledger(folder)).entries) == 3


def test_a_ledger_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is not there"):
        read_ledger(tmp_path / "study.ledger")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n" * 100)
    with pytest.raises(LedgerError, match="cannot be read as a ledger"):
        read_ledger(path)


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE entries SET payload = ? WHERE seq = 2", (np.zeros(6).tobytes(),)),
        ("UPDATE entries SET header = replace(header, '9', '8') WHERE seq = 0", ()),
        ("DELETE FROM entries WHERE seq = 1", ()),
    ],
)
def test_any_change_to_an_entry_is_found(
    statement: str, values: tuple[Any, ...], tmp_path: Path
) -> None:
    path = a_ledger(tmp_path)
    with sqlite3.connect(path) as db:
        db.execute("DROP TRIGGER no_update")
        db.execute("DROP TRIGGER no_delete")
        db.execute(statement, values)
    db.close()
    with pytest.raises(LedgerError, match="tampered"):
        read_ledger(path)


def test_a_ledger_cut_at_its_end_is_refused(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    with sqlite3.connect(path) as db:
        db.execute("DROP TRIGGER no_delete")
        db.execute("DELETE FROM entries WHERE seq = 3")
    db.close()
    with pytest.raises(LedgerError, match="truncated: it has 3 entries, its head says 4"):
        read_ledger(path)


def test_a_missing_head_is_refused_once_rounds_were_released(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    Path(f"{path}.head").unlink()
    with pytest.raises(LedgerError, match="head is missing"):
        read_ledger(path)


def test_a_head_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    Path(f"{path}.head").unlink()
    Path(f"{path}.head").mkdir()
    with pytest.raises(LedgerError, match="cannot be read"):
        read_ledger(path)


@pytest.mark.parametrize("count", [0, -1, -3])
def test_a_head_that_counts_backwards_is_refused(count: int, tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    digests = [entry.digest for entry in read_ledger(path).entries]
    for digest in digests:
        Path(f"{path}.head").write_text(json.dumps({"entries": count, "digest": digest}))
        with pytest.raises(LedgerError, match="disagree"):
            read_ledger(path)
        with pytest.raises(LedgerError, match="disagree"):
            Ledger(path, STUDY)


def test_a_head_one_entry_behind_is_a_server_at_work(tmp_path: Path) -> None:
    path = a_ledger(tmp_path, rounds=2)
    old = Path(f"{path}.head").read_text()
    ledger = Ledger(path, STUDY)
    ledger.append(2, a_release(2))
    ledger.close()
    Path(f"{path}.head").write_text(old)
    assert len(read_ledger(path).entries) == 3
    assert Path(f"{path}.head").read_text() == old


def test_a_ledger_that_has_just_begun_needs_no_head(tmp_path: Path) -> None:
    path = a_ledger(tmp_path, rounds=0)
    Path(f"{path}.head").unlink()
    view = read_ledger(path)
    assert (view.constants, view.entries) == (STUDY, ())
    assert not Path(f"{path}.head").exists()


def test_a_ledger_can_be_read_while_its_server_writes(tmp_path: Path) -> None:
    path = a_ledger(tmp_path, rounds=0)
    lengths, over = [], threading.Event()

    def write() -> None:
        ledger = Ledger(path, STUDY)
        for number in range(30):
            ledger.append(number, a_release(number))
        ledger.close()
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not over.is_set():
        lengths.append(len(read_ledger(path).entries))
    writer.join()
    assert lengths == sorted(lengths)
    assert len(read_ledger(path).entries) == 30


def killed_within_a_commit(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert done.returncode == -signal.SIGKILL
    assert path.stat().st_size > 90_000  # of pages that were never committed
    assert Path(f"{path}-journal").exists()


def test_a_commit_that_was_cut_short_is_named_and_left_for_the_server_to_undo(
    tmp_path: Path,
) -> None:
    path = a_ledger(tmp_path)
    whole = read_ledger(path)
    killed_within_a_commit(path)
    before = state(tmp_path)
    for _ in range(2):
        with pytest.raises(LedgerError) as caught:
            read_ledger(path)
        assert state(tmp_path) == before
    words = str(caught.value)
    assert f"ledger {path} cannot be read until its server has been started again" in words
    assert f"keep {path}-journal" in words
    assert "readonly" not in words
    Ledger(path, STUDY).close()
    again = read_ledger(path)
    assert (again.head, len(again.entries)) == (whole.head, 3)


def test_a_server_killed_within_the_first_commit_of_all_can_begin_again(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    killed_within_a_commit(path)
    with pytest.raises(LedgerError, match="until its server has been started again"):
        read_ledger(path)
    Ledger(path, STUDY).close()
    assert (read_ledger(path).constants, read_ledger(path).entries) == (STUDY, ())


def test_a_first_commit_undone_though_a_head_remembers_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    killed_within_a_commit(path)
    head = Path(f"{path}.head")
    head.write_text(json.dumps({"entries": 1, "digest": "0" * 64}))
    for _ in range(2):
        with pytest.raises(LedgerError, match="gone or empty"):
            Ledger(path, STUDY)
    assert head.exists()


BEGUN = canonical({"study": STUDY})


@pytest.mark.parametrize(
    "header", ["nonsense", "[1]", "{}", '{"event": {"kind": "data-free"}, "shape": [7]}']
)
def test_an_entry_that_is_no_release_is_refused_though_its_digest_fits(
    header: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.ledger"
    forged(path, [BEGUN, header], np.zeros(6).tobytes())
    with pytest.raises(LedgerError, match="round 0 is no release"):
        read_ledger(path)
    with pytest.raises(LedgerError, match="round 0 is no release"):
        Ledger(path, STUDY)


@pytest.mark.parametrize("header", ["nonsense", "[1]", "{}", '{"study": 3}'])
def test_a_first_entry_that_is_no_study_is_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    forged(path, [header])
    with pytest.raises(LedgerError, match="not a study"):
        read_ledger(path)
    with pytest.raises(LedgerError, match="not a study"):
        Ledger(path, STUDY)


def test_all_constants_that_differ_are_named(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    words = "agents is 4 there and 5 here; budget is None there and 1 here"
    with pytest.raises(LedgerError, match=words):
        Ledger(path, {**STUDY, "agents": 5, "budget": 1})


def test_a_commit_waits_for_whoever_reads_and_is_refused_whole_if_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_ledger(tmp_path)
    assert PATIENCE > 30  # a reader that is stopped for a moment shall not stop a study
    monkeypatch.setattr("sottovoce.privacy.ledger.PATIENCE", 0.05)
    ledger = Ledger(path, STUDY)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    with pytest.raises(LedgerError, match="so it is not sent"):
        ledger.append(3, a_release(3))
    assert ledger.find(3) is None
    reader.close()
    assert ledger.append(3, a_release(3)).round == 3
    ledger.close()
    assert len(read_ledger(path).entries) == 4
