"""What the trainers of real models share: halves of data, settings at points, fingerprints."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.errors import InvalidInput, MissingExtra, StorageError, check
from sottovoce.lab.problems.datasets import Found
from sottovoce.space import Space


@dataclass(frozen=True)
class Halves:
    """One agent's data: n rows to train on, m to validate on; labels are whole numbers."""

    train_x: NDArray[Any]
    train_y: IntArray
    valid_x: NDArray[Any]
    valid_y: IntArray


class Trainer(Protocol):
    """Trains models for real: one for each pair of an agent and a point of the cube."""

    @property
    def agents(self) -> int:
        """How many agents have data, N."""

    @property
    def fingerprint(self) -> str:
        """Names the data and the procedure: what has the same one gives the same scores."""

    @property
    def batch(self) -> int:
        """How many trials are best trained together."""

    def scores(self, agents: IntArray, points: FloatArray) -> FloatArray:
        """What is to be maximised, in [0, 1], for s trials: (s,) and (s, D) -> (s,)."""


def stratified_halves(x: NDArray[Any], y: IntArray) -> Halves:
    """A random half to train on, a half to validate on, each class shared evenly.

    The seed is fixed, so the same rows always give the same halves.
    """
    try:
        from sklearn.model_selection import train_test_split
    except ImportError as error:
        raise MissingExtra("splitting data in halves", "experiments") from error
    rows = np.arange(len(y))
    train, valid = train_test_split(rows, test_size=0.5, stratify=y, random_state=0)
    return Halves(x[train], y[train], x[valid], y[valid])


def settings_at(space: Space, points: FloatArray) -> FloatArray:
    """The values of the parameters, all numbers, at points of the cube: (s, D) -> (s, D)."""
    decoded = [list(space.decode(point).values()) for point in points]
    return np.asarray(decoded, dtype=np.float64).reshape(len(points), space.dims)


def check_trials(agents: IntArray, points: FloatArray, count: int, dims: int) -> None:
    """Trials must pair agents that there are with points of the cube."""
    shapes = np.shape(agents), np.shape(points)
    rule = f"trials must be agents (s,) and points (s, {dims})"
    check(len(shapes[0]) == 1 and shapes[1] == (*shapes[0], dims), rule, shapes=shapes)
    known = (np.asarray(agents) >= 0) & (np.asarray(agents) < count)
    if not np.all(known):
        wrong = np.asarray(agents)[~known][:3].tolist()
        raise InvalidInput(f"agents must be from 0 to {count - 1}, got {wrong}")


def fingerprint(name: str, procedure: int, found: Found) -> str:
    """A short name for the data and the way models are trained on them.

    procedure: a number that changes whenever the same data would give other scores.
    """
    text = f"{name} {procedure} {found.layout.kind} {found.checksum}"
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def read_arrays(found: Found, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The arrays of these names in the one file of the data, an archive of NumPy's."""
    (file,) = found.layout.files
    try:
        with np.load(found.path(file), allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except Exception as error:  # zip, header and pickle errors are of many kinds
        require(False, found, f"arrays {', '.join(names)} must be there and readable: {error}")
        raise


def require(condition: bool, found: Found, problem: str) -> None:
    """Raise StorageError unless the data are as they should be, saying where and what is wrong."""
    if not condition:
        files = list(found.layout.files)
        where = found.path(files[0]) if len(files) == 1 else found.folder
        raise StorageError(f"{where}: {problem}")
