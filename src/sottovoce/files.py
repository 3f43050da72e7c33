"""Files that are written whole or not at all, and read with an error that names them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sottovoce.errors import InvalidInput, StorageError


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
