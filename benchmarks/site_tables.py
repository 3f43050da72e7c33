"""The tables of learners tuned by sites: makes them, and tells how far they are from live models.

Usage: python benchmarks/site_tables.py make [svm:data=digits ...] [--jobs 2] [--points 96]
       python benchmarks/site_tables.py check [svm:data=digits ...]

`make` trains every site's model at every point of a public design and at 12 others, and fits the
GPs that go through the scores. A table that is there is not made again. `check` prints, for the
points held out, the error of the table beside the scores' own spread (DESIGN problems only,
unless they are named).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import multiprocessing
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc, spearmanr

from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.learners import LearnerProblem
from sottovoce.lab.problems.sites import SEED, dealt
from sottovoce.lab.problems.sitetable import SiteTable, Smooth, folder, load_site_table
from sottovoce.lab.problems.suite import TUNED

POINTS, HELD_OUT = 96, 12
EDGE = 0.05  # this share of a parameter's points lies on each of its ends

FloatArray = NDArray[np.float64]


def design(problem: LearnerProblem, count: int) -> tuple[FloatArray, FloatArray]:
    """Points to train at, and others, (K, D) and (H, D)."""
    space = problem.space
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a number of points is no power of two
        u = qmc.Sobol(space.dims, seed=SEED).random(count)
    known = np.clip(u * (1 + 2 * EDGE) - EDGE, 0, 1)
    held = np.random.default_rng(SEED).random((HELD_OUT, space.dims))
    points = [np.asarray(space.snap(each)) for each in (known, held)]
    one, other = (each.astype(np.float32).astype(np.float64) for each in points)
    return one, other


def scores(name: str, sites: range, points: FloatArray) -> FloatArray:
    problem = problem_named(name)
    assert isinstance(problem, LearnerProblem)
    every = dealt(problem.data, problem.sites)
    rows = [
        [problem.trained(problem.space.decode(point), every[n]) for point in points] for n in sites
    ]
    return np.asarray(rows)


def fitted(points: FloatArray, values: FloatArray) -> Smooth:
    """By marginal likelihood, summed over the columns of (K, n) values."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    size = max(float(values.var()), 1e-8)
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(
        np.full(points.shape[1], 1.0), (0.1, 30.0), nu=2.5
    ) + WhiteKernel(0.1, (1e-4, 2.0))
    process = GaussianProcessRegressor(kernel, random_state=0, n_restarts_optimizer=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length scale at its bound: a parameter without effect
        process.fit(points, values / size**0.5)
    found = process.kernel_
    scales = tuple(float(f"{x:.6g}") for x in found.k1.k2.length_scale)
    return Smooth(
        scales, float(found.k1.k1.constant_value) * size, float(found.k2.noise_level) * size
    )


def make(name: str, jobs: int, count: int) -> None:
    problem = problem_named(name)
    assert isinstance(problem, LearnerProblem)
    path = folder() / f"{problem.table}.npz"
    if path.is_file():
        return
    begun = time.perf_counter()
    known, held = design(problem, count)
    every = np.concatenate([known, held])
    parts = [range(k, k + 5) for k in range(0, problem.sites, 5)]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        found = pool.map(scores, [name] * len(parts), parts, [every] * len(parts))
        values = np.concatenate(list(found))
    ours, others = values[:, : len(known)], values[:, len(known) :]
    mean = ours.mean(axis=0)
    common = fitted(known, (mean - mean.mean())[:, None])
    own = fitted(known, (ours - mean).T)
    SiteTable(known, ours, held, others, common, own, problem.space).save(path)
    print(f"{name}: {values.size} models, {time.perf_counter() - begun:.0f} s", flush=True)


def check(name: str) -> None:
    problem = problem_named(name)
    assert isinstance(problem, LearnerProblem)
    table = load_site_table(problem.table)
    guessed, true = table.smooth(table.held_points).T, table.held_values
    ranks = [spearmanr(g, t).statistic for g, t in zip(guessed, true, strict=True) if np.ptp(t) > 0]
    columns = (
        f"{np.sqrt(np.mean((guessed - true) ** 2)):>10.4f}",
        f"{np.sqrt(table.own.noise):>10.4f}",
        f"{np.mean(true.std(axis=1)):>10.4f}",
        f"{np.mean(ranks):>10.2f}",
        f"{true.mean(axis=0).std():>10.4f}",
    )
    print(f"{name:<28}", *columns)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make or check the tables of tuned learners.")
    parser.add_argument("what", choices=("make", "check"))
    parser.add_argument("problems", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--points", type=int, default=POINTS)
    arguments = parser.parse_args()
    if arguments.what == "make":
        for name in arguments.problems or (*TUNED["design"], *TUNED["test"]):
            make(name, arguments.jobs, arguments.points)
        return
    print("held-out points: error of the table, noise it reports, spread of a site's scores,")
    print("rank correlation with trained models, spread of the mean over sites")
    print(f"{'':<28}", *(f"{word:>10}" for word in ("rms", "noise", "spread", "rank", "common")))
    for name in arguments.problems or TUNED["design"]:
        check(name)


if __name__ == "__main__":
    main()
