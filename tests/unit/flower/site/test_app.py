"""A site's handler in Flower: where it looks for its folder, and what it says of errors."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from sottovoce.flower.studyfile import StudyFile, read_study
from sottovoce.flower.wire import Call, Reply

# Flower imports a Typer that names parts of Click which are on their way out
pytestmark = pytest.mark.filterwarnings("ignore:'click.utils:DeprecationWarning")

STUDY = """
[study]
agents = 2
rounds = 2
epsilon = 3.0
direction = "minimize"
trial_limit = 5

[[space.parameters]]
type = "float"
name = "x"
low = 0.0
high = 1.0
"""
OBJECTIVE = """
from beside import SHIFT

def objective(trial):
    return (trial.suggest_float("x", 0.0, 1.0) - SHIFT) ** 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my study"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    (folder / "objective.py").write_text(OBJECTIVE)
    (folder / "beside.py").write_text("SHIFT = 0.3")
    return folder


@pytest.fixture(autouse=True)
def forget_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("objective", "beside"):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, name)


def answered(
    content: Any, node: dict[str, Any] | None = None, run: dict[str, Any] | None = None
) -> Reply:
    """What the app replies to a message in a context."""
    from flwr.app import Context, Message, MessageType, RecordDict
    from flwr.supercore.task_identity import TaskIdentity

    from sottovoce.flower.site.app import app

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 7, 1
    message = Message(content, 7, MessageType.TRAIN, group_id="token")
    context = Context(
        run_id=1, node_id=7, node_config=node or {}, state=RecordDict(), run_config=run or {}
    )
    reply = app(message, context)
    assert reply.metadata.group_id == "token"
    return Reply.from_records(reply.content)


def first_call(file: StudyFile, **changes: Any) -> Any:
    call = Call(file.study.fingerprint, 0, 1, file.constants, **changes)
    return call.to_records()


def test_a_site_answers_from_its_own_folder(project: Path) -> None:
    file = read_study(project / "study.toml")
    reply = answered(first_call(file), {"project": str(project)})
    assert (reply.answer, reply.agent, reply.reason) == ("vector", 1, "")
    assert (project / "site" / "study.db").exists()
    again = answered(
        first_call(file), {"project": str(project)}, {"seed": 3, "folder": "/elsewhere"}
    )
    assert again.message == reply.message


def test_a_storage_of_the_nodes_choice_is_taken(project: Path) -> None:
    file = read_study(project / "study.toml")
    node = {"project": str(project), "storage": "journal"}
    assert answered(first_call(file), node, {"storage": "sqlite"}).answer == "vector"
    assert (project / "site" / "study.journal").exists()


def test_how_many_trials_run_at_once_is_the_nodes_to_say(project: Path) -> None:
    (project / "objective.py").write_text(
        "import threading\nmet = threading.Barrier(2)\n"
        "def objective(trial):\n    met.wait(60)\n    return trial.suggest_float('x', 0.0, 1.0)"
    )
    file = read_study(project / "study.toml")
    node = {"project": str(project), "workers": 2}
    assert answered(first_call(file), node, {"workers": 1}).answer == "vector"
    reply = answered(first_call(file), {**node, "workers": 0})
    assert reply.reason == "InvalidInput: workers must be a whole number above 0, got workers=0"


def test_a_run_cannot_give_a_site_another_memory(project: Path) -> None:
    file, node = read_study(project / "study.toml"), {"project": str(project)}
    first = answered(first_call(file), node)
    again = answered(first_call(file), node, {"storage": "journal"})
    assert again.message == first.message
    assert not (project / "site" / "study.journal").exists()


def test_a_site_that_is_told_to_use_another_memory_than_it_has_refuses(project: Path) -> None:
    file, node = read_study(project / "study.toml"), {"project": str(project)}
    assert answered(first_call(file), node).answer == "vector"
    reply = answered(first_call(file), {**node, "storage": "journal"})
    assert (reply.answer, reply.reason) == (
        "refused",
        "StorageError: this site's memory is study.db, it is told to use study.journal: "
        "with another it would speak again as if it never had",
    )
    assert not (project / "site" / "study.journal").exists()


def test_a_seed_is_refused_in_a_deployment(project: Path) -> None:
    file = read_study(project / "study.toml")
    reply = answered(first_call(file, seed=0), {"project": str(project), "partition-id": 0})
    assert reply.reason == "SimulationOnly: a site of a real federation takes no seed"


@pytest.mark.parametrize("node", [{}, {"partition-id": 0, "num-partitions": 2}])
def test_a_node_without_a_folder_takes_none_from_the_coordinator(
    project: Path, node: dict[str, Any]
) -> None:
    file = read_study(project / "study.toml")
    run = {"project": str(project), "folder": str(project / "sites")}
    reply = answered(first_call(file), node, run)
    assert reply.answer == "refused"
    assert "a site needs a folder of its own: start its SuperNode with" in reply.reason
    assert sorted(path.name for path in project.iterdir()) == [
        *("beside.py", "objective.py", "study.toml")
    ]


def test_a_relative_folder_is_refused(project: Path) -> None:
    reply = answered(first_call(read_study(project / "study.toml")), {"project": "my study"})
    assert "project must be the absolute path of a folder, got project='my study'" in reply.reason


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
        ("raise ValueError('patient 12345')", "ValueError"),
        ("def objective(:", "SyntaxError"),
        (
            "from sottovoce import Float\nFloat('patients', 12345.0, 1.0)",
            "InvalidInput: objective.py cannot be imported (SpaceError)",
        ),
        ("target = 1", "InvalidInput: objective.py must define a function objective(trial)"),
        (None, "InvalidInput: a site's project needs an objective.py"),
    ],
)
def test_an_objective_that_cannot_be_loaded_is_refused_without_its_words(
    project: Path, objective: str | None, reason: str
) -> None:
    path = project / "objective.py"
    path.unlink() if objective is None else path.write_text(objective)
    reply = answered(first_call(read_study(project / "study.toml")), {"project": str(project)})
    assert (reply.answer, reply.reason) == ("refused", reason)
    assert "Traceback" in (project / "site" / "site.log").read_text()


def test_a_mended_objective_is_read_anew(project: Path) -> None:
    file, node = read_study(project / "study.toml"), {"project": str(project)}
    good = (project / "objective.py").read_text()
    (project / "objective.py").write_text("broken = True")
    assert answered(first_call(file), node).answer == "refused"
    (project / "objective.py").write_text(good)
    assert answered(first_call(file), node).answer == "vector"


def test_a_study_that_cannot_be_read_is_refused(project: Path) -> None:
    records = first_call(read_study(project / "study.toml"))
    (project / "study.toml").write_text(STUDY.replace("rounds = 2", "rounds = 0"))
    reply = answered(records, {"project": str(project)})
    assert "rounds must be a whole number above 0, got rounds=0" in reply.reason
    (project / "study.toml").unlink()
    reply = answered(records, {"project": str(project)})
    assert reply.reason == "StorageError: study.toml cannot be read (FileNotFoundError)"


def test_records_that_are_no_call_are_refused(project: Path) -> None:
    from flwr.app import RecordDict

    reply = answered(RecordDict(), {"project": str(project)})
    assert (reply.answer, reply.agent) == ("refused", -1)
    assert reply.reason == "ProtocolError: a message must hold a record 'sottovoce'"


def test_the_noise_found_for_a_study_is_kept_for_that_study_only(project: Path) -> None:
    file, node = read_study(project / "study.toml"), {"project": str(project)}
    assert answered(first_call(file), node).answer == "vector"
    kept = project / "site" / "noise.json"
    found = json.loads(kept.read_text())
    assert found["noise"] == file.constants["method"]["mechanism"]["noise"]
    kept.write_text(json.dumps({**found, "noise": 9.5}))  # taken, and never trusted
    reply = answered(first_call(file), node)
    assert "method.mechanism.noise is" in reply.reason
    assert "there and 9.5 here" in reply.reason
    for unfit in (json.dumps({**found, "noise": 9.5, "key": "another"}), "{", "[]"):
        kept.write_text(unfit)
        assert answered(first_call(file), node).answer == "vector"
        assert json.loads(kept.read_text()) == found


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
def test_a_site_leaves_nothing_that_other_users_of_its_machine_can_read(
    project: Path, storage: str
) -> None:
    before = os.umask(0)
    try:
        node = {"project": str(project), "storage": storage}
        file = read_study(project / "study.toml")
        assert answered(first_call(file), node).answer == "vector"
        assert answered(first_call(file, seed=0), node).answer == "refused"
    finally:
        os.umask(before)
    left = [project / "site", *(project / "site").iterdir()]
    assert {"lock", "noise.json", "site.log"} <= {path.name for path in left}
    assert [path for path in left if path.stat().st_mode & 0o077] == []


def test_with_a_cadence_every_answer_takes_its_time(project: Path) -> None:
    path = project / "study.toml"
    path.write_text(STUDY.replace("trial_limit = 5", "cadence = 0.2"))
    file, node = read_study(path), {"project": str(project)}
    for _ in range(2):  # what it said before is said again, and tells as little
        began = time.monotonic()
        assert answered(first_call(file), node).answer == "vector"
        assert time.monotonic() - began >= 0.2 * file.steps[0].trials


def test_a_site_that_is_busy_says_so_at_once(project: Path) -> None:
    from sottovoce.flower.site.app import padding

    file = read_study(project / "study.toml")
    timed = replace(file, cadence=7.0)
    for answer, seconds in {"vector": 7.0, "left": 7.0, "refused": 7.0, "busy": 0.0}.items():
        reply = Reply(file.study.fingerprint, 0, 1, cast(Any, answer))
        assert padding(timed, reply) == seconds * file.steps[0].trials
        assert padding(file, reply) == 0.0
    assert padding(timed, replace(reply, round=77)) == 0.0  # of no step
