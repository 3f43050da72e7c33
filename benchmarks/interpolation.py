"""How best to guess scores between the points of a table, by cross-validation on its design.

    python benchmarks/interpolation.py [landmine har ...] [--folds 10] [--json FILE]

The points of the design are dealt into folds; each is guessed from the others (corners of the
cube are always known, so that nothing is beyond the known points). The points that the table
holds out are not used: they test the choice that is made here.

Guesses: linear on the Delaunay triangulation; the nearest point; averages of k neighbours
weighted by 1/distance²; local linear regressions on k neighbours; thin plate splines through 60
neighbours, exact or smoothed; and linear after each score was replaced by a local regression's.
All work over v, in which the design is even (see `problems/design.py`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator
from scipy.spatial import Delaunay, cKDTree

from sottovoce.lab.problems.table import Table, known_tables, load_table

Array = NDArray[np.float64]
Guess = Callable[[Array, Array, Array], Array]  # known (k, D), scores (N, k), asked (s, D): (N, s)


def linear(known: Array, scores: Array, asked: Array) -> Array:
    mesh = Delaunay(known)
    simplex = mesh.find_simplex(asked)
    transform = mesh.transform[simplex]
    first = np.einsum("sij,sj->si", transform[:, :-1], asked - transform[:, -1])
    weights = np.column_stack([first, 1 - first.sum(axis=1)])
    return np.asarray(np.einsum("nsk,sk->ns", scores[:, mesh.simplices[simplex]], weights))


def average(known: Array, scores: Array, asked: Array, neighbours: int) -> Array:
    distance, near = cKDTree(known).query(asked, range(1, neighbours + 1))
    weights = 1 / (distance + 1e-12) ** 2
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(np.einsum("nsk,sk->ns", scores[:, near], weights))


def regression(known: Array, scores: Array, asked: Array, neighbours: int) -> Array:
    distance, near = cKDTree(known).query(asked, neighbours)
    weights = (1 - (distance / (1.05 * distance[:, -1:])) ** 2) ** 2
    offsets = known[near] - asked[:, None]
    columns = np.concatenate([np.ones((*near.shape, 1)), offsets], axis=-1)
    weighted = columns * weights[..., None]
    gram = np.einsum("ski,skj->sij", weighted, columns)
    gram += 1e-9 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(gram.shape[-1])
    at_offset_0 = np.linalg.solve(gram, np.einsum("ski,nsk->sin", weighted, scores[:, near]))
    return np.asarray(at_offset_0[:, 0].T)


def spline(known: Array, scores: Array, asked: Array, smoothing: float) -> Array:
    return np.asarray(RBFInterpolator(known, scores.T, neighbors=60, smoothing=smoothing)(asked).T)


def linear_after_smoothing(known: Array, scores: Array, asked: Array, neighbours: int) -> Array:
    return linear(known, regression(known, scores, known, neighbours), asked)


GUESSES: dict[str, Guess] = {
    "linear": linear,
    "nearest": partial(average, neighbours=1),
    "average of 3": partial(average, neighbours=3),
    "average of 6": partial(average, neighbours=6),
    "average of 12": partial(average, neighbours=12),
    "regression on 8": partial(regression, neighbours=8),
    "regression on 16": partial(regression, neighbours=16),
    "spline": partial(spline, smoothing=0.0),
    "spline, smoothed": partial(spline, smoothing=1e-3),
    "smoothed over 8, then linear": partial(linear_after_smoothing, neighbours=8),
    "smoothed over 16, then linear": partial(linear_after_smoothing, neighbours=16),
}


def errors(table: Table, guess: Guess, folds: int) -> dict[str, float]:
    v = table.points ** (1 / table.powers)
    fold = np.random.default_rng(0).integers(folds, size=len(v))
    corners = np.all((v == v.min(axis=0)) | (v == v.max(axis=0)), axis=1)
    fold[corners] = -1
    error = np.zeros_like(table.values)
    for number in range(folds):
        asked, known = fold == number, fold != number
        guessed = np.clip(guess(v[known], table.values[:, known], v[asked]), 0.0, 1.0)
        error[:, asked] = guessed - table.values[:, asked]
    best = table.values >= np.quantile(table.values, 0.9, axis=1, keepdims=True)
    return {
        "mean": float(np.mean(np.abs(error[:, ~corners]))),
        "rms": float(np.sqrt(np.mean(error[:, ~corners] ** 2))),
        "best": float(np.mean(np.abs(error[best & ~corners]))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="tables; default: all")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = dict[str, dict[str, dict[str, float]]]()
    for name in options.names or known_tables():
        table, results[name] = load_table(name), {}
        print(f"{name}: {table.agents} agents, {len(table.points)} points")
        print(f"  {'':30} mean |error|     rms  mean |error|, best tenth")
        for label, guess in GUESSES.items():
            found = results[name][label] = errors(table, guess, options.folds)
            print(f"  {label:30} {found['mean']:12.5f} {found['rms']:7.4f} {found['best']:12.5f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
