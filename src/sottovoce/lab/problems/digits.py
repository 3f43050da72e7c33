"""Handwritten digits: convolutional networks that read one writer's digits, 50 writers.

Each writer is an agent. Two kinds of files will do: the EMNIST digits of TensorFlow Federated,
the paper's, with their official split into training and test images; and "MNIST by writer", for
which no official split exists: each writer's images are halved at random, with a fixed seed and
each digit shared evenly. Both are brought to ink 1 on background 0.
Cite Cohen et al., "EMNIST: extending MNIST to handwritten letters", 2017, or Yadav and Bottou,
"Cold case: the lost MNIST digits", 2019, for the writers of MNIST.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.device import Device
from sottovoce.errors import MissingExtra
from sottovoce.lab.problems.cnn import CLASSES, TOGETHER, Images, train_and_score
from sottovoce.lab.problems.datasets import DIGITS, Found, find
from sottovoce.lab.problems.real import RealProblem
from sottovoce.lab.problems.training import (
    Halves,
    check_trials,
    fingerprint,
    read_arrays,
    require,
    settings_at,
    stratified_halves,
)
from sottovoce.space import Float, Space

WRITERS = 50
SPACE = Space([Float(name, 1e-7, 0.02) for name in ("learning_rate", "decay", "l2")])
PROCEDURE = 1


@dataclass(frozen=True)
class DigitsTrainer:
    """Trains the networks of many trials at once."""

    images: Images
    device: Device
    fingerprint: str

    @property
    def agents(self) -> int:
        """The number of writers."""
        return len(self.images.train_y)

    @property
    def batch(self) -> int:
        """As many as are trained together there."""
        on_device = self.device.torch is not None and self.device.device.type != "cpu"
        return TOGETHER["cuda" if on_device else "cpu"]

    def scores(self, agents: IntArray, points: FloatArray) -> FloatArray:
        """1 minus the validation error."""
        check_trials(agents, points, self.agents, SPACE.dims)
        return train_and_score(self.images, agents, settings_at(SPACE, points), self.device)


@dataclass(frozen=True)
class Digits(RealProblem):
    """A convolutional network's learning rate, its decay, and penalty, for 50 writers."""

    kind: ClassVar[str] = "digits"
    space: ClassVar[Space] = SPACE
    agents: ClassVar[int] = WRITERS

    def trainer(self, device: Device) -> DigitsTrainer:
        """Trains on that device."""
        found = find(DIGITS)
        return DigitsTrainer(read_images(found), device, fingerprint(self.kind, PROCEDURE, found))


def read_images(found: Found) -> Images:
    """The images of the first 50 writers, checked."""
    writers = _read_npz(found) if found.layout.kind == "npz" else _read_federated(found)
    return Images(
        [writer.train_x for writer in writers],
        [writer.train_y for writer in writers],
        [writer.valid_x for writer in writers],
        [writer.valid_y for writer in writers],
    )


def _read_npz(found: Found) -> tuple[Halves, ...]:
    names = ("X", "y", "writer")
    content = read_arrays(found, names)
    shapes = {name: array.shape for name, array in content.items()}
    rows = len(content["X"]) if content["X"].ndim else 0
    fits = shapes == {"X": (rows, 28, 28), "y": (rows,), "writer": (rows,)}
    require(fits, found, f"X must be (n, 28, 28), y and writer (n,), got {shapes}")
    kinds = {name: str(array.dtype) for name, array in content.items()}
    whole = kinds["X"] == "uint8" and all(content[n].dtype.kind in "iu" for n in names[1:])
    require(whole, found, f"X must be of uint8, y and writer of whole numbers, got {kinds}")
    writers = np.unique(content["writer"])[:WRITERS]
    require(len(writers) == WRITERS, found, f"must have {WRITERS} writers, got {len(writers)}")
    halves = []
    for writer in writers:
        mine = content["writer"] == writer
        x, y = content["X"][mine].astype(np.float32) / 255, content["y"][mine].astype(np.int64)
        _check_classes(found, f"writer {writer}", y)
        counts = np.bincount(y, minlength=CLASSES)
        few = counts[counts > 0]
        problem = f"writer {writer} must have 2 or more digits, each at least twice"
        require(len(few) >= 2 and few.min() >= 2, found, f"{problem}, got {counts.tolist()}")
        halves.append(stratified_halves(x, y))
    return tuple(halves)


def _read_federated(found: Found) -> tuple[Halves, ...]:
    """The writers whose names come first in the training file, each with its official split."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("reading the digits of TensorFlow Federated", "experiments") from error
    train, test = (found.path(f"fed_emnist_digitsonly_{part}.h5") for part in ("train", "test"))
    try:
        with h5py.File(train) as trains, h5py.File(test) as tests:
            writers = sorted(trains["examples"])[:WRITERS]
            count = f"{train} must have {WRITERS} writers, got {len(writers)}"
            require(len(writers) == WRITERS, found, count)
            pairs = [
                [_read_group(found, file, writer) for file in (trains, tests)] for writer in writers
            ]
    except (OSError, KeyError) as error:
        reason = f"must be HDF5 with examples/<writer>/pixels and label: {error}"
        require(False, found, reason)
        raise
    return tuple(Halves(*train, *test) for train, test in pairs)


def _read_group(found: Found, file: Any, writer: str) -> tuple[NDArray[np.float32], IntArray]:
    """One writer's images, turned to ink 1 on background 0, and what they show."""
    group, where = file["examples"][writer], f"writer {writer} in {file.filename}"
    x, y = np.asarray(group["pixels"]), np.asarray(group["label"])
    problem = f"{where} must have pixels (n, 28, 28) and label (n,), got {x.shape} and {y.shape}"
    fits = len(y.shape) == 1 and x.shape == (len(y), 28, 28) and len(y) >= 1
    require(fits and x.dtype.kind == "f" and y.dtype.kind in "iu", found, problem)
    within = bool(np.all((x >= 0) & (x <= 1)))  # NaN is not
    require(within, found, f"{where}: pixels must be from 0 to 1")
    _check_classes(found, where, y)
    return (1 - x).astype(np.float32), y.astype(np.int64)


def _check_classes(found: Found, where: str, y: NDArray[Any]) -> None:
    known = bool(np.all((y >= 0) & (y < CLASSES)))
    require(known, found, f"{where}: labels must be 0 to 9, got {np.unique(y).tolist()}")
