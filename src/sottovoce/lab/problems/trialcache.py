"""Scores of trained models on disk, so that no model is trained twice.

A score is kept under what it depends on: the trainer's fingerprint, the agent, and the decoded
parameters. Several processes may use one file at once. Each entry carries a checksum; a damaged
one is dropped and said to be, and its model is trained again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from sottovoce.errors import StorageError
from sottovoce.lab.problems.datasets import cache_home

Key: TypeAlias = tuple[int, str]  # an agent, and its parameters as JSON

_PATIENCE = 60.0  # seconds to wait while another process writes
_CREATE = """
CREATE TABLE IF NOT EXISTS trials (
  trainer TEXT, agent INTEGER, parameters TEXT, score REAL, checksum BLOB,
  PRIMARY KEY (trainer, agent, parameters)
) WITHOUT ROWID
"""
_FIND = "SELECT score, checksum FROM trials WHERE trainer = ? AND agent = ? AND parameters = ?"
_DROP = "DELETE FROM trials WHERE trainer = ? AND agent = ? AND parameters = ?"
_KEEP = "INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?)"


class DamagedTrial(UserWarning):
    """Entries of the cache were damaged, and are gone."""


def trial_key(agent: int, parameters: Mapping[str, Any]) -> Key:
    """What a trial is kept under: equal parameters give equal keys, in whatever order."""
    return int(agent), json.dumps(dict(parameters), sort_keys=True, allow_nan=False)


class TrialCache:
    """The scores of one trainer in a file that others may share."""

    def __init__(self, fingerprint: str, path: Path | None = None) -> None:
        self.fingerprint = fingerprint
        self.path = cache_home() / "trials.sqlite" if path is None else path
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self.path} could not be made: {error}") from error
        with self._told():
            self._database = sqlite3.connect(self.path, timeout=_PATIENCE)
            with suppress(sqlite3.OperationalError):  # another process is doing the same
                self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            with self._database:
                self._database.execute(_CREATE)

    def get(self, keys: Iterable[Key]) -> dict[Key, float]:
        """The scores that are known, of those asked for."""
        found, damaged = dict[Key, float](), list[Key]()
        with self._told():
            for key in keys:
                row = self._database.execute(_FIND, (self.fingerprint, *key)).fetchone()
                if row is None:
                    continue
                score, checksum = row
                if isinstance(score, float) and checksum == self._checksum(key, score):
                    found[key] = score
                else:
                    damaged.append(key)
            if damaged:
                with self._database:
                    self._database.executemany(_DROP, [(self.fingerprint, *k) for k in damaged])
        if damaged:
            said = f"{self.path}: damaged scores, now dropped, to be trained again: {len(damaged)}"
            warnings.warn(said, DamagedTrial, stacklevel=2)
        return found

    def put(self, scores: Mapping[Key, float]) -> None:
        """Keep the scores, all of them or, if that fails, none."""
        rows = [
            (self.fingerprint, *key, float(score), self._checksum(key, float(score)))
            for key, score in scores.items()
        ]
        with self._told(), self._database:
            self._database.executemany(_KEEP, rows)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _checksum(self, key: Key, score: float) -> bytes:
        content = json.dumps([self.fingerprint, *key, score.hex()])
        return hashlib.sha256(content.encode()).digest()[:16]

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the database name the file, and say what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:  # locked, full, not allowed, ...
            raise StorageError(f"{self.path} could not be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"{self.path} is not a cache of trials, or is damaged ({error}): it is safe to "
                "delete, and what it held is trained again"
            ) from error
