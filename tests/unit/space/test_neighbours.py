from __future__ import annotations

import numpy as np

from sottovoce.space import Category, Float, Integer, Space, discrete, neighbours

SPACE = Space(
    [Float("x", 0.0, 1.0), Integer("n", 1, 9), Category("c", ("a", "b", "c")), Integer("b", 0, 1)]
)
HERE = {"x": 0.25, "n": 4, "c": "b", "b": 0}


def test_only_coordinates_of_continuous_numbers_are_not_discrete() -> None:
    assert discrete(SPACE).tolist() == [False, True, True, True, True, True]


def test_neighbours_differ_in_one_discrete_parameter_and_are_points_of_the_space() -> None:
    around = neighbours(SPACE, SPACE.encode(HERE))
    np.testing.assert_allclose(SPACE.snap(around), around)
    changed = [
        {name: value for name, value in SPACE.decode(u).items() if value != HERE[name]}
        for u in around
    ]
    assert all(len(each) <= 1 for each in changed)
    expected = [{"n": n} for n in (3, 5, 2, 6, 1, 8, 9)] + [{"c": "c"}, {"c": "a"}, {"b": 1}]
    assert all(each in changed for each in expected)
    assert not any("x" in each for each in changed)


def test_every_point_of_a_batch_has_its_own() -> None:
    u = SPACE.snap(np.random.default_rng(0).random((2, 3, SPACE.dims)))
    around = neighbours(SPACE, u)
    assert around.shape[:2] == (2, 3)
    np.testing.assert_array_equal(around[1, 2], neighbours(SPACE, u[1, 2]))
