from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.federation.batch import Batch, Trials
from sottovoce.federation.candidates import untried_row
from sottovoce.federation.domain import Box, PointList
from sottovoce.federation.methods import TS
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.simulation.streams import Dealer, Draws
from sottovoce.space import Category, Float, Integer, Space

RANDOM = np.random.default_rng(3)
PLANE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
MIXED = Space([Float("x", 0.0, 1.0), Integer("n", 1, 4), Category("c", ("a", "b"))])
LIST = Space([Float("x", 0.0, 1.0, steps=5), Integer("n", 1, 4)])
SPACES = {"plane": PLANE, "mixed": MIXED, "list": LIST}


def batch(space: Space, tried: NDArray[np.float64]) -> Batch:
    """Agents that have tried these points of the space, (n, t, D)."""
    count, trials = tried.shape[:2]
    study = FederatedStudy(space, replace(TS, initial=1), count, 9)
    who, raw = slice(0, count), np.zeros((count, trials))
    where = space.index(tried) if space.finite else tried
    source = Dealer(Draws(0, 0), count).to(who)
    seen = Trials(np.asarray(where), raw, trials)
    return Batch(study, who, Surrogate(), source, TS.shared(study), seen)


def points_of(space: Space, agents: int, trials: int) -> NDArray[np.float64]:
    return np.asarray(space.snap(RANDOM.random((agents, trials, space.dims))))


def test_a_space_is_searched_as_a_list_if_it_is_finite() -> None:
    kinds = {name: type(batch(s, points_of(s, 2, 3)).domain) for name, s in SPACES.items()}
    assert kinds == {"plane": Box, "mixed": Box, "list": PointList}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("trials", [0, 3])
def test_what_was_tried_is_known_by_its_points(name: str, trials: int) -> None:
    tried = points_of(SPACES[name], 4, trials)
    domain = batch(SPACES[name], tried).domain
    np.testing.assert_array_equal(domain.points(), tried)
    np.testing.assert_array_equal(domain.points(min(1, trials)), tried[:, :1])
    np.testing.assert_array_equal(domain.decoded(domain.encoded(tried)), tried)


def test_a_point_is_repeated_if_all_its_coordinates_are() -> None:
    tried = np.asarray([[[0.0, 1.0], [0.5, 0.5]]] * 4)
    chosen = np.asarray([[0.5, 0.5], [0.5, 1.0], [0.0, 1.0], [0.5, 0.5 + 1e-13]])
    assert batch(PLANE, tried).domain.repeated(chosen).tolist() == [True, False, True, False]


def test_a_point_is_repeated_though_its_parameter_was_rounded_on_the_way() -> None:
    tried = np.asarray([[[0.3, 0.7]]])
    domain = batch(PLANE, tried).domain
    assert domain.repeated(np.nextafter(tried[:, 0], 1.0)).tolist() == [True]


@pytest.mark.parametrize("low", [1e6, -3.0, 1e-3])
@pytest.mark.parametrize("log", [False, True])
def test_a_point_that_comes_back_from_its_value_is_the_same_point(low: float, log: bool) -> None:
    space = Space([Float("x", low, low + 1.0, log=log and low > 0)])
    tried = RANDOM.random((200, 1, 1))
    back = [[space.encode(space.decode(point[0]))] for point in tried]
    assert np.all(batch(space, np.asarray(back)).domain.repeated(tried[:, 0]))
    assert not np.any(batch(space, np.asarray(back)).domain.repeated(tried[:, 0] + 1e-6))


def test_a_row_is_repeated_if_it_is_among_those_tried() -> None:
    tried = LIST.points()[np.asarray([[3, 1], [3, 1], [0, 0]])]
    assert batch(LIST, tried).domain.repeated(np.asarray([1, 2, 0])).tolist() == [True, False, True]


@pytest.mark.parametrize("name", SPACES)
def test_in_place_of_a_repeated_query_comes_an_untried_one(name: str) -> None:
    domain = batch(SPACES[name], points_of(SPACES[name], 50, 3)).domain
    some = np.arange(50) % 2 == 0
    fresh = domain.untried(1, some)
    whole = domain.untried(1, np.ones(50, dtype=np.bool_))
    np.testing.assert_array_equal(fresh, whole[some])  # who else repeats does not matter
    assert not np.any(domain.repeated(whole))
    points = domain.decoded(whole)
    np.testing.assert_array_equal(SPACES[name].snap(points), points)


def test_an_untried_row_is_any_of_those_left() -> None:
    tried = np.broadcast_to(np.asarray([0, 2, 2, 5]), (6000, 4))
    found = untried_row(tried, RANDOM.random((6000, 6)))
    assert np.bincount(found, minlength=6) == pytest.approx([0, 2000, 0, 2000, 2000, 0], rel=0.15)


def test_once_all_rows_are_tried_any_may_come_again() -> None:
    tried = np.broadcast_to(np.arange(4), (4000, 4))
    found = untried_row(tried, RANDOM.random((4000, 4)))
    assert np.bincount(found, minlength=4) == pytest.approx(np.full(4, 1000), rel=0.15)


def test_an_untried_row_is_the_same_by_the_bare_array_standard() -> None:
    strict = pytest.importorskip("array_api_strict")
    tried, u = RANDOM.integers(9, size=(5, 4)), RANDOM.random((5, 9))
    there = untried_row(strict.asarray(tried), strict.asarray(u))
    assert np.array_equal(untried_row(tried, u), np.asarray(there))
