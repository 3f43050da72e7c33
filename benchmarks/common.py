"""How much the agents of the real problems have in common, by their tables.

A broadcast can tell an agent of what all have in common, and of nothing else. What it can be worth
shows in how much better the best of a few trials becomes when one more is the best point for all,
beside one more at random.
"""

from __future__ import annotations

import numpy as np

from sottovoce.lab.problems import problem_named

POINTS = 3000
ALONE = (10, 11, 20, 30)  # trials at random
FIRST = ALONE[0]


def main() -> None:
    print(f"{POINTS} random points; values to be maximised, mean over agents")
    head = ["problem", "common", "best for all", "each's best", *(f"best of {n}" for n in ALONE)]
    print(*(f"{word:>14}" for word in [*head, f"{FIRST} and it"]))
    for name in ("landmine", "har", "digits"):
        problem = problem_named(name)
        agents, dims = problem.setting.agents, problem.setting.space.dims
        assert agents is not None
        random = np.random.default_rng(0)
        points = np.broadcast_to(random.random((POINTS, dims)), (agents, POINTS, dims))
        values = problem.draw(agents, random).values(points)
        own = values - values.mean(axis=1, keepdims=True)
        own = own / own.std(axis=1, keepdims=True)
        # the mean of N independent functions has variance 1/N, which is not common
        common = (own.mean(axis=0).var() - 1 / agents) / (1 - 1 / agents)
        deals = [random.permutation(POINTS) for _ in range(200)]
        alone = [np.mean([values[:, deal[:n]].max(axis=1) for deal in deals]) for n in ALONE]
        shared = values[:, values.mean(axis=0).argmax()]
        joined = [np.maximum(values[:, deal[:FIRST]].max(axis=1), shared) for deal in deals]
        best = [shared.mean(), values.max(axis=1).mean(), *alone, np.mean(joined)]
        print(f"{name:>14} {common:>14.1%}", *(f"{value:>14.4f}" for value in best))


if __name__ == "__main__":
    main()
