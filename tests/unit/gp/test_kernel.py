from __future__ import annotations

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.surrogate import kernel_from_list, kernel_to_list
from sottovoce.gp.kernel import Kernel, covariance


def test_covariance_is_the_squared_exponential_formula() -> None:
    rng = np.random.default_rng(1)
    x, z = rng.random((3, 2)), rng.random((4, 2))
    expected = [[1.7 * np.exp(-np.sum((a - b) ** 2) / (2 * 0.3**2)) for b in z] for a in x]
    np.testing.assert_allclose(covariance(Kernel(0.3, 1.7), x, z), expected, rtol=1e-13)


def test_a_batch_of_kernels_equals_each_kernel_alone() -> None:
    rng = np.random.default_rng(2)
    x, z = rng.random((3, 5, 2)), rng.random((3, 4, 2))
    length, variance = np.array([0.1, 0.4, 2.0]), np.array([1.0, 3.0, 0.5])
    together = covariance(Kernel(length, variance), x, z)
    for b in range(3):
        alone = covariance(Kernel(float(length[b]), float(variance[b])), x[b], z[b])
        np.testing.assert_array_equal(together[b], alone)


def test_a_length_scale_per_dimension_stretches_each_dimension_by_its_own() -> None:
    x = np.array([[[0.0, 0.0]]])
    z = np.array([[[0.5, 0.0], [0.0, 0.5]]])
    kernel = Kernel(np.array([[0.5, 1.0]]))
    np.testing.assert_allclose(covariance(kernel, x, z)[0, 0], np.exp([-0.5, -0.125]))


def test_a_point_has_exactly_the_variance_with_itself_and_the_matrix_is_symmetric() -> None:
    x = np.random.default_rng(3).random((6, 3))
    k = covariance(Kernel(0.01, 2.0), x, x)
    np.testing.assert_array_equal(np.diag(k), 2.0)
    np.testing.assert_array_equal(k, k.T)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["lengthscale", "variance", "noise"])
def test_a_number_that_is_not_finite_and_positive_is_refused(name: str, bad: float) -> None:
    values = {"lengthscale": 1.0, name: bad}
    with pytest.raises(InvalidInput, match=f"{name} must be finite and above 0, got {name}="):
        Kernel(**values)


# trust


@pytest.mark.parametrize("bad", [-1e-9, float("nan"), float("inf")])
def test_a_trust_that_is_not_finite_and_at_least_zero_is_refused(bad: float) -> None:
    with pytest.raises(InvalidInput, match="trust must be finite and at least 0, got trust="):
        Kernel(0.3, trust=bad)


def test_a_kernel_trusts_nothing_unless_told() -> None:
    assert Kernel(0.3).trust == 0.0
    assert Kernel(0.3, 2.0, 0.1, 0.5).parts == (0.3, 2.0, 0.1, 0.5)


def test_some_of_a_batch_keep_their_trust() -> None:
    length, trust = np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.0, 2.0])
    batch = Kernel(length, 1.5, np.array([0.1, 0.2, 0.3]), trust)
    some = batch.part(np.array([True, False, True]))
    np.testing.assert_array_equal(some.lengthscale, [0.1, 0.3])
    np.testing.assert_array_equal(some.trust, [0.5, 2.0])
    assert some.variance == 1.5
    assert batch.one(2) == Kernel(0.3, 1.5, 0.3, 2.0)
    assert batch.one(1).trust == 0.0


def test_trust_is_no_part_of_the_covariance() -> None:
    x = np.random.default_rng(4).random((5, 2))
    with_trust = covariance(Kernel(0.3, 2.0, trust=3.0), x, x)
    np.testing.assert_array_equal(with_trust, covariance(Kernel(0.3, 2.0), x, x))


def test_a_written_kernel_comes_back_with_its_trust() -> None:
    batch = Kernel(np.array([0.1]), np.array([1.0]), np.array([0.2]), np.array([0.7]))
    for kernel in (Kernel(0.3, 2.0, 0.1, 0.5), Kernel(0.3)):
        assert kernel_from_list(kernel_to_list(kernel)) == kernel
    np.testing.assert_array_equal(kernel_from_list(kernel_to_list(batch)).trust, [0.7])


@pytest.mark.parametrize("parts", [[0.1, 1.0, 0.2], [0.1, 1.0, 0.2, -0.5], [0.1, 0.0, 0.2, 0.5]])
def test_a_kernel_written_without_a_trust_or_with_a_bad_one_is_refused(parts: list[float]) -> None:
    with pytest.raises(InvalidInput, match="a kernel has 3 sizes above 0, and a trust"):
        kernel_from_list(parts)
