from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sottovoce.federation.methods import DP_FTS_DE, POOLED_TS
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.quasirandom import quasirandom_points
from sottovoce.space import Category, Float, Integer, Space

PLANE = Space([Float("x", 0.0, 1.0), Float("y", 1e-3, 1.0, log=True)])
MIXED = Space([Float("x", 0.0, 1.0), Integer("n", 1, 4), Category("c", ("a", "b"))])
GRID = Space([Float("x", 0.0, 1.0, steps=40)])
STUDY = FederatedStudy(PLANE, POOLED_TS, agents=30, rounds=4)


@pytest.mark.parametrize("space", [PLANE, MIXED, GRID], ids=["plane", "mixed", "grid"])
def test_every_agent_is_dealt_points_of_the_space(space: Space) -> None:
    study = replace(STUDY, space=space)
    assert study.public_design.shape == (30, 10, space.dims)
    np.testing.assert_array_equal(space.snap(study.public_design), study.public_design)


def test_no_two_agents_are_dealt_the_same_point_of_a_continuous_space() -> None:
    flat = STUDY.public_design.reshape(-1, 2)
    assert len(np.unique(flat, axis=0)) == 300


def test_an_agents_points_are_a_run_of_the_design_hence_even() -> None:
    points = quasirandom_points(b"sottovoce/design/v1/0/300/2", 300, 2)
    np.testing.assert_array_equal(STUDY.public_design[3], points[30:40])
    halves = np.sum(STUDY.public_design < 0.5, axis=1)  # of ten points, how many on the left
    assert np.all((halves >= 3) & (halves <= 7))


def test_whoever_knows_the_study_knows_the_design() -> None:
    again = FederatedStudy(Space(list(PLANE.parameters)), replace(POOLED_TS), 30, 4, 0)
    np.testing.assert_array_equal(again.public_design, STUDY.public_design)
    assert again.fingerprint == STUDY.fingerprint


def test_another_seed_deals_other_points_and_is_another_study() -> None:
    other = replace(STUDY, feature_seed=1)
    assert not np.any(np.isclose(other.public_design, STUDY.public_design))
    assert other.fingerprint != STUDY.fingerprint


def test_whether_points_are_dealt_is_in_the_fingerprint() -> None:
    prints = {
        FederatedStudy(PLANE, replace(DP_FTS_DE, initial_design=name), 30, 4).fingerprint
        for name in ("region", "public", "uniform")
    }
    assert len(prints) == 3


def test_the_noise_of_a_release_is_the_multiplier_times_the_clip_over_the_agents() -> None:
    assert STUDY.release_noise == pytest.approx(2.0 * 5.0 / 30, rel=1e-9)
    assert replace(STUDY, agents=300).release_noise == pytest.approx(2.0 * 5.0 / 300, rel=1e-9)
    open_door = replace(STUDY, method=replace(POOLED_TS, mechanism=None))
    assert open_door.release_noise == 0.0


def test_what_a_broadcast_says_is_what_the_pool_makes_of_it_at_the_releases_noise() -> None:
    b = np.random.default_rng(0).standard_normal((2, 16))
    wanted = STUDY.pooled.posterior(b, STUDY.release_noise)
    np.testing.assert_array_equal(STUDY.shared_posterior(b).mean, wanted.mean)
    np.testing.assert_array_equal(STUDY.shared_posterior(b).root, wanted.root)
    np.testing.assert_array_equal(STUDY.pooled.points, STUDY.public_design)
    assert (STUDY.pooled.prior, STUDY.pooled.regularisation) == (0.3, 0.03)
    open_door = replace(STUDY, method=replace(POOLED_TS, mechanism=None))
    assert np.linalg.norm(open_door.shared_posterior(b).mean) > np.linalg.norm(
        STUDY.shared_posterior(b).mean
    )
