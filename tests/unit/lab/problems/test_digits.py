from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from sottovoce.device import device_named
from sottovoce.errors import InvalidInput, MissingExtra, StorageError
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.datasets import DIGITS, Found, find
from sottovoce.lab.problems.digits import SPACE, Digits, DigitsTrainer, read_images

real_data = pytest.mark.skipif(
    not (Path(os.environ.get("SOTTOVOCE_DATA", "/nowhere")) / "digits").is_dir(),
    reason="SOTTOVOCE_DATA does not lead to the digits",
)
TRAIN, TEST = "fed_emnist_digitsonly_train.h5", "fed_emnist_digitsonly_test.h5"


def arrays() -> dict[str, Any]:
    """52 writers with 8 images each, the ink telling the digit, in no order."""
    y = np.tile(np.repeat(np.arange(4), 2), 52).astype(np.int8)
    writer = np.repeat(np.arange(52), 8).astype(np.int16)
    x = np.zeros((len(y), 28, 28), dtype=np.uint8)
    x[np.arange(len(y)), y * 5] = 255
    x[:, 27, 27] = writer
    order = np.random.default_rng(0).permutation(len(y))
    return {"X": x[order], "y": y[order], "writer": writer[order]}


def as_npz(folder: Path, **changes: Any) -> Found:
    content = {**arrays(), **changes}
    kept = {name: array for name, array in content.items() if array is not None}
    np.savez(folder / "mnist_50writers.npz", **kept)
    return Found(DIGITS, DIGITS.layouts[1], folder, "made up")


def as_hdf5(folder: Path, writers: int = 52, **changes: Any) -> Path:
    """Both files of TensorFlow Federated; changes are to the writer f0003_03 of the test file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in ((TRAIN, 5), (TEST, 2)):
        with h5py.File(folder / name, "w") as file:
            for number in reversed(range(writers)):
                y = np.arange(rows, dtype=np.int32) % 10
                x = np.ones((rows, 28, 28), dtype=np.float32)
                x[np.arange(rows), y] = 0.25  # ink
                x[:, 27, 27] = number / 100
                group = file.create_group(f"examples/f{number:04d}_{number:02d}")
                content = {"pixels": x, "label": y}
                if name == TEST and number == 3:
                    content |= changes
                for key, array in content.items():
                    if array is not None:
                        group[key] = array
    return folder


def test_the_space_is_linear_in_three_parameters() -> None:
    assert SPACE.names == ("learning_rate", "decay", "l2")
    assert list(SPACE.decode(np.zeros(3)).values()) == [1e-7] * 3
    assert list(SPACE.decode(np.ones(3)).values()) == [0.02] * 3


def test_the_problem_is_known_by_name_and_has_50_agents() -> None:
    problem = problem_named("digits")
    assert isinstance(problem, Digits)
    assert problem.setting.agents == 50
    assert problem.setting.measure == "validation error"


def test_mnist_by_writer_is_halved_with_ink_one(tmp_path: Path) -> None:
    images = read_images(as_npz(tmp_path))
    assert len(images.train_x) == 50  # the first of 52
    for writer in range(50):
        for x, y in (
            (images.train_x[writer], images.train_y[writer]),
            (images.valid_x[writer], images.valid_y[writer]),
        ):
            assert np.array_equal(np.sort(y), [0, 1, 2, 3])
            assert np.all(x[np.arange(4), y * 5] == 1)
            assert np.all(x[:, 27, 27] == np.float32(writer) / 255)
            assert x.dtype == np.float32
            assert x.min() == 0


def test_federated_digits_are_turned_to_ink_one_and_keep_their_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOTTOVOCE_DATA", str(tmp_path))
    as_hdf5(tmp_path / "digits")
    images = read_images(find(DIGITS))
    assert [len(y) for y in images.train_y] == [5] * 50
    assert [len(y) for y in images.valid_y] == [2] * 50
    assert np.allclose(images.train_x[7][2, 2], 0.75)  # ink
    assert images.train_x[7][2, 9, 9] == 0  # background
    # writers are taken in the order of their names
    assert [round(100 * (1 - float(x[0, 27, 27]))) for x in images.valid_x] == list(range(50))


def test_scores_are_those_of_the_networks(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="networks need PyTorch")
    trainer = DigitsTrainer(read_images(as_npz(tmp_path)), device_named(None), "made up")
    agents, points = np.asarray([4, 49, 4]), np.asarray([[0.5, 0, 0], [0.5, 0, 0], [0, 0, 0.0]])
    scores = trainer.scores(agents, points)
    assert scores[:2].tolist() == [1.0, 1.0]  # such ink is easy to read
    assert scores[2] < 1.0  # but not at a learning rate of 1e-7
    assert trainer.agents == 50


def test_impossible_trials_are_refused(tmp_path: Path) -> None:
    trainer = DigitsTrainer(read_images(as_npz(tmp_path)), device_named(None), "made up")
    with pytest.raises(InvalidInput, match="agents must be from 0 to 49, got"):
        trainer.scores(np.asarray([50]), np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"X": np.zeros((416, 28, 27), np.uint8)}, r"X must be \(n, 28, 28\)"),
        ({"y": np.zeros(3, np.int8)}, r"X must be \(n, 28, 28\)"),
        ({"y": None}, "arrays X, y, writer must be there"),
        ({"y": np.asarray([None] * 416)}, "must be there and readable"),
        ({"X": np.zeros((416, 28, 28))}, "X must be of uint8"),
        ({"y": np.full(416, 0.5)}, "y and writer of whole numbers"),
        ({"y": np.full(416, 10)}, r"writer 0: labels must be 0 to 9, got \[10\]"),
        ({"y": np.full(416, -1)}, "writer 0: labels must be 0 to 9"),
        ({"y": np.full(416, 3)}, "writer 0 must have 2 or more digits"),
        ({"writer": np.zeros(416, np.int8)}, "must have 50 writers, got 1"),
    ],
)
def test_a_wrong_npz_is_told_with_its_path(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(StorageError, match=rf"mnist_50writers\.npz: .*{problem}"):
        read_images(as_npz(tmp_path, **changes))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"pixels": np.ones((2, 28, 27), np.float32)}, r"f0003_03 in .*test.h5 must have pixels"),
        ({"pixels": np.full((2, 28, 28), np.nan, np.float32)}, "pixels must be from 0 to 1"),
        ({"pixels": np.full((2, 28, 28), 255.0, np.float32)}, "pixels must be from 0 to 1"),
        ({"label": np.asarray([0, 10])}, r"f0003_03 in .*: labels must be 0 to 9, got \[0, 10\]"),
        ({"label": np.zeros(0, np.int32), "pixels": np.ones((0, 28, 28))}, "must have pixels"),
        ({"label": None}, "examples/<writer>/pixels and label"),
        ({"writers": 12}, "must have 50 writers, got 12"),
    ],
)
def test_a_wrong_hdf5_is_told_with_the_writer(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    found = Found(DIGITS, DIGITS.layouts[0], as_hdf5(tmp_path, **changes), "made up")
    with pytest.raises(StorageError, match=problem):
        read_images(found)


def test_a_file_that_is_no_hdf5_is_told(tmp_path: Path) -> None:
    as_hdf5(tmp_path)
    (tmp_path / TRAIN).write_bytes(b"not this")
    with pytest.raises(StorageError, match="must be HDF5"):
        read_images(Found(DIGITS, DIGITS.layouts[0], tmp_path, "made up"))


def test_without_h5py_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Found(DIGITS, DIGITS.layouts[0], as_hdf5(tmp_path), "made up")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtra, match=r"sottovoce\[experiments\]"):
        read_images(found)


@real_data
def test_the_real_digits_are_50_writers_with_every_class() -> None:
    trainer = Digits().trainer(device_named(None))
    assert trainer.agents == 50
    for train, valid in zip(trainer.images.train_y, trainer.images.valid_y, strict=True):
        assert len(np.unique(train)) == len(np.unique(valid)) == 10
        assert abs(len(train) - len(valid)) <= 1
    assert trainer.fingerprint.startswith("digits-")
