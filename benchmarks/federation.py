"""What a federation costs: the server's part for many vectors, and a round through Flower.

    python benchmarks/federation.py [--sites 1000] [--rounds 10]    # --sites 0: the server alone

server: submitting N vectors and closing a round of a deployed server (clip, sampling, OpenDP's
noise, the ledger on disk), P·M = 400, beside the plain sum of the same array in NumPy; in time on
the clock and on the processor: their ratios differ where other work shares the machine.
Flower: a study of simulated sites in Flower's own engine, each with its own Optuna storage; time
from one release to the next, by the coordinator's journal.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sottovoce import DP_FTS_DE, Budget, FederatedStudy, Float, Mechanism, Server, Space
from sottovoce.federation.messages import Message
from sottovoce.flower.coordinator.journal import NAME, read_journal
from sottovoce.flower.deploy import commands
from sottovoce.flower.deploy.project import make_project

SIZES = (10, 1_000, 100_000)
REGIONS, FEATURES, RELEASES = 4, 100, 5
OBJECTIVE = """
def objective(trial):
    x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
    return (x - 0.3) ** 2 + (y - 0.6) ** 2
"""
STUDY = """[study]
agents = {sites}
rounds = {rounds}
epsilon = 8.0
method = "dp-fts-de"
direction = "minimize"
trial_limit = 600

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


def serving(agents: int, folder: Path) -> NDArray[np.float64]:
    """Seconds a round, on the clock and on the processor: submitting, closing, the plain sum."""
    space = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
    mechanism = Mechanism(clip=11.0, participation=0.25, noise=8.0)
    method = replace(DP_FTS_DE, mechanism=mechanism, regions=REGIONS, features=FEATURES)
    study = FederatedStudy(space, method, agents, RELEASES)
    server = Server(study, folder / f"{agents}.db", Budget(50.0, 1e-5))
    vectors = np.random.default_rng(0).standard_normal((agents, FEATURES))
    spent = []
    for _ in range(RELEASES):
        number = server.open_round()
        messages = [Message(study.fingerprint, number, n, v) for n, v in enumerate(vectors)]
        weights = study.weights(number)
        looks = [_now()]
        assert not server.submit_all(messages)
        looks.append(_now())
        server.close_round()
        looks.append(_now())
        _ = weights @ vectors  # the P·M numbers, without any protection
        looks.append(_now())
        spent.append(np.diff(looks, axis=0).T)
    server.close()
    return np.median(spent, axis=0)


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def through_flower(sites: int, rounds: int, folder: Path) -> list[float]:
    """Seconds of each step: the initial trials, then round by round, then the end."""
    project = folder / "load"
    make_project(project, agents=max(sites, 2), rounds=rounds, epsilon=8.0)
    (project / "study.toml").write_text(STUDY.format(sites=sites, rounds=rounds))
    (project / "objective.py").write_text(OBJECTIVE)
    run = f"project='{project}' folder='{project / 'simulation'}'"
    size = f"num-supernodes={sites} client-resources-num-cpus=1"
    command = [commands.tool("flwr"), "run", str(project), "local", "--stream"]
    command += ["--federation-config", size, "--run-config", run]
    done = subprocess.run(
        command,
        env=commands.environment(project),
        cwd=project,
        check=False,
        capture_output=True,
        text=True,
    )
    lines = read_journal(project / "simulation" / NAME)
    assert [line["event"] for line in lines[-1:]] == ["finished"], done.stdout[-2000:]
    opened = [datetime.fromisoformat(line["time"]) for line in lines if line["event"] == "opened"]
    opened.append(datetime.fromisoformat(lines[-1]["time"]))
    assert all(line["spoke"] == sites for line in lines if line["event"] == "closed"), "absent"
    _stop_link(project)
    return [(b - a).total_seconds() for a, b in pairwise(opened)]


def _stop_link(project: Path) -> None:
    """End the SuperLink that `flwr run` leaves behind for the next run."""
    mark = f"FLWR_HOME={project / commands.HOME}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGTERM)
        except OSError:
            continue


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("a round of the server, P·M = 400, median of 5; milliseconds")
        print(f"{'N':>8} {'time':>10} {'submit':>10} {'close':>10} {'plain sum':>10} {'ratio':>8}")
        for agents in SIZES:
            for kind, row in zip(("clock", "processor"), serving(agents, folder), strict=True):
                submit, close, plain = row
                ratio = f"{(submit + close) / plain:.1f}x"
                times = [f"{1e3 * seconds:>10.2f}" for seconds in (submit, close, plain)]
                print(f"{agents:>8} {kind:>10}", *times, f"{ratio:>8}")
        if asked.sites:
            print(f"\n{asked.sites} simulated sites, {asked.rounds} rounds, through Flower")
            steps = through_flower(asked.sites, asked.rounds, folder)
            print(f"initial trials (10 each): {steps[0]:.0f} s")
            rest = steps[1:]
            print(f"a round (1 trial each): median {np.median(rest):.0f} s, most {max(rest):.0f} s")


if __name__ == "__main__":
    main()
