"""Files written whole or not at all, private, held alone, or read with errors that name them."""

from __future__ import annotations

import fcntl
import os
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sottovoce.errors import InvalidInput, StorageError

_PAUSE = 0.05  # seconds between two looks at a lock


@contextmanager
def private() -> Iterator[None]:
    """Let only the user read what is written meanwhile, by us and all that we start."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def private_folder(path: Path) -> None:
    """Make a folder that only the user can look into; one that is there is closed to others."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise StorageError(f"{path} could not be made private: {error}") from error


@contextmanager
def locked(path: Path, patience: float = 0.0) -> Iterator[bool]:
    """Hold a file, made if need be, or a folder; False if somebody else did for so many seconds."""
    held = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _taken(held, time.monotonic() + patience)
    finally:
        os.close(held)


def _taken(held: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE)


def write_whole(path: Path, writer: Callable[[Path], object]) -> None:
    """Let `writer` fill a part file, then put it in place: never half a file."""
    part = path.with_name(f".part-{path.name}")  # keeps the ending, which some writers insist on
    try:
        try:
            writer(part)
            part.replace(path)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(f"{path} could not be written: {error}") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}") from error
