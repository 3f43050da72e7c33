"""What all know after each release of `pooled-ts`, on the real problems.

Of the common function that everybody has learnt by then, the best of many points is taken, and
what it is worth to the agents: how much better the best of their first trials becomes by one more
there. Beside it the same for noise alone, and for the best point for all, which nobody knows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.problems import problem_named
from sottovoce.simulation import Draws, simulate
from sottovoce.simulation.problem import Problem

EPSILON = {"landmine": 1.517, "har": 1.52, "digits": 1.57}  # a tenth of the paper's
RUNS = 20
POINTS = 3000
SEED = 2000  # nothing reported elsewhere was measured on it


def gains(study: FederatedStudy, problem: Problem, run: int) -> list[float]:
    """Of one more trial where what is known is largest, release by release; then the best there."""
    random = np.random.default_rng(run)
    points = random.random((POINTS, study.space.dims))
    outcome = simulate(study, problem, Draws(SEED, run))
    values = problem.draw(study.agents, Draws(SEED, run).stream("objectives")).values(
        np.broadcast_to(points, (study.agents, *points.shape))
    )
    first = np.nanmax(outcome.truth[:, : outcome.initial], axis=1)
    known = replace(study, feature_seed=study.feature_seed + run)
    said: NDArray[np.float64] = np.concatenate([v for _, v in sorted(outcome.broadcasts.items())])
    best = [
        int(np.argmax(known.features(points) @ known.shared_posterior(said[: k + 1]).mean))
        for k in range(len(said))
    ]
    best.append(int(values.mean(axis=0).argmax()))
    return [float(np.mean(np.maximum(values[:, k], first) - first)) for k in best]


def main() -> None:
    print(f"gain of one trial more, mean ± standard error over {RUNS} runs")
    head = [*(f"release {k}" for k in range(1, 5)), "best for all"]
    print(" " * 28, *(f"{word:>16}" for word in head))
    for name, epsilon in EPSILON.items():
        problem = problem_named(name)
        for method in ("pooled-ts", "pooled-ts-control"):
            config = RunConfig(problem=name, method=method, epsilon=epsilon, rounds=60)
            study = replace(config.study(), rounds=7)  # the noise is that of all the releases
            each = np.asarray([gains(study, problem, run) for run in range(RUNS)])
            error = each.std(axis=0, ddof=1) / np.sqrt(RUNS)
            columns = [f"{m:.4f} ± {e:.4f}" for m, e in zip(each.mean(axis=0), error, strict=True)]
            print(f"{name:>9} {method:<18}", *(f"{column:>16}" for column in columns), flush=True)


if __name__ == "__main__":
    main()
