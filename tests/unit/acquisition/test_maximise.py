from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.acquisition.maximise import Drawn, RegionalDraw, over_boxes, over_points
from sottovoce.gp.features import shared_features
from sottovoce.gp.kernel import Kernel
from sottovoce.gp.posterior import pathwise_draw
from sottovoce.space.regions import Regions

Floats = NDArray[Any]
PLAIN, FOUR = Regions((1, 1)), Regions((2, 2))


def broadcast(
    regions: Regions, b: int = 3, lengthscale: float = 0.2, seed: int = 1
) -> RegionalDraw:
    weights = np.random.default_rng(seed).standard_normal((b, regions.count, 60))
    return RegionalDraw(shared_features(seed, 60, 2, lengthscale), regions, weights)


def own(b: int = 3) -> Drawn:
    rng = np.random.default_rng(2)
    mask = np.ones((b, 12), bool)
    points, y = rng.random((b, 12, 2)), rng.standard_normal((b, 12))
    s, a = rng.standard_normal((b, 64, 2)), rng.standard_normal((b, 64, 2))
    return pathwise_draw(Kernel(0.15), points, y, mask, s, a, rng.standard_normal((b, 12)))


def test_the_best_point_is_the_first_with_the_largest_value() -> None:
    values = np.array([[1.0, 3.0, 3.0], [5.0, -1.0, 2.0]])
    np.testing.assert_array_equal(over_points(values), [1, 0])


@pytest.mark.parametrize("regions", [PLAIN, FOUR, Regions((3, 1))])
def test_the_broadcast_is_features_times_the_weights_of_the_region(regions: Regions) -> None:
    drawn = broadcast(regions)
    x = np.random.default_rng(0).random((3, 300, 2))
    weights = drawn.weights[np.arange(3)[:, None], regions.index(x)]
    expected = np.sum(drawn.features(x) * weights, axis=-1)
    np.testing.assert_allclose(drawn.values(x), expected, atol=1e-13)
    np.testing.assert_allclose(drawn.values_and_gradients(x)[0], expected, atol=1e-13)


@pytest.mark.parametrize("regions", [PLAIN, FOUR])
def test_weights_may_be_shared_by_the_whole_batch(regions: Regions) -> None:
    each = broadcast(regions, b=1)
    shared = RegionalDraw(each.features, regions, each.weights[0])
    x = np.random.default_rng(0).random((4, 7, 2))
    for b in range(4):
        np.testing.assert_allclose(shared.values(x)[b], each.values(x[b : b + 1])[0], atol=1e-13)
        for together, alone in zip(
            shared.values_and_gradients(x), each.values_and_gradients(x[b : b + 1]), strict=True
        ):
            np.testing.assert_allclose(together[b], alone[0], atol=1e-12)


@pytest.mark.parametrize("regions", [PLAIN, FOUR])
def test_gradients_of_the_broadcast_are_its_slopes(regions: Regions) -> None:
    drawn = broadcast(regions)
    x = np.random.default_rng(0).random((3, 40, 2))
    _, gradients = drawn.values_and_gradients(x)
    for d in range(2):
        step = 1e-6 * np.eye(2)[d]
        slope = (drawn.values(x + step) - drawn.values(x - step)) / 2e-6
        np.testing.assert_allclose(gradients[..., d], slope, atol=1e-5)


@pytest.mark.parametrize("drawn", [broadcast(PLAIN), broadcast(FOUR), own()])
def test_the_maximum_is_that_of_a_dense_grid_or_higher(drawn: Drawn) -> None:
    regions = drawn.regions if isinstance(drawn, RegionalDraw) else PLAIN
    candidates = np.random.default_rng(0).random((3, 1000, 2))
    x, value = over_boxes(drawn, candidates, regions)
    assert x.shape == (3, 2)
    assert value.shape == (3,)
    np.testing.assert_allclose(drawn.values(x[:, None])[:, 0], value, atol=1e-12)
    side = np.linspace(0, 1, 201)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(1, -1, 2)
    highest = drawn.values(np.repeat(grid, 3, axis=0)).max(axis=-1)
    assert np.all(value >= highest - 1e-9)
    assert np.all(value <= highest + 0.3)


class Watched:
    """Passes everything on and remembers where gradients were asked for."""

    def __init__(self, inner: Drawn) -> None:
        self.inner, self.seen = inner, list[Floats]()

    def values(self, x: Floats) -> Any:
        return self.inner.values(x)

    def values_and_gradients(self, x: Floats) -> tuple[Any, Any]:
        self.seen.append(x)
        return self.inner.values_and_gradients(x)


def test_every_start_stays_in_the_box_it_began_in() -> None:
    watched = Watched(broadcast(FOUR))
    x, value = over_boxes(watched, np.random.default_rng(0).random((3, 50, 2)), FOUR)
    first = FOUR.index(watched.seen[0])
    assert len(np.unique(first)) == 4
    assert len(watched.seen) > 2
    for visited in watched.seen:
        np.testing.assert_array_equal(FOUR.index(visited), first)
    # and the way that asks for each point's region every time finds the same
    same_x, same = over_boxes(broadcast(FOUR), np.random.default_rng(0).random((3, 50, 2)), FOUR)
    np.testing.assert_allclose(value, same, atol=1e-12)
    np.testing.assert_allclose(x, same_x, atol=1e-6)


@pytest.mark.parametrize(
    ("regions", "starts", "splits"),
    [(PLAIN, 7, (2, 2)), (PLAIN, 1, (1, 1)), (FOUR, 20, (4, 4)), (FOUR, 1, (2, 2))],
)
def test_starts_are_the_best_candidates_and_the_best_of_each_cell(
    regions: Regions, starts: int, splits: tuple[int, int]
) -> None:
    watched = Watched(broadcast(regions))
    candidates = np.random.default_rng(0).random((3, 200, 2))
    over_boxes(watched, candidates, regions, starts)
    values, cells = watched.values(candidates), Regions(splits)
    for b in range(3):
        best = candidates[b][np.argsort(-values[b])[:starts]]
        cell = cells.index(candidates[b])
        each = [np.where(cell == i, values[b], -9).argmax() for i in range(cells.count)]
        expected = np.concatenate([best, candidates[b][each]])
        np.testing.assert_array_equal(watched.seen[0][b], expected)


def test_a_narrow_peak_below_a_broad_plateau_is_found() -> None:
    class TwoHills:
        """A broad hill of height 1 and a narrow one of height 1.5."""

        def values_and_gradients(self, x: Floats) -> tuple[Any, Any]:
            hills = [(1.0, 0.25, 0.3), (1.5, 0.8, 0.04)]
            total, slope = np.zeros(x.shape[:-1]), np.zeros_like(x)
            for height, centre, width in hills:
                away = (x - centre) / width
                hill = height * np.exp(-0.5 * np.sum(away**2, axis=-1))
                total, slope = total + hill, slope - (hill[..., None] * away / width)
            return total, slope

        def values(self, x: Floats) -> Any:
            return self.values_and_gradients(x)[0]

    # twenty candidates near the broad top, and one low on the narrow hill
    rng = np.random.default_rng(0)
    near = 0.25 + 0.02 * rng.standard_normal((1, 25, 2))
    candidates = np.concatenate([near, np.array([[[0.76, 0.74]]])], axis=1)
    x, value = over_boxes(TwoHills(), candidates, PLAIN)
    np.testing.assert_allclose(x, 0.8, atol=0.01)
    assert value[0] > 1.5


def test_fewer_candidates_than_starts_are_enough() -> None:
    x, value = over_boxes(own(2), np.random.default_rng(0).random((2, 3, 2)), PLAIN)
    assert x.shape == (2, 2)
    assert np.all(np.isfinite(value))


def test_a_constant_function_gives_a_candidate_back() -> None:
    class Constant:
        def values(self, x: Floats) -> Any:
            return np.full(x.shape[:-1], 2.0)

        def values_and_gradients(self, x: Floats) -> tuple[Any, Any]:
            return self.values(x), np.zeros_like(x)

    candidates = np.random.default_rng(0).random((1, 30, 2))
    x, value = over_boxes(Constant(), candidates, PLAIN)
    assert np.any(np.all(candidates[0] == x[0], axis=-1))
    assert value[0] == 2.0


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_scale_of_the_function_does_not_matter(scale: float) -> None:
    drawn = broadcast(FOUR)
    candidates = np.random.default_rng(0).random((3, 1000, 2))
    x, value = over_boxes(drawn, candidates, FOUR)
    scaled = RegionalDraw(drawn.features, FOUR, scale * drawn.weights)
    other_x, other = over_boxes(scaled, candidates, FOUR)
    np.testing.assert_allclose(other_x, x, atol=1e-5)
    np.testing.assert_allclose(other, scale * value, rtol=1e-8)
