"""Tables: the scores of models trained beforehand, and what lies between them.

A table has the score of every agent at the points of one design (`design.py`), and at other
points that nothing but the test of the table uses. Between the points of the design, scores are
interpolated linearly on the simplices of its Delaunay triangulation; so a value is never beyond
those around it. A smoothed spline is a little nearer to the truth on the mean, but can overshoot:
`python benchmarks/interpolation.py` compares them.

Where training has chance in it, a table has several trainings at each point: the score of a query
is that of one of them at one corner of the simplex around it, drawn by the weights of the
corners. So its mean is the interpolated one, and no score is one that no training had. Run and
query decide which, so that a query asked again has the same score.

`sottovoce table check` prints how far interpolated scores are from those of models that were
really trained.

Symbols: N agents, D dimensions, K points of the design, H held out, R trainings, s points asked
for; u points of the cube, v where they are spread evenly, powers p (D,) with u = v^p.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.errors import StorageError, check
from sottovoce.files import write_whole
from sottovoce.lab.problems.chance import chance
from sottovoce.lab.problems.datasets import cache_home

FORMAT = 1
DRAWS = 16  # of a table's chance, to see its spread
STEPS = 65535  # scores are kept as multiples of 1/65535
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, eq=False)
class Table:
    """Scores at the points of a design, (N, K), and at points held out, (N, H).

    powers: p, as scores are interpolated over v. about: what it was made of, as plain data.
    trained, held_trained: where training has chance in it, each training's, (R, N, K) and
    (R, N, H), whose means the others are.
    """

    points: FloatArray
    values: FloatArray
    held_points: FloatArray
    held_values: FloatArray
    powers: FloatArray
    about: dict[str, Any]
    trained: FloatArray | None = None
    held_trained: FloatArray | None = None

    def __post_init__(self) -> None:
        for points, values in (self.points, self.values), (self.held_points, self.held_values):
            shapes = np.shape(points), np.shape(values)
            fits = len(shapes[0]) == 2 and len(shapes[1]) == 2 and shapes[0][0] == shapes[1][1]
            check(fits, "a table must have points (K, D) and values (N, K)", shapes=shapes)
            for numbers in (points, values):
                inside = bool(np.all((numbers >= 0) & (numbers <= 1)))
                check(inside, "a table's points and values must be in [0, 1]")
        alike = self.points.shape[1] == self.held_points.shape[1]
        alike = alike and len(self.values) == len(self.held_values)
        check(alike, "held-out points must be of the same cube and agents as the others")
        known = np.shape(self.powers) == (self.dims,) and bool(np.all(self.powers >= 1))
        check(known, f"powers must be {self.dims} numbers of 1 or more", powers=self.powers)
        for each, means in (self.trained, self.values), (self.held_trained, self.held_values):
            shape = None if each is None else each.shape
            wanted = None if self.trained is None else (self.trainings, *means.shape)
            rule = f"trainings must be (R, N, K) and (R, N, H), or none: here {wanted}"
            check(shape == wanted, rule, shape=shape)

    @property
    def agents(self) -> int:
        """N."""
        return len(self.values)

    @property
    def dims(self) -> int:
        """D."""
        return int(self.points.shape[1])

    @property
    def trainings(self) -> int:
        """R."""
        return 1 if self.trained is None else len(self.trained)

    @cached_property
    def _mesh(self) -> Any:
        from scipy.spatial import Delaunay  # it takes a while

        return Delaunay(self.points ** (1 / self.powers))

    def neighbours(self, points: FloatArray) -> tuple[IntArray, FloatArray]:
        """The corners of the simplex around each point, and their weights: (s, D) -> (s, D + 1)."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        v, mesh = np.clip(points, low, high) ** (1 / self.powers), self._mesh
        simplex = mesh.find_simplex(v)
        lost = simplex < 0  # by rounding, on the boundary
        if np.any(lost):
            middle = (mesh.min_bound + mesh.max_bound) / 2
            v[lost] = middle + (v[lost] - middle) * (1 - 1e-9)
            simplex[lost] = mesh.find_simplex(v[lost])
        transform = mesh.transform[simplex]
        first = np.einsum("sij,sj->si", transform[:, :-1], v - transform[:, -1])
        weights = np.concatenate([first, 1 - first.sum(axis=1, keepdims=True)], axis=1)
        weights = np.clip(weights, 0.0, 1.0)
        return mesh.simplices[simplex], weights / weights.sum(axis=1, keepdims=True)

    def at(self, points: FloatArray, training: int | None = None) -> FloatArray:
        """Interpolated scores of the first N agents, each at points of its own: (N, s).

        With chance in training, `training` decides it; None: the mean of all.
        """
        count, each, dims = points.shape
        flat = points.reshape(count * each, dims)
        corners, weights = self.neighbours(flat)
        agents = np.repeat(np.arange(count), each)
        scores = np.sum(self.values[agents[:, None], corners] * weights, axis=1)
        if self.trained is not None and training is not None:
            one, other = chance(training, agents, flat)
            corner = np.sum(np.cumsum(weights, axis=1)[:, :-1] <= one[:, None], axis=1)
            place = np.take_along_axis(corners, corner[:, None], axis=1)[:, 0]
            which = (other * self.trainings).astype(np.int64)
            scores = self.trained[which, agents, place]
        return np.asarray(np.clip(scores, 0.0, 1.0)).reshape(count, each)

    def save(self, path: Path) -> None:
        """Write it as a small file, whole or not at all."""
        arrays: dict[str, NDArray[Any]] = {
            "points": self.points.astype(np.float32),
            "values": _whole(self.values),
            "held_points": self.held_points.astype(np.float32),
            "held_values": _whole(self.held_values),
            "powers": self.powers,
            **self._repeated(),
            "about": np.frombuffer(json.dumps(self.about | {"format": FORMAT}).encode(), np.uint8),
        }
        write_whole(path, lambda part: np.savez_compressed(part, allow_pickle=False, **arrays))

    def _repeated(self) -> dict[str, NDArray[np.uint16]]:
        """What a file has besides, where training has chance in it."""
        if self.trained is None or self.held_trained is None:
            return {}
        return {"trained": _whole(self.trained), "held_trained": _whole(self.held_trained)}


def rounded(scores: FloatArray) -> FloatArray:
    """Scores as a file keeps them."""
    return np.asarray(_whole(scores) / STEPS)


def _whole(scores: FloatArray) -> NDArray[np.uint16]:
    return np.round(scores * STEPS).astype(np.uint16)


def read_table(path: Path, again: str) -> Table:
    """The table in the file; `again` is the command that makes it."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as content:
            about = json.loads(content["about"].tobytes())
            known = about.pop("format", None)
            check(known == FORMAT, f"format must be {FORMAT}", format=known)
            several = "trained" in content
            trained = content["trained"] / STEPS if several else None
            held_trained = content["held_trained"] / STEPS if several else None
            return Table(
                content["points"].astype(np.float64),
                content["values"] / STEPS if trained is None else trained.mean(axis=0),
                content["held_points"].astype(np.float64),
                content["held_values"] / STEPS
                if held_trained is None
                else held_trained.mean(axis=0),
                content["powers"],
                about,
                trained,
                held_trained,
            )
    except _UNREADABLE as error:
        raise StorageError(
            f"{path} is not a table, or is damaged ({error}); make it again: {again}"
        ) from error


def made_by(problem: str) -> str:
    """The command that makes the table of the problem of that name."""
    return f"sottovoce table make {problem}"


def own_tables() -> Path:
    """The folder of the tables that the user has made."""
    return cache_home() / "tables"


def known_tables() -> list[str]:
    """The names of all tables."""
    shipped = files("sottovoce.lab.problems").joinpath("tables")
    folders = [folder for folder in (shipped, own_tables()) if folder.is_dir()]
    found = {file.name for folder in folders for file in folder.iterdir()}
    return sorted(n.removesuffix(".npz") for n in found if n.endswith(".npz") and n[0] != ".")


def load_table(name: str, problem: str | None = None) -> Table:
    """The table of that name: the user's own, else the one that comes with us.

    problem: the name of the problem that it is of, if it is another.
    """
    again, own = made_by(problem or name), own_tables() / f"{name}.npz"
    if own.is_file():
        return _loaded(own, own.stat().st_mtime_ns, again)
    with as_file(files("sottovoce.lab.problems").joinpath("tables", f"{name}.npz")) as shipped:
        if shipped.is_file():
            return _loaded(shipped, shipped.stat().st_mtime_ns, again)
    raise StorageError(f"there is no table {name!r}; make it: {again}")


@lru_cache(maxsize=8)
def _loaded(path: Path, changed: int, again: str) -> Table:
    """Read once, and triangulated once, unless the file has changed."""
    return read_table(path, again)


@dataclass(frozen=True)
class TableObjectives:
    """The objectives of the first so many agents of a table; `training` decides all chance."""

    table: Table
    agents: int
    noise: float = 0.0
    training: int | None = None

    def __post_init__(self) -> None:
        rule = f"agents must be from 1 to {self.table.agents}, as many as the table has"
        check(1 <= self.agents <= self.table.agents, rule, agents=self.agents)

    @property
    def optimum(self) -> FloatArray:
        """No score is above 1."""
        return np.ones(self.agents)

    def values(self, points: FloatArray) -> FloatArray:
        """Interpolated scores: (N, s, D) -> (N, s)."""
        shape, dims = np.shape(points), self.table.dims
        fits = len(shape) == 3 and (shape[0], shape[2]) == (self.agents, dims)
        check(fits, f"points must have shape ({self.agents}, s, {dims})", shape=shape)
        return self.table.at(np.asarray(points, dtype=np.float64), self.training)


@dataclass(frozen=True)
class TableError:
    """How far interpolated scores are from those of models trained at points held out.

    mean, rms, most: of the absolute error over all agents and points; `most` is its 95th
    percentile. best: mean absolute error at each agent's best tenth of the points. bias: mean
    error. spread: standard deviation of an agent's scores over the points, for scale. rank:
    Spearman correlation of the two. lost: how much worse than the best point the one is that
    looks best in the table. The last three are means over agents. noise, drawn: where training
    has chance in it, the standard deviation between trainings (root mean square over agents and
    points), of models trained and of what the table says; else 0.
    """

    mean: float
    rms: float
    most: float
    best: float
    bias: float
    spread: float
    rank: float
    lost: float
    noise: float = 0.0
    drawn: float = 0.0


def held_out_error(table: Table) -> TableError:
    """The table against models that it does not know."""
    from scipy.stats import spearmanr

    points = np.broadcast_to(table.held_points, (table.agents, *table.held_points.shape))
    guessed, true = table.at(points), table.held_values
    error = guessed - true
    best = true >= np.quantile(true, 0.9, axis=1, keepdims=True)
    varied = [n for n in range(table.agents) if np.ptp(guessed[n]) > 0 and np.ptp(true[n]) > 0]
    ranks = [float(spearmanr(guessed[n], true[n]).statistic) for n in varied]
    chosen = np.take_along_axis(true, guessed.argmax(axis=1)[:, None], axis=1)[:, 0]
    return TableError(
        mean=float(np.mean(np.abs(error))),
        rms=float(np.sqrt(np.mean(error**2))),
        most=float(np.quantile(np.abs(error), 0.95)),
        best=float(np.mean(np.abs(error[best]))),
        bias=float(np.mean(error)),
        spread=float(np.mean(np.std(true, axis=1))),
        rank=float(np.mean(ranks)) if ranks else 1.0,
        lost=float(np.mean(true.max(axis=1) - chosen)),
        **_noise(table, points),
    )


def _noise(table: Table, points: FloatArray) -> dict[str, float]:
    """The deviation between trainings, of those held out and of draws of the table."""
    if table.held_trained is None:
        return {}
    draws = np.stack([table.at(points, training) for training in range(DRAWS)])
    pairs = {"noise": table.held_trained, "drawn": draws}
    return {name: float(np.sqrt(np.mean(np.var(v, axis=0, ddof=1)))) for name, v in pairs.items()}
