"""What an agent says of its initial trials is bounded, and so is what it can change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from sottovoce.federation.parts.messages import feature_sums
from sottovoce.gp.features import shared_features
from sottovoce.privacy.release import Mechanism, limited_sum, noise_scale, sensitivity

Floats = NDArray[Any]
seeds = st.integers(0, 2**32 - 1)
values = st.one_of(st.floats(-1e100, 1e100), st.just(math.nan), st.sampled_from([0.0, 1.0, 1e-300]))


@given(seeds, st.integers(1, 12), st.integers(1, 5), st.integers(1, 12), st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_the_values_an_agents_sums_are_within_the_bound(
    seed: int, initial: int, dims: int, pairs: int, data: Any
) -> None:
    points = np.random.default_rng(seed).random((1, initial, dims))
    rows = shared_features(seed, 2 * pairs, dims, 0.4, "quasirandom")(points)
    raw = data.draw(arrays(np.float64, (1, initial), elements=values))
    said = feature_sums(rows, raw)[0]
    longest = math.sqrt(max(float(np.linalg.eigvalsh(rows[0] @ rows[0].T)[-1]), 0.0))
    assert np.all(np.isfinite(said))
    assert np.linalg.norm(said) <= math.sqrt(initial) * longest * (1 + 1e-9) + 1e-12
    assert np.linalg.norm(said) <= initial * (1 + 1e-9)  # as features are of unit norm


@given(seeds, st.integers(1, 30), st.integers(2, 10), st.floats(0.05, 12.0), st.data())
@settings(max_examples=100, deadline=None)
def test_an_agent_that_falls_silent_moves_the_mean_by_no_more_than_the_clip_over_all(
    seed: int, agents: int, initial: int, clip: float, data: Any
) -> None:
    random = np.random.default_rng(seed)
    rows = shared_features(seed, 16, 2, 0.4, "quasirandom")(random.random((agents, initial, 2)))
    raw = random.standard_normal((agents, initial)) ** 3
    # one agent may have any values at all: also those that make its vector the longest
    one = data.draw(st.integers(0, agents - 1))
    if data.draw(st.booleans()):
        raw[one] = data.draw(arrays(np.float64, initial, elements=values))
    else:
        raw[one] = np.linalg.eigh(rows[one] @ rows[one].T)[1][:, -1]
    said = feature_sums(rows, raw)
    silent = said.copy()
    silent[one] = 0.0
    weights, everyone = np.full((1, agents), 1 / agents), np.ones(agents, dtype=np.bool_)
    mechanism = Mechanism(clip=clip, participation=1.0, noise=2.0)
    moved = np.linalg.norm(
        limited_sum(said, weights, everyone, mechanism)
        - limited_sum(silent, weights, everyone, mechanism)
    )
    assert moved <= clip / agents * (1 + 1e-9)
    assert sensitivity(weights, mechanism) >= clip / agents * (1 - 1e-12)
    assert noise_scale(weights, 16, mechanism) >= 2.0 * clip / agents * (1 - 1e-12)
