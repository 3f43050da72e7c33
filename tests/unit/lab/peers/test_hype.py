"""DP-Hype: its vote, its sensitivity, what it spends; and noise that sites add themselves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import DP_FTS_DE, SOTTOVOCE, TS
from sottovoce.lab.peers.hype import VOTES, dp_hype, mechanism, noise_within, votes
from sottovoce.lab.peers.local import with_local_noise
from sottovoce.lab.problems import problem_named
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.events import SubsampledGaussian
from sottovoce.privacy.release import Mechanism, limited_sum, sensitivity
from sottovoce.simulation import Draws

SCORES = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 12)),
    elements=st.one_of(st.floats(-3, 3), st.just(math.nan)),
)


@given(SCORES)
def test_a_ballot_has_at_most_five_ones_and_none_for_a_failed_trial(scores: np.ndarray) -> None:
    ballots = votes(scores)
    assert set(np.unique(ballots)) <= {0.0, 1.0}
    known = np.isfinite(scores).sum(axis=1)
    assert np.array_equal(ballots.sum(axis=1), np.minimum(known, VOTES))
    assert not np.any(ballots[np.isnan(scores)])


@given(SCORES)
def test_the_best_get_the_votes(scores: np.ndarray) -> None:
    for row, ballot in zip(scores, votes(scores), strict=True):
        chosen, left = row[ballot == 1], row[(ballot == 0) & np.isfinite(row)]
        if chosen.size and left.size:
            assert chosen.min() >= left.max()


@settings(max_examples=50)
@given(SCORES, st.integers(0, 5))
def test_one_site_moves_the_counts_by_no_more_than_the_sensitivity(
    scores: np.ndarray, who: int
) -> None:
    agents = len(scores)
    who, weights = who % agents, np.full((1, agents), 1 / agents)
    with_all = votes(scores)
    without = with_all.copy()
    without[who] = 0
    everyone = np.ones(agents, dtype=np.bool_)
    sums = [limited_sum(each, weights, everyone, mechanism(1.0)) for each in (with_all, without)]
    bound = sensitivity(weights, mechanism(1.0))
    assert np.linalg.norm(sums[0] - sums[1]) <= bound * (1 + 1e-12)
    assert bound * agents == pytest.approx(math.sqrt(5))


def test_the_sensitivity_is_reached() -> None:
    ballot, nobody = votes(np.arange(9.0)[None]), np.zeros((1, 9))
    one, everyone = np.ones((1, 1)), np.ones(1, dtype=np.bool_)
    moved = limited_sum(ballot, one, everyone, mechanism(1.0))
    moved = moved - limited_sum(nobody, one, everyone, mechanism(1.0))
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(5))


def test_one_release_keeps_within_epsilon_and_not_by_much() -> None:
    z = noise_within(1.0, 1e-5)
    result = dp_hype(problem_named("bowl"), 10, 8, z, Draws(0, 0))
    assert result.event == SubsampledGaussian(z, 1.0, 10)
    assert 0.99 < epsilon([result.event], 1e-5) <= 1.0


def test_with_little_noise_the_site_wide_favourite_wins_and_with_much_anything() -> None:
    problem = problem_named("bowl")
    quiet = [dp_hype(problem, 60, 20, 0.01, Draws(0, run)).regret.mean() for run in range(20)]
    loud = [dp_hype(problem, 60, 20, 1e4, Draws(0, run)).regret.mean() for run in range(20)]
    assert np.mean(quiet) < 0.6 * np.mean(loud)


def test_local_noise_is_larger_by_the_root_of_the_agents() -> None:
    quiet = replace(SOTTOVOCE, mechanism=Mechanism(clip=5.0, participation=1.0, noise=3.0))
    local = with_local_noise(quiet, 100)
    assert local.mechanism is not None
    assert local.mechanism.noise == pytest.approx(30.0)
    assert local.name == "sottovoce-local"


@pytest.mark.parametrize("method", [TS, DP_FTS_DE])
def test_a_method_that_does_not_sum_all_agents_has_no_local_variant(method: object) -> None:
    with pytest.raises(InvalidInput, match="must protect sums over all agents"):
        with_local_noise(method, 10)  # type: ignore[arg-type]
