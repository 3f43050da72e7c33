from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from sottovoce.gp.warp import warped

VALUES = arrays(np.float64, (2, 12), elements=st.floats(-1e100, 1e100))


def test_values_without_outliers_are_standardised_and_no_more() -> None:
    raw = np.linspace(-1, 1, 11)[None]
    np.testing.assert_allclose(warped(raw, np.ones((1, 11), bool)), raw / raw.std(), atol=1e-12)


def test_one_diverged_training_leaves_the_others_apart() -> None:
    raw = np.append(np.linspace(-1, 1, 20), -1e9)[None]
    good = warped(raw, np.ones((1, 21), bool))[0, :20]
    assert np.ptp(good) > 0.1  # plainly standardised it would be 1e-9


def test_values_above_the_median_keep_their_proportions() -> None:
    raw = np.append(np.linspace(0, 1, 20), [-1e6, 50.0])[None]
    to = warped(raw, np.ones((1, 22), bool))[0]
    assert (to[21] - to[19]) / (to[19] - to[18]) == pytest.approx(49 * 19)


@given(VALUES)
def test_the_order_is_kept_and_nothing_overflows(raw: NDArray[np.float64]) -> None:
    to = warped(raw, np.ones(raw.shape, bool))
    assert np.all(np.isfinite(to))
    for before, after in zip(raw, to, strict=True):
        order = np.argsort(before)
        assert np.all(np.diff(after[order]) >= 0)


@given(VALUES, st.integers(0, 12))
def test_failed_trials_are_zero_and_change_nothing_for_the_others(
    raw: NDArray[np.float64], failed: int
) -> None:
    mask = np.broadcast_to(np.arange(12) >= failed, raw.shape)
    some = np.where(mask, raw, np.nan)
    to = warped(some, mask)
    assert np.all(to[~mask] == 0)
    if failed < 12:
        alone = warped(raw[:, failed:], mask[:, failed:])
        np.testing.assert_allclose(to[:, failed:], alone, rtol=1e-9, atol=1e-12)
