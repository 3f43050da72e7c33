"""How fast the simulator is, and how its time and memory grow, on one thread.

    python benchmarks/simulate.py [--repeats 5] [--json FILE] [--largest 100000]

The synthetic problem, dp-fts-de, M = 50 unless said otherwise. Three questions:

- one full run (N = 200, T = 40) against the same run as a plain loop over `Agent`s and a
  `Server`, in one process. The loop has fewer agents, 40, as it would take long: the two are
  compared by the time per agent and round, with the same T, on which an agent's time depends;
- growth with N from 200 to 100,000 (T = 10): time per agent and round, and peak memory, each N
  in a process of its own;
- growth with the number of observations t (N = 2000), and with M (N = 2000, T = 10).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import DP_FTS_DE
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.problems.synthetic import SPACE, Synthetic
from sottovoce.simulation import Draws, simulate

PROBLEM = Synthetic()
LOOPED = 40
Figures = dict[str, Any]


def study(agents: int, rounds: int, features: int = 50) -> FederatedStudy:
    return FederatedStudy(SPACE, replace(DP_FTS_DE, features=features), agents, rounds)


def seconds_of_run(agents: int, rounds: int, features: int = 50, run: int = 0) -> float:
    begun = time.perf_counter()
    simulate(study(agents, rounds, features), PROBLEM, Draws(0, run))
    return time.perf_counter() - begun


def loop(agents: int, rounds: int) -> float:
    """Seconds for the same, as parties: asks, tells, messages and broadcasts, one by one."""
    constants, random = study(agents, rounds), np.random.default_rng(0)
    begun = time.perf_counter()
    objectives = PROBLEM.draw(agents, random)
    belief = PROBLEM.setting.surrogate
    parties = [Agent(constants, n, surrogate=belief, seed=n) for n in range(agents)]
    server = Server.simulation(constants, seed=0)

    def try_one() -> None:
        asked = [party.ask() for party in parties]
        points = np.stack([SPACE.encode(params) for params in asked])[:, None]
        values = objectives.values(points)[:, 0]
        values = values + objectives.noise * random.standard_normal(agents)
        for party, params, value in zip(parties, asked, values, strict=True):
            party.tell(params, float(value))

    for _ in range(constants.method.initial):
        try_one()
    for _ in range(rounds):
        server.open_round()
        for party in parties:
            server.submit(party.message())
        heard = server.close_round()
        for party in parties:
            party.receive(heard)
        try_one()
    return time.perf_counter() - begun


def against_the_loop(repeats: int) -> Figures:
    agents, rounds = 200, 40
    ours = [seconds_of_run(agents, rounds, run=run) for run in range(repeats)]
    other = loop(LOOPED, rounds)
    mine, theirs = statistics.median(ours) / agents / rounds, other / LOOPED / rounds
    return {
        "agents": agents,
        "rounds": rounds,
        "seconds": statistics.median(ours),
        "fastest_seconds": min(ours),
        "microseconds_per_agent_round": 1e6 * mine,
        "loop_agents": LOOPED,
        "loop_seconds": other,
        "loop_microseconds_per_agent_round": 1e6 * theirs,
        "ratio": theirs / mine,
    }


def measured_here(agents: int, rounds: int) -> Figures:
    """Time and peak memory of one run in this process, beyond what a tiny one takes."""
    seconds_of_run(200, 1)  # imports, the kernel's features, the allocator: not of the run
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = seconds_of_run(agents, rounds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "agents": agents,
        "rounds": rounds,
        "seconds": seconds,
        "microseconds_per_agent_round": 1e6 * seconds / agents / rounds,
        "peak_megabytes": peak / 1024,
        "kilobytes_per_agent": (peak - before) / agents,
    }


def in_a_process(agents: int, rounds: int) -> Figures:
    command = [sys.executable, __file__, "--one", str(agents), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def by_observations() -> list[Figures]:
    agents, stamps = 2000, [time.perf_counter()]
    problem, draws = PROBLEM, Draws(0, 0)
    simulate(study(agents, 60), problem, draws, lambda t, _: stamps.append(time.perf_counter()))
    rounds = np.diff(stamps)
    initial = DP_FTS_DE.initial
    return [
        {
            "observations": initial + t,
            "microseconds_per_agent_round": 1e6 * float(np.median(rounds[t - 2 : t + 3])) / agents,
        }
        for t in (5, 15, 25, 35, 45, 55)
    ]


def by_features() -> list[Figures]:
    agents, rounds = 2000, 10
    return [
        {
            "features": features,
            "microseconds_per_agent_round": 1e6
            * seconds_of_run(agents, rounds, features)
            / agents
            / rounds,
        }
        for features in (25, 50, 100, 200)
    ]


def show(report: Figures) -> None:
    run = report["run"]
    print(
        f"N = {run['agents']}, T = {run['rounds']}: {run['seconds']:.3f} s a run (median), "
        f"{run['microseconds_per_agent_round']:.0f} µs an agent and round; "
        f"a loop over {run['loop_agents']} agents and a server "
        f"{run['loop_microseconds_per_agent_round']:.0f} µs: {run['ratio']:.0f}x"
    )
    print(f"\n{'agents':>8}{'seconds':>9}{'µs/agent/round':>16}{'peak MB':>9}{'kB/agent':>10}")
    for row in report["by_agents"]:
        print(
            f"{row['agents']:>8}{row['seconds']:>9.2f}{row['microseconds_per_agent_round']:>16.1f}"
            f"{row['peak_megabytes']:>9.0f}{row['kilobytes_per_agent']:>10.1f}"
        )
    for key, name in (("by_observations", "observations"), ("by_features", "features")):
        print(f"\n{name:>12}{'µs/agent/round':>16}")
        for row in report[key]:
            print(f"{row[name]:>12}{row['microseconds_per_agent_round']:>16.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the simulator.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--largest", type=int, default=100_000, help="the largest N tried")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured_here(*arguments.one)))
        return
    seconds_of_run(200, 1)
    sizes = [n for n in (200, 2000, 20_000, 100_000) if n <= arguments.largest]
    report = {
        "run": against_the_loop(arguments.repeats),
        "by_agents": [in_a_process(n, 10) for n in sizes],
        "by_observations": by_observations(),
        "by_features": by_features(),
    }
    show(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
