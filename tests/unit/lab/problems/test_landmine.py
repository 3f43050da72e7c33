from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.io import savemat
from scipy.sparse import csc_array
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from sottovoce.device import device_named
from sottovoce.errors import InvalidInput, MissingExtra, StorageError
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.datasets import LANDMINE, Found
from sottovoce.lab.problems.landmine import (
    FIELDS,
    SPACE,
    Landmine,
    LandmineTrainer,
    read_fields,
)
from sottovoce.lab.problems.training import stratified_halves

real_data = pytest.mark.skipif(
    not (Path(os.environ.get("SOTTOVOCE_DATA", "/nowhere")) / "landmine").is_dir(),
    reason="SOTTOVOCE_DATA does not lead to the landmine data",
)


def fields() -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Made-up fields in which mines lie off the centre."""
    random, made = np.random.default_rng(0), []
    for number in range(FIELDS):
        y = (np.arange(24 + number % 3) % 4 == 0).astype(np.uint8)
        made.append((random.standard_normal((len(y), 9)) + 2.0 * y[:, None], y[:, None]))
    return made


def saved(folder: Path, made: list[tuple[NDArray[Any], NDArray[Any]]], **more: Any) -> Found:
    cells = {name: np.empty((1, len(made)), dtype=object) for name in ("feature", "label")}
    for number, (x, y) in enumerate(made):
        cells["feature"][0, number], cells["label"][0, number] = x, y
    savemat(folder / "LandmineData.mat", {**cells, **more})
    return Found(LANDMINE, LANDMINE.layouts[0], folder, "made up")


def trainer(folder: Path, **more: Any) -> LandmineTrainer:
    halves = tuple(stratified_halves(x, y) for x, y in read_fields(saved(folder, fields())))
    return LandmineTrainer(halves, "made up", **more)


def test_the_space_has_the_penalty_first_on_linear_scales() -> None:
    assert SPACE.names == ("C", "gamma")
    assert SPACE.decode(np.zeros(2)) == {"C": 1e-4, "gamma": 0.01}
    assert SPACE.decode(np.ones(2)) == {"C": 10.0, "gamma": 10.0}
    assert SPACE.decode(np.full(2, 0.5))["gamma"] == pytest.approx(5.005)


def test_the_problem_is_known_by_name_and_has_29_agents() -> None:
    problem = problem_named("landmine")
    assert isinstance(problem, Landmine)
    assert problem.setting.agents == 29
    assert problem.setting.measure == "1 − AUC"
    assert problem.setting.real_world
    assert problem.setting.surrogate.kernel is None


def test_fields_are_read_as_they_were_written(tmp_path: Path) -> None:
    made = fields()
    for (x, y), (x_read, y_read) in zip(made, read_fields(saved(tmp_path, made)), strict=True):
        assert np.array_equal(x, x_read)
        assert np.array_equal(y[:, 0], y_read)
        assert y_read.dtype == np.int64


def test_halves_share_each_class_evenly_and_no_row(tmp_path: Path) -> None:
    for field in trainer(tmp_path).fields:
        assert abs(len(field.train_y) - len(field.valid_y)) <= 1
        assert abs(int(field.train_y.sum()) - int(field.valid_y.sum())) <= 1
        both = np.concatenate([field.train_x, field.valid_x])
        assert len(np.unique(both, axis=0)) == len(both)


def test_a_score_is_the_area_under_the_curve_of_an_svm(tmp_path: Path) -> None:
    agents, points = np.asarray([3, 0]), np.asarray([[0.2, 0.01], [0.9, 0.3]])
    made = fields()
    expected = []
    for agent, point in zip(agents, points, strict=True):
        x, y = made[agent][0], made[agent][1][:, 0]
        a, b, c, d = train_test_split(x, y, test_size=0.5, stratify=y, random_state=0)
        machine = SVC(**SPACE.decode(point)).fit(a, c)
        expected.append(roc_auc_score(d, machine.decision_function(b)))
    assert np.array_equal(trainer(tmp_path).scores(agents, points), expected)


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
def test_the_authors_score_is_of_probabilities_by_platt_scaling(tmp_path: Path) -> None:
    agents, points = np.asarray([3, 0]), np.asarray([[0.2, 0.01], [0.9, 0.3]])
    made, scores = fields(), trainer(tmp_path, score="probability").scores(agents, points)
    for agent, point, score in zip(agents, points, scores, strict=True):
        x, y = made[agent][0], made[agent][1][:, 0]
        a, b, c, d = train_test_split(x, y, test_size=0.5, stratify=y, random_state=0)
        possible = set()
        for seed in range(40):  # the folds are random; which ones, the training decides
            machine = SVC(**SPACE.decode(point), probability=True, random_state=seed).fit(a, c)
            possible.add(roc_auc_score(d, machine.predict_proba(b)[:, 1]))
        assert score in possible


def test_a_training_decides_all_chance_and_another_has_other_folds(tmp_path: Path) -> None:
    agents, points = np.arange(29), np.random.default_rng(1).random((29, 2))
    one, same, other = (
        trainer(tmp_path, score="probability", training=k).scores(agents, points) for k in (5, 5, 6)
    )
    assert np.array_equal(one, same)
    assert np.any(one != other)
    assert np.all((one >= 0) & (one <= 1))
    plain = trainer(tmp_path).scores(agents, points)
    assert np.any(one != plain)


def test_only_a_score_with_chance_in_it_has_several_trainings() -> None:
    plain, noisy = problem_named("landmine"), problem_named("landmine:score=probability,training=3")
    assert isinstance(plain, Landmine)
    assert isinstance(noisy, Landmine)
    assert (plain.trainings, noisy.trainings) == (1, 4)
    assert plain.table == "landmine"
    assert noisy.table == "landmine-score=probability"
    assert noisy.usual.name == "landmine:score=probability"
    with pytest.raises(InvalidInput, match="training must be in"):
        problem_named("landmine:training=3")
    with pytest.raises(InvalidInput, match="training must be in"):
        problem_named("landmine:score=probability,training=-1")


def test_a_score_does_not_depend_on_the_other_trials(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    agents, points = np.arange(6), np.random.default_rng(1).random((6, 2))
    every = made.scores(agents, points)
    assert np.array_equal(made.scores(agents[4:5], points[4:5]), every[4:5])
    assert np.all((every >= 0) & (every <= 1))
    assert made.scores(agents[:0], points[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("agents", "points"),
    [([0], [[0.5]]), ([0, 1], [[0.5, 0.5]]), ([29], [[0, 0]]), ([-1], [[0, 0]])],
)
def test_impossible_trials_are_refused(tmp_path: Path, agents: list[int], points: Any) -> None:
    with pytest.raises(InvalidInput, match=r"agents"):
        trainer(tmp_path).scores(np.asarray(agents), np.asarray(points, dtype=float))


def with_field_5(x: Any = None, y: Any = None) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    made = fields()
    good = made[4]
    made[4] = (good[0] if x is None else x(good[0]), good[1] if y is None else y(good[1]))
    return made


def spoilt(x: NDArray[Any]) -> NDArray[Any]:
    x = x.copy()
    x[3, 2] = np.nan
    return x


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (with_field_5(x=lambda x: x[:, :8]), r"field 5 must have features \(n, 9\)"),
        (with_field_5(x=lambda x: x[1:]), "field 5 must have features"),
        (with_field_5(y=lambda y: np.hstack([y, y])), "field 5 must have features"),
        (with_field_5(x=spoilt), "field 5: features must be finite"),
        (with_field_5(y=lambda y: y * 2), r"field 5: labels must be 0 or 1, got \[0, 2\]"),
        (with_field_5(y=lambda y: y - 0.5), "field 5: labels must be 0 or 1"),
        (with_field_5(y=lambda y: 0 * y), "field 5 must have 2 rows or more of either label"),
        (with_field_5(x=lambda x: x.astype(str)), "field 5: features and labels must be numbers"),
        (with_field_5(x=csc_array), "field 5: features and labels must be numbers"),
        (fields()[:28], r"'feature' must be 29 cells, shape \(1, 29\), got \(1, 28\)"),
    ],
)
def test_wrong_data_are_told_with_the_file_and_the_field(
    tmp_path: Path, made: list[tuple[NDArray[Any], NDArray[Any]]], problem: str
) -> None:
    with pytest.raises(StorageError, match=rf"LandmineData\.mat: {problem}"):
        read_fields(saved(tmp_path, made))


def test_a_file_without_labels_or_of_another_kind_is_told(tmp_path: Path) -> None:
    found = saved(tmp_path, fields())
    savemat(tmp_path / "LandmineData.mat", {"feature": np.full((1, 29), "x", dtype=object)})
    with pytest.raises(StorageError, match="'label' must be 29 cells"):
        read_fields(found)
    (tmp_path / "LandmineData.mat").write_bytes(b"no MATLAB file" * 50)
    with pytest.raises(StorageError, match="not a MATLAB file that can be read"):
        read_fields(found)


def test_without_scikit_learn_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trainer(tmp_path)
    for module in ("sklearn.svm", "sklearn.model_selection"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"sottovoce\[experiments\]"):
        made.scores(np.asarray([0]), np.zeros((1, 2)))
    with pytest.raises(MissingExtra, match=r"sottovoce\[experiments\]"):
        stratified_halves(np.zeros(4), np.asarray([0, 0, 1, 1]))


@real_data
def test_the_real_fields_are_those_of_the_paper() -> None:
    made = Landmine().trainer(device_named(None))
    assert made.agents == 29
    assert sum(len(f.train_y) + len(f.valid_y) for f in made.fields) == 14820
    assert made.fingerprint == Landmine(objective="live").trainer(device_named(None)).fingerprint
    # the mean over fields at one setting, as measured when the procedure was fixed
    scores = made.scores(np.arange(29), np.tile([0.5, 0.1], (29, 1)))
    assert scores.mean() == pytest.approx(0.656, abs=0.002)
