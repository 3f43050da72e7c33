from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sottovoce.errors import StorageError
from sottovoce.lab.problems.datasets import DIGITS, HAR, Found
from sottovoce.lab.problems.training import fingerprint, require, settings_at, stratified_halves
from sottovoce.space import Float, Integer, Space

FOUND = Found(HAR, HAR.layouts[1], Path("/data/har"), "abc")


def test_a_fingerprint_tells_data_problem_and_procedure_apart_but_not_folders() -> None:
    usual = fingerprint("har", 1, FOUND)
    others = {
        fingerprint("har-run", 1, FOUND),
        fingerprint("har", 2, FOUND),
        fingerprint("har", 1, replace(FOUND, checksum="abd")),
        fingerprint("har", 1, replace(FOUND, layout=HAR.layouts[0])),
    }
    assert usual not in others
    assert len(others) == 4
    assert fingerprint("har", 1, replace(FOUND, folder=Path("/elsewhere"))) == usual


def test_settings_are_the_values_the_space_decodes() -> None:
    space = Space([Integer("a", 1, 4), Float("b", 0.0, 2.0)])
    points = np.asarray([[0.0, 0.5], [1.0, 1.0], [0.3, 0.0]])
    assert settings_at(space, points).tolist() == [[1, 1], [4, 2], [2, 0]]
    assert settings_at(space, points[:0]).shape == (0, 2)


def test_the_same_rows_are_always_halved_alike() -> None:
    x, y = np.arange(40), np.arange(40) % 3
    one, two = stratified_halves(x, y), stratified_halves(x, y)
    assert np.array_equal(one.train_x, two.train_x)
    assert np.array_equal(np.sort(np.concatenate([one.train_x, one.valid_x])), x)
    assert np.array_equal(one.train_y, one.train_x % 3)


def test_wrong_data_are_told_with_the_file_or_the_folder_of_many() -> None:
    require(True, FOUND, "nothing")
    with pytest.raises(StorageError, match=r"^/data/har/ucihar_derived561\.npz: too small$"):
        require(False, FOUND, "too small")
    with pytest.raises(StorageError, match=r"^/data/digits: too small$"):
        require(False, Found(DIGITS, DIGITS.layouts[0], Path("/data/digits"), ""), "too small")
