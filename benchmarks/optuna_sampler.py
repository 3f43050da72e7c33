"""Optuna's samplers and ours on one objective: the time of a suggestion, and what is found.

Usage: python benchmarks/optuna_sampler.py [--trials 60] [--seeds 10] [--json FILE]
       python benchmarks/optuna_sampler.py --known 50,100,400 [--dims 6] [--seeds 10]

Branin, 2-D, minimised. A suggestion is `study.ask(distributions)` of an in-memory study, with all
its parameters; those of the first 10 trials, which are random for every sampler, are not counted.
The samplers take turns, seed by seed, in one process with one thread. GPSampler needs PyTorch and
is left out where that is not installed.

With --known it is only the time of one suggestion, after so many random trials of a noisy bowl of
--dims parameters: processor time, the median over seeds, and how many times as fast ours is.
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
from optuna.trial import create_trial

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


def suggestion(sampler: BaseSampler, known: int, dims: int, seed: int) -> float:
    """Processor seconds of a suggestion after so many trials; a first, which loads all, is free."""
    space: dict[str, BaseDistribution] = {f"x{d}": FloatDistribution(0, 1) for d in range(dims)}
    random, study = np.random.default_rng(seed), optuna.create_study(sampler=sampler)
    for x in random.random((known, dims)):
        value = float(np.sum((x - 0.4) ** 2)) + 0.01 * random.standard_normal()
        params = dict(zip(space, x.tolist(), strict=True))
        study.add_trial(create_trial(params=params, distributions=space, value=value))
    seconds = []
    for _ in range(2):
        begun = time.process_time()
        trial = study.ask(space)
        seconds.append(time.process_time() - begun)
        study.tell(trial, float(np.sum((np.array([*trial.params.values()]) - 0.4) ** 2)))
    return seconds[1]


def timed(counts: list[int], dims: int, seeds: int) -> None:
    """A row for each sampler, a column for each number of trials."""
    kept = [name for name in samplers() if name in (OURS, "GPSampler")]
    medians: dict[tuple[str, int], float] = {}
    for known in counts:
        times = {name: list[float]() for name in kept}
        for seed in range(seeds):  # in turns, so that a busy machine is busy for all
            for name in kept:
                times[name].append(suggestion(samplers()[name](seed), known, dims, seed))
        medians.update({(name, known): float(np.median(times[name])) for name in kept})
    print(f"{f'ms, {dims} parameters':<20}", *(f"{known:>9}" for known in counts))
    for name in kept:
        print(f"{name:<20}", *(f"{1e3 * medians[name, known]:>9.1f}" for known in counts))
    if "GPSampler" in kept:
        ratios = [medians["GPSampler", known] / medians[OURS, known] for known in counts]
        print(f"{'times as fast':<20}", *(f"{ratio:>9.2f}" for ratio in ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time Optuna's samplers beside ours.")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--known", help="numbers of trials after which a suggestion is timed")
    parser.add_argument("--dims", type=int, default=6)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    if arguments.known:
        timed([int(n) for n in arguments.known.split(",")], arguments.dims, arguments.seeds)
        return
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
