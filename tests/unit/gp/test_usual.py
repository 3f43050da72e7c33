"""What functions of tuning usually look like."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import GP
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.usual import FAMILIES, Kind, even, flat_weights, kinds_of, usual_weights
from sottovoce.space import Category, Float, Integer, Space

MIXED = Space(
    [
        Float("x", 0.0, 1.0),
        Category("c", ("a", "b", "d")),
        Integer("n", 1, 1000, log=True),
        Float("rate", 1e-4, 1.0, log=True),
    ]
)


def kinds() -> list[Kind]:
    return kinds_of(MIXED, FederatedStudy(MIXED, GP, 1, 1).effects)


def test_a_kind_is_what_its_parameters_are_and_its_orders() -> None:
    found = kinds()
    assert found[:4] == [(("number", k),) for k in (1, 2, 3, 4)]
    assert found[4:7] == [(("choice", 0),)] * 3
    assert found[7:11] == found[11:15] == [(("log", k),) for k in (1, 2, 3, 4)]
    assert (("log", 1), ("log", 2)) in found  # of two parameters, in order
    assert (("log", 2), ("log", 1)) not in found


def test_only_what_stays_the_same_turned_round_has_a_mean() -> None:
    before = usual_weights(kinds(), 0.5)
    for kind, mean in zip(kinds(), before.mean, strict=True):
        assert mean == 0.0 or even(kind)
    assert even((("log", 2),))
    assert not even((("log", 1), ("log", 2)))
    assert not even((("choice", 0),))


def test_a_space_turned_round_or_with_choices_renamed_is_expected_to_look_turned_round() -> None:
    effects = FederatedStudy(MIXED, GP, 1, 1).effects
    before = usual_weights(kinds_of(MIXED, effects), 0.5)
    x = np.random.default_rng(0).random((50, MIXED.dims))
    turned = x.copy()
    turned[:, [0, 4, 5]] = 1.0 - turned[:, [0, 4, 5]]
    turned[:, 1:4] = x[:, [2, 3, 1]]
    one, other = (np.asarray(effects(points)) for points in (x, turned))
    np.testing.assert_allclose(one @ before.mean, other @ before.mean, atol=1e-9)
    spread, same = ((rows * before.variance) @ rows.T for rows in (one, other))
    np.testing.assert_allclose(spread, same, atol=1e-9)


def test_edges_are_expected_to_be_worse_than_the_middle() -> None:
    effects = FederatedStudy(MIXED, GP, 1, 1).effects
    before = usual_weights(kinds_of(MIXED, effects), 0.5)
    middle, edge = np.full(MIXED.dims, 0.5), np.zeros(MIXED.dims)
    heights = [float(np.asarray(effects(x[None]))[0] @ before.mean) for x in (middle, edge)]
    assert heights[0] > heights[1]


def test_a_kind_that_no_family_had_is_expected_to_be_anything() -> None:
    before = usual_weights([(("number", 9),)], 0.5, {})
    assert (before.mean[0], before.variance[0]) == (0.0, 0.5)


def test_the_table_counts_as_its_families_beside_the_flat_prior() -> None:
    kind: Kind = (("log", 2),)
    before = usual_weights([kind], 0.5, {kind: (-1.0, 3.0, 6)})
    assert before.mean[0] == pytest.approx(-6 / (6 + FAMILIES))
    assert before.variance[0] == pytest.approx((6 * (3.0 - 1.0) + FAMILIES * 0.5) / (6 + FAMILIES))


@pytest.mark.parametrize("variance", [0.0, -1.0, np.inf, np.nan])
def test_a_flat_prior_without_a_size_is_refused(variance: float) -> None:
    with pytest.raises(InvalidInput, match="the shared prior must be above 0"):
        flat_weights(3, variance)
