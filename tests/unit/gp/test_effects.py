from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import GP, POOLED_TS, SOTTOVOCE
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.effects import MOST, effects
from sottovoce.gp.matern import Coordinates
from sottovoce.space import Category, Float, Integer, Space

Floats = NDArray[Any]
# two numbers and a choice of three between them
MIXED = Coordinates((0, 1, 1, 1, 2), (1.0, 0.5, 0.5, 0.5, 1.0))


def numbers(count: int) -> Coordinates:
    return Coordinates(tuple(range(count)), (1.0,) * count)


def cube(side: int = 48) -> Floats:
    """All of the mixed cube: midpoints of cells, in which waves add up to what they should."""
    line = (np.arange(side) + 0.5) / side
    x, k, z = np.meshgrid(line, np.arange(3), line, indexing="ij")
    choice = np.eye(3)[k.ravel()]
    return np.concatenate([x.reshape(-1, 1), choice, z.reshape(-1, 1)], axis=-1)


def test_every_feature_has_mean_0_and_its_own_variance_over_the_cube_and_all_add_up_to_1() -> None:
    basis = effects(MIXED)
    phi = basis(cube())
    np.testing.assert_allclose(phi.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose((phi**2).mean(axis=0), basis.variance, rtol=1e-10)
    assert basis.variance.sum() == pytest.approx(1.0)
    assert np.all(basis.variance > 0)


def test_features_of_other_parameters_or_orders_are_uncorrelated_over_the_cube() -> None:
    basis = effects(numbers(2))
    line = (np.arange(64) + 0.5) / 64
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    phi = basis(points) / np.sqrt(basis.variance)
    np.testing.assert_allclose(phi.T @ phi / len(points), np.eye(basis.count), atol=1e-10)


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        (1, 4),
        (2, 4 * 2 + 4),
        (6, 4 * 6 + 4 * 15),
        (30, 4 * 30),  # a pair of each two would be too many
        (60, 4 * 60),
        (100, 2 * 100),
        (300, 300),
    ],
)
def test_there_are_so_many_effects(parameters: int, count: int) -> None:
    basis = effects(numbers(parameters))
    assert basis.count == count
    assert count <= max(MOST, parameters)
    only_one = basis.second == len(basis.wave)
    assert {int(basis.wave[k]) for k in basis.first[only_one]} == set(range(parameters))


def test_a_choice_has_a_column_for_each_value_and_pairs_with_the_numbers() -> None:
    basis = effects(MIXED)
    assert basis.count == (4 + 3 + 4) + (2 * 3 + 2 * 2 + 3 * 2)
    main = basis(np.array([[0.5, 1.0, 0.0, 0.0, 0.5]]))[0, 4:7] / np.sqrt(basis.variance[4:7])
    np.testing.assert_allclose(main, np.array([2.0, -1.0, -1.0]) / np.sqrt(2.0))


def test_the_pull_is_the_gradient_in_the_numbers_and_none_in_a_choice() -> None:
    basis, random = effects(MIXED), np.random.default_rng(0)
    choice = np.eye(3)[random.integers(3, size=(2, 7))]
    ends = random.random((2, 2, 7, 1))
    x = np.concatenate([ends[0], choice, ends[1]], axis=-1)
    w = random.standard_normal((2, 7, basis.count))
    slope = basis.at(x).pull(w)
    assert slope.shape == x.shape
    for d in (0, 4):
        step = 1e-6 * np.eye(5)[d]
        wanted = np.sum((basis(x + step) - basis(x - step)) * w, axis=-1) / 2e-6
        np.testing.assert_allclose(slope[..., d], wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(slope[..., 1:4], 0.0)


# a study's


PLANE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
ALL = Space([Float("x", 0.0, 1.0), Integer("n", 1, 4), Category("c", ("a", "b"))])


@pytest.mark.parametrize(
    ("space", "count"), [(PLANE, 2 * 6 + 4 * 4), (ALL, (6 + 6 + 2) + (4 * 4 + 4 * 2 + 4 * 2))]
)
def test_a_study_sets_the_number_of_effects_of_its_space(space: Space, count: int) -> None:
    study = FederatedStudy(space, SOTTOVOCE, agents=5, rounds=3)
    assert study.method.features == study.effects.count == count
    assert FederatedStudy(space, study.method, 5, 3) == study
    assert FederatedStudy.from_dict(study.to_dict()) == study
    assert study.effects(study.latin_design).shape == (5, 5, count)


def test_who_goes_alone_has_less_detail_than_a_consensus() -> None:
    assert FederatedStudy(PLANE, GP, agents=1, rounds=3).effects.count == 12
    for count in (2, 3, 4, 6, 30):
        alone, fine = effects(numbers(count)), effects(numbers(count), fine=True)
        assert (fine.count > alone.count) == (count < 4)
        assert fine.count <= (48 if count < 4 else MOST)
    expected = effects(numbers(1), fine=True).variance
    np.testing.assert_allclose(
        expected[[1, 3, 5]] / expected[0], [1 / 4, 1 / 16, (4 / 6) ** 4 / 36]
    )


@pytest.mark.parametrize("features", [2, 12, 27, 29])
def test_any_other_number_of_effects_is_refused(features: int) -> None:
    with pytest.raises(InvalidInput, match=f"leave features at 1, or 28, got features={features}"):
        FederatedStudy(PLANE, replace(SOTTOVOCE, features=features), 5, 3)
    assert FederatedStudy(PLANE, replace(POOLED_TS, features=16), 5, 3).method.features == 16


def test_a_feature_has_the_traits_of_its_parameters_of_pairs_and_of_orders() -> None:
    basis = effects(Coordinates((0, 1, 1, 1), (1.0, 0.5, 0.5, 0.5)))  # a number, a choice of three
    none = len(basis.wave)
    for j in range(basis.count):
        factors = [int(i) for i in (basis.first[j], basis.second[j]) if i != none]
        owners = [int(basis.parameter[i]) for i in factors]
        orders = [int(basis.order[i]) for i in factors]
        wanted = [float(a in owners) for a in (0, 1)]
        wanted += [float(len(factors) == 2)]
        wanted += [float(orders.count(k)) for k in (2, 3, 4)]
        assert basis.traits[:, j].tolist() == wanted


def test_a_space_of_choices_alone_has_no_orders() -> None:
    basis = effects(Coordinates((0, 0, 1, 1), (0.5,) * 4))
    assert basis.traits.shape == (3, basis.count)
