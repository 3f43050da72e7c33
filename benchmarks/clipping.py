"""What the share of clipped vectors depends on: the round, the level of the values, the features.

    python benchmarks/clipping.py [--runs 40]

DP-FTS-DE (P = 2, S = 11) and DP-FTS (S = 8) on the synthetic problem, q = 0.25, z = 1, with values
as they come and with 0.5 subtracted from every one. Each run has its own function and features.
"""

from __future__ import annotations

import argparse

import numpy as np

from sottovoce.federation.methods import DP_FTS, DP_FTS_DE
from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.problems.synthetic import SPACE, Synthetic
from sottovoce.simulation import Draws, simulate


def main() -> None:
    parser = argparse.ArgumentParser(description="Where clipped vectors come from.")
    parser.add_argument("--runs", type=int, default=40)
    runs = parser.parse_args().runs
    print(f"{'method':<11}{'values':<9}{'mean':>7}{'median':>8}{'most':>8}   median in rounds")
    for method in (DP_FTS_DE, DP_FTS):
        for level, name in ((0.0, "raw"), (0.5, "lowered")):
            study = FederatedStudy(SPACE, method, 200, 40)
            outcomes = [
                simulate(study, Synthetic(level=level), Draws(0, run)) for run in range(runs)
            ]
            shares = np.asarray([[d.clipped for d in o.diagnostics] for o in outcomes])
            each, by_round = shares.mean(axis=1), np.median(shares, axis=0)
            spans = ((0, 1), (5, 10), (10, 20), (20, 40))
            parts = [f"{a}-{b - 1}: {by_round[a:b].mean():.2%}" for a, b in spans]
            row = f"{method.name:<11}{name:<9}{each.mean():>7.2%}{np.median(each):>8.2%}"
            print(f"{row}{each.max():>8.1%}   {', '.join(parts)}")


if __name__ == "__main__":
    main()
