"""What a ledger holds beside its releases, for sums that nobody can open alone.

Who spoke in a round is noted, for good, before any member is asked for its share: asking for a
second set of speakers of one round would open the difference. The members' signed answers are
noted together with the release that they gave. A note is bound to the ledger's first entry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sottovoce.errors import LedgerError
from sottovoce.privacy.chain import entry_digest

SPEAKERS, ANSWERS = "speakers", "answers"
Notes = dict[tuple[int, str], bytes]  # by round and kind

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS notes (
        round INTEGER NOT NULL,
        kind TEXT NOT NULL,
        content BLOB NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (round, kind)
    )""",
    """CREATE TRIGGER IF NOT EXISTS no_note_update BEFORE UPDATE ON notes
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    """CREATE TRIGGER IF NOT EXISTS no_note_delete BEFORE DELETE ON notes
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; a second writer waits, then is refused."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite has rolled back by itself when the disk is full
            db.execute("ROLLBACK")
        raise


def write_note(
    db: sqlite3.Connection, first: bytes, round_number: int, kind: str, content: bytes
) -> None:
    """Add a note, within a transaction; a second of its kind in a round fails."""
    for statement in _SCHEMA:
        db.execute(statement)
    digest = entry_digest(first, 0, round_number, kind, content)
    db.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", (round_number, kind, content, digest))


def read_notes(db: sqlite3.Connection, first: bytes) -> Notes:
    """All notes, verified; none in a ledger of a trusted server."""
    there = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'notes'").fetchone()[0]
    notes: Notes = {}
    rows = db.execute("SELECT round, kind, content, digest FROM notes") if there else ()
    for round_number, kind, content, digest in rows:
        if digest != entry_digest(first, 0, round_number, kind, content):
            raise LedgerError(f"the note {kind} of round {round_number} was tampered with")
        notes[round_number, kind] = content
    return notes
