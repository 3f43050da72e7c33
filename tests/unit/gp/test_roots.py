from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from sottovoce.device import NUMPY
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.roots import Roots, gram_row

KERNEL = Kernel(0.3, 1.5, 0.1)
POINTS = np.random.default_rng(0).random((4, 9, 2))
MASK = np.random.default_rng(1).random((4, 9)) < 0.7


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
@pytest.mark.parametrize("counts", [(9,), (1, 2, 9), (3, 4, 5, 6, 7, 8, 9)])
def test_kept_roots_are_those_from_scratch_however_they_grew(
    counts: tuple[int, ...], mask: np.ndarray[tuple[int, int], np.dtype[np.bool_]] | None
) -> None:
    roots = Roots(NUMPY, 4, float(KERNEL.noise))
    for count in counts:
        found = roots.upto(count, 0, partial(gram_row, KERNEL, POINTS, mask))
        gram = covariance(KERNEL, POINTS[:, :count], POINTS[:, :count])
        if mask is not None:
            known = mask[:, :count]
            gram = np.where(known[:, :, None] & known[:, None, :], gram, 0.0)
        wanted = np.linalg.inv(np.linalg.cholesky(gram + KERNEL.noise * np.eye(count)))
        np.testing.assert_allclose(found, wanted, atol=1e-9)
