"""A copy of what a party has on its disk, taken without a lock: whoever watches disturbs nobody.

Even a reader of SQLite holds a lock that keeps a writer waiting, and one that is suspended in the
middle, say with its terminal, would keep it for good. So databases are read as plain files. SQLite
changes one only while its rollback journal lies beside it, and counts each change in the file's
head: a copy with no journal before and after, and the same head around both, is of one moment.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sottovoce.errors import StorageError
from sottovoce.flower.coordinator.journal import NAME as JOURNAL
from sottovoce.flower.site.leaving import NAME as LEFT
from sottovoce.flower.site.memory import STORAGES

LEDGER = "ledger.db"
PATIENCE = 1.0  # seconds for a write to be over
_PAUSE = 0.02
_HEAD = 100  # bytes at the beginning of a database, its counter of changes among them
_DATABASES = (LEDGER, STORAGES["sqlite"])
# The ledger's head before the ledger: a server at work commits first, and writes the head then
_FILES = (f"{LEDGER}.head", *_DATABASES, STORAGES["journal"], JOURNAL, LEFT)

Mark = tuple[tuple[str, int, int, bytes], ...]


def mark_of(folder: Path) -> Mark:
    """What changes whenever one of the party's files does."""
    found = []
    for name in _FILES:
        path = folder / name
        try:
            at = path.stat()
            found.append((name, at.st_mtime_ns, at.st_size, _head(path)))
        except OSError:
            found.append((name, 0, -1, b""))
    return tuple(found)


@contextmanager
def glimpse(folder: Path) -> Iterator[Path]:
    """A folder with copies of a party's files, for the user alone; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="sottovoce-") as name:
        copy = Path(name)
        try:
            for file in _FILES:
                if (folder / file).is_file():
                    _copy(folder / file, copy / file)
        except OSError as error:
            raise StorageError(f"{folder} cannot be read: {error.strerror}") from error
        yield copy


def _copy(source: Path, target: Path) -> None:
    if source.name not in _DATABASES:
        target.write_bytes(source.read_bytes())
        return
    content, journal = _database(source)
    target.write_bytes(content)
    if journal is not None:  # a write was cut short: let the reader say so
        _beside(target).write_bytes(journal)


def _database(path: Path) -> tuple[bytes, bytes | None]:
    """A database of one moment, or with its rollback journal if that stays longer than a write."""
    end = time.monotonic() + PATIENCE
    while True:
        before = _head(path)
        resting = not _written(path)  # else its head may be written, and the rest while we read
        content, journal = path.read_bytes(), _journal(path)
        if resting and journal is None and content[:_HEAD] == before == _head(path):
            return content, None
        if time.monotonic() > end:
            if journal is None:  # it is whole now, but was not while it was read
                raise StorageError(f"{path} is written without a pause: look again later")
            return content, journal
        time.sleep(_PAUSE)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _journal(path: Path) -> bytes | None:
    try:
        return _beside(path).read_bytes()
    except FileNotFoundError:
        return None


def _written(path: Path) -> bool:
    return _beside(path).exists()


def _beside(path: Path) -> Path:
    return path.with_name(path.name + "-journal")
