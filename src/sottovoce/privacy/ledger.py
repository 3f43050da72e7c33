"""The durable record of what was released: append-only, hash-chained, written before sending.

One SQLite file. Entry 0 holds the study's public constants; each later entry holds a round's
event and the very vectors that are broadcast. Every entry's digest covers the one before it, so
a changed or reordered entry shows. A chain cut at its end would still verify, so the newest
digest is also kept beside the file, in `<ledger>.head`, and goes out with every broadcast.

A round is committed, to disk, before its release can be read: a crash before the commit has
sent nothing, a crash after it finds the same bytes again. Nothing of any single agent is here.
`read_ledger` looks at one without touching it, also while its server is at work.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sottovoce.errors import LedgerError
from sottovoce.privacy.chain import (
    GENESIS,
    canonical,
    constants_in,
    difference,
    entry_digest,
    written,
)
from sottovoce.privacy.events import Event, from_dict
from sottovoce.privacy.head import Head, beside, compare, read_head, write_head
from sottovoce.privacy.notes import ANSWERS, Notes, read_notes, transaction, write_note
from sottovoce.privacy.release import Release

PATIENCE = 60.0  # seconds that a commit waits for whoever reads the ledger just then
_SCHEMA = (
    """CREATE TABLE entries (
        seq INTEGER PRIMARY KEY,
        round INTEGER UNIQUE,
        header TEXT NOT NULL,
        payload BLOB NOT NULL,
        digest BLOB NOT NULL
    )""",
    """CREATE TRIGGER no_update BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    """CREATE TRIGGER no_delete BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
)


@dataclass(frozen=True)
class Entry:
    """One committed round."""

    round: int
    release: Release
    digest: str


@dataclass(frozen=True)
class LedgerView:
    """What a ledger held when it was read."""

    constants: dict[str, Any]  # of the study; what was granted is among them
    entries: tuple[Entry, ...]  # oldest first
    head: str  # the newest digest


class _Chain(NamedTuple):
    """A ledger whose digests all fit."""

    study: str  # header of the first entry
    entries: dict[int, Entry]  # by round
    digests: list[bytes]  # of all entries, the study's first
    notes: Notes


class Ledger:
    """A study's ledger; creates it, or opens and verifies the one that is there.

    `Ledger(None, study)` keeps the record in memory, for simulation.
    """

    def __init__(self, path: str | Path | None, study: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        header = canonical({"study": dict(study)})
        self._holds_something()  # a lost record is refused before there is a new file
        try:
            self._db = sqlite3.connect(
                ":memory:" if self.path is None else self.path,
                timeout=PATIENCE,
                isolation_level=None,
            )
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"{self._name} cannot be opened: {error}") from error
        try:
            self._load(header)
        except sqlite3.Error as error:
            self.close()
            raise LedgerError(f"{self._name} cannot be read as a ledger: {error}") from error
        except BaseException:
            self.close()
            raise

    def _load(self, header: str) -> None:
        self._db.execute("PRAGMA synchronous = EXTRA")  # a commit survives power loss
        # asked again: with its first statement SQLite undoes a commit that a kill cut short
        new = not self._holds_something()
        if new:
            self._begin(header)
        chain = _verified(self._db)
        if chain.study != header:
            raise LedgerError(
                f"{self._name} belongs to another study: {difference(chain.study, header)}"
            )
        if self._head_path is not None and not new:
            compare(read_head(self._head_path), chain.digests, self._name)
        self._entries, self._digest = chain.entries, chain.digests[-1]
        self._first, self._notes = chain.digests[0].hex(), chain.notes
        self._count = len(chain.digests)
        self.write_head()

    @property
    def entries(self) -> list[Entry]:
        """All committed rounds, oldest first."""
        return list(self._entries.values())

    @property
    def events(self) -> list[Event]:
        """What was spent, oldest first."""
        return [entry.release.event for entry in self._entries.values()]

    @property
    def head(self) -> str:
        """The newest digest: whoever keeps it can tell later if the ledger was rolled back."""
        return self._digest.hex()

    @property
    def digests(self) -> list[str]:
        """Of all entries, the study's first."""
        return [self._first, *(entry.digest for entry in self._entries.values())]

    def find(self, round_number: int) -> Entry | None:
        """The round as it was committed, or None."""
        return self._entries.get(round_number)

    def noted(self, round_number: int, kind: str) -> bytes | None:
        """What is noted of a round, or None."""
        return self._notes.get((round_number, kind))

    def note(self, round_number: int, kind: str, content: bytes) -> None:
        """Note something of a round for good, before it is acted upon."""
        try:
            with transaction(self._db):
                write_note(self._db, bytes.fromhex(self._first), round_number, kind, content)
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(
                f"{kind} of round {round_number} could not be noted in {self._name}: {error}"
            ) from error
        self._notes[round_number, kind] = content

    def append(self, round_number: int, release: Release, answers: bytes | None = None) -> Entry:
        """Commit a round to disk, with the answers that gave it; only then may it be sent."""
        if round_number in self._entries:
            raise LedgerError(f"round {round_number} is already in {self._name}")
        vectors, header = written(release)
        payload = vectors.tobytes()
        digest = entry_digest(self._digest, self._count, round_number, header, payload)
        try:
            with transaction(self._db):
                self._insert(self._count, round_number, header, payload, digest)
                if answers is not None:
                    first = bytes.fromhex(self._first)
                    write_note(self._db, first, round_number, ANSWERS, answers)
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(
                f"round {round_number} could not be committed to {self._name}, so it is not sent: "
                f"{error}"
            ) from error
        entry = Entry(round_number, Release(vectors, release.event), digest.hex())
        self._entries[round_number] = entry
        if answers is not None:
            self._notes[round_number, ANSWERS] = answers
        self._digest, self._count = digest, self._count + 1
        self.write_head()
        return entry

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @property
    def _name(self) -> str:
        return "the ledger in memory" if self.path is None else f"ledger {self.path}"

    @property
    def _head_path(self) -> Path | None:
        return None if self.path is None else beside(self.path)

    def _holds_something(self) -> bool:
        """Whether there is a record already; a record that lost its file is refused."""
        if self.path is None or self._head_path is None:
            return False
        # zero bytes, no head: a start that was killed before its first commit
        present = self.path.exists() and self.path.stat().st_size > 0
        if not present and self._head_path.exists():
            raise LedgerError(f"{self._name} is gone or empty, but {self._head_path} is there")
        return present

    def _begin(self, header: str) -> None:
        # the schema and the first entry are one commit: a kill leaves both or neither
        digest = entry_digest(GENESIS, 0, None, header, b"")
        with transaction(self._db):
            for statement in _SCHEMA:
                self._db.execute(statement)
            self._insert(0, None, header, b"", digest)

    def _insert(
        self, seq: int, round_number: int | None, header: str, payload: bytes, digest: bytes
    ) -> None:
        self._db.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)",
            (seq, round_number, header, payload, digest),
        )

    def write_head(self) -> None:
        """Keep the newest digest beside the file."""
        if self._head_path is None:
            return
        write_head(self._head_path, Head(self._count, self._digest))


def read_ledger(path: str | Path) -> LedgerView:
    """What a ledger holds, verified as when it is opened; nothing is written, or created.

    Args:
        path: its file; the server may be at work on it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> study = FederatedStudy(Space([Float("x", 0.0, 1.0)]), DP_FTS_DE, agents=4, rounds=2)
        >>> with TemporaryDirectory() as folder:
        ...     Server.simulation(study, seed=0, ledger=f"{folder}/ledger.db").close()
        ...     read_ledger(f"{folder}/ledger.db").constants["agents"]
        4
    """
    file, name = Path(path), f"ledger {path}"
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "is not there"
        raise LedgerError(f"{name} {what}: it must be the file of a study's ledger")
    # Before the entries: a server at work commits first, so what is read later is never shorter.
    head = read_head(beside(file))
    try:
        uri = f"{file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
            db.execute("BEGIN")  # all of it as of one moment
            chain = _verified(db)
    except sqlite3.Error as error:
        # not every error has a code: some are raised by Python, or here
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY_ROLLBACK:
            raise LedgerError(
                f"{name} cannot be read until its server has been started again: the last write "
                f"was interrupted, and the server undoes it when it opens the ledger; keep "
                f"{file}-journal, which that needs"
            ) from error
        raise LedgerError(f"{name} cannot be read as a ledger: {error}") from error
    compare(head, chain.digests, name)
    constants = constants_in(chain.study)
    if not constants:
        raise LedgerError(f"the first entry of {name} is not a study")
    return LedgerView(constants, tuple(chain.entries.values()), chain.digests[-1].hex())


def _verified(db: sqlite3.Connection) -> _Chain:
    """Read every entry and check the chain."""
    if db.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
        raise sqlite3.DatabaseError("the file is damaged")
    chain, previous = _Chain("", {}, [], {}), GENESIS
    rows = db.execute("SELECT seq, round, header, payload, digest FROM entries ORDER BY seq")
    for count, (seq, round_number, header, payload, digest) in enumerate(rows):
        if seq != count or digest != entry_digest(previous, seq, round_number, header, payload):
            raise LedgerError(f"ledger entry {count} was tampered with: its digest does not fit")
        if seq == 0:
            chain = chain._replace(study=header)
        else:
            chain.entries[round_number] = _entry(round_number, header, payload, digest)
        chain.digests.append(digest)
        previous = digest
    if not chain.digests:
        raise LedgerError("the ledger has no entries, not even its first")
    return chain._replace(notes=read_notes(db, chain.digests[0]))


def _entry(round_number: int, header: str, payload: bytes, digest: bytes) -> Entry:
    try:
        content = json.loads(header)
        vectors = np.frombuffer(payload, dtype="<f8").reshape(content["shape"])
        release = Release(vectors, from_dict(content["event"]))
    except (ValueError, KeyError, TypeError) as error:  # its digest fits: made so on purpose
        raise LedgerError(f"the ledger's round {round_number} is no release: {error!r}") from error
    return Entry(round_number, release, digest.hex())
