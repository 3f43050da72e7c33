"""A million simulated agents on one GPU.

    python benchmarks/million.py [--agents 1000000] [--rounds 40] [--device cuda] [--out FILE]

dp-fts-de on the synthetic problem, M = 50, with draws made on the device. Printed, as a table and
as one JSON object: the time of every round and in all, the peak memory of the device, how far a
small run with NumPy's draws is from the same run on NumPy, and what NumPy takes for that small
run on this machine (one thread), per agent and round.

Needs PyTorch, NumPy, SciPy and array-api-compat; nothing else of the core's dependencies.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import json
import platform
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sottovoce.federation.methods import DP_FTS_DE
from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.problems.synthetic import SPACE, Synthetic
from sottovoce.simulation import Draws, Outcome, simulate

Figures = dict[str, Any]
SMALL = 2000


class Clock:
    """Seconds of each round, with the device's work waited for."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.stamps = [self.now()]

    def now(self) -> float:
        """The time, once the device is done."""
        if self._device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter()

    def __call__(self, t: int, events: object) -> None:
        """A round is over."""
        self.stamps.append(self.now())

    @property
    def rounds(self) -> list[float]:
        """Seconds of each; the first also has the objectives and the initial points."""
        return [float(s) for s in np.diff(self.stamps)]


def timed(study: FederatedStudy, draws: Draws, device: str | None) -> tuple[Outcome, Clock, float]:
    clock = Clock(device or "cpu")
    outcome = simulate(study, Synthetic(), draws, clock, device=device)
    return outcome, clock, clock.now() - clock.stamps[0]


def large(agents: int, rounds: int, device: str) -> Figures:
    on_gpu = device.startswith("cuda")
    warm = FederatedStudy(SPACE, DP_FTS_DE, min(agents, 20_000), 2)
    simulate(warm, Synthetic(), Draws(0, 1, on_device=True), device=device)
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    study = FederatedStudy(SPACE, DP_FTS_DE, agents, rounds)
    outcome, clock, seconds = timed(study, Draws(0, 0, on_device=True), device)
    gibibytes = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None
    regret = outcome.simple_regret.mean(axis=0)
    return {
        "agents": agents,
        "rounds": rounds,
        "features": DP_FTS_DE.features,
        "seconds": seconds,
        "seconds_of_rounds": clock.rounds,
        "microseconds_per_agent_round": 1e6 * seconds / agents / rounds,
        "agent_rounds_per_second": agents * rounds / seconds,
        "peak_device_gibibytes": gibibytes,
        "mean_regret": {str(t): float(regret[t]) for t in {0, rounds // 2, rounds}},
        "clipped": outcome.diagnostics[-1].clipped,
        "signal_to_noise": outcome.diagnostics[-1].signal_to_noise,
    }


def parity(rounds: int, device: str) -> tuple[Figures, Figures]:
    """The same small run on NumPy and on the device, by the same draws: how far, how fast."""
    study = FederatedStudy(SPACE, DP_FTS_DE, SMALL, rounds)
    simulate(FederatedStudy(SPACE, DP_FTS_DE, 200, 1), Synthetic(), Draws(0, 0))
    here, _, seconds = timed(study, Draws(0, 0), None)
    there, _, _ = timed(study, Draws(0, 0), device)
    broadcasts = [
        float(np.max(np.abs(here.broadcasts[k] - there.broadcasts[k]))) for k in here.broadcasts
    ]
    apart = {
        "agents": SMALL,
        "rounds": rounds,
        "points_that_differ": int(np.sum(here.points != there.points)),
        "largest_difference_of_observations": float(np.max(np.abs(here.observed - there.observed))),
        "largest_difference_of_broadcasts": max(broadcasts),
    }
    each = 1e6 * seconds / SMALL / rounds
    numpy = {"agents": SMALL, "seconds": seconds, "microseconds_per_agent_round": each}
    return apart, numpy


def show(report: Figures) -> None:
    run, apart, numpy = report["run"], report["parity"], report["numpy_one_thread"]
    rounds, memory = run["seconds_of_rounds"], run["peak_device_gibibytes"]
    rows = [
        ("device", report["device"]),
        ("agents, rounds, features", f"{run['agents']:,}, {run['rounds']}, {run['features']}"),
        ("seconds in all", f"{run['seconds']:.2f}"),
        ("  objectives, start and first round", f"{rounds[0]:.2f}"),
        ("  second round, last round", f"{rounds[min(1, len(rounds) - 1)]:.3f}, {rounds[-1]:.3f}"),
        ("µs an agent and round", f"{run['microseconds_per_agent_round']:.3f}"),
        ("  NumPy, one thread, N = 2000", f"{numpy['microseconds_per_agent_round']:.1f}"),
        ("  ratio", f"{report['ratio']:.0f}x"),
        ("peak GiB on the device", "-" if memory is None else f"{memory:.1f}"),
        ("parity at N = 2000: points apart", str(apart["points_that_differ"])),
        ("  broadcasts apart by at most", f"{apart['largest_difference_of_broadcasts']:.1e}"),
        ("mean simple regret, by round", str(run["mean_regret"])),
    ]
    for name, value in rows:
        print(f"{name:<38}{value}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate a million agents on a device.")
    parser.add_argument("--agents", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, help="also write the JSON to this file")
    arguments = parser.parse_args()
    device = arguments.device
    on_gpu = device.startswith("cuda")
    apart, numpy = parity(arguments.rounds, device)
    run = large(arguments.agents, arguments.rounds, device)
    report = {
        "device": torch.cuda.get_device_name() if on_gpu else f"{device}, {platform.machine()}",
        "run": run,
        "parity": apart,
        "numpy_one_thread": numpy,
        "ratio": numpy["microseconds_per_agent_round"] / run["microseconds_per_agent_round"],
        "peak_host_gibibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
        },
    }
    show(report)
    text = json.dumps(report)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
