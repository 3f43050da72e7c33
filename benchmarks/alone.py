"""How near what a result page says of going alone comes to what going alone really gives.

On DESIGN problems of the suite sites search together, by `sottovoce`, and once more alone, by `gp`,
from the same initial trials. Each site's own trials of the first go into the model that its result
rests on (`flower/result/alone.py`), whose expectation and band are set beside where the second came
to in the end: it is to be within the band in four of five cases.

    python benchmarks/alone.py [PROBLEM ...] [--sites 8] [--rounds 10] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, replace

import numpy as np

from sottovoce import plan_study
from sottovoce.federation.methods import GP
from sottovoce.flower.result.alone import OwnModel
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.suite import check_design
from sottovoce.simulation import Draws, simulate

PROBLEMS = (
    *("branin", "hartmann3", "levy", "rosenbrock", "steep", "few"),
    *("bowl", "choices", "svm", "boosting", "elasticnet"),
)
AGENTS, EPSILON, DELTA = 30, 2.0, 1e-5


@dataclass(frozen=True)
class Row:
    """Of one problem: gains over the best initial trial, in deviations of a site's values."""

    problem: str
    sites: int
    alone: float  # really
    expected: float
    together: float
    within: float  # share of sites whose search alone ended within the band
    worse: float  # share that ended worse than it
    seconds: float  # a site


def row(name: str, sites: int, rounds: int) -> Row:
    """The first sites of one federation."""
    check_design(name)
    problem = problem_named(name)
    space, agents = problem.setting.space, problem.setting.agents or AGENTS
    study = plan_study(space, agents=agents, rounds=rounds, epsilon=EPSILON, delta=DELTA)
    initial = study.method.initial
    solo = replace(study, method=replace(GP, initial=initial))
    draws = Draws(seed=1, run=0)
    together, alone = (simulate(each, problem, draws) for each in (study, solo))
    told, began = [], time.monotonic()
    for n in range(min(sites, agents)):
        seen = together.observed[n]
        model = OwnModel.fitted(study, together.points[n], seen)
        found = None if model is None else model.alone(initial, len(seen), 1.0)
        if found is None:
            continue
        start, spread = np.nanmax(seen[:initial]), np.nanstd(seen)
        ends = np.asarray([found.mean[-1], found.low[-1], found.high[-1]], dtype=float)
        real = np.nanmax(alone.observed[n])
        gains = [(each - start) / spread for each in (real, ends[0], np.nanmax(seen))]
        told.append((*gains, ends[1] <= real <= ends[2], real < ends[1]))
    means = np.mean(np.asarray(told, dtype=float), axis=0)
    solo_gain, expected, gain, within, worse = map(float, means)
    seconds = (time.monotonic() - began) / sites
    return Row(name, len(told), solo_gain, expected, gain, within, worse, seconds)


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--sites", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        print("| problem | sites | alone | expected | together | within | worse | seconds a site |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|")
    rows = []
    for name in options.problems:
        rows.append(row(name, options.sites, options.rounds))
        if not options.json:
            print(_line(rows[-1]), flush=True)
    if options.json:
        print(json.dumps({"rows": [vars(each) for each in rows]}))
    elif len(rows) > 1:
        print(_line(_mean(rows)))


def _mean(rows: list[Row]) -> Row:
    weights = [each.sites for each in rows]
    names = ("alone", "expected", "together", "within", "worse", "seconds")
    means = {n: float(np.average([getattr(r, n) for r in rows], weights=weights)) for n in names}
    return Row("all", sum(weights), **means)


def _line(of: Row) -> str:
    gains = (f"{each:.2f}" for each in (of.alone, of.expected, of.together, of.within, of.worse))
    return f"| `{of.problem}` | {of.sites} | {' | '.join(gains)} | {of.seconds:.1f} |"


if __name__ == "__main__":
    main()
