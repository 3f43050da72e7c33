"""Files that are written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sottovoce.errors import StorageError


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
