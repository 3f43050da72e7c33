from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.federation.batch import Batch
from sottovoce.federation.candidates import elsewhere, near_and_far, visited
from sottovoce.federation.methods import GP
from sottovoce.federation.searcher import Searcher
from sottovoce.federation.study import FederatedStudy
from sottovoce.space import Category, Float, Space

Floats = NDArray[Any]
PLANE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
MIXED = Space([Float("x", 0.0, 1.0), Category("c", ("a", "b", "c"))])
PARAMS = {"x": 0.25, "y": 0.5}


class Bowl:
    """Largest at a known point."""

    def __init__(self, top: Floats) -> None:
        self.top = top

    def values(self, x: Floats) -> Floats:
        return np.asarray(-np.sum((x - self.top) ** 2, axis=-1))

    def values_and_gradients(self, x: Floats) -> tuple[Floats, Floats]:
        return self.values(x), -2 * (x - self.top)


def batch_of(space: Space, *told: dict[str, Any]) -> Batch:
    searcher = Searcher(FederatedStudy(space, GP, 1, 9), 0, seed=0)
    for params in told:
        searcher.tell(params, 1.0)
    return searcher._batch


def test_where_an_agent_has_been_or_a_trial_runs_is_known() -> None:
    batch = batch_of(PLANE, PARAMS)
    x = np.array([[[0.25, 0.5], [0.25, 0.6], [0.9, 0.9]]])
    np.testing.assert_array_equal(visited(batch, x), [[True, False, False]])
    batch.pending = np.array([[[0.9, 0.9]]])
    np.testing.assert_array_equal(visited(batch, x), [[True, False, True]])


@pytest.mark.parametrize("space", [PLANE, MIXED], ids=["plane", "mixed"])
def test_candidates_are_everywhere_and_some_keep_parameters_of_a_good_point(space: Space) -> None:
    batch = batch_of(space)
    around = np.asarray(space.snap(np.full((1, space.dims), 0.3)))
    found = near_and_far(batch, 1, around)
    assert found.shape == (1, 601, space.dims)
    assert np.all((found >= 0) & (found <= 1))
    np.testing.assert_array_equal(found[:, -1], around)
    kept = (found == around[:, None])[0, 400:600]
    far = (found == around[:, None])[0, :400]
    assert not np.any(far)
    assert 0.5 < kept[:, 0].mean() < 0.7
    if space is MIXED:  # a choice is kept whole, or not at all
        assert np.all(kept[:, 1] == kept[:, 2])
        assert np.all(kept[:, 1] == kept[:, 3])


def test_a_top_that_was_tried_gives_way_to_the_best_point_close_by() -> None:
    batch, spread = batch_of(PLANE, PARAMS), np.random.default_rng(0).random((1, 200, 2))
    top = np.array([[0.25, 0.5]])
    other = elsewhere(batch, Bowl(top), spread, top)
    assert not visited(batch, other[:, None])[0, 0]
    assert 0 < np.abs(other - top).max() < 0.002
    fresh = np.array([[0.7, 0.7]])
    np.testing.assert_array_equal(elsewhere(batch, Bowl(top), spread, fresh), fresh)


def test_a_corner_that_was_tried_gives_way_inside_the_cube() -> None:
    batch, corner = batch_of(PLANE, {"x": 1.0, "y": 0.0}), np.array([[1.0, 0.0]])
    spread = np.random.default_rng(1).random((1, 200, 2))
    other = elsewhere(batch, Bowl(corner), spread, corner)
    assert np.all((other >= 0) & (other <= 1))
    assert not np.array_equal(other, corner)
