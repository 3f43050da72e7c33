from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.unit.gp.seen import history

from sottovoce.gp.history import History, masked_rows, modelled, standardised

RANDOM = np.random.default_rng(3)


def test_standardised_values_have_mean_zero_and_variance_one() -> None:
    values = RANDOM.normal(5.0, 3.0, (4, 9))
    found = standardised(values, np.ones((4, 9), dtype=np.bool_))
    assert np.allclose(found.mean(axis=1), 0, atol=1e-14)
    assert np.allclose(found.std(axis=1), 1)
    assert np.allclose(found[2], (values[2] - values[2].mean()) / values[2].std())


def test_what_is_masked_neither_counts_nor_shows() -> None:
    values = np.asarray([[1.0, 2.0, 6.0, 999.0, math.nan]])
    mask = np.asarray([[True, True, True, False, False]])
    found = standardised(values, mask)
    assert np.allclose(found[:, :3], standardised(values[:, :3], mask[:, :3]))
    assert found[0, 3:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("values", [[[3.0]], [[2.0, 2.0, 2.0]]])
def test_values_without_spread_become_zero(values: list[list[float]]) -> None:
    array = np.asarray(values)
    assert np.all(standardised(array, np.ones(array.shape, dtype=np.bool_)) == 0)


def test_an_empty_history_stays_empty() -> None:
    assert standardised(np.zeros((2, 0)), np.zeros((2, 0), dtype=np.bool_)).shape == (2, 0)
    unseen = standardised(np.ones((2, 3)), np.zeros((2, 3), dtype=np.bool_))
    assert np.all(unseen == 0)


# failed trials


def test_a_failed_trial_is_a_zero_that_the_mask_names() -> None:
    raw = np.asarray([[1.0, math.nan, 3.0], [math.nan] * 3])
    values, mask = modelled(raw, standardise=False)
    assert values.tolist() == [[1.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
    assert mask.tolist() == [[True, False, True], [False] * 3]
    values, same = modelled(raw, standardise=True)
    assert values.tolist() == [[-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert np.array_equal(mask, same)


def test_rows_that_are_masked_are_zero() -> None:
    seen = history(2, 4)
    mask = np.asarray([[True, True, False, True], [False] * 4])
    table = RANDOM.random((60, 5))
    rows = masked_rows(table, History(seen.points, seen.values, mask, seen.index))
    assert rows.shape == (2, 4, 5)
    assert seen.index is not None
    assert np.array_equal(rows[0, 3], table[seen.index[0, 3]])
    assert np.all(rows[~mask] == 0)


def test_without_a_mask_every_row_is_an_observation() -> None:
    seen, table = history(2, 4), RANDOM.random((60, 5))
    bare = History(None, seen.values, None, seen.index)
    assert np.array_equal(masked_rows(table, bare), masked_rows(table, seen))


def test_what_is_modelled_is_the_same_by_the_bare_array_standard() -> None:
    strict = pytest.importorskip("array_api_strict")
    raw = np.where(RANDOM.random((5, 7)) < 0.4, math.nan, RANDOM.random((5, 7)))
    for standardise in (True, False):
        here, there = (modelled(r, standardise) for r in (raw, strict.asarray(raw)))
        for one, two in zip(here, there, strict=True):
            assert np.array_equal(one, np.asarray(two))


@pytest.mark.parametrize("some", [slice(1, 3), np.asarray([False, True, True])])
def test_a_part_of_a_history_is_that_of_some_agents(some: Any) -> None:
    seen = history(3, 4)
    part = seen.part(some)
    assert np.array_equal(part.points, seen.points[1:])
    assert np.array_equal(part.values, seen.values[1:])
    assert np.array_equal(np.asarray(part.index), np.asarray(seen.index)[1:])
    bare = History(None, seen.values, None, seen.index).part(some)
    assert (bare.points, bare.mask) == (None, None)
