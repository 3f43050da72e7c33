"""How the authors' landmine score differs from that of the decision function.

    python benchmarks/platt.py [--trials 20] [--seed 0]

So many random settings for each of 29 fields, each trained once: the AUC of the decision function,
and of the probabilities that Platt scaling makes of it (`landmine:score=probability`). Where its
slope has the wrong sign the ranking is mirrored: the score is then 1 minus the other.
"""

from __future__ import annotations

import argparse

import numpy as np

from sottovoce.device import device_named
from sottovoce.lab.problems.landmine import FIELDS, SPACE, Landmine

START = 10  # initial points of an agent


def main() -> None:
    parser = argparse.ArgumentParser(description="The authors' landmine score.")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.trials < START:
        parser.error(f"--trials must be at least {START}")
    random, here = np.random.default_rng(options.seed), device_named(None)
    agents = np.repeat(np.arange(FIELDS), options.trials)
    points = random.random((agents.size, SPACE.dims))
    trainers = (Landmine().trainer(here), Landmine(score="probability", training=0).trainer(here))
    plain, authors = (trainer.scores(agents, points) for trainer in trainers)
    off = np.abs(authors - plain)
    mirrored = np.isclose(authors, 1 - plain) & ~np.isclose(authors, plain)
    print(f"{agents.size} trials: equal in {np.mean(np.isclose(off, 0)):.0%}, ", end="")
    print(f"mirrored in {np.mean(mirrored):.0%}, apart by {off.mean():.3f} on average")
    for name, scores in (("decision function", plain), ("the authors'", authors)):
        sets = scores.reshape(FIELDS, -1)[:, : options.trials // START * START]
        best = sets.reshape(FIELDS, -1, START).max(axis=2)
        print(f"1 − AUC, best of {START} random trials, {name}: {1 - best.mean():.3f}")


if __name__ == "__main__":
    main()
