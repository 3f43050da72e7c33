"""How a site tells its own operator that it has left a study: one file in its folder.

A site's process is Flower's, and what it says to the coordinator is only that it left. Why, which
may hold data, stays here, and whoever runs the process in the foreground shows it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sottovoce.errors import StorageError
from sottovoce.files import write_text

HOME = "site"  # a deployed site's folder, in its project
NAME = "left.txt"
FAREWELL = 15.0  # seconds for the reply to be on its way before its process is ended


def note(folder: Path, text: str) -> None:
    """Say why the site has left; one that cannot write leaves all the same."""
    with suppress(OSError, StorageError):
        write_text(folder / NAME, text + "\n")


def forget(folder: Path) -> None:
    """The site takes part, or is started anew."""
    with suppress(OSError):
        (folder / NAME).unlink(missing_ok=True)


def why(folder: Path) -> str | None:
    """Why the site has left, if it has."""
    try:
        return (folder / NAME).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def settled(folder: Path) -> bool:
    """Whether the site has left, and has had the time to say so."""
    try:
        return time.time() - (folder / NAME).stat().st_mtime > FAREWELL
    except OSError:
        return False
