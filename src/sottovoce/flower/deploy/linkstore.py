"""The SuperLink's database, which keeps what sites said until it is emptied.

Flower deletes a message's row once it is fetched, or its run over, but SQLite then neither clears
the row's place in the file nor that in the log it writes ahead: every vector stays readable there.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sottovoce.errors import StorageError

# Flower's tables of what travels. Registered nodes, runs, what they printed, and apps stay.
MESSAGES = (
    "message",
    "message_ins",
    "message_res",
    "task_message",
    "objects",
    "object_children",
    "run_objects",
    "object_push_sessions",
    "object_push_session_roots",
    "object_push_session_pending",
)
PATIENCE = 20.0  # seconds for the SuperLink to let go for a moment

_GOING_ON = """
SELECT count(*) FROM run JOIN task ON task.task_id = run.primary_task_id
WHERE task.finished_at IS NULL
"""


def forget_messages(database: Path, *, running: bool, patience: float = PATIENCE) -> None:
    """Remove every message, from the file and its log, so that no byte of one is left in them.

    running: whether its SuperLink is; then no run may be going on, which would miss them.
    """
    if not database.exists():
        return
    try:
        with closing(sqlite3.connect(database, timeout=patience, isolation_level=None)) as db:
            if running and db.execute(_GOING_ON).fetchone()[0]:
                raise StorageError(f"{database} cannot be emptied while a run goes on")
            _empty(db)
            left = _folded(db)
    except sqlite3.Error as error:
        raise StorageError(_kept(database, str(error))) from error
    if left:
        raise StorageError(_kept(database, "it is in use"))


def _empty(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA secure_delete = ON")  # overwritten, not only marked as free
    db.execute("PRAGMA temp_store = MEMORY")  # no copy of it in a file elsewhere
    db.execute("BEGIN IMMEDIATE")
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in MESSAGES:
        if table in there:
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - a name from the list above
    db.execute("COMMIT")
    db.execute("VACUUM")  # what was deleted before, by Flower, lies in free pages


def _folded(db: sqlite3.Connection) -> bool:
    """Write the log back and cut it to nothing; whether somebody still read it."""
    busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return bool(busy)


def _kept(database: Path, why: str) -> str:
    return (
        f"the sites' vectors could not be removed from {database} ({why}): stop `sottovoce serve`, "
        f"which tries again when it ends"
    )
