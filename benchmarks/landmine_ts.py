"""What sets solo Thompson sampling on landmine apart from the curve that the authors published.

    python benchmarks/landmine_ts.py [--runs 10] [--seed 0] [--jobs 1]

1 − AUC, the mean over 29 fields, after t queries beyond the initial ones; scores come from the
table. Each variant changes one thing, or two, of what an agent that goes alone does:

- standardised: values have mean 0 and variance 1 before a surrogate takes them.
- own quarter: initial points come from one of 4 regions, agent n's from region n mod 4.
- repeats: a point may be tried again.
- features: what is drawn is not the exact posterior but that of 100 random Fourier features of
  the fitted kernel, fresh for each draw. `thompson.own_in_box` is replaced while such a run
  goes on; the normals are the same.

± runs: standard error of the mean over runs at t = 60, the fields being given. ± all: the same
over all fields and runs, as the authors count it; most of it is how the fields differ, which is
the same for all rows. apart: mean over the t shown of the absolute difference to the authors.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import repeat
from multiprocessing import get_context
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sottovoce.acquisition import thompson
from sottovoce.acquisition.maximise import over_boxes
from sottovoce.arrays import Array
from sottovoce.federation.methods import TS, for_real_world
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp import posterior
from sottovoce.gp.history import History, known_rows
from sottovoce.gp.kernel import Kernel, lifted
from sottovoce.lab.problems.landmine import FIELDS, SPACE, Landmine
from sottovoce.simulation import Draws, simulate
from sottovoce.simulation.problem import Objectives, Setting
from sottovoce.space.regions import Regions

ROUNDS = 60
FEATURES = 100
SHOWN = [0, 1, 5, 10, 20, 30, 40, 50, 60]
AUTHORS = np.asarray([0.3152, 0.2961, 0.2766, 0.2595, 0.2489, 0.2451, 0.2421, 0.2397, 0.2375])


@dataclass(frozen=True)
class Variant:
    """A solo agent that differs from ours in the ways named."""

    name: str
    standardised: bool = False
    own_quarter: bool = False
    repeats: bool = False
    features: bool = False


VARIANTS = (
    Variant("ours"),
    Variant("standardised", standardised=True),
    Variant("own quarter", own_quarter=True),
    Variant("repeats", repeats=True),
    Variant("features", features=True),
    Variant("own quarter, features", own_quarter=True, features=True),
    Variant("own quarter, standardised", own_quarter=True, standardised=True),
)


@dataclass(frozen=True)
class Modelled:
    """Landmine, its agents with another surrogate."""

    surrogate: Surrogate
    usual: Landmine

    @property
    def name(self) -> str:
        """The usual one's."""
        return self.usual.name

    @property
    def setting(self) -> Setting:
        """The usual one, but for the surrogate."""
        return replace(self.usual.setting, surrogate=self.surrogate)

    def draw(self, agents: int, random: np.random.Generator) -> Objectives:
        """The usual ones."""
        return self.usual.draw(agents, random)


def by_features(
    kernel: Kernel,
    history: History,
    draws: thompson.PathDraws,
    everywhere: Regions,
    scale: float,
) -> Array:
    """As `thompson.own_in_box`, by φ_j(x) = sqrt(2σ²/M) cos(s_j·x/ℓ + b_j) and ω ~ N(ν, λΣ⁻¹)."""
    s = kernel.scaled(draws.frequencies[:, :FEATURES])
    prior = draws.amplitudes[:, :FEATURES, 0]
    b = 2 * np.pi * ndtr(draws.amplitudes[:, :FEATURES, 1])  # uniform, by normals of their own
    size = lifted((2 * kernel.variance / FEATURES) ** 0.5, 1)
    waves = np.cos(history.points @ s.mT + b[:, None, :])
    rows = known_rows(lifted(size, 1) * waves, history.mask)
    weights = posterior.draw(rows, history.values, kernel.noise, prior, draws.noise, scale)
    none = np.zeros_like(history.values)
    drawn = posterior.PathwiseDraw(s, b, size * weights, history.points, none, kernel)
    return over_boxes(drawn, draws.candidates, everywhere)[0]


def curves(variant: Variant, seed: int, run: int) -> NDArray[np.float64]:
    """1 − AUC of one run, (N, T + 1)."""
    ts = for_real_world(TS)
    if variant.own_quarter:
        ts = replace(ts, initial_design="region", regions=4)
    if variant.repeats:
        ts = replace(ts, repeats="allow")
    problem = Modelled(Surrogate(None, 5, variant.standardised), Landmine())
    study = FederatedStudy(SPACE, ts, FIELDS, ROUNDS)
    replaced = patch.object(thompson, "own_in_box", by_features)
    with replaced if variant.features else nullcontext():
        return simulate(study, problem, Draws(seed, run)).simple_regret


def row(name: str, means: NDArray[np.float64]) -> str:
    return f"{name:<27}" + "".join(f"{mean:>7.4f}" for mean in means)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="at least 2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error("--runs must be at least 2: a standard error needs them")
    heads = "".join(f"{f't={t}':>7}" for t in SHOWN)
    print(f"{'':<27}{heads}  ± runs   ± all   apart")
    print(f"{row('authors', AUTHORS)}           .005")
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for variant in VARIANTS:
            found = pool.map(curves, repeat(variant), repeat(options.seed), range(options.runs))
            each = np.stack(list(found))[:, :, SHOWN]  # (runs, N, shown)
            means, last = each.mean(axis=(0, 1)), each[:, :, -1]
            by_run = np.std(last.mean(axis=1), ddof=1) / len(last) ** 0.5
            by_all = np.std(last, ddof=1) / last.size**0.5
            apart = np.mean(np.abs(means - AUTHORS))
            print(
                f"{row(variant.name, means)}{by_run:>8.4f}{by_all:>8.4f}{apart:>8.4f}", flush=True
            )


if __name__ == "__main__":
    main()
