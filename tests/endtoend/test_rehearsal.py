"""A project made by `sottovoce new`, deployed on this machine as real processes."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import optuna
import pytest
from numpy.typing import NDArray
from tests.endtoend.federation import Storage

from sottovoce.federation.aggregate import summed
from sottovoce.federation.messages import Message
from sottovoce.flower.deploy.commands import environment
from sottovoce.flower.deploy.keys import CA
from sottovoce.flower.deploy.project import copy_project, make_project
from sottovoce.flower.deploy.rehearsal import free_port
from sottovoce.flower.sites import read_identity
from sottovoce.flower.studyfile import read_study
from sottovoce.privacy.ledger import read_ledger
from sottovoce.privacy.release import limited_sum, sensitivity
from sottovoce.secure_sum import field
from sottovoce.secure_sum.grid import rounded
from sottovoce.secure_sum.keys import SIGNATURE
from sottovoce.secure_sum.sharing import joined

OWN = ("coordinator", "site", ".flwr", "keys")
LIMIT = 300  # seconds; other work may share the machine
ENV = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "study", agents=30, rounds=3, epsilon=2.0)
    path = tmp_path / "study" / "study.toml"
    path.write_text(path.read_text().replace('trust = "nobody"', 'trust = "coordinator"'))
    return tmp_path / "study"


def started(*words: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sottovoce.cli", *words],
        cwd=cwd,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        umask=0o022,
    )


def those_in(folder: Path) -> dict[int, str]:
    """Living processes that were given a home in the folder, by their environment."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"FLWR_HOME={folder}/".encode() in (entry / "environ").read_bytes():
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(entry.name)] = words
        except OSError:
            continue
    return found


def until_it_says(process: subprocess.Popen[str], words: str) -> None:
    seen = []
    for line in process.stderr or ():
        seen.append(line)
        if words in line:
            return
    pytest.fail(f"it never said {words!r}: {''.join(seen)}")


def soon(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_a_new_project_rehearses_with_tls_and_node_keys_and_leaves_nothing_running(
    project: Path,
) -> None:
    process = started("rehearse", "--sites", "3", "--keep", "--json", cwd=project)
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["releases"] == 2
    assert 0 < found["epsilon"]["pld"] <= found["granted"] == 2.0
    stage = project / "rehearsal"
    assert len(read_ledger(stage / "hub" / "coordinator" / "ledger.db").entries) == 2
    for site in ("site-1", "site-2", "site-3"):
        assert (stage / site / "site" / "study.db").stat().st_size > 0
    link = (stage / "logs" / "superlink.log").read_text()
    assert "authentication is disabled" not in link
    assert "insecure" not in link.lower()
    (address,) = set(re.findall(r'address = "(127\.0\.0\.1:\d+)"', config(stage)))
    assert f'root-certificates = "{stage / "keys" / CA}"' in config(stage)
    assert address in err
    assert those_in(stage) == {}
    assert_nothing_is_readable(stage / "hub", *(stage / f"site-{n}" for n in (1, 2, 3)))


def assert_nothing_is_readable(hub: Path, *sites: Path) -> None:
    """No number that a site said is with the link, and nobody else can read what a party wrote."""
    said = [vector for site in sites for vector in vectors_of(site)]
    assert len(said) >= 2 * len(sites)
    assert said[0].size > 8
    for path in (hub / "coordinator").glob("superlink.db*"):
        content = path.read_bytes()
        assert not [x for vector in said for x in vector if x and x.tobytes() in content], path
    tops = [party / name for party in (hub, *sites) for name in OWN if (party / name).is_dir()]
    written = [path for top in tops for path in (top, *top.rglob("*"))]
    assert len(written) > 20
    assert [path for path in written if path.stat().st_mode & 0o077] == []


@pytest.mark.slow
@pytest.mark.parametrize("aggregators", [0, 3])
def test_where_nobody_is_trusted_the_coordinators_side_holds_no_number_that_a_site_said(
    tmp_path: Path, aggregators: int
) -> None:
    make_project(tmp_path / "study", agents=5, rounds=3, epsilon=8.0)
    path = tmp_path / "study" / "study.toml"
    more = f'trust = "nobody"\naggregators = {aggregators}' if aggregators else 'trust = "nobody"'
    path.write_text(path.read_text().replace('trust = "nobody"', more))
    process = started("rehearse", "--sites", "5", "--keep", "--json", cwd=tmp_path / "study")
    out, err = process.communicate(timeout=3 * LIMIT)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["releases"] == 2
    assert 0 < found["epsilon"]["pld"] <= found["granted"] == 8.0
    stage = tmp_path / "study" / "rehearsal"
    check_sealed(stage, sites=5)
    assert those_in(stage) == {}
    assert "the keys of 5 sites are registered" in err or aggregators
    for name in (f"sum-{k + 1}" for k in range(aggregators)):  # who sums runs no trial
        assert Storage.read(stage / name / "site" / "study.db").trials == []


def check_sealed(stage: Path, sites: int) -> None:
    """Nothing that is the coordinator's holds a vector or a share; the ledger holds their sums,
    which are those of a trusted coordinator with the same vectors and noise, to the grid."""
    file = read_study(stage / "hub" / "study.toml")
    assert file.roster is not None
    terms, study, mechanism = file.terms, file.study, file.study.method.mechanism
    assert mechanism is not None
    keys = {m: stage / "keys" / f"{file.roster.names[m]}.seal" for m in terms.committee.members}
    kept = [path for path in (stage / "hub").rglob("*") if path.is_file()]
    held = {path: path.read_bytes() for path in [*kept, *(stage / "logs").iterdir()]}
    assert len(held) > 10
    for entry in read_ledger(stage / "hub" / "coordinator" / "ledger.db").entries:
        weights, vectors, noise = study.weights(entry.round), [], []
        total = np.zeros(study.grid.numbers, dtype=np.int64)
        for n in range(sites):
            attrs = Storage.read(stage / f"site-{n + 1}" / "site" / "study.db").attrs
            packets = [base64.b64decode(text) for text in attrs[f"sealed-{entry.round}"]]
            said = Message.from_bytes(base64.b64decode(attrs[f"said-{entry.round}"])).vector
            shares = {}
            for place, (member, packet) in enumerate(zip(keys, packets, strict=True)):
                words = f"sottovoce/packet/v1/{terms.study}/{entry.round}/{n}/{member}"
                plain = read_identity(keys[member]).open(packet[SIGNATURE:], words.encode())
                assert plain is not None
                row = field.from_bytes(plain, study.grid.numbers)
                assert row is not None
                shares[place] = row
            steps = field.decode(joined(shares, terms.committee.threshold))
            total += steps
            vectors.append(said)
            noise.append(steps - rounded(said, n, weights, mechanism, study.grid))
            for secret in (*said, *steps, *np.concatenate(list(shares.values()))):
                assert not [path for path, data in held.items() if secret.tobytes() in data]
        assert np.array_equal(entry.release.vectors, summed(study, entry.round, total, "").vectors)
        bare = limited_sum(np.array(vectors), weights, np.ones(sites, dtype=bool), mechanism)
        step = sensitivity(weights, mechanism) / study.grid.limit
        trusted = bare + step * np.sum(noise, axis=0).reshape(bare.shape)
        assert np.abs(trusted - entry.release.vectors).max() <= 1.01 * sites * step


def vectors_of(site: Path) -> list[NDArray[np.float64]]:
    """What a site said, as it noted it down itself."""
    noted = optuna.load_study(study_name=None, storage=f"sqlite:///{site}/site/study.db").user_attrs
    texts = [text for name, text in noted.items() if name.startswith("said-") and text]
    return [Message.from_bytes(base64.b64decode(text)).vector for text in texts]


@pytest.mark.slow
def test_a_rehearsal_whose_objective_always_fails_shows_its_error_and_keeps_the_logs(
    project: Path,
) -> None:
    (project / "objective.py").write_text(
        'def objective(trial):\n    raise KeyError("diagnosis")\n'
    )
    process = started("rehearse", "--sites", "2", "--no-trial", cwd=project)
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (2, "")
    words = " ".join(err.split())
    assert (
        "error: 2 of 2 sites left the study. site-1: This site left the study in round 0" in words
    )
    assert "The last error: KeyError: 'diagnosis'" in words
    stage = project / "rehearsal"
    assert "Traceback" in (stage / "site-1" / "site" / "site.log").read_text()
    assert read_ledger(stage / "hub" / "coordinator" / "ledger.db").entries == ()
    journal = (stage / "hub" / "coordinator" / "journal.jsonl").read_text()
    assert journal.count('"event": "left"') == 2
    assert "diagnosis" not in journal
    assert those_in(stage) == {}


def config(stage: Path) -> str:
    return (stage / "hub" / ".flwr" / "config.toml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_rehearsal_leaves_nothing_running(
    project: Path, number: signal.Signals
) -> None:
    process = started("rehearse", "--sites", "2", cwd=project)
    until_it_says(process, "round 0 opened")
    assert len(those_in(project / "rehearsal")) >= 5  # a link, two nodes, and their helpers
    process.send_signal(number)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, err
    assert those_in(project / "rehearsal") == {}


@pytest.mark.slow
def test_a_rehearsal_whose_link_is_killed_fails_and_leaves_nothing_running(project: Path) -> None:
    process = started("rehearse", "--sites", "2", cwd=project)
    until_it_says(process, "round 0 opened")
    links = [pid for pid, words in those_in(project).items() if "flower-superlink" in words]
    os.kill(links[0], signal.SIGKILL)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 2
    assert "a process ended before the run did: superlink" in " ".join(err.split())
    assert (project / "rehearsal" / "logs" / "superlink.log").exists()
    assert those_in(project / "rehearsal") == {}


@pytest.mark.slow
def test_a_rehearsal_ends_what_one_that_was_killed_left_and_no_other(project: Path) -> None:
    killed = started("rehearse", "--sites", "2", cwd=project)
    until_it_says(killed, "is up on")
    second = done("rehearse", "--sites", "2", cwd=project)
    assert second.returncode == 2
    assert "is running" in second.stderr
    killed.kill()
    killed.communicate()
    left = those_in(project / "rehearsal")
    assert left
    third = started("rehearse", "--sites", "2", cwd=project)
    until_it_says(third, "is up on")
    assert not left.keys() & those_in(project / "rehearsal").keys()
    third.send_signal(signal.SIGINT)
    third.communicate(timeout=LIMIT)
    assert those_in(project / "rehearsal") == {}


@pytest.mark.slow
def test_a_deployment_by_hand_resumes_after_its_coordinator_is_killed(
    project: Path, tmp_path: Path
) -> None:
    hub, sites, port = tmp_path / "hub", ("site-1", "site-2"), str(free_port())
    copy_project(project, hub, agents=2)
    assert done("keys", "keys", "--sites", "2", cwd=hub).returncode == 0
    running = [in_background("serve", "--port", port, cwd=hub)]
    try:
        assert soon(lambda: registered(hub, port))
        before = (hub / "sites.toml").read_text()
        assert registered(hub, port)  # again, and nothing changes
        assert (hub / "sites.toml").read_text() == before
        for name in sites:
            copy_project(project, tmp_path / name, agents=2)
            words = ["--key", str(hub / "keys" / f"{name}.key"), "--root", str(hub / "keys" / CA)]
            words += ["--port", str(free_port())]
            node = in_background("join", f"localhost:{port}", *words, cwd=tmp_path / name)
            running.append(node)
        assert done("start", "--no-follow", "--port", port, cwd=hub).returncode == 0
        assert soon((hub / "coordinator" / "journal.jsonl").exists)
        (link_pid,) = [pid for pid, words in those_in(hub).items() if "flower-superlink" in words]
        os.kill(link_pid, signal.SIGKILL)
        assert running[0].wait(LIMIT) != 0
        assert those_in(hub) == {}  # no coordinator of the dead link goes on by itself
        running[0] = in_background("serve", "--port", port, cwd=hub)
        assert soon(lambda: registered(hub, port))
        ended = done("start", "--port", port, cwd=hub)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "The study is over: 2 rounds were released" in ended.stdout
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(LIMIT)
    assert those_in(tmp_path) == {}


def done(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sottovoce.cli", *words]
    return subprocess.run(
        command, cwd=cwd, env=ENV, capture_output=True, text=True, timeout=LIMIT, umask=0o022
    )


def in_background(*words: str, cwd: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sottovoce.cli", *words]
    with (cwd / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=cwd, env=ENV, stdout=log, stderr=log, umask=0o022)


def registered(hub: Path, port: str) -> bool:
    keys = sorted(str(path) for path in (hub / "keys").glob("*.pub"))
    return done("register", *keys, "--port", port, cwd=hub).returncode == 0


@pytest.mark.slow
def test_a_start_after_an_interrupted_one_follows_the_run_and_leaves_no_vector(
    project: Path, tmp_path: Path
) -> None:
    hub, sites, port = tmp_path / "hub", [tmp_path / f"site-{n}" for n in (1, 2)], str(free_port())
    copy_project(project, hub, agents=2)
    assert done("keys", "keys", "--sites", "2", cwd=hub).returncode == 0
    running = [in_background("serve", "--port", port, cwd=hub)]
    try:
        assert soon(lambda: registered(hub, port))
        first = started("start", "--port", port, cwd=hub)
        until_it_says(first, "has started")
        first.send_signal(signal.SIGINT)
        _, err = first.communicate(timeout=LIMIT)
        assert first.returncode == 130, err
        assert "`sottovoce start` watches it again" in " ".join(err.split())
        for site in sites:
            copy_project(project, site, agents=2)
            words = ["--key", str(hub / "keys" / f"{site.name}.key")]
            words += ["--root", str(hub / "keys" / CA), "--port", str(free_port())]
            running.append(in_background("join", f"localhost:{port}", *words, cwd=site))
        second = done("start", "--port", port, cwd=hub)
        assert second.returncode == 0, second.stdout + second.stderr
        assert "goes on already" in second.stderr
        assert "The study is over: 2 rounds were released" in second.stdout
        assert "Traceback" not in second.stdout + second.stderr
        assert_nothing_is_readable(hub, *sites)  # while the link runs
        assert registered(hub, port)  # it still knows the sites
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(LIMIT)
    assert_nothing_is_readable(hub, *sites)


@pytest.mark.slow
def test_thirty_sites_simulate_by_the_commands_of_the_projects_readme(project: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (project / "README.md").read_text(), flags=re.DOTALL)
    assert "num-supernodes=30" in blocks[0]
    script = f"{blocks[0]}\nflwr list --format json"
    command = ["bash", "-c", f"{script}; fuser -k 39091/tcp"]  # Flower leaves a link behind
    if os.geteuid() == 0 and subprocess.run(["unshare", "-n", "true"]).returncode == 0:
        # Ray listens on all interfaces: a network of its own, and all ends with it
        inner = f"ip link set lo up; {script}"
        command = ["unshare", "-n", "--pid", "--fork", "--mount-proc", "bash", "-c", inner]
    done = subprocess.run(
        command,
        cwd=project,
        env={**ENV, "PATH": environment(project)["PATH"]},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert "finished:completed" in done.stdout, done.stdout + done.stderr
    assert "30 of 30 sites have done all their trials" in done.stdout
    assert len(list((project / "simulation").glob("site-*"))) == 30
    assert len(read_ledger(project / "simulation" / "ledger.db").entries) == 2
