"""Emptying the SuperLink's database, made and filled by Flower's own code."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, RecordDict
from flwr.server.superlink.linkstate.sql_linkstate import SqlLinkState
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.object_store.sql_object_store import SqlObjectStore
from flwr.superlink.federation import NoOpFederationManager

from sottovoce.errors import StorageError
from sottovoce.flower.deploy.linkstore import MESSAGES, forget_messages

pytestmark = pytest.mark.filterwarnings("ignore:No path_separator:DeprecationWarning")  # Flower's

# what stays: whose keys are in, which runs there were and what they printed, and Flower's own
KEPT = {
    "alembic_version",
    "automation",
    "compacted_contexts",
    "connector",
    "connector_oauth_session",
    "fab",
    "federation_app",
    "node",
    "nonce_store",
    "objectstore_locks",
    "run",
    "run_connector",
    "run_series",
    "series_context",
    "series_runs",
    "sqlite_sequence",
    "task",
    "task_event",
    "task_logs",
    "task_usage",
}
VECTORS = np.random.default_rng(0).normal(size=(40, 32))


class Held:
    """A database that a SuperLink has open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = SqlObjectStore(str(path))
        self.store.initialize()
        self.state = SqlLinkState(str(path), NoOpFederationManager(), self.store)
        self.state.initialize()
        self.node = self.state.create_node("owner", "owner", b"public key", 30.0)
        self.run = self.state.create_run(
            "app", "1", "hash", {}, "@none/default", None, "owner", "flwr-serverapp"
        )
        assert self.run

    def say(self, vector: np.ndarray) -> None:
        """Have a vector in the store, as a reply of a site has."""
        records = RecordDict({"vector": ArrayRecord({"vector": Array(vector)})})
        self.store.preregister(self.run, get_object_tree(records))
        for name, part in get_all_nested_objects(records).items():
            self.store.put(name, part.deflate())

    def finish(self) -> None:
        assert self.state.stop_run(self.run)

    def close(self) -> None:
        for part in (self.state, self.store):
            assert part._engine is not None
            part._engine.dispose()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    held = Held(tmp_path / "superlink.db")
    yield held
    held.close()


def found(path: Path) -> int:
    """How many numbers of the vectors are in the database's files."""
    files = [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")]
    content = b"".join(file.read_bytes() for file in files if file.exists())
    return sum(number.tobytes() in content for number in VECTORS.ravel())


def table(path: Path, name: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608


def test_no_number_of_a_vector_is_left_and_registrations_are(held: Held) -> None:
    for vector in VECTORS[:30]:
        held.say(vector)
    held.finish()  # Flower deletes their rows, and no byte of them
    assert found(held.path) > 0.99 * 30 * 32  # one may lie across two pages
    nodes, runs = table(held.path, "node"), table(held.path, "run")
    assert nodes
    assert runs
    forget_messages(held.path, running=True)
    assert found(held.path) == 0
    assert table(held.path, "node") == nodes
    assert table(held.path, "run") == runs


def test_messages_that_nobody_fetched_are_removed_too(held: Held) -> None:
    held.finish()
    for vector in VECTORS[:3]:
        held.say(vector)
    with closing(sqlite3.connect(held.path)) as db, db:
        for name in ("message_ins", "message_res"):
            insert = f"INSERT INTO {name} (content) VALUES (?)"  # noqa: S608
            db.execute(insert, (VECTORS.tobytes(),))
    assert found(held.path) > 0.99 * VECTORS.size
    forget_messages(held.path, running=True)
    assert found(held.path) == 0
    assert all(table(held.path, name) == [] for name in MESSAGES)


def test_what_was_deleted_before_and_only_marked_as_free_is_overwritten(held: Held) -> None:
    held.finish()
    with closing(sqlite3.connect(held.path, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete = OFF")  # on by default only where SQLite is built so
        db.execute("INSERT INTO message_res (content) VALUES (?)", (VECTORS.tobytes(),))
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("DELETE FROM message_res")
    assert found(held.path) > 0.99 * VECTORS.size
    forget_messages(held.path, running=True)
    assert found(held.path) == 0


def test_the_link_goes_on_with_its_emptied_database(held: Held) -> None:
    held.say(VECTORS[0])
    held.finish()
    forget_messages(held.path, running=True)
    assert held.state.get_node_id_by_public_key(b"public key") == held.node
    second = held.state.create_run(
        "app", "1", "hash", {}, "@none/default", None, "owner", "flwr-serverapp"
    )
    assert second not in (0, held.run)
    held.run = second
    held.say(VECTORS[1])
    assert found(held.path) == 32
    held.finish()
    forget_messages(held.path, running=True)
    assert found(held.path) == 0


def test_while_a_run_goes_on_nothing_is_taken_from_it(held: Held) -> None:
    held.say(VECTORS[0])
    with pytest.raises(StorageError, match="while a run goes on"):
        forget_messages(held.path, running=True)
    assert found(held.path) == 32
    assert len(held.store) > 0


def test_what_a_link_that_is_gone_left_of_a_run_is_removed(held: Held) -> None:
    held.say(VECTORS[0])
    held.close()
    forget_messages(held.path, running=False)
    assert found(held.path) == 0


def test_a_database_that_somebody_reads_all_the_time_is_an_error_that_says_what_to_do(
    held: Held,
) -> None:
    held.say(VECTORS[0])
    held.finish()
    with closing(sqlite3.connect(held.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM node").fetchone()
        with pytest.raises(StorageError, match=r"could not be removed .* stop `sottovoce serve`"):
            forget_messages(held.path, running=True, patience=0.2)
    forget_messages(held.path, running=True)
    assert found(held.path) == 0


def test_no_database_holds_nothing_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    forget_messages(tmp_path / "superlink.db", running=False)
    assert not list(tmp_path.iterdir())
    (tmp_path / "superlink.db").write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match=r"superlink\.db"):
        forget_messages(tmp_path / "superlink.db", running=False)


def test_every_table_of_flowers_is_known_to_hold_messages_or_none(held: Held) -> None:
    with closing(sqlite3.connect(held.path)) as db:
        rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert {name for (name,) in rows} == KEPT | set(MESSAGES)
