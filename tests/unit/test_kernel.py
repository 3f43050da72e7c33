from __future__ import annotations

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.kernel import Kernel, covariance


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
