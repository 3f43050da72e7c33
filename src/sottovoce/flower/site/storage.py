"""Where a site's memory lies: one Optuna storage in its folder, made whole, mended after a kill."""

from __future__ import annotations

from pathlib import Path

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection

from sottovoce.errors import StorageError

STORAGES = {"sqlite": "study.db", "journal": "study.journal"}
NAME = "sottovoce"  # of the study in its storage
_PATIENCE = 60.0  # seconds that a thread waits for another to have written


def check_only(path: Path) -> None:
    """Refuse to begin, or to use, a memory that has another one beside it."""
    for name in STORAGES.values():
        if name != path.name and path.with_name(name).exists():
            raise StorageError(
                f"this site's memory is {name}, it is told to use {path.name}: with another it "
                f"would speak again as if it never had"
            )


def create(path: Path, kind: str, direction: StudyDirection) -> None:
    """A new storage with an empty study. Optuna makes one in many steps, so not in its place."""
    for left in (path, Path(f"{path}-journal")):  # by a process that was killed here
        left.unlink(missing_ok=True)
    storage = opened(path, kind)
    try:
        optuna.create_study(study_name=NAME, storage=storage, direction=direction)
    finally:
        close(storage)


def opened(path: Path, kind: str) -> BaseStorage:
    """The storage of a kind, open; whoever opens it must hold the site's folder."""
    if kind == "sqlite":
        patience = {"connect_args": {"timeout": _PATIENCE}}
        return RDBStorage(f"sqlite:///{path.absolute()}", engine_kwargs=patience)
    _mend(path)
    try:
        return JournalStorage(JournalFileBackend(str(path)))
    except ValueError as error:
        raise StorageError("the site's journal is damaged") from error


def close(storage: BaseStorage) -> None:
    """Let go of it."""
    if isinstance(storage, RDBStorage):
        storage.remove_session()
        storage.engine.dispose()


def _mend(path: Path) -> None:
    """Drop what a process left that died in the middle of a line: half of it, and its lock."""
    Path(f"{path}.lock").unlink(missing_ok=True)
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)
