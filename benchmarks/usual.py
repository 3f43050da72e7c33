"""What functions of tuning usually look like: the table of `gp.usual`, and what it is worth.

Usage: python benchmarks/usual.py table [--write]
       python benchmarks/usual.py compare [--agents 16] [--epsilon 6] [--runs 2] [--jobs 2]
                                          [--out results/usual]

table: learnt from DESIGN families; printed, or written into src/sottovoce/gp/usual.py.
compare: regret after 10, 20 and 30 trials on each DESIGN problem, of searches that begin with what
all other DESIGN families teach, its own left out, and of those that begin with nothing (`flat`).
Runs are kept, and not computed again. No TEST problem is looked at.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from sottovoce.files import write_text
from sottovoce.gp import usual
from sottovoce.lab.peers.together import Federation, TogetherTask, curves_of
from sottovoce.lab.peers.usual import table_without
from sottovoce.lab.peers.work import do_all
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.suite import problems

DIGITS = 3
HEAD = "WEIGHTS: Table = {"
ENTRIES = ("gp/flat", "gp", "sottovoce/flat", "sottovoce")
AFTER = (10, 20, 30)
SEED = 300  # nothing reported elsewhere was measured on it
LEAST = 1e-5  # of a regret: below it nobody cares

without = lru_cache(table_without)


@dataclass(frozen=True)
class Unseen:
    """A run that knows nothing of its problem's family."""

    task: TogetherTask

    def __call__(self) -> str:
        """Do it, with a table of its own."""
        usual.WEIGHTS = without(self.task.problem.partition(":")[0])
        return self.task()


def lines() -> list[str]:
    """The table as it stands in the module."""
    rows = [HEAD]
    for kind, (mean, square, families) in sorted(table_without().items()):
        rounded = f"{round(mean, DIGITS) + 0.0}, {round(square, DIGITS)}, {families}"
        words = ", ".join(f'("{word}", {order})' for word, order in kind)
        rows.append(f"    ({words}{',' if len(kind) == 1 else ''}): ({rounded}),")
    return [*rows, "}"]


def table(arguments: argparse.Namespace) -> None:
    text = "\n".join(lines()) + "\n"
    if not arguments.write:
        print(text, end="")
        return
    path = Path(usual.__file__)
    write_text(path, path.read_text("utf-8").partition(HEAD)[0] + text)


def compare(arguments: argparse.Namespace) -> None:
    size = Federation(arguments.agents, AFTER[-1], arguments.epsilon)
    large = {name: problem_named(name).setting.agents for name in problems("design")}
    names = [name for name, most in large.items() if most is None or most >= size.agents]
    tasks = {
        (name, entry): [
            TogetherTask(arguments.out, name, entry, size, run, seed=SEED)
            for run in range(arguments.runs)
        ]
        for name in names
        for entry in ENTRIES
    }
    do_all([Unseen(task) for some in tasks.values() for task in some], arguments.jobs)
    print(f"{'after 10, 20, 30':<16}" + "".join(f"{entry:>26}" for entry in ENTRIES))
    logs: dict[str, list[list[float]]] = {entry: [] for entry in ENTRIES}
    for name in names:
        row = ""
        for entry in ENTRIES:
            curve = curves_of(tasks[name, entry]).mean(axis=0)
            regret = [float(curve[k - 1]) for k in AFTER]
            logs[entry].append([float(np.log(max(r, LEAST))) for r in regret])
            row += f"{' '.join(f'{r:.4f}' for r in regret):>26}"
        print(f"{name:<16}{row}")
    for entry in ("gp", "sottovoce"):
        gained = np.asarray(logs[entry]) - np.asarray(logs[f"{entry}/flat"])
        share = np.exp(gained.mean(axis=0))
        words = " ".join(f"{x:.2f}" for x in share)
        print(f"{entry}: {words} times the regret of its `flat` (geometric mean over problems)")


def main() -> None:
    parser = argparse.ArgumentParser(description="What functions of tuning usually look like.")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("table")
    one.set_defaults(do=table)
    one.add_argument("--write", action="store_true", help="into the module, not to the screen")
    other = commands.add_parser("compare")
    other.set_defaults(do=compare)
    other.add_argument("--agents", type=int, default=16)
    other.add_argument("--epsilon", type=float, default=6.0)
    other.add_argument("--runs", type=int, default=2)
    other.add_argument("--jobs", type=int, default=2)
    other.add_argument("--out", type=Path, default=Path("results/usual"))
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
