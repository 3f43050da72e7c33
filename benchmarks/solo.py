"""Ways to search alone, on the problems of the suite: what each has found after so many trials.

Usage: python benchmarks/solo.py [--split design] [--problems bowl,steep] [--searches tpe,random]
       [--seeds 20] [--trials 60] [--jobs 2] [--out results/solo] [--again sottovoce] [--base tpe]

Regret is that of the best true value tried so far; trials are counted from the first. Intervals
are of 95 %, paired by seed. Runs are kept in --out and not computed again; --again forgets those
of a search, as after it was changed. TEST problems are run with --split test only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sottovoce.lab.peers.comparison import CHECKPOINTS, filled, mean_ranks, paired
from sottovoce.lab.peers.searches import known_searches
from sottovoce.lab.peers.solo import SoloTask, regrets
from sottovoce.lab.peers.work import do_all
from sottovoce.lab.problems.suite import check_design, names_in, problems

FIRST = 10  # asks that are not timed: random for most


def tasks_of(arguments: argparse.Namespace) -> dict[str, dict[str, list[SoloTask]]]:
    names = names_in(arguments.problems) if arguments.problems else problems(arguments.split)
    searches = arguments.searches.split(",") if arguments.searches else known_searches()
    if arguments.split == "design":
        for name in names:
            check_design(name)
    return {
        problem: {
            search: [
                SoloTask(arguments.out, problem, search, run, arguments.trials)
                for run in range(arguments.seeds)
            ]
            for search in searches
        }
        for problem in names
    }


def tables(found: dict[str, dict[str, NDArray[np.float64]]], base: str) -> None:
    trials = next(iter(next(iter(found.values())).values())).shape[1]
    points = [n for n in CHECKPOINTS if n <= trials]
    means: dict[int, list[dict[str, float]]] = {n: [] for n in points}
    for problem, by_search in found.items():
        print(f"\n{problem}: mean regret after so many trials; ± 95 % of the difference to {base}")
        print(f"{'':<12}", *(f"{n:>24}" for n in points))
        for search, each in by_search.items():
            cells = []
            for n in points:
                judged = paired(each[:, n - 1], by_search[base][:, n - 1])
                cells.append(f"{judged.ours:.4f} ± {judged.reach:.4f} {judged.word:<6}")
            print(f"{search:<12}", *(f"{cell:>24}" for cell in cells))
        for n in points:
            means[n].append({name: float(r[:, n - 1].mean()) for name, r in by_search.items()})
    print(f"\nmean rank over {len(found)} problems (1 is best)")
    print(f"{'':<12}", *(f"{n:>7}" for n in points))
    for search in next(iter(found.values())):
        print(f"{search:<12}", *(f"{mean_ranks(means[n])[search]:>7.2f}" for n in points))


def timings(tasks: dict[str, dict[str, list[SoloTask]]], base: str) -> None:
    print(
        f"\nms a suggestion after the first {FIRST} trials, median over all; and {base}'s over it"
    )
    by_search: dict[str, list[float]] = {}
    for each in tasks.values():
        for search, runs in each.items():
            later = [s for run in runs for s in run.result().seconds[FIRST:]]
            by_search.setdefault(search, []).extend(later)
    medians = {search: 1e3 * float(np.median(each)) for search, each in by_search.items() if each}
    for search, ms in medians.items():
        print(f"{search:<12} {ms:>9.2f} {medians[base] / ms:>7.1f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare ways to search alone.")
    parser.add_argument("--split", choices=("design", "test"), default="design")
    parser.add_argument("--problems", help="names with commas between; default: all of the split")
    parser.add_argument("--searches", help="names with commas between; default: all there are")
    parser.add_argument("--base", default="gpsampler", help="the search others are compared with")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/solo"))
    parser.add_argument("--again", help="forget the kept runs of this search")
    arguments = parser.parse_args()
    tasks = tasks_of(arguments)
    every = [task for each in tasks.values() for runs in each.values() for task in runs]
    for task in every:
        if task.search == arguments.again:
            task.path.unlink(missing_ok=True)
    do_all([task for task in every if not task.path.is_file()], arguments.jobs)
    found = {
        problem: filled({search: regrets(runs) for search, runs in each.items()})
        for problem, each in tasks.items()
    }
    tables(found, arguments.base)
    timings(tasks, arguments.base)


if __name__ == "__main__":
    main()
