"""The newest digest of a chain, in a file beside it: a chain cut at its end would still verify."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sottovoce.errors import LedgerError
from sottovoce.privacy.chain import canonical


class Head(NamedTuple):
    """What the file beside a chain remembers of it."""

    entries: int
    digest: bytes


def beside(path: Path) -> Path:
    """Where the head of the chain in a file is: one, whatever links lead to the file."""
    real = path.resolve()
    return real.with_name(real.name + ".head")


def read_head(path: Path) -> Head | None:
    """What a head file says; None if there is none."""
    try:
        head = json.loads(path.read_text())
        return Head(int(head["entries"]), bytes.fromhex(head["digest"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LedgerError(f"{path} is damaged, or cannot be read: {error}") from error


def write_head(path: Path, head: Head) -> None:
    """Replace a head file as a whole, so that a kill leaves the old one or the new one."""
    text = canonical({"digest": head.digest.hex(), "entries": head.entries})
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise LedgerError(f"{path} could not be written: {error}") from error


def compare(head: Head | None, digests: Sequence[bytes], name: str) -> None:
    """Refuse a chain that is shorter than, or different from, what its head remembers."""
    count = len(digests)
    if head is None:
        if count == 1:  # killed between the first commit and its head
            return
        raise LedgerError(f"the head is missing: whether {name} is whole cannot be told")
    if head.entries > count:
        raise LedgerError(
            f"{name} was truncated: it has {count} entries, its head says {head.entries}"
        )
    if head.entries < 1 or digests[head.entries - 1] != head.digest:
        raise LedgerError(f"{name} and its head disagree: one of them was changed")
