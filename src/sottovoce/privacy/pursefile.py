"""A purse on disk: append-only, hash-chained, written before anything is sent.

One SQLite file, one process at a time (`.lock`), the newest digest beside it (`.head`). Whoever
writes to a purse gets a `Mark` of it, and shows that again: a purse that does not hold an entry
that it held was set back, or is another. A file that lies elsewhere than the purse was made, or
is a copy in its place, is refused until its owner says that it was moved.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.errors import LedgerError
from sottovoce.privacy.chain import GENESIS, canonical, entry_digest
from sottovoce.privacy.events import Event
from sottovoce.privacy.head import Head, beside, compare, read_head, write_head
from sottovoce.privacy.notes import transaction
from sottovoce.privacy.purse import Book, Content, Limits, first, opened

PATIENCE = 60.0  # seconds for another process to be done; composing sampled studies takes some
_PAUSE = 0.05
_SCHEMA = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, content TEXT NOT NULL, digest BLOB NOT NULL)",
    """CREATE TRIGGER no_update BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'a purse is append-only'); END""",
    """CREATE TRIGGER no_delete BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'a purse is append-only'); END""",
)


@dataclass(frozen=True)
class Mark:
    """A purse as somebody saw it: which, how many entries, the newest digest."""

    purse: str
    entries: int
    digest: str


class _Kept(NamedTuple):
    """A purse whose digests all fit."""

    book: Book
    digests: list[bytes]

    @property
    def mark(self) -> Mark:
        return Mark(self.book.name, len(self.digests), self.digests[-1].hex())


class Purse:
    """A purse in its file, which is looked at anew, under a lock, for everything that is asked."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise LedgerError(f"there is no purse {self.path}: `sottovoce purse new` makes one")

    @classmethod
    def new(cls, path: str | Path, limits: Limits, data: str = "") -> Purse:
        """Make one; refused where there is one, or was."""
        path = Path(path)
        if path.is_dir():
            raise LedgerError(f"a purse must be a file, {path} is a folder")
        with _errors(path), _alone(path):
            if (path.exists() and path.stat().st_size > 0) or beside(path).exists():
                raise LedgerError(f"there is a purse {path} already, or there was one")
            # zero bytes, no head: one whose making was killed
            with closing(sqlite3.connect(path, isolation_level=None)) as db:
                _durable(db)
                content = first(secrets.token_hex(16), data, limits, _place(path))
                with transaction(db):  # the schema and the first entry: both or neither
                    for statement in _SCHEMA:
                        db.execute(statement)
                    digest = _insert(db, GENESIS, 0, content)
            write_head(beside(path), Head(1, digest))
        return cls(path)

    def look(self, known: Mark | None = None) -> tuple[Book, Mark]:
        """What it holds; refused if it does not hold what was `known` of it."""
        kept = self._asked(lambda book: None, known)
        return kept.book, kept.mark

    def holds(self, digest: str) -> bool:
        """Whether an entry has this digest: who wrote one down can tell if it was set back."""
        kept = self._asked(lambda book: None, None)
        return digest in [each.hex() for each in kept.digests]

    def enter(
        self,
        study: str,
        name: str,
        event: Event,
        releases: int,
        *,
        again: bool = False,
        known: Mark | None = None,
    ) -> Mark:
        """Set aside all that a study may spend, or refuse it; see `Book.enter`."""
        decide = lambda book: book.enter(study, name, event, releases, again=again)  # noqa: E731
        return self._asked(decide, known).mark

    def say(
        self, study: str, agent: int, round_number: int, digest: str, *, known: Mark | None = None
    ) -> Mark:
        """Note what is about to be said; only then may it be sent. See `Book.say`."""
        return self._asked(lambda book: book.say(study, agent, round_number, digest), known).mark

    def close(self, study: str, said: Collection[int] = (), *, known: Mark | None = None) -> Mark:
        """End a study, which gives back what was not said; see `Book.close`."""
        return self._asked(lambda book: book.close(study, said), known).mark

    def limit(self, limits: Limits) -> Mark:
        """Have other limits from now on; the old ones stay on record."""
        return self._asked(lambda book: book.limit(limits), None).mark

    def move(self) -> Mark:
        """Be where the file is now. Its owner says so: no copy of it is used elsewhere."""
        here = _place(self.path)

        def decide(book: Book) -> Content | None:
            return None if book.place == here else {"kind": "move", "place": here}

        return self._asked(decide, None, anywhere=True).mark

    def _asked(
        self,
        decide: Callable[[Book], Content | None],
        known: Mark | None,
        *,
        anywhere: bool = False,
    ) -> _Kept:
        """Read all, decide, and write what was decided, with nobody in between."""
        with _errors(self.path), _alone(self.path):
            uri = f"{self.path.absolute().as_uri()}?mode=rw"  # never makes a file
            with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
                _durable(db)
                kept = _verified(db)
                compare(read_head(beside(self.path)), kept.digests, f"purse {self.path}")
                self._check(kept, known, anywhere)
                content = decide(kept.book)
                if content is None:
                    return kept
                with transaction(db):
                    digest = _insert(db, kept.digests[-1], len(kept.digests), content)
            kept = _Kept(kept.book.after(content), [*kept.digests, digest])
            write_head(beside(self.path), Head(len(kept.digests), digest))
            return kept

    def _check(self, kept: _Kept, known: Mark | None, anywhere: bool) -> None:
        here, made = _place(self.path), kept.book.place
        if not anywhere and here != made:
            raise LedgerError(
                f"purse {self.path} was moved or copied: it was last used as {made.get('path')}. "
                f"If no other copy of it is in use, say so: sottovoce purse moved {self.path}"
            )
        if known is None:
            return
        if known.purse != kept.book.name:
            raise LedgerError(f"purse {self.path} is another than the one this study was begun in")
        digests = kept.digests
        if len(digests) < known.entries or digests[known.entries - 1].hex() != known.digest:
            raise LedgerError(
                f"purse {self.path} was set back, or is a copy: it does not hold entry "
                f"{known.entries}, which this site has seen in it"
            )


def _insert(db: sqlite3.Connection, previous: bytes, seq: int, content: Mapping[str, Any]) -> bytes:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    text = canonical({**content, "time": now})
    digest = entry_digest(previous, seq, None, text, b"")
    db.execute("INSERT INTO entries VALUES (?, ?, ?)", (seq, text, digest))
    return digest


def _verified(db: sqlite3.Connection) -> _Kept:
    """Read every entry and check the chain."""
    if db.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
        raise sqlite3.DatabaseError("the file is damaged")
    book, digests = None, [GENESIS]
    rows = db.execute("SELECT seq, content, digest FROM entries ORDER BY seq")
    for count, (seq, text, digest) in enumerate(rows):
        if seq != count or digest != entry_digest(digests[-1], seq, None, text, b""):
            raise LedgerError(f"entry {count} of the purse was tampered with")
        try:
            content = json.loads(text)
            book = opened(content) if book is None else book.after(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LedgerError(f"entry {count} of the purse is none: {error!r}") from error
        digests.append(digest)
    if book is None:
        raise LedgerError("the purse has no entries, not even its first")
    return _Kept(book, digests[1:])


def _durable(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA synchronous = EXTRA")  # a commit survives power loss


def _place(path: Path) -> dict[str, Any]:
    """Which file this is: a copy has another number, also under the same name elsewhere."""
    return {"path": str(path.resolve()), "inode": path.stat().st_ino}


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(f"purse {path} cannot be read or written: {error}") from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the purse; a file of its own, as closing SQLite's would let go of SQLite's locks."""
    real = path.resolve()  # whoever comes by a link must wait as well
    held = os.open(real.with_name(real.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    raise LedgerError(f"purse {path} is held by another process") from error
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(held)
