"""Data that come with scikit-learn, dealt to sites with skewed labels and sizes.

The rows of a data set are halved once: one half to train on, one to validate on. A site has rows
of its own: from 40 to 120 to train on, evenly in the logarithm, and 150 to validate on, none of
them twice. Its labels are skewed: each class has a weight from a flat Dirichlet distribution, and
rows are drawn by these weights; where the target is a number, by exp(κ · (target, in deviations)),
κ ~ N(0, 1/2). Small data sets are dealt to many sites, so that two sites may have rows in common,
as hospitals of one country have patients. All of it follows from a fixed seed.

`blobs` and `lines` are generated, for classification and regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput, MissingExtra, suggestion

SEED = 20211206
SMALLEST, LARGEST = 40, 120
VALIDATION = 150
CLASSES = {"digits": 10, "wine": 3, "cancer": 2, "blobs": 3, "diabetes": 0, "lines": 0}

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Site:
    """One agent's data; y are classes 0, 1, ..., or numbers of variance about 1."""

    train_x: FloatArray
    train_y: NDArray[Any]
    valid_x: FloatArray
    valid_y: NDArray[Any]

    @property
    def classes(self) -> bool:
        """Whether y are classes."""
        return bool(self.train_y.dtype.kind == "i")


@lru_cache(maxsize=2)
def dealt(data: str, sites: int) -> tuple[Site, ...]:
    """The data of the sites; more sites change nothing for the first."""
    x, y = _read(data)
    order = np.random.default_rng(SEED).permutation(len(y))
    halves = np.sort(order[: len(y) // 2]), np.sort(order[len(y) // 2 :])
    return tuple(_site(x, y, halves, np.random.default_rng([SEED, n])) for n in range(sites))


def _read(data: str) -> tuple[FloatArray, NDArray[Any]]:
    """Features in deviations, and the target."""
    if data not in CLASSES:
        raise InvalidInput(f"unknown data {data!r}; {suggestion(data, CLASSES)}")
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingExtra("dealing data to sites", "experiments") from error
    if data == "blobs":
        x, y = datasets.make_classification(
            3000, 12, n_informative=5, n_redundant=3, n_classes=3, flip_y=0.05, random_state=SEED
        )
    elif data == "lines":
        x, y = datasets.make_regression(
            2000, 30, n_informative=8, effective_rank=12, noise=2.0, random_state=SEED
        )
    else:
        name = {"cancer": "breast_cancer"}.get(data, data)
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    if CLASSES[data]:
        return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.int64)
    return np.asarray(x, dtype=np.float64), np.asarray((y - y.mean()) / y.std())


def _site(
    x: FloatArray,
    y: NDArray[Any],
    halves: tuple[NDArray[np.int64], NDArray[np.int64]],
    random: np.random.Generator,
) -> Site:
    if y.dtype.kind == "i":
        weight = random.dirichlet(np.ones(int(y.max()) + 1))[y]
    else:
        weight = np.exp(np.sqrt(0.5) * random.standard_normal() * y)
    size = int(np.exp(random.uniform(np.log(SMALLEST), np.log(LARGEST))))
    train = _chosen(halves[0], y, weight, size, random)
    valid = _chosen(halves[1], y, weight, VALIDATION, random)
    return Site(x[train], y[train], x[valid], y[valid])


def _chosen(
    rows: NDArray[np.int64],
    y: NDArray[Any],
    weight: FloatArray,
    count: int,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """That many of the rows, or three quarters of all, by weight; two of each of two classes."""
    count = min(count, len(rows) * 3 // 4)
    share = (weight[rows] + 1e-6) / np.sum(weight[rows] + 1e-6)
    chosen = random.choice(rows, count, replace=False, p=share)
    if y.dtype.kind == "i":
        kinds = np.argsort(-np.bincount(y[chosen]))[:2]
        few = [k for k in kinds if np.sum(y[chosen] == k) < 2]
        kinds = np.unique(y[rows])[:2] if len(kinds) < 2 else np.asarray(few, dtype=np.int64)
        for kind in kinds:
            chosen = np.union1d(chosen, rows[y[rows] == kind][:2])
    return np.sort(chosen)
