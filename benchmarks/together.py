"""Federations beside the best ways to search alone, on the problems of the suite.

Usage: python benchmarks/together.py [--split design] [--problems bowl,steep] [--agents 100]
       [--epsilon 1] [--delta 1e-5|paper] [--trials 50] [--runs 20] [--jobs 2]
       [--out results/together]
       [--entries sottovoce,sottovoce/control,solo/gpsampler] [--solo gp,solo/gpsampler]
       [--again sottovoce] [--device cuda]

What an entry may be says `sottovoce.lab.peers.together`. Regret is that of the best true value
tried so far, by trials in all, the initial ones included. "Best solo" is, for each problem, that
entry of --solo with the least mean regret after 30 trials, or at the end if there are fewer;
"needs" is how many trials an entry needs for what best solo has then. Intervals are of 95 %, paired
by run. Runs are kept in --out and not computed again; --again forgets those of an entry.
--delta paper is N^(-1.1).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sottovoce.federation.methods import METHODS
from sottovoce.lab.peers.comparison import (
    CHECKPOINTS,
    MARGIN,
    best_solo,
    carried,
    paired,
    trials_needed,
)
from sottovoce.lab.peers.searches import known_searches
from sottovoce.lab.peers.together import Federation, TogetherTask, curves_of
from sottovoce.lab.peers.work import do_all
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.suite import check_design, names_in, problems
from sottovoce.privacy.budget import paper_delta

Curves = dict[str, NDArray[np.float64]]


def usual_entries() -> str:
    alone = "gp" if "gp" in METHODS else "ts"
    entries = ["sottovoce", "sottovoce/control", "sottovoce/quiet", "sottovoce/local", "dp-hype"]
    peers = [f"solo/{name}" for name in known_searches() if name in ("gpsampler", "random")]
    return ",".join([*entries, alone, *peers])


def tasks_of(arguments: argparse.Namespace) -> dict[str, dict[str, list[TogetherTask]]]:
    names = names_in(arguments.problems) if arguments.problems else problems(arguments.split)
    paper = arguments.delta == "paper"
    delta = paper_delta(arguments.agents) if paper else float(arguments.delta)
    size = Federation(arguments.agents, arguments.trials, arguments.epsilon, delta)
    tasks: dict[str, dict[str, list[TogetherTask]]] = {}
    for problem in names:
        if arguments.split == "design":
            check_design(problem)
        most = problem_named(problem).setting.agents
        if most is not None and most < size.agents:
            print(f"{problem} has {most} agents: left out")
            continue
        tasks[problem] = {
            entry: [
                TogetherTask(
                    *(arguments.out, problem, entry, size, run, arguments.alone),
                    device=arguments.device,
                )
                for run in range(arguments.runs)
            ]
            for entry in arguments.entries.split(",")
        }
    return tasks


def table(problem: str, curves: Curves, solo: list[str]) -> dict[str, tuple[str, float, float]]:
    """Prints a problem's table; gives each entry's word against best solo, excess and trials."""
    best, after = best_solo(curves, solo)
    points = [n for n in CHECKPOINTS if n <= curves[best].shape[1]]
    print(
        f"\n{problem}: mean regret by trials in all; against {best}, the best solo, after {after}"
    )
    print(f"{'':<20}", *(f"{n:>8}" for n in points), f"{'difference':>22} {'needs':>6}")
    target, said = float(curves[best][:, after - 1].mean()), {}
    for entry, each in curves.items():
        judged = paired(each[:, after - 1], curves[best][:, after - 1])
        needs = trials_needed(each.mean(axis=0), target)
        cells = [f"{each[:, n - 1].mean():>8.4f}" for n in points]
        difference = f"{judged.mean:+.4f} ± {judged.reach:.4f} {judged.word}"
        print(f"{entry:<20}", *cells, f"{difference:>22} {needs:>6.0f}")
        excess = judged.ours / judged.other - 1 if judged.other > 0 else 0.0
        said[entry] = judged.word, excess, needs
    return said


def summary(
    words: dict[str, dict[str, tuple[str, float, float]]], found: dict[str, Curves]
) -> None:
    count = len(words)
    print(f"\nover {count} problems: against the best solo search, and trials needed for its best")
    head = ("better", "worse", "> 3 % up", "needs, median", "better than control")
    print(f"{'':<20}", *(f"{word:>20}" for word in head))
    for entry in next(iter(words.values())):
        each = [said[entry] for said in words.values()]
        better = sum(word == "better" for word, _, _ in each)
        worse = sum(word == "worse" for word, _, _ in each)
        beyond = sum(excess > MARGIN for _, excess, _ in each)
        control, won = f"{entry}/control", "–"
        if all(control in curves for curves in found.values()):
            wins = [
                paired(curves[entry].mean(axis=1), curves[control].mean(axis=1)).word == "better"
                for curves in found.values()
            ]
            won = f"{sum(wins)}"
        cells = (better, worse, beyond, f"{np.median([needs for _, _, needs in each]):.0f}", won)
        print(f"{entry:<20}", *(f"{cell:>20}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare federations with searching alone.")
    parser.add_argument("--split", choices=("design", "test"), default="design")
    parser.add_argument("--problems", help="names with commas between; default: all of the split")
    parser.add_argument("--entries", default=usual_entries())
    parser.add_argument("--solo", default="gp,ts,solo/gpsampler,solo/sottovoce,solo/tpe")
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--alone", type=int, default=4, help="agents of each solo/ search")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", default="1e-5", help="a number, or paper: N^(-1.1)")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", help="a device of PyTorch's, in place of NumPy")
    parser.add_argument("--out", type=Path, default=Path("results/together"))
    parser.add_argument("--again", help="forget the kept runs of this entry")
    arguments = parser.parse_args()
    tasks = tasks_of(arguments)
    every = [task for each in tasks.values() for runs in each.values() for task in runs]
    for task in every:
        if task.entry == arguments.again:
            task.path.unlink(missing_ok=True)
    do_all([task for task in every if not task.path.is_file()], arguments.jobs)
    found = {
        problem: carried({entry: curves_of(runs) for entry, runs in each.items()})
        for problem, each in tasks.items()
    }
    solo = arguments.solo.split(",")
    words = {problem: table(problem, curves, solo) for problem, curves in found.items()}
    summary(words, found)
    spent = {entry: runs[0].result().epsilon for entry, runs in next(iter(tasks.values())).items()}
    said = (f"{entry} {'∞' if e is None else f'{e:.3f}'}" for entry, e in spent.items())
    print(f"\nε at δ = {arguments.delta} (zero-out adjacency):", ", ".join(said))


if __name__ == "__main__":
    main()
