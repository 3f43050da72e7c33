from __future__ import annotations

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.gp.quasirandom import latin_points, public_uniforms, quasirandom_points


def unevenness(points: NDArray[np.float64], corners: NDArray[np.float64]) -> float:
    """How far the share of points in a box from the origin is from its size, at the worst."""
    share = np.all(points[None] < corners[:, None], axis=-1).mean(axis=1)
    return float(np.max(np.abs(share - corners.prod(axis=1))))


def test_a_label_gives_these_numbers_for_ever() -> None:
    np.testing.assert_array_equal(
        public_uniforms(b"here", 3), [0.6928420012999923, 0.3066805831234443, 0.8969265050930935]
    )
    wanted = [
        [0.447719667546685, 0.8765208741214976],
        [0.20259733379337774, 0.4463611651195507],
        [0.5705082479926205, 0.14697158117667186],
    ]
    found = quasirandom_points(b"here", 1000, 2)[[0, 1, 999]]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_public_uniforms_are_the_midpoints_of_equal_cells() -> None:
    digest = hashlib.shake_256(b"label").digest(8 * 50)
    words = [int.from_bytes(digest[8 * i : 8 * i + 8], "little") >> 11 for i in range(50)]
    np.testing.assert_array_equal(
        public_uniforms(b"label", 50), [(word + 0.5) * 2.0**-53 for word in words]
    )
    np.testing.assert_array_equal(public_uniforms(b"label", 20), public_uniforms(b"label", 50)[:20])


def test_the_highest_cell_stays_below_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Highest:
        def digest(self, size: int) -> bytes:
            return b"\xff" * size

    monkeypatch.setattr("sottovoce.gp.quasirandom.hashlib.shake_256", lambda label: Highest())
    assert np.all(public_uniforms(b"", 4) < 1.0)
    points = quasirandom_points(b"", 500, 3)
    assert np.all((points > 0) & (points < 1))


@pytest.mark.parametrize("dims", range(1, 7))
def test_every_point_lies_inside_the_open_cube_and_none_comes_twice(dims: int) -> None:
    points = quasirandom_points(b"inside", 5000, dims)
    assert points.shape == (5000, dims)
    assert np.all((points > 0) & (points < 1))
    assert all(len(np.unique(column)) == 5000 for column in points.T)


@pytest.mark.parametrize("dims", range(1, 7))
@pytest.mark.parametrize("run", [slice(0, 64), slice(300, 420)], ids=["first", "later"])
def test_any_run_of_points_lies_more_evenly_than_random_ones(dims: int, run: slice) -> None:
    random = np.random.default_rng(1)
    corners = random.random((500, dims))
    count = run.stop - run.start
    ours = [unevenness(quasirandom_points(b"%d" % k, 500, dims)[run], corners) for k in range(10)]
    theirs = [unevenness(random.random((count, dims)), corners) for _ in range(10)]
    assert np.mean(ours) < 0.85 * np.mean(theirs)


@pytest.mark.parametrize("dims", [1, 2])
def test_no_two_of_a_run_are_as_near_as_random_ones_come(dims: int) -> None:
    points = quasirandom_points(b"apart", 200, dims)
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1) + 9 * np.eye(200)
    assert apart.min() > 0.3 * 200 ** (-1 / dims)


def test_another_label_moves_all_points_and_a_longer_list_begins_the_same() -> None:
    first, other = quasirandom_points(b"one", 30, 3), quasirandom_points(b"two", 30, 3)
    assert not np.any(np.isclose(first, other))
    np.testing.assert_array_equal(quasirandom_points(b"one", 90, 3)[:30], first)
    shift = (other - first) % 1.0  # one step for all: the start alone is what the label gives
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-12)


@pytest.mark.parametrize(("count", "dims"), [(1, 1), (4, 2), (5, 7), (30, 3)])
def test_of_a_latin_hypercube_every_coordinate_meets_each_cell_once(count: int, dims: int) -> None:
    points = latin_points(b"latin", 9, count, dims)
    assert points.shape == (9, count, dims)
    assert np.all((points > 0) & (points < 1))
    cells = np.sort(np.floor(points * count), axis=1)
    np.testing.assert_array_equal(cells, np.broadcast_to(np.arange(count)[:, None], cells.shape))


def test_a_label_gives_the_same_hypercubes_and_another_others() -> None:
    first = latin_points(b"one", 3, 5, 2)
    np.testing.assert_array_equal(first, latin_points(b"one", 3, 5, 2))
    assert not np.any(np.isclose(first, latin_points(b"two", 3, 5, 2)))
    assert len(np.unique(first.reshape(-1, 2), axis=0)) == 15


def test_over_many_hypercubes_no_two_coordinates_go_together() -> None:
    points = latin_points(b"many", 2000, 5, 2).reshape(-1, 2)
    assert abs(np.mean((points[:, 0] - 0.5) * (points[:, 1] - 0.5))) < 0.05 / 12
