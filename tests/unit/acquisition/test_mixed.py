from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.acquisition.mixed import over_mixed
from sottovoce.space import Category, Float, Integer, Space

Floats = NDArray[Any]
SPACE = Space([Float("x", 0.0, 1.0), Integer("n", 1, 500), Category("c", ("a", "b", "c"))])
TOP = SPACE.encode({"x": 0.3, "n": 137, "c": "b"})


@dataclass
class Peak:
    """Largest at one point of the space; higher still between the choices, where nothing is."""

    top: Floats

    def values(self, x: Floats) -> Floats:
        between = np.sum(x[..., 2:] * (1 - x[..., 2:]), axis=-1)
        return np.asarray(5 * between - np.sum((x - self.top) ** 2, axis=-1))

    def values_and_gradients(self, x: Floats) -> tuple[Floats, Floats]:
        gradient = -2 * (x - self.top)
        gradient[..., 2:] += 5 * (1 - 2 * x[..., 2:])
        return self.values(x), gradient


def nowhere(x: Floats) -> Floats:
    return np.zeros(x.shape[:2], bool)


def candidates(count: int = 40) -> Floats:
    return np.asarray(SPACE.snap(np.random.default_rng(0).random((1, count, SPACE.dims))))


def test_it_finds_the_top_among_the_points_of_the_space_alone() -> None:
    (found,) = over_mixed(Peak(TOP), candidates(), SPACE, nowhere)
    np.testing.assert_allclose(found, TOP, atol=1e-3)
    np.testing.assert_array_equal(found, SPACE.snap(found))


def test_a_number_climbs_to_the_very_edge() -> None:
    edge = SPACE.encode({"x": 1.0, "n": 500, "c": "a"})
    (found,) = over_mixed(Peak(edge + np.array([0.5, 0.5, 0, 0, 0])), candidates(), SPACE, nowhere)
    assert SPACE.decode(found) == {"x": 1.0, "n": 500, "c": "a"}


def test_a_point_tried_before_is_passed_over() -> None:
    listed = Space([Integer("n", 1, 40), Category("c", ("a", "b"))])
    best = listed.encode({"n": 20, "c": "a"})

    class Bowl:
        def values(self, x: Floats) -> Floats:
            return np.asarray(-np.sum((x - best) ** 2, axis=-1))

        def values_and_gradients(self, x: Floats) -> tuple[Floats, Floats]:
            raise AssertionError("there is nothing to climb")

    def tried(x: Floats) -> Floats:
        return np.asarray(np.all(np.abs(x - best) < 1e-9, axis=-1))

    start = np.asarray(listed.snap(np.random.default_rng(1).random((1, 10, 3))))
    (found,) = over_mixed(Bowl(), start, listed, tried)
    assert listed.decode(found) in ({"n": 19, "c": "a"}, {"n": 21, "c": "a"})


def test_a_climb_does_not_end_where_an_agent_has_been() -> None:
    edge = SPACE.encode({"x": 1.0, "n": 500, "c": "a"})

    def tried(x: Floats) -> Floats:
        return np.asarray(np.all(np.abs(x - edge) < 1e-9, axis=-1))

    (found,) = over_mixed(Peak(edge + np.array([0.5, 0.5, 0, 0, 0])), candidates(), SPACE, tried)
    assert not tried(found[None, None])[0, 0]
    np.testing.assert_array_equal(found, SPACE.snap(found))
