from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.gp.effects import effects
from sottovoce.gp.matern import Coordinates
from sottovoce.gp.promise import Promise, weighing
from sottovoce.gp.quasirandom import quasirandom_points

Floats = NDArray[Any]
BASIS = effects(Coordinates((0, 1), (1.0, 1.0)))
M = BASIS.count
PROMISE = Promise(quasirandom_points(b"test/promise", 512, 2), BASIS)


def bump(at: Floats) -> Floats:
    """Weights of a function that is largest near a point."""
    return np.asarray(5.0 * BASIS(at))


def random_covariance(seed: int, count: int = M) -> Floats:
    root = np.random.default_rng(seed).standard_normal((count, count)) / np.sqrt(count)
    return np.asarray(root @ root.T + 1e-3 * np.eye(count))


@pytest.mark.parametrize("corner", [(0.2, 0.8), (0.7, 0.3)])
def test_who_knows_a_function_well_expects_the_best_where_it_is_largest(
    corner: tuple[float, float],
) -> None:
    weights = bump(np.asarray(corner))
    chances = PROMISE.chances(weights, 1e-8 * np.eye(M))
    assert chances.sum() == pytest.approx(1.0)
    assert np.all(chances >= 0)
    values = PROMISE.rows @ weights
    assert np.count_nonzero(chances) < 0.05 * len(values)
    assert values[chances > 0].min() > values[chances == 0].max()


def test_who_knows_nothing_expects_it_anywhere() -> None:
    chances = PROMISE.chances(np.zeros(M), np.eye(M))
    assert np.count_nonzero(chances) > 0.9 * len(chances)
    assert chances.max() < 0.02


def test_before_anything_is_heard_all_of_the_space_matters_alike() -> None:
    np.testing.assert_allclose(PROMISE.relevance(None), np.diag(BASIS.variance))


def test_afterwards_errors_matter_most_where_the_best_may_be() -> None:
    chances = PROMISE.chances(bump(np.array([0.2, 0.8])), 1e-4 * np.eye(M))
    G = PROMISE.relevance(chances)
    assert np.trace(G) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(G).min() > 0  # the rest of the space is not forgotten
    random = np.random.default_rng(0)
    wrong = random.standard_normal((200, M))

    def costs(points: Floats) -> Floats:
        """How much each error spreads values there."""
        return np.asarray((wrong @ BASIS(points).T).std(axis=1))

    near, far = (
        (np.array([0.2, 0.8]) + 0.1 * (random.random((50, 2)) - 0.5)),
        random.random((50, 2)),
    )
    cost = np.sqrt(np.einsum("ij,jk,ik->i", wrong, G, wrong))
    assert np.corrcoef(cost, costs(near))[0, 1] > np.corrcoef(cost, costs(far))[0, 1]


def test_where_all_of_the_best_are_one_point_the_whole_space_matters() -> None:
    one = np.zeros(len(PROMISE.points))
    one[3] = 1.0
    np.testing.assert_allclose(PROMISE.relevance(one), np.diag(BASIS.variance))


def test_points_are_met_as_often_as_they_promise() -> None:
    chances = np.zeros(len(PROMISE.points))
    chances[[4, 40, 400]] = 0.5, 0.3, 0.2
    rows = PROMISE.sets(chances, 400, 3)
    assert rows.shape == (400, 3, M)
    for which, share in ((4, 0.5), (40, 0.3), (400, 0.2)):
        met = np.all(rows == PROMISE.rows[which], axis=-1).mean()
        assert met == pytest.approx(share, abs=0.05)


def test_all_of_it_is_public_and_the_same_for_everybody() -> None:
    again = Promise(quasirandom_points(b"test/promise", 512, 2), BASIS)
    mean, covariance = bump(np.array([0.4, 0.4])), random_covariance(1)
    chances = PROMISE.chances(mean, covariance)
    np.testing.assert_array_equal(again.chances(mean, covariance), chances)
    np.testing.assert_array_equal(again.sets(chances, 5, 2), PROMISE.sets(chances, 5, 2))


def test_what_differs_by_rounding_alone_is_weighed_the_same() -> None:
    mean, covariance = bump(np.array([0.4, 0.4])), random_covariance(2)
    turned = covariance * (1.0 + 1e-14)
    one, other = (
        weighing(PROMISE.relevance(PROMISE.chances(mean, C)), C) for C in (covariance, turned)
    )
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * np.abs(one).max())


def test_where_both_are_diagonal_each_number_is_weighed_by_the_fourth_root() -> None:
    g, k = np.random.default_rng(3).uniform(0.1, 2.0, (2, M))
    np.testing.assert_allclose(weighing(np.diag(g), np.diag(k)), np.diag((g / k) ** 0.25))


def test_no_other_weighing_of_that_length_tells_more_of_what_matters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sottovoce.gp.promise._APART", 0.0)
    G, K = random_covariance(4, 5), random_covariance(5, 5)
    W = weighing(G, K)
    np.testing.assert_allclose(W, W.T)

    def error(w: Floats) -> float:
        """Of what matters, by the noise, after it is brought to a mean square length of 1."""
        undone = np.linalg.inv(w / np.sqrt(np.trace(w @ K @ w.T)))
        return float(np.trace(G @ undone @ undone.T))

    random = np.random.default_rng(6)
    for size in (0.01, 0.1, 1.0):
        for _ in range(50):
            assert error(W) <= error(W + size * random.standard_normal((5, 5))) * (1 + 1e-9)
    assert error(W) < error(np.eye(5))
