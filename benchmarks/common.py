"""How much the agents of the real problems have in common, by their tables.

A broadcast can tell an agent of what all have in common, and of nothing else. So what it can be
worth is bounded by how good the best point for all is, beside what an agent finds by itself.
"""

from __future__ import annotations

import numpy as np

from sottovoce.problems import problem_named

POINTS = 3000
ALONE = (10, 15, 20, 30)  # trials at random


def main() -> None:
    print(f"{POINTS} random points; values to be maximised, mean over agents")
    head = ["problem", "common", "best for all", "each's best"]
    print(*(f"{word:>14}" for word in [*head, *(f"best of {n}" for n in ALONE)]))
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
        alone = [
            np.mean([values[:, random.permutation(POINTS)[:n]].max(axis=1) for _ in range(200)])
            for n in ALONE
        ]
        best = [values.mean(axis=0).max(), values.max(axis=1).mean(), *alone]
        print(f"{name:>14} {common:>14.1%}", *(f"{value:>14.4f}" for value in best))


if __name__ == "__main__":
    main()
