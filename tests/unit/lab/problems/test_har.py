from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.device import Device, device_named
from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.datasets import HAR, Found, find
from sottovoce.lab.problems.har import PASSES, SPACE, Har, HarTrainer, prepared
from sottovoce.lab.problems.hardata import halves_of, read_windows, run_halves
from sottovoce.lab.problems.training import Halves

real_data = pytest.mark.skipif(
    not (Path(os.environ.get("SOTTOVOCE_DATA", "/nowhere")) / "har").is_dir(),
    reason="SOTTOVOCE_DATA does not lead to the activities",
)
NUMPY = device_named(None)


def halves(n: int = 150, features: int = 7, seed: int = 0) -> Halves:
    """Standard normal rows, told apart by some of them; the last activity is the commonest."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((2 * n, features))
    y = np.argmax(x[:, :6] + 0.3 * random.standard_normal((2 * n, 6)) + np.eye(6)[5], axis=1)
    return Halves(x[:n], y[:n], x[n:], y[n:])


def trainer(*given: Halves, device: Device = NUMPY) -> HarTrainer:
    made = tuple(prepared(each, number, device) for number, each in enumerate(given, start=1))
    return HarTrainer(made, device, "made up")


def by_hand(given: Halves, number: int, settings: dict[str, Any]) -> float:
    """The same training with a plain loop over weights, in doubles."""
    data, size = prepared(given, number, NUMPY), settings["batch_size"]
    n, features = given.train_x.shape
    W, b = np.zeros((features, 6)), np.zeros(6)
    for rank in data.rank:
        order = np.argsort(rank)
        for start in range(0, n, size):
            rows = order[start : start + size]
            x, y = given.train_x[rows], np.eye(6)[given.train_y[rows]]
            outputs = x @ W + b
            P = np.exp(outputs - outputs.max(axis=1, keepdims=True))
            residual = (P / P.sum(axis=1, keepdims=True) - y) / len(rows)
            W -= settings["learning_rate"] * (x.T @ residual + settings["l2"] * W)
            b -= settings["learning_rate"] * residual.sum(axis=0)
    predicted = np.argmax(given.valid_x @ W + b, axis=1)
    return float(np.mean(predicted == given.valid_y))


def test_the_space_has_batch_size_penalty_and_rate() -> None:
    assert SPACE.decode(np.zeros(3)) == {"batch_size": 128, "l2": 1e-6, "learning_rate": 1e-6}
    assert SPACE.decode(np.ones(3)) == {"batch_size": 512, "l2": 10.0, "learning_rate": 1.0}


def test_the_problem_and_its_split_are_known_by_name() -> None:
    problem, by_run = problem_named("har"), problem_named("har:split=run")
    assert isinstance(problem, Har)
    assert isinstance(by_run, Har)
    assert problem.setting.agents == 30
    assert (problem.split, by_run.split) == ("random", "run")
    assert problem.table != by_run.table
    with pytest.raises(InvalidInput, match="split must be random or run"):
        problem_named("har:split=odd")


@pytest.mark.parametrize("n", [129, 150, 300])
def test_models_trained_together_are_those_trained_one_by_one(n: int) -> None:
    given = halves(n)
    random = np.random.default_rng(1)
    # where training is stable, so that doubles and singles agree
    points = random.random((12, 3)) * [1, 0.02, 0.5] + [0, 0, 0.02]
    points[:4, 0] *= 0.1
    expected = [by_hand(given, 1, SPACE.decode(point)) for point in points]
    scores = trainer(given).scores(np.zeros(12, int), points)
    assert np.allclose(scores, expected, rtol=0, atol=1.5 / n)  # one row may lie on the fence
    assert len(set(expected)) > 4


def test_a_score_does_not_depend_on_the_other_trials() -> None:
    made = trainer(halves(seed=1), halves(170, seed=2))
    random = np.random.default_rng(3)
    agents, points = random.integers(2, size=70), random.random((70, 3))
    every = made.scores(agents, points)
    for kept in (slice(0, 1), slice(11, 14), slice(30, 70)):
        assert np.array_equal(made.scores(agents[kept], points[kept]), every[kept])
    order = random.permutation(70)
    assert np.array_equal(made.scores(agents[order], points[order]), every[order])
    assert np.all((every >= 0) & (every <= 1))


def test_weights_without_bound_give_the_most_common_activity() -> None:
    given = halves()
    point = np.asarray([[1.0, 1.0, 1.0]])  # each step multiplies weights by −9
    commonest = np.argmax(np.bincount(given.train_y))
    expected = np.mean(given.valid_y == commonest)
    assert float(np.finfo(np.float32).max) < 9.0**PASSES
    assert trainer(given).scores(np.zeros(1, int), point)[0] == expected


def test_a_whole_batch_size_beyond_the_rows_changes_nothing() -> None:
    points = np.asarray([[0.2, 0.01, 0.1], [0.9, 0.01, 0.1]])
    scores = trainer(halves(129)).scores(np.zeros(2, int), points)
    assert scores[0] == scores[1]


def test_pytorch_gives_the_same_scores() -> None:
    pytest.importorskip("torch", reason="PyTorch is not here")
    points = np.random.default_rng(4).random((20, 3)) * [1, 0.05, 0.3]
    here = trainer(halves()).scores(np.zeros(20, int), points)
    there = trainer(halves(), device=device_named("cpu")).scores(np.zeros(20, int), points)
    assert np.allclose(here, there, atol=0.01)


def test_impossible_trials_are_refused() -> None:
    with pytest.raises(InvalidInput, match="agents must be from 0 to 0, got"):
        trainer(halves()).scores(np.asarray([1]), np.zeros((1, 3)))
    with pytest.raises(InvalidInput, match=r"points \(s, 3\)"):
        trainer(halves()).scores(np.asarray([0]), np.zeros((1, 2)))
    assert trainer(halves()).scores(np.zeros(0, int), np.zeros((0, 3))).shape == (0,)


def arrays() -> dict[str, NDArray[Any]]:
    """30 subjects, 3 activities, 4 runs of 2 to 5 windows each."""
    rows = [
        (subject, activity, 12 * subject + 4 * activity + k)
        for subject in range(1, 31)
        for activity in range(3)
        for k in range(4)
        for _ in range(2 + k)
    ]
    subject, y, run = (np.asarray(column) for column in zip(*rows, strict=True))
    x = np.random.default_rng(0).standard_normal((len(y), 561)).astype(np.float32)
    x[:, 7] = 0.1  # a constant feature
    return {"X": x, "y": y.astype(np.int8), "subject": subject.astype(np.int8), "run": run}


def as_npz(folder: Path, **changes: Any) -> Found:
    content = {**arrays(), **changes}
    kept = {name: array for name, array in content.items() if array is not None}
    np.savez(folder / "ucihar_derived561.npz", **kept)
    return Found(HAR, HAR.layouts[1], folder, "made up")


def as_official(folder: Path, signals: bool = True, **texts: Any) -> Path:
    """The official files: subjects 1 to 20 to train, others to test; texts replace whole files."""
    content = arrays()
    for part, chosen in (("train", content["subject"] <= 20), ("test", content["subject"] > 20)):
        here = folder / "UCI HAR Dataset" / part
        (here / "Inertial Signals").mkdir(parents=True)
        tables = {"X": content["X"][chosen], "y": content["y"][chosen, None] + 1}
        tables["subject"] = content["subject"][chosen, None]
        run = content["run"][chosen]
        places = np.concatenate([[0], np.cumsum(run[1:] != run[:-1])]) * 10 + np.arange(len(run))
        if signals:
            raw = places[:, None] * 2 + np.arange(4)  # each window begins 2 after the last
            tables["Inertial Signals/total_acc_x"] = raw
        for name, table in tables.items():
            np.savetxt(here / f"{name}_{part}.txt", table, fmt="%.7g")
        for name, text in texts.items():
            if name.endswith(part):
                (here / f"{name}.txt").write_text(text)
    return folder


def test_the_npz_is_read_as_it_was_written(tmp_path: Path) -> None:
    windows = read_windows(as_npz(tmp_path))
    for name in ("y", "subject", "run"):
        assert np.array_equal(arrays()[name], getattr(windows, name))
    assert np.array_equal(arrays()["X"], windows.x)


def test_the_official_files_hold_the_same_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOTTOVOCE_DATA", str(tmp_path))
    as_official(tmp_path / "har")
    windows, expected = read_windows(find(HAR)), arrays()
    assert np.allclose(windows.x, expected["X"], rtol=1e-6)
    assert np.array_equal(windows.y, expected["y"])
    assert np.array_equal(windows.subject, expected["subject"])
    # runs may be numbered anew, but the same windows belong together
    assert windows.run is not None
    assert np.array_equal(np.diff(windows.run) != 0, np.diff(expected["run"]) != 0)


def test_without_raw_signals_only_the_split_by_run_is_refused(tmp_path: Path) -> None:
    found = Found(HAR, HAR.layouts[0], as_official(tmp_path, signals=False), "made up")
    windows = read_windows(found)
    halves_of(windows, 1, "random")
    with pytest.raises(InvalidInput, match="split=run needs the recordings' runs"):
        halves_of(windows, 1, "run")


@pytest.mark.parametrize("split", ["random", "run"])
def test_halves_are_standardised_by_the_first(tmp_path: Path, split: Any) -> None:
    made = halves_of(read_windows(as_npz(tmp_path)), 4, split)
    varying = np.arange(561) != 7
    assert np.allclose(made.train_x.mean(axis=0), 0, atol=1e-6)
    assert np.allclose(made.train_x[:, varying].std(axis=0), 1)
    assert np.allclose(made.valid_x[:, 7], 0)
    assert not np.allclose(made.valid_x[:, varying].mean(axis=0), 0, atol=1e-3)


def test_a_split_by_run_keeps_runs_together_and_halves_even() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        sizes = random.integers(1, 15, size=(4, 5))
        y = np.repeat(np.repeat(np.arange(4), 5), sizes.ravel())
        run = np.repeat(np.arange(20), sizes.ravel())
        train = run_halves(y, run, 1)
        for number in range(20):
            assert len(np.unique(train[run == number])) == 1
        for activity in range(4):
            mine = train[y == activity]
            assert 0 < mine.sum() < len(mine)
            subsets = np.asarray([[b >> k & 1 for k in range(5)] for b in range(1, 31)])
            best = np.abs(subsets @ sizes[activity] - len(mine) / 2).min()
            assert abs(mine.sum() - len(mine) / 2) == best
        assert abs(2 * train.sum() - len(y)) <= sizes.max()


def test_an_activity_with_one_run_cannot_be_split_by_run() -> None:
    with pytest.raises(InvalidInput, match="got 1 of activity 1 for subject 9"):
        run_halves(np.asarray([0, 0, 1, 1]), np.asarray([0, 1, 2, 2]), 9)


def changed(name: str, row: Any, value: Any) -> dict[str, Any]:
    array = arrays()[name].copy()
    array[row] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"X": np.zeros((1260, 560), np.float32)}, r"X must be \(n, 561\)"),
        ({"y": np.zeros(3, np.int8)}, r"X must be \(n, 561\)"),
        ({"y": np.zeros((1260, 1), np.int8)}, r"X must be \(n, 561\)"),
        ({"y": np.zeros(1260)}, "of whole numbers"),
        ({"run": None}, "arrays X, y, subject, run must be there"),
        ({"run": np.asarray([None] * 1260)}, "must be there and readable"),
        (changed("X", (100, 3), np.nan), "features of subject 3 must be finite"),
        (changed("y", 100, 6), "unknown activity of subject 3, number 6 from 0"),
        (changed("y", slice(42, 84), 2), "subject 2 must have 2 or more activities"),
        (changed("y", 100, 5), "subject 3 must have 2 or more activities, each with 2"),
        (changed("subject", slice(42, 84), 1), "subjects must be 1 to 30"),
    ],
)
def test_a_wrong_npz_is_told_with_its_path_and_subject(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(StorageError, match=rf"ucihar_derived561\.npz: .*{problem}"):
        read_windows(as_npz(tmp_path, **changes))


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"y_test": "1\n2\n"}, r"y_test and subject_test \(n, 1\)"),
        ({"X_train": "1 2 x\n"}, "X_train.txt must be a table of numbers"),
        ({"y_train": "1.5\n" * 840}, "must be whole numbers"),
        ({"y_train": "7\n" * 840}, "unknown activity of subject 1, number 6 from 0"),
        ({"Inertial Signals/total_acc_x_test": "1 2\n"}, "must have 420 rows of even length"),
    ],
)
def test_wrong_official_files_are_told(tmp_path: Path, texts: dict[str, Any], problem: str) -> None:
    found = Found(HAR, HAR.layouts[0], as_official(tmp_path, **texts), "made up")
    with pytest.raises(StorageError, match=problem):
        read_windows(found)


@real_data
@pytest.mark.parametrize("split", ["random", "run"])
def test_the_real_windows_can_be_halved_and_learnt(split: Any) -> None:
    made = Har(split=split).trainer(NUMPY)
    assert made.agents == 30
    for subject in made.subjects:
        assert len(np.unique(subject.train_y)) == len(np.unique(subject.valid_y)) == 6
        # 6 for one subject, whose walks cannot be shared more evenly; else at most 2
        assert abs(len(subject.train_y) - len(subject.valid_y)) <= 6
    scores = made.scores(np.arange(30), np.tile([0.5, 1e-4, 0.05], (30, 1)))
    assert scores.mean() > (0.98 if split == "random" else 0.9)


@real_data
def test_each_split_has_its_own_fingerprint() -> None:
    prints = {Har(split=split).trainer(NUMPY).fingerprint for split in ("random", "run")}
    assert len(prints) == 2


@real_data
def test_the_score_of_real_windows_does_not_depend_on_the_other_trials() -> None:
    made, random = Har().trainer(NUMPY), np.random.default_rng(3)
    agents, points = random.integers(30, size=60), random.random((60, 3))
    every = made.scores(agents, points)
    alone = [made.scores(agents[k : k + 1], points[k : k + 1])[0] for k in range(60)]
    assert np.array_equal(alone, every)  # also where training diverges and magnifies rounding
