from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.federation.weights import REAL_WORLD, UNIFORM, Weights
from sottovoce.space.regions import Regions, assigned, equal_boxes

HALF = math.nextafter(0.5, 0)  # the largest float below one half


def papers_weights(
    t: int, a: float, level: float, assignment: NDArray[np.int64], regions: int
) -> NDArray[np.float64]:
    """The formula of the paper's appendix, letter by letter, with its temperature."""
    temperature = math.inf if level == 1 else a / (level - 1)
    rows = []
    for i in range(regions):
        tops = [math.exp((a * (int(region == i)) + 1) / temperature) for region in assignment]
        rows.append([top / sum(tops) for top in tops])
    return np.asarray(rows)


# the boxes


def test_four_boxes_in_two_dimensions_are_the_papers_in_the_papers_order() -> None:
    boxes = equal_boxes(4, 2)
    assert boxes.lower.tolist() == [[0, 0], [0, 0.5], [0.5, 0], [0.5, 0.5]]
    assert boxes.upper.tolist() == [[HALF, HALF], [HALF, 1], [1, HALF], [1, 1]]


def test_four_boxes_in_three_dimensions_leave_the_third_whole() -> None:
    boxes = equal_boxes(4, 3)
    assert boxes.lower.tolist() == [[0, 0, 0], [0, 0.5, 0], [0.5, 0, 0], [0.5, 0.5, 0]]
    assert boxes.upper.tolist() == [[HALF, HALF, 1], [HALF, 1, 1], [1, HALF, 1], [1, 1, 1]]


@pytest.mark.parametrize("count", [2, 3])
def test_in_one_dimension_the_boxes_are_the_papers_intervals(count: int) -> None:
    boxes = equal_boxes(count, 1)
    assert boxes.lower[:, 0].tolist() == [k / count for k in range(count)]
    inner = [math.nextafter(k / count, 0) for k in range(1, count)]
    assert boxes.upper[:, 0].tolist() == [*inner, 1.0]


def test_six_boxes_cut_the_first_dimension_in_three_and_the_second_in_two() -> None:
    boxes = equal_boxes(6, 3)
    assert boxes.splits == (3, 2, 1)
    assert boxes.count == 6
    assert boxes.index(
        np.asarray([[0.0, 0.6, 0.1], [0.4, 0.2, 0.9], [1.0, 1.0, 1.0]])
    ).tolist() == [
        1,
        2,
        5,
    ]


def test_one_box_is_the_whole_cube() -> None:
    boxes = equal_boxes(1, 5)
    assert boxes.lower.tolist() == [[0.0] * 5]
    assert boxes.upper.tolist() == [[1.0] * 5]
    assert boxes.index(np.ones((3, 5))).tolist() == [0, 0, 0]


def test_eight_boxes_in_two_dimensions_keep_cutting_where_there_are_fewest_slices() -> None:
    assert equal_boxes(8, 2).splits == (4, 2)
    assert equal_boxes(12, 2).splits == (3, 4)
    assert equal_boxes(7, 2).splits == (7, 1)


def test_only_the_dimensions_named_are_cut() -> None:
    assert equal_boxes(4, 3, splittable=(2,)).splits == (1, 1, 4)
    assert equal_boxes(4, 3, splittable=(1, 2)).splits == (1, 2, 2)
    assert equal_boxes(1, 3, splittable=()).splits == (1, 1, 1)


def test_an_edge_belongs_to_the_box_above_it_and_one_belongs_to_the_last() -> None:
    boxes = equal_boxes(3, 1)
    edges = np.asarray([0.0, math.nextafter(1 / 3, 0), 1 / 3, math.nextafter(2 / 3, 0), 2 / 3, 1.0])
    assert boxes.index(edges[:, None]).tolist() == [0, 0, 1, 1, 2, 2]


def test_index_keeps_any_leading_axes() -> None:
    x = np.random.default_rng(0).random((2, 3, 4, 2))
    found = equal_boxes(4, 2).index(x)
    assert found.shape == (2, 3, 4)
    assert np.array_equal(found[1, 2], equal_boxes(4, 2).index(x[1, 2]))
    assert np.array_equal(found, 2 * (x[..., 0] >= 0.5) + (x[..., 1] >= 0.5))


@pytest.mark.parametrize("count", [0, -1])
def test_a_number_of_boxes_below_one_is_refused(count: int) -> None:
    with pytest.raises(InvalidInput, match=f"at least 1, got regions={count}"):
        equal_boxes(count, 2)


def test_more_than_one_box_needs_a_dimension_that_may_be_cut() -> None:
    with pytest.raises(InvalidInput, match="needs a numeric parameter, got regions=2"):
        equal_boxes(2, 3, splittable=())


def test_regions_that_split_alike_are_equal() -> None:
    assert equal_boxes(6, 2) == Regions((3, 2))
    assert equal_boxes(6, 2) != equal_boxes(6, 3)


# who explores which


def test_agent_n_explores_box_n_mod_p() -> None:
    assert assigned(7, 3).tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert assigned(4, 4).tolist() == [0, 1, 2, 3]


def test_more_boxes_than_agents_are_refused() -> None:
    with pytest.raises(InvalidInput, match="regions=4, agents=3"):
        assigned(3, 4)


# the weights


def test_the_synthetic_schedule_is_the_papers() -> None:
    weights = Weights()
    assert [weights.level(t) for t in range(6)] == [16.0] * 6
    assert [weights.level(t) for t in range(6, 11)] == [16.0, 12.25, 8.5, 4.75, 1.0]
    assert [weights.level(t) for t in (11, 12, 40, 1000)] == [1.0] * 4


def test_the_real_world_schedule_holds_ten_rounds_and_decays_over_thirty() -> None:
    assert [REAL_WORLD.level(t) for t in (0, 1, 10, 11)] == [16.0] * 4
    falling = [REAL_WORLD.level(t) for t in range(11, 41)]
    assert np.allclose(falling, np.linspace(16, 1, 30))
    assert [REAL_WORLD.level(t) for t in (40, 41, 100)] == [1.0] * 3


@pytest.mark.parametrize("a", [15.0, 9.0, 0.5])
@pytest.mark.parametrize("t", [0, 1, 5, 6, 7, 8, 9, 10, 11, 40])
def test_softmax_weights_are_the_papers_formula(a: float, t: int) -> None:
    weights, assignment = Weights(strength=a), assigned(7, 3)
    wanted = papers_weights(t, a, weights.level(t), assignment, 3)
    assert np.allclose(weights(t, assignment, 3), wanted, rtol=1e-12, atol=0)


def test_nine_as_strength_starts_at_ten() -> None:
    weights = Weights(strength=9.0)
    assert [weights.level(t) for t in (1, 6, 8, 10)] == [10.0, 10.0, 5.5, 1.0]


@pytest.mark.parametrize(
    "weights",
    [Weights(), REAL_WORLD, UNIFORM, Weights("ratio", 1000.0), Weights("square", 40.0)],
)
@pytest.mark.parametrize("t", [0, 3, 8, 20, 39])
def test_each_rows_weights_sum_to_one_over_all_agents(weights: Weights, t: int) -> None:
    phi = weights(t, assigned(11, 4), 4)
    assert phi.shape == (4, 11)
    assert np.allclose(phi.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    assert phi.min() >= 0


@pytest.mark.parametrize(
    "weights",
    [Weights(), Weights(strength=9.0), Weights("ratio", 1000.0), Weights("square", 40.0)],
)
def test_in_the_end_all_agents_weigh_the_same(weights: Weights) -> None:
    for t in (10, 11, 500):
        assert np.allclose(weights(t, assigned(10, 3), 3), 0.1, rtol=1e-14, atol=0)
    assert not np.allclose(weights(9, assigned(10, 3), 3), 0.1)


def test_uniform_weights_are_uniform_from_the_first_round() -> None:
    for t in (0, 1, 5, 100):
        assert np.allclose(UNIFORM(t, assigned(6, 2), 2), 1 / 6, rtol=1e-15, atol=0)


def test_ratio_weights_fall_from_a_thousand_against_one() -> None:
    weights, assignment = Weights("ratio", 1000.0), assigned(5, 2)
    assert [weights.level(t) for t in (0, 5, 6, 8, 10)] == [1000.0, 1000.0, 1000.0, 500.5, 1.0]
    phi = weights(0, assignment, 2)
    assert np.allclose(phi[0], np.asarray([1000, 1, 1000, 1, 1000]) / 3002)
    assert np.allclose(phi[1], np.asarray([1, 1000, 1, 1000, 1]) / 2003)


def test_square_weights_fall_from_forty_squared_against_one() -> None:
    weights = Weights("square", 40.0)
    assert [weights.level(t) for t in (1, 6, 8, 10)] == [40.0, 40.0, 20.5, 1.0]
    phi = weights(8, assigned(3, 2), 2)
    assert np.allclose(phi[1], np.asarray([1, 20.5**2, 1]) / (20.5**2 + 2))


def test_weights_that_do_not_adapt_keep_their_first_value() -> None:
    weights, assignment = Weights(adaptive=False), assigned(6, 3)
    assert {weights.level(t) for t in (0, 5, 6, 10, 999)} == {16.0}
    wanted = papers_weights(0, 15.0, 16.0, assignment, 3)  # the temperature stays 1
    for t in (1, 50):
        assert np.allclose(weights(t, assignment, 3), wanted, rtol=1e-12)


@pytest.mark.parametrize("hold", [0, 1, 3])
@pytest.mark.parametrize("decay", [0, 1, 2, 7])
def test_any_schedule_begins_high_never_rises_and_ends_at_one(hold: int, decay: int) -> None:
    levels = [Weights(hold=hold, decay=decay).level(t) for t in range(hold + decay + 3)]
    assert all(later <= sooner for sooner, later in itertools.pairwise(levels))
    assert all(1.0 <= level <= 16.0 for level in levels)
    assert levels[: hold + 1 if hold else 0] == [16.0] * (hold + 1 if hold else 0)
    assert levels[hold + decay + 1 :] == [1.0] * 2


def test_a_very_strong_preference_does_not_overflow() -> None:
    phi = Weights(strength=5000.0)(0, assigned(4, 2), 2)
    assert phi.tolist() == [[0.5, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.5]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "linear"}, "weights must be one of .*, got kind='linear'"),
        ({"strength": 0.0}, "strength must be finite and above 0"),
        ({"strength": -1.0}, "strength must be finite and above 0"),
        ({"strength": math.inf}, "strength must be finite and above 0"),
        ({"strength": math.nan}, "strength must be finite and above 0"),
        ({"hold": -1}, "hold and decay must be at least 0"),
        ({"decay": -1}, "hold and decay must be at least 0"),
    ],
)
def test_bad_weights_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Weights(**changes)  # type: ignore[arg-type]
