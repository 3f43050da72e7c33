"""Tables for mixed spaces: scores of trained models on one public design, and a GP through them.

A site's objective is m(x) + r_n(x). m is the posterior mean of a GP given the scores' means over
all sites; r_n that of another, given what is left of site n's. Both have a Matérn-5/2 kernel with
a length scale for each coordinate of the cube (choices are one-hot), a variance and a noise
variance, which were fitted by marginal likelihood when the table was made and come with it. The
noise of an observation is the second one's deviation: how far a trained model's score is from
what is smooth of it. Values are cut at the optimum, the largest that a search finds.

`python benchmarks/site_tables.py check` says how far all this is from models trained anew.

Symbols: N sites, K points of the design, H held out, D coordinates, s points asked for.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import StorageError, check
from sottovoce.files import write_whole
from sottovoce.lab.problems.table import STEPS
from sottovoce.space import Space

FloatArray = NDArray[np.float64]
MAKE = "python benchmarks/site_tables.py make"
TRIED = 4096  # points of a search for optima, then this many rounds of steps from the best
ROUNDS, STEPS_EACH = 12, 32


@dataclass(frozen=True)
class Smooth:
    """What was fitted: length scales (D,), variance, noise variance."""

    lengthscales: tuple[float, ...]
    variance: float
    noise: float

    def kernel(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Matérn 5/2: (s, D), (K, D) -> (s, K)."""
        square = np.zeros((len(a), len(b)))
        for d, scale in enumerate(self.lengthscales):  # no product of matrices: its rounding
            square += ((a[:, d, None] - b[:, d]) / scale) ** 2  # depends on what else is asked
        r = np.sqrt(5 * square)
        return np.asarray(self.variance * (1 + r + r**2 / 3) * np.exp(-r))

    def weights(self, points: FloatArray, values: FloatArray) -> FloatArray:
        """(K + noise)⁻¹ y: (K, D), (K, N) -> (K, N)."""
        gram = self.kernel(points, points) + (self.noise + 1e-9) * np.eye(len(points))
        return np.asarray(np.linalg.solve(gram, values))


@dataclass(frozen=True, eq=False)
class SiteTable:
    """Scores at the points of a design, (N, K), and at points held out, (N, H)."""

    points: FloatArray
    values: FloatArray
    held_points: FloatArray
    held_values: FloatArray
    common: Smooth
    own: Smooth
    space: Space

    @cached_property
    def _level(self) -> float:
        return float(self.values.mean())

    @cached_property
    def _common_weights(self) -> FloatArray:
        mean = self.values.mean(axis=0) - self._level
        return self.common.weights(self.points, mean[:, None])[:, 0]

    @cached_property
    def _own_weights(self) -> FloatArray:
        left = self.values - self.values.mean(axis=0)
        return self.own.weights(self.points, left.T)

    def smooth(self, points: FloatArray) -> FloatArray:
        """Every site's function at the same points: (s, D) -> (s, N)."""
        common = self._level + self.common.kernel(points, self.points) @ self._common_weights
        return np.asarray(
            common[:, None] + self.own.kernel(points, self.points) @ self._own_weights
        )

    def smooth_each(self, sites: NDArray[np.int64], points: FloatArray) -> FloatArray:
        """Each site's function at points of its own: (n,), (n, s, D) -> (n, s)."""
        n, s, dims = points.shape
        flat = points.reshape(n * s, dims)
        common = np.sum(self.common.kernel(flat, self.points) * self._common_weights, axis=1)
        weights = np.repeat(self._own_weights.T[sites], s, axis=0)
        own = np.sum(self.own.kernel(flat, self.points) * weights, axis=1)
        return np.asarray(self._level + common + own).reshape(n, s)

    @cached_property
    def optimum(self) -> FloatArray:
        """The largest value that many points, and steps from the best of them, find, (N,)."""
        random, sites = np.random.default_rng(0), np.arange(len(self.values))
        tried = np.asarray(self.space.snap(random.random((TRIED, self.points.shape[1]))))
        tried = np.concatenate([self.points, tried])
        values = self.smooth(tried)
        best, largest = tried[np.argmax(values, axis=0)], values.max(axis=0)
        for k in range(ROUNDS):
            step = random.standard_normal((len(sites), STEPS_EACH, best.shape[1])) * 0.2 * 0.65**k
            near = np.clip(best[:, None] + step, 0.0, 1.0)
            near = np.asarray(self.space.snap(near))
            found = self.smooth_each(sites, near)
            row = np.argmax(found, axis=1)
            better = found.max(axis=1) > largest
            best = np.where(better[:, None], near[sites, row], best)
            largest = np.maximum(largest, found.max(axis=1))
        return np.asarray(largest)

    def save(self, path: Path) -> None:
        """Write it as a small file, whole or not at all."""
        about = {
            "space": self.space.to_dict(),
            "common": vars(self.common),
            "own": vars(self.own),
        }
        arrays: dict[str, NDArray[Any]] = {
            "points": self.points.astype(np.float32),
            "values": np.round(self.values * STEPS).astype(np.uint16),
            "held_points": self.held_points.astype(np.float32),
            "held_values": np.round(self.held_values * STEPS).astype(np.uint16),
            "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        }
        write_whole(path, lambda part: np.savez_compressed(part, allow_pickle=False, **arrays))


def folder() -> Path:
    """Where the tables that come with us are."""
    return Path(str(files("sottovoce.lab.problems").joinpath("sitetables")))


@lru_cache(maxsize=8)
def load_site_table(name: str, problem: str = "") -> SiteTable:
    """The table of that name; problem: whose it is."""
    path = folder() / f"{name}.npz"
    if not path.is_file():
        raise StorageError(f"there is no table {name!r}; make it: {MAKE} {problem or name}")
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as content:
            about = json.loads(content["about"].tobytes())
            common, own = (
                Smooth(tuple(part["lengthscales"]), part["variance"], part["noise"])
                for part in (about["common"], about["own"])
            )
            return SiteTable(
                content["points"].astype(np.float64),
                content["values"] / STEPS,
                content["held_points"].astype(np.float64),
                content["held_values"] / STEPS,
                common,
                own,
                Space.from_dict(about["space"]),
            )
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StorageError(
            f"{path} is damaged ({error}); make it again: {MAKE} {problem or name}"
        ) from error


@dataclass(frozen=True)
class SiteObjectives:
    """The objectives of some sites of a table, (N,) of them."""

    table: SiteTable
    sites: NDArray[np.int64]

    @property
    def noise(self) -> float:
        """How far a trained model's score is from what is smooth."""
        return float(np.sqrt(self.table.own.noise))

    @property
    def optimum(self) -> FloatArray:
        """Of each site."""
        return self.table.optimum[self.sites]

    def values(self, points: FloatArray) -> FloatArray:
        """The smooth scores: (N, s, D) -> (N, s)."""
        shape, dims = np.shape(points), self.table.points.shape[1]
        fits = len(shape) == 3 and (shape[0], shape[2]) == (len(self.sites), dims)
        check(fits, f"points must have shape ({len(self.sites)}, s, {dims})", shape=shape)
        found = self.table.smooth_each(self.sites, np.asarray(points, dtype=np.float64))
        return np.minimum(found, self.optimum[:, None])
