"""One mathematics: sites that live for one call only do what the simulator does at once.

Each call and each reply passes through Flower's records, each site through its disk.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from numpy.typing import NDArray
from optuna.trial import Trial
from tests.given import GivenProblem, waves

from sottovoce.federation.messages import Broadcast
from sottovoce.federation.methods import DP_FTS_DE, SOTTOVOCE, Method
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.flower.coordinator.secure import SecureCoordinator
from sottovoce.flower.site.memory import Memory
from sottovoce.flower.site.site import Site
from sottovoce.flower.site.summing import Member
from sottovoce.flower.sites import simulated_identity, simulated_roster
from sottovoce.flower.studyfile import StudyFile, read_study
from sottovoce.flower.wire import Call, Reply
from sottovoce.privacy.events import SharedGaussian
from sottovoce.privacy.ledger import read_ledger
from sottovoce.privacy.release import Mechanism
from sottovoce.secure_sum.terms import SecureSum
from sottovoce.simulation import Draws, simulate
from sottovoce.space import Category, Float, Integer, Space

AGENTS, ROUNDS, INITIAL, SEED = 4, 3, 4, 5
PLANE = Space([Float("x", 0.0, 1.0), Float("y", 1e-3, 1.0, log=True)])
LIST = Space([Integer("x", 0, 15), Integer("y", 1, 8, log=True)])
MIXED = Space([Float("x", -1.0, 1.0), Integer("y", 1, 4), Category("c", ("a", "b"))])
optuna.logging.set_verbosity(optuna.logging.WARNING)

# Flower imports a Typer that names parts of Click which are on their way out
pytestmark = pytest.mark.filterwarnings("ignore:'click.utils:DeprecationWarning")


def problem_on(space: Space) -> GivenProblem:
    """The objectives of all, as the simulator takes them."""
    return GivenProblem(space, Surrogate(), waves, noise=0.0)


def objective_on(space: Space) -> Callable[[Trial], float]:
    """The same, as a site has it."""

    def objective(trial: Trial) -> float:
        params: dict[str, object] = {}
        for p in space.parameters:
            if isinstance(p, Category):
                params[p.name] = trial.suggest_categorical(p.name, p.choices)
            elif isinstance(p, Integer):
                params[p.name] = trial.suggest_int(p.name, int(p.low), int(p.high), log=p.log)
            else:
                params[p.name] = trial.suggest_float(p.name, p.low, p.high, log=p.log)
        site = trial.study.user_attrs["site"]
        everywhere = np.broadcast_to(space.encode(params), (site + 1, 1, space.dims))
        return float(waves(everywhere)[site, 0])

    return objective


def called(site: Site, call: Call) -> Reply:
    """The site's reply, both ways through Flower's records."""
    return Reply.from_records(site.answer(Call.from_records(call.to_records())).to_records())


def by_calls(file: StudyFile, folder: Path) -> dict[int, NDArray[np.float64]]:
    """The broadcasts of a seeded run, by calls and replies."""
    study, objective = file.study, objective_on(file.study.space)
    server = Server.simulation(study, Draws(SEED, 0).seed_for("server"))
    broadcast: Broadcast | None = None
    broadcasts = {}
    for step in file.steps:
        if step.round < study.rounds:
            server.open_round()
        for n in range(study.agents):
            site = Site(file, objective, folder / str(n), simulation=True, storage="journal")
            chain = () if broadcast is None else server.chain
            call = Call(study.fingerprint, step.round, n, file.constants, broadcast, SEED, chain)
            reply = called(site, call)
            if step.round < study.rounds:
                server.submit(reply.message)
            else:
                assert reply.answer == "done"
        if step.round < study.rounds:
            broadcast = server.close_round()
            broadcasts[step.round] = broadcast.vectors
    return broadcasts


@pytest.mark.parametrize("space", [PLANE, LIST, MIXED], ids=["plane", "list", "mixed"])
@pytest.mark.parametrize("method", [DP_FTS_DE, SOTTOVOCE], ids=["dp-fts-de", "sottovoce"])
def test_sites_that_answer_calls_do_what_the_simulator_does(
    method: Method, space: Space, tmp_path: Path
) -> None:
    mechanism = Mechanism(clip=5.0, participation=0.8, noise=0.3)
    small = replace(method, initial=INITIAL, lengthscale=0.3, mechanism=mechanism)
    if method.basis != "effects":  # whose number follows from the space
        small = replace(small, features=16)
    study = FederatedStudy(space, small, AGENTS, ROUNDS)
    file = StudyFile(study, 5.0, 1e-5, direction="maximize")
    heard = by_calls(file, tmp_path)
    outcome = simulate(study, problem_on(space), Draws(SEED, 0))
    assert heard.keys() == outcome.broadcasts.keys()
    for number, vectors in outcome.broadcasts.items():
        last = heard[number][-len(vectors) :]  # a broadcast may have earlier ones before it
        assert np.allclose(last, vectors, rtol=0.0, atol=1e-6), f"round {number}"
    for n in range(AGENTS):
        with Memory(tmp_path / str(n), "journal", study, direction="maximize") as memory:
            points = [space.encode(told.params) for told in memory.told]
        assert np.allclose(points, outcome.points[n], rtol=0.0, atol=1e-6), f"site {n}"


def by_two_exchanges(file: StudyFile, folder: Path) -> dict[int, NDArray[np.float64]]:
    """The broadcasts of a seeded run whose coordinator nobody trusts."""
    study, objective = file.study, objective_on(file.study.space)
    folder.mkdir(exist_ok=True)
    server = Server.simulation(study, Draws(SEED, 0).seed_for("server"))
    nodes = {900 + n: n for n in range(study.agents)}
    coordinator = SecureCoordinator(file, server, nodes, folder / "journal.jsonl", SEED)
    broadcasts = {}
    while coordinator.next_step() is not None:
        coordinator.open()
        for node, n in nodes.items():
            where, who = folder / str(n), simulated_identity(n)
            site = Site(file, objective, where, simulation=True, storage="journal", identity=who)
            coordinator.take(node, called(site, coordinator.call(node)))
        second = coordinator.settle()
        if second is not None:
            for node in sorted(second.waiting):
                n = nodes[node]
                member = Member(file, folder / str(n), simulated_identity(n), storage="journal")
                second.take(node, member.answer(second.call(node)))
        released = coordinator.close()
        if released is not None:
            broadcasts[released.round] = released.vectors
    coordinator.stop()
    return broadcasts


@pytest.mark.parametrize("method", [DP_FTS_DE, SOTTOVOCE], ids=["dp-fts-de", "sottovoce"])
def test_sums_that_nobody_can_open_are_the_simulators_to_the_grid(
    method: Method, tmp_path: Path
) -> None:
    mechanism = Mechanism(clip=5.0, participation=1.0, noise=0.3)
    small = replace(method, initial=INITIAL, lengthscale=0.3, mechanism=mechanism)
    if method.basis != "effects":
        small = replace(small, features=16)
    study = FederatedStudy(PLANE, small, AGENTS, ROUNDS, sums=SecureSum(unreliable=1))
    roster = simulated_roster(AGENTS)
    file = StudyFile(study, 1e4, 1e-5, direction="maximize", roster=roster)
    heard = by_two_exchanges(file, tmp_path)
    outcome = simulate(study, problem_on(PLANE), Draws(SEED, 0))
    assert heard.keys() == outcome.broadcasts.keys()
    assert {type(event) for event in outcome.events} == {SharedGaussian}
    for number, vectors in outcome.broadcasts.items():
        last = heard[number][-len(vectors) :]
        # the first is the same to the grid; later ones follow queries that differ in last bits
        near = 1e-10 if number == 0 else 1e-6
        assert np.allclose(last, vectors, rtol=0.0, atol=near), f"round {number}"


SETTINGS = {"dp-fts-de": "features = 16\nlengthscale = 0.3\nclip = 5.0\nparticipation = 0.8"}
STUDY = """
[study]
agents = 4
rounds = 3
epsilon = 8.0
direction = "maximize"
method = "{method}"
trial_limit = 20
{settings}

[[space.parameters]]
type = "float"
name = "x"
low = 0.0
high = 1.0

[[space.parameters]]
type = "float"
name = "y"
low = 0.0
high = 1.0
"""
OBJECTIVE = """
import numpy as np

def objective(trial):
    x, y = (trial.suggest_float(name, 0.0, 1.0) for name in ("x", "y"))
    site = trial.study.user_attrs["site"]
    return np.sin(5 * (x + y) + 0.1 * site) - (x - 0.4) ** 2
"""
# a network, and processes, of their own: Ray listens on all interfaces, and leaves no one behind
ALONE = ["unshare", "-rnpf", "--kill-child", "--mount-proc", "sh", "-c"]
ENVIRONMENT = {
    **{"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"},
    **{"RAY_USAGE_STATS_ENABLED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
}


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*ALONE, "true"]).returncode != 0,
    reason="needs namespaces",
)
@pytest.mark.parametrize("method", ["dp-fts-de", "sottovoce"])
def test_a_seeded_run_in_flowers_engine_does_what_the_simulator_does(
    method: str, tmp_path: Path
) -> None:
    project, folder = tmp_path / "project", tmp_path / "run"
    project.mkdir()
    settings = SETTINGS.get(method, "")
    (project / "study.toml").write_text(STUDY.format(method=method, settings=settings))
    (project / "objective.py").write_text(OBJECTIVE)
    config = {"project": str(project), "folder": str(folder), "seed": SEED, "join-limit": 60}
    script = Path(__file__).with_name("run_in_engine.py")
    command = [sys.executable, str(script), str(AGENTS), json.dumps(config)]
    result = subprocess.run(
        [*ALONE, 'ip link set lo up && exec "$@"', "sh", *command],
        env={**os.environ, **ENVIRONMENT, "FLWR_HOME": str(tmp_path / "flwr")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    study = read_study(project / "study.toml").study
    outcome = simulate(study, problem_on(study.space), Draws(SEED, 0))
    entries = read_ledger(folder / "ledger.db").entries
    assert [entry.round for entry in entries] == list(outcome.broadcasts)
    for entry in entries:
        expected = outcome.broadcasts[entry.round]
        assert np.allclose(entry.release.vectors, expected, rtol=0.0, atol=1e-6)
    for n in range(AGENTS):
        with Memory(folder / f"site-{n}", "journal", study, direction="maximize") as memory:
            points = [study.space.encode(told.params) for told in memory.told]
        assert np.allclose(points, outcome.points[n], rtol=0.0, atol=1e-6), f"site {n}"
