"""What is said before anything starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput, SpaceError, TrialError
from sottovoce.flower.deploy import preflight
from sottovoce.flower.deploy.commands import Link
from sottovoce.flower.deploy.keys import CA, make_keys
from sottovoce.flower.deploy.project import make_project
from sottovoce.flower.deploy.tryout import tried
from sottovoce.flower.studyfile import StudyFile, read_study
from sottovoce.space import Float, Space

SPACE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
X = '    x = trial.suggest_float("x", 0.0, 1.0)\n'


def objective(folder: Path, body: str, head: str = "") -> Path:
    (folder / "objective.py").write_text(f"{head}\ndef objective(trial):\n{body}")
    return folder


def test_a_trial_says_what_it_gave_and_what_it_did_not_ask_for(tmp_path: Path) -> None:
    found = tried(objective(tmp_path, f"{X}    return 2 * x\n"), SPACE.to_dict())
    assert found["value"] == 1.0  # in the middle
    assert found["unasked"] == ["y"]


def test_one_failure_of_an_objective_is_its_good_right(tmp_path: Path) -> None:
    body = f"{X}    if x == 0.5:\n        raise ValueError('no')\n    return x\n"
    assert tried(objective(tmp_path, body), SPACE.to_dict())["value"] == 0.25


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    return 1 +\n", "line 3: SyntaxError"),
        ("    import nothing_of_this_name\n", "line 3: ModuleNotFoundError"),
        ("    raise KeyError('ward')\n", "line 3: KeyError: 'ward'"),
        ("    raise SystemExit(3)\n", "SystemExit: 3"),
        ("    trial.suggest_float('x', 1.0, 0.0)\n", "line 3: ValueError"),
        ("    return float('nan')\n", "must return a finite number, got float nan"),
        ("    return None\n", "must return a finite number, got NoneType None"),
        ("    trial.suggest_float('z', 0.0, 1.0)\n", "Run `sottovoce space --write`"),
        ("    trial.suggest_float('x', 0.0, 2.0)\n", "Run `sottovoce space --write`"),
    ],
)
def test_what_is_wrong_with_an_objective_is_one_line(body: str, words: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidInput, SpaceError)) as caught:
        tried(objective(tmp_path, body), SPACE.to_dict())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def study(tmp_path: Path) -> StudyFile:
    make_project(tmp_path / "study", agents=2, rounds=2, epsilon=2.0)
    return read_study(tmp_path / "study" / "study.toml")


def test_a_trial_leaves_nothing_behind_and_is_ended_with_what_it_started(
    study: StudyFile, tmp_path: Path
) -> None:
    project = tmp_path / "study"
    before = sorted(project.rglob("*"))
    lines: list[str] = []
    found = preflight.check_objective(project, study, lines.append)
    assert found.value is not None
    assert lines == [str(found)]
    now = [path for path in project.rglob("*") if "__pycache__" not in path.parts]
    assert sorted(now) == before


def test_a_trial_whose_process_dies_says_how(study: StudyFile, tmp_path: Path) -> None:
    objective(tmp_path / "study", "    os.kill(os.getpid(), 9)\n", head="import os")
    with pytest.raises(TrialError, match="the process of a trial died: SIGKILL"):
        preflight.check_objective(tmp_path / "study", study)


def test_a_port_that_is_taken_names_the_option() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"port {port} of 127.0.0.1 is in use: .*--port"):
            preflight.check_port("127.0.0.1", port)
    preflight.check_port("127.0.0.1", port)


def test_certificates_must_be_good_and_belong_together(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_keys(tmp_path / name, [])
    root = tmp_path / "one" / CA
    preflight.check_server_keys(tmp_path / "one", root)
    (tmp_path / "one" / "server.key").write_bytes((tmp_path / "two" / "server.key").read_bytes())
    with pytest.raises(InvalidInput, match=r"server.key must be the private key of server.crt"):
        preflight.check_server_keys(tmp_path / "one", root)
    root.write_text("nothing of the kind")
    with pytest.raises(InvalidInput, match="must be a certificate in PEM"):
        preflight.check_server_keys(tmp_path / "one", root)


def test_a_coordinator_that_is_not_there_yet_is_no_mistake_but_one_without_tls_is(
    tmp_path: Path,
) -> None:
    make_keys(tmp_path / "keys", [])
    with socket.socket() as dumb:
        dumb.bind(("127.0.0.1", 0))
        link = Link(port=dumb.getsockname()[1], root=tmp_path / "keys" / CA)
        assert not preflight.check_reachable(link, 0.5)
