"""What a federation costs: the server's part for many vectors, and a round through Flower.

    python benchmarks/federation.py [--sites 1000] [--rounds 10] [--only-flower]
    python benchmarks/federation.py --sites 0    # the server alone

server: submitting N vectors and closing a round of a deployed server (clip, sampling, OpenDP's
noise, the ledger on disk), P·M = 400, beside the plain sum of the same array in NumPy; in time on
the clock and on the processor: their ratios differ where other work shares the machine.
Flower: a study of simulated sites in Flower's own engine, each with its own Optuna storage; time
from one release to the next, by the coordinator's journal, and processor time of what answers
calls and of all else (Flower's engine, Ray, the coordinator), which other work on the machine
disturbs less. `PYTHONPATH=OTHER/src python benchmarks/federation.py` measures another checkout.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from sottovoce import DP_FTS_DE, Budget, FederatedStudy, Float, Mechanism, Server, Space
from sottovoce.federation.messages import Message
from sottovoce.flower.coordinator.journal import NAME, read_journal
from sottovoce.flower.deploy import commands
from sottovoce.flower.deploy.project import make_project

SIZES = (10, 1_000, 100_000)
REGIONS, FEATURES, RELEASES = 4, 100, 5
PROJECT = "load"
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
    project = folder / PROJECT
    make_project(project, agents=2, rounds=rounds, epsilon=8.0)  # its study is replaced
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


class Processor:
    """Processor seconds of all processes of a project's Flower, looked at twice a second."""

    def __init__(self, project: Path) -> None:
        self._mark, self._ended = _mark(project), threading.Event()
        self._spent: dict[int, tuple[bool, float]] = {}  # by process: of sites, seconds
        self._watch = threading.Thread(target=self._look)

    def __enter__(self) -> Processor:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    def seconds(self, *, sites: bool) -> float:
        """Of the workers that answer calls, or of all else."""
        return sum(spent for site, spent in self._spent.values() if site == sites)

    def _look(self) -> None:
        tick = os.sysconf("SC_CLK_TCK")
        while not self._ended.wait(0.5):
            for entry in _marked(self._mark):
                try:
                    stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    site = b"ClientAppActor" in (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                self._spent[int(entry.name)] = site, (int(stat[11]) + int(stat[12])) / tick


def _mark(project: Path) -> bytes:
    return f"FLWR_HOME={project / commands.HOME}".encode()


def _marked(mark: bytes) -> Iterator[Path]:
    """The processes with this in their environment."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes():
                yield entry


def _stop_link(project: Path) -> None:
    """End the SuperLink that `flwr run` leaves behind for the next run."""
    for entry in _marked(_mark(project)):
        with suppress(OSError):
            os.kill(int(entry.name), signal.SIGTERM)


def show_serving(folder: Path) -> None:
    """The server's table."""
    print("a round of the server, P·M = 400, median of 5; milliseconds")
    print(f"{'N':>8} {'time':>10} {'submit':>10} {'close':>10} {'plain sum':>10} {'ratio':>8}")
    for agents in SIZES:
        for kind, row in zip(("clock", "processor"), serving(agents, folder), strict=True):
            submit, close, plain = row
            ratio = f"{(submit + close) / plain:.1f}x"
            times = [f"{1e3 * seconds:>10.2f}" for seconds in (submit, close, plain)]
            print(f"{agents:>8} {kind:>10}", *times, f"{ratio:>8}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only-flower", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not asked.only_flower:
            show_serving(folder)
        if asked.sites:
            print(f"\n{asked.sites} simulated sites, {asked.rounds} rounds, through Flower")
            with Processor(folder / PROJECT) as processor:
                steps = through_flower(asked.sites, asked.rounds, folder)
            print(f"initial trials (10 each): {steps[0]:.0f} s")
            rest = steps[1:]
            print(f"a round (1 trial each): median {np.median(rest):.0f} s, most {max(rest):.0f} s")
            print(f"in all {sum(steps):.0f} s; processor time a call:")
            calls = asked.sites * (asked.rounds + 1)
            for who, sites in {"sites": True, "all else": False}.items():
                print(f"  {who} {1e3 * processor.seconds(sites=sites) / calls:.1f} ms")


if __name__ == "__main__":
    main()
