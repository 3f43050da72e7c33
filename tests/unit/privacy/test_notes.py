"""What a ledger notes beside its releases: for good, bound to it, and never twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.privacy.ledgers import STUDY, a_ledger, a_release

from sottovoce.errors import LedgerError
from sottovoce.privacy.ledger import Ledger, read_ledger
from sottovoce.privacy.notes import ANSWERS, SPEAKERS


def noted(path: Path) -> Path:
    ledger = Ledger(path, STUDY)
    ledger.note(0, SPEAKERS, b"0,1,2")
    ledger.append(0, a_release(1), b"signed")
    ledger.note(1, SPEAKERS, b"0,1")
    ledger.close()
    return path


def test_notes_are_there_when_the_ledger_is_opened_again(tmp_path: Path) -> None:
    path = noted(tmp_path / "ledger.db")
    ledger = Ledger(path, STUDY)
    assert ledger.noted(0, SPEAKERS) == b"0,1,2"
    assert ledger.noted(0, ANSWERS) == b"signed"
    assert ledger.noted(1, SPEAKERS) == b"0,1"
    assert ledger.noted(1, ANSWERS) is None
    assert len(ledger.digests) == 2  # the chain is of releases alone
    ledger.close()
    assert len(read_ledger(path).entries) == 1


def test_who_spoke_is_noted_once_and_a_second_set_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(noted(tmp_path / "ledger.db"), STUDY)
    with pytest.raises(LedgerError, match="speakers of round 1 could not be noted"):
        ledger.note(1, SPEAKERS, b"0,2")
    assert ledger.noted(1, SPEAKERS) == b"0,1"
    ledger.close()


def test_a_note_that_was_changed_is_found_out(tmp_path: Path) -> None:
    path = noted(tmp_path / "ledger.db")
    with closing(sqlite3.connect(path)) as db:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("UPDATE notes SET content = x'00'")
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("DELETE FROM notes")
        db.execute("DROP TRIGGER no_note_update")
        db.execute("UPDATE notes SET content = x'00' WHERE round = 1")
        db.commit()
    for opened in (lambda: Ledger(path, STUDY), lambda: read_ledger(path)):
        with pytest.raises(LedgerError, match="the note speakers of round 1 was tampered with"):
            opened()


def test_a_note_of_another_ledger_does_not_fit(tmp_path: Path) -> None:
    path, other = noted(tmp_path / "ledger.db"), tmp_path / "other.db"
    Ledger(other, {**STUDY, "agents": 9}).close()
    with closing(sqlite3.connect(other)) as db:
        db.execute(f"ATTACH '{path}' AS theirs")
        db.execute("CREATE TABLE notes AS SELECT * FROM theirs.notes")
        db.commit()
    with pytest.raises(LedgerError, match="tampered with"):
        read_ledger(other)


def test_answers_are_committed_with_their_release_or_not_at_all(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", STUDY)
    ledger.note(0, ANSWERS, b"of nobody")
    with pytest.raises(LedgerError, match="could not be committed"):
        ledger.append(0, a_release(1), b"signed")
    assert ledger.entries == []
    ledger.close()
    again = Ledger(tmp_path / "ledger.db", STUDY)
    assert again.entries == []
    again.close()


def test_a_ledger_from_before_there_were_notes_opens_and_takes_them(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
    assert "notes" not in names
    ledger = Ledger(path, STUDY)
    assert ledger.noted(0, SPEAKERS) is None
    ledger.note(7, SPEAKERS, b"1")
    ledger.close()
    assert Ledger(path, STUDY).noted(7, SPEAKERS) == b"1"
