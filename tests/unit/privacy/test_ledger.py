from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.privacy.ledgers import EVENT, STUDY, a_ledger, a_release

from sottovoce.errors import LedgerError
from sottovoce.privacy.ledger import Ledger
from sottovoce.privacy.release import Release


def tampered(path: Path, statement: str, *values: Any) -> None:
    """Change the file behind the ledger's back, as somebody with a database tool would."""
    with sqlite3.connect(path) as db:
        db.execute("DROP TRIGGER no_update")
        db.execute("DROP TRIGGER no_delete")
        db.execute(statement, values)
    db.close()


def test_a_commit_is_on_disk_before_it_counts_in_a_new_and_in_a_reopened_ledger(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        ledger = Ledger(tmp_path / "study.ledger", STUDY)
        (level,) = ledger._db.execute("PRAGMA synchronous").fetchone()
        ledger.close()
        assert level == 3  # EXTRA: SQLite syncs the file and its folder


def test_a_reopened_ledger_has_the_same_bytes_events_and_head(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    ledger = Ledger(path, STUDY)
    first = ledger.append(0, a_release(0))
    head = ledger.head
    ledger.close()
    again = Ledger(path, STUDY)
    found = again.find(0)
    assert found is not None
    assert found.release.vectors.tobytes() == first.release.vectors.tobytes()
    assert found.digest == first.digest == head == again.head
    assert again.events == [EVENT]
    assert again.events[0].source == "os-entropy"
    assert [entry.round for entry in again.entries] == [0]
    assert again.find(1) is None
    again.close()


def test_what_is_appended_is_on_disk_before_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    ledger = Ledger(path, STUDY)
    ledger.append(0, a_release(0))
    copy = tmp_path / "copy.ledger"
    shutil.copy(path, copy)
    shutil.copy(str(path) + ".head", str(copy) + ".head")
    other = Ledger(copy, STUDY)
    assert other.find(0) is not None
    other.close()
    ledger.close()


def test_a_round_can_be_written_only_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "study.ledger", STUDY)
    ledger.append(0, a_release(0))
    with pytest.raises(LedgerError, match="already"):
        ledger.append(0, a_release(1))
    assert np.array_equal(ledger.entries[0].release.vectors, a_release(0).vectors)
    ledger.close()


def test_a_second_writer_cannot_release_the_same_round(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    first, second = Ledger(path, STUDY), Ledger(path, STUDY)
    first.append(0, a_release(0))
    with pytest.raises(LedgerError, match="not sent"):
        second.append(0, a_release(1))
    with pytest.raises(LedgerError, match="not sent"):
        second.append(1, a_release(1))
    first.close()
    second.close()
    whole = Ledger(path, STUDY)
    assert len(whole.entries) == 1
    whole.close()


def test_a_ledger_in_memory_works_alike_and_leaves_no_file(tmp_path: Path) -> None:
    os.chdir(tmp_path)
    ledger = Ledger(None, STUDY)
    ledger.append(0, a_release(0))
    assert len(ledger.entries) == 1
    with pytest.raises(LedgerError, match="already in the ledger in memory"):
        ledger.append(0, a_release(0))
    ledger.close()
    assert list(tmp_path.iterdir()) == []


def test_the_database_itself_refuses_to_change_or_forget(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    db = sqlite3.connect(path)
    for statement in ("UPDATE entries SET round = 7 WHERE seq = 1", "DELETE FROM entries"):
        with pytest.raises(sqlite3.Error, match="append-only"):
            db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE entries SET payload = ? WHERE seq = 2", (np.zeros(6).tobytes(),)),
        ("UPDATE entries SET header = replace(header, '1.0', '9.0') WHERE seq = 1", ()),
        ("UPDATE entries SET round = 7 WHERE seq = 3", ()),
        ("UPDATE entries SET digest = zeroblob(32) WHERE seq = 3", ()),
        ("UPDATE entries SET header = replace(header, '9', '8') WHERE seq = 0", ()),
        ("DELETE FROM entries WHERE seq = 1", ()),
        ("DELETE FROM entries WHERE seq = 0", ()),
        ("UPDATE entries SET seq = 9 WHERE seq = 1", ()),
    ],
)
def test_any_change_to_an_entry_is_found(
    tmp_path: Path, statement: str, values: tuple[Any, ...]
) -> None:
    path = a_ledger(tmp_path)
    tampered(path, statement, *values)
    with pytest.raises(LedgerError, match="tampered"):
        Ledger(path, STUDY)


def test_a_ledger_cut_at_its_end_is_refused(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    tampered(path, "DELETE FROM entries WHERE seq = 3")
    with pytest.raises(LedgerError, match="truncated: it has 3 entries, its head says 4"):
        Ledger(path, STUDY)


def test_a_ledger_with_all_entries_gone_is_refused(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    tampered(path, "DELETE FROM entries")
    with pytest.raises(LedgerError, match="no entries"):
        Ledger(path, STUDY)


def test_a_ledger_rewritten_with_a_chain_of_its_own_is_refused(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    (tmp_path / "other").mkdir()
    forged = tmp_path / "other" / "study.ledger"
    ledger = Ledger(forged, STUDY)
    for number in range(3):
        ledger.append(number, a_release(100 + number))
    ledger.close()
    shutil.copy(forged, path)
    with pytest.raises(LedgerError, match="disagree"):
        Ledger(path, STUDY)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_cut_short_is_refused(tmp_path: Path, share: float) -> None:
    path = a_ledger(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(LedgerError):
        Ledger(path, STUDY)


def test_a_damaged_page_is_refused(tmp_path: Path) -> None:
    path = a_ledger(tmp_path, rounds=40)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200] = os.urandom(200)
    path.write_bytes(bytes(content))
    with pytest.raises(LedgerError):
        Ledger(path, STUDY)


def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    db = sqlite3.connect(path)
    query = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_entries_1'"
    page = db.execute(query).fetchone()[0]
    size = db.execute("PRAGMA page_size").fetchone()[0]
    db.close()
    content = bytearray(path.read_bytes())
    content[page * size - 1] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(path, STUDY)


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n" * 100)
    with pytest.raises(LedgerError, match="cannot be read as a ledger"):
        Ledger(path, STUDY)
    assert path.read_text().startswith("buy milk")


def test_a_deleted_or_emptied_ledger_is_refused_while_its_head_remembers(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="gone or empty"):
        Ledger(path, STUDY)
    path.unlink()
    with pytest.raises(LedgerError, match="gone or empty"):
        Ledger(path, STUDY)
    assert not path.exists()


def test_a_missing_head_is_refused_once_rounds_were_released(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    Path(f"{path}.head").unlink()
    with pytest.raises(LedgerError, match="head is missing"):
        Ledger(path, STUDY)


@pytest.mark.parametrize("text", ["", "{}", '{"entries": "many", "digest": ""}', "[1]"])
def test_a_damaged_head_is_refused(tmp_path: Path, text: str) -> None:
    path = a_ledger(tmp_path)
    Path(f"{path}.head").write_text(text)
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(path, STUDY)


def test_a_kill_between_the_first_commit_and_its_head_is_survived(tmp_path: Path) -> None:
    path = a_ledger(tmp_path, rounds=0)
    Path(f"{path}.head").unlink()
    ledger = Ledger(path, STUDY)
    ledger.append(0, a_release(0))
    assert ledger.events == [EVENT]
    assert json.loads(Path(f"{path}.head").read_text())["entries"] == 2
    ledger.close()


def test_a_kill_between_a_commit_and_its_head_is_survived(tmp_path: Path) -> None:
    path = a_ledger(tmp_path, rounds=2)
    old_head = Path(f"{path}.head").read_text()
    ledger = Ledger(path, STUDY)
    ledger.append(2, a_release(2))
    ledger.close()
    Path(f"{path}.head").write_text(old_head)
    again = Ledger(path, STUDY)
    assert len(again.entries) == 3
    assert json.loads(Path(f"{path}.head").read_text())["entries"] == 4
    again.close()


def test_a_kill_before_the_first_commit_leaves_a_file_that_can_be_begun(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    path.touch()
    ledger = Ledger(path, STUDY)
    assert ledger.entries == []
    ledger.close()


def test_another_studys_ledger_is_refused_with_the_difference(tmp_path: Path) -> None:
    path = a_ledger(tmp_path)
    with pytest.raises(LedgerError, match="another study: agents is 4 there and 5 here"):
        Ledger(path, {**STUDY, "agents": 5})


def test_a_first_entry_that_is_no_study_is_refused(tmp_path: Path) -> None:
    from sottovoce.privacy.chain import difference

    assert "not a study" in difference('{"study":{"a":1},"more":2}', '{"study":{"a":1}}')


def test_a_folder_that_does_not_exist_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(tmp_path / "nowhere" / "study.ledger", STUDY)


def test_when_the_commit_fails_nothing_is_recorded_and_the_error_says_so(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    ledger = Ledger(path, STUDY)
    pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
    ledger._db.execute(f"PRAGMA max_page_count = {pages}")  # the disk is full, as far as it can see
    big = Release(np.zeros((40, 400)), EVENT)
    with pytest.raises(LedgerError, match=r"could not be committed.*not sent.*full"):
        ledger.append(0, big)
    assert ledger.entries == []
    ledger.close()
    again = Ledger(path, STUDY)
    assert again.entries == []
    again.append(0, big)
    again.close()


def test_when_the_head_cannot_be_written_the_round_is_spent_but_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    ledger = Ledger(path, STUDY)
    blocker = Path(f"{path}.head.part")
    blocker.mkdir()
    with pytest.raises(LedgerError, match=r"head could not be written"):
        ledger.append(0, a_release(0))
    assert ledger.events == [EVENT]
    blocker.rmdir()
    ledger.write_head()
    ledger.close()
    again = Ledger(path, STUDY)
    assert again.events == [EVENT]
    again.close()
