"""Optuna's samplers and ours on one objective: the time of a suggestion, and what is found.

Usage: python benchmarks/optuna_sampler.py [--trials 60] [--seeds 10] [--json FILE]

Branin, 2-D, minimised. A suggestion is `study.ask(distributions)` of an in-memory study, with all
its parameters; those of the first 10 trials, which are random for every sampler, are not counted.
The samplers take turns, seed by seed, in one process with one thread. GPSampler needs PyTorch and
is left out where that is not installed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

from sottovoce.optuna import Sampler

SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(-5, 10), "y": FloatDistribution(0, 15)}
LEAST = 10 / (8 * math.pi)
INITIAL = 10
OURS = "sottovoce"


def branin(x: float, y: float) -> float:
    bend = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def samplers() -> dict[str, Callable[[int], BaseSampler]]:
    known: dict[str, Callable[[int], BaseSampler]] = {
        OURS: lambda seed: Sampler(seed=seed, initial=INITIAL),
        "TPESampler": lambda seed: TPESampler(seed=seed, n_startup_trials=INITIAL),
        "RandomSampler": lambda seed: RandomSampler(seed=seed),
    }
    try:
        import torch  # here, so that no suggestion waits for it
    except ImportError:
        return known
    torch.set_num_threads(1)
    return {**known, "GPSampler": lambda seed: GPSampler(seed=seed, n_startup_trials=INITIAL)}


def run(sampler: BaseSampler, trials: int) -> tuple[list[float], float]:
    """The seconds of each suggestion after the initial ones, and how far the best is from best."""
    study, seconds = optuna.create_study(sampler=sampler), []
    for _ in range(trials):
        begun = time.perf_counter()
        trial = study.ask(SPACE)
        seconds.append(time.perf_counter() - begun)
        study.tell(trial, branin(trial.params["x"], trial.params["y"]))
    return seconds[INITIAL:], study.best_value - LEAST


def compared(trials: int, seeds: int) -> list[dict[str, Any]]:
    results: dict[str, list[tuple[list[float], float]]] = {name: [] for name in samplers()}
    for make in samplers().values():
        run(make(0), INITIAL + 2)  # with all that a first call loads
    for seed in range(seeds):
        for name, make in samplers().items():
            results[name].append(run(make(seed), trials))
    rows: list[dict[str, Any]] = []
    for name, runs in results.items():
        seconds = np.array([times for times, _ in runs])
        regrets = np.array([regret for _, regret in runs])
        row = {"sampler": name, "mean_ms": 1e3 * float(seconds.mean())}
        row["median_ms"] = 1e3 * float(np.median(seconds))
        row["last_ms"] = 1e3 * float(np.median(seconds[:, -5:]))
        row["median_regret"], row["worst_regret"] = float(np.median(regrets)), float(regrets.max())
        rows.append(row)
    ours = next(row for row in rows if row["sampler"] == OURS)
    for row in rows:
        row["ratio"] = row["mean_ms"] / ours["mean_ms"]
    return sorted(rows, key=lambda row: float(row["median_regret"]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time Optuna's samplers beside ours.")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    rows = compared(arguments.trials, arguments.seeds)
    print(f"{'sampler':<15}{'mean':>10}{'median':>11}{'last 5':>11}{'ratio':>8}", end="")
    print("   best − least: median, worst seed")
    for row in rows:
        times = (f"{row[key]:>8.2f} ms" for key in ("mean_ms", "median_ms", "last_ms"))
        print(f"{row['sampler']:<15}{''.join(times)}{row['ratio']:>7.2f}x", end="")
        print(f"   {row['median_regret']:.1e}, {row['worst_regret']:.1e}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
