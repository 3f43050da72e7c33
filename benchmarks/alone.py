"""How near the curve of `flower/result/alone.py` comes to what going alone really gives.

Agents search alone by `gp`, so that the truth is known; each one's own trials then go into the
model that a site's result rests on, and its expected curve is set beside the real one.

    python benchmarks/alone.py [--agents 12] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

import numpy as np

from sottovoce.federation.methods import GP
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.result.alone import OwnModel
from sottovoce.lab.problems import problem_named
from sottovoce.simulation import Draws, simulate

PROBLEMS = ("branin", "hartmann3", "hartmann6", "ackley", "landmine", "har")
ROUNDS = (6, 15)
INITIAL = 4


def row(name: str, rounds: int, agents: int) -> dict[str, float | str | int]:
    """Mean gain over the initial trials: as it was, as it was expected, and how far each is off."""
    problem = problem_named(name)
    method = replace(GP, initial=INITIAL)
    count = problem.setting.agents or agents
    study = FederatedStudy(problem.setting.space, method, agents=count, rounds=rounds)
    outcome = simulate(study, problem, Draws(seed=1, run=0))
    gains, began = [], time.monotonic()
    for n in range(agents):
        seen = outcome.observed[n]
        model = OwnModel.fitted(study, outcome.points[n], seen)
        alone = None if model is None else model.alone(INITIAL, INITIAL + rounds, 1.0)
        if alone is None or alone.mean[-1] is None:
            continue
        start = np.nanmax(seen[:INITIAL])
        gains.append((np.nanmax(seen) - start, alone.mean[-1] - start))
    real, expected = np.asarray(gains).T
    return {
        "problem": name,
        "trials": INITIAL + rounds,
        "sites": len(gains),
        "gain": float(real.mean()),
        "expected": float(expected.mean()),
        "error": float(np.std(expected - real) / np.sqrt(len(gains))),
        "seconds": (time.monotonic() - began) / agents,
    }


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [row(name, rounds, options.agents) for rounds in ROUNDS for name in PROBLEMS]
    if options.json:
        print(json.dumps({"rows": rows}))
        return
    print("| problem | trials | gain alone | expected | ± | seconds a site |")
    print("|---|--:|--:|--:|--:|--:|")
    for r in rows:
        cells = [r["problem"], r["trials"], *(f"{r[k]:.4f}" for k in ("gain", "expected", "error"))]
        print(f"| {' | '.join(map(str, cells))} | {r['seconds']:.1f} |")


if __name__ == "__main__":
    main()
