"""The coordinator's journal: what happened when, one JSON object a line, for its own eyes.

It says who replied and what was refused; never a vector, never who was sampled. Nothing depends on
it but what a person sees: a line that cannot be written is counted in the next one that can.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sottovoce.errors import StorageError

NAME = "journal.jsonl"


def _now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """A journal that is written to, line by line; what it held before stays."""

    def __init__(self, path: str | Path, clock: Callable[[], datetime] = _now) -> None:
        self._clock = clock
        self._lost = 0
        try:
            self._torn = _torn(Path(path))
            self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - kept open
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error}") from error

    def write(self, event: str, round_number: int | None, **facts: object) -> None:
        """Add a line; it is with the operating system when this returns."""
        line: dict[str, object] = {
            "time": self._clock().isoformat(timespec="seconds"),
            "event": event,
            "round": round_number,
            **facts,
        }
        if self._lost:
            line["lost"] = self._lost
        data = (("\n" if self._torn else "") + json.dumps(line) + "\n").encode()
        try:
            written = self._file.write(data)
        except OSError:  # a full disk must not keep a vector from being counted
            written = 0
        if written == len(data):
            self._torn, self._lost = False, 0
        else:
            self._torn, self._lost = self._torn or written > 0, self._lost + 1

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def read_journal(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a journal, oldest first; one that a crash tore is left out."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    lines = []
    for line in text.splitlines():
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            lines.append(content)
    return lines


def _torn(path: Path) -> bool:
    """Whether the last line was cut by a crash."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
