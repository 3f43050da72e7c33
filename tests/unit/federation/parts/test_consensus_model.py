"""The consensus as agents hear it, and what it does for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.given import Floats, Function, GivenProblem

from sottovoce.errors import InvalidInput
from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import DP_FTS, GP, SOTTOVOCE
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.privacy.release import Mechanism
from sottovoce.simulation import Draws, simulate
from sottovoce.space import Category, Float, Space

PLANE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
STUDY = FederatedStudy(PLANE, SOTTOVOCE, agents=20, rounds=9)
M = STUDY.effects.count
RELEASES = np.random.default_rng(0).standard_normal((4, M))


def test_after_each_release_all_know_what_the_filter_says() -> None:
    shared = SOTTOVOCE.shared(STUDY)
    np.testing.assert_array_equal(shared.state().mean, STUDY.expected_effects.mean)
    assert np.any(shared.state().mean != 0.0)
    wanted = STUDY.consensus.prior
    shared.hear(RELEASES)
    for k, points in enumerate((5, 7, 9, 11)):
        wanted = STUDY.consensus.heard(wanted, points, RELEASES[k], STUDY.release_noise)
        found = shared.state(k + 1)
        np.testing.assert_array_equal(found.mean, wanted.mean)
        np.testing.assert_array_equal(found.covariance, wanted.covariance)
    prior = shared.prior()
    assert prior is not None
    np.testing.assert_array_equal(prior.mean, wanted.mean)
    assert shared.prior() is prior  # one object, as long as nothing new was heard


def test_who_hears_releases_one_after_the_other_knows_what_one_who_hears_all_at_once_does() -> None:
    slow, late = SOTTOVOCE.shared(STUDY), SOTTOVOCE.shared(STUDY)
    for count in (1, 2, 3, 4):
        slow.hear(RELEASES[:count])
        slow.prior()
    late.hear(RELEASES)
    np.testing.assert_array_equal(slow.state().mean, late.state().mean)
    late.hear(-RELEASES)  # other content: nothing of the first is kept
    other = SOTTOVOCE.shared(STUDY)
    other.hear(-RELEASES)
    np.testing.assert_array_equal(late.state().mean, other.state().mean)
    assert not np.allclose(late.state().mean, slow.state().mean)


def test_a_broadcast_has_all_releases_so_far() -> None:
    rows = [SOTTOVOCE.shared.broadcast_rows(STUDY, number) for number in (0, 1, 2, 6, 8)]
    assert rows == [1, 1, 2, 4, 4]


def test_others_find_no_consensus() -> None:
    with pytest.raises(InvalidInput, match="'dp-fts' finds no consensus"):
        DP_FTS.shared(FederatedStudy(PLANE, DP_FTS, 5, 3)).state()
    with pytest.raises(InvalidInput, match="'gp' finds no consensus"):
        GP.shared(FederatedStudy(PLANE, GP, 1, 3)).state()


def test_before_anything_is_heard_agents_take_for_likely_what_is_usual() -> None:
    line = Space([Float(name, 0.0, 1.0) for name in "uvwxyz"])  # as many effects for both
    study = replace(STUDY, space=line, method=SOTTOVOCE)
    alone = GP.shared(FederatedStudy(line, GP, 1, 3)).prior()
    together, flat = SOTTOVOCE.shared(study).prior(), replace(SOTTOVOCE, shared_model="consensus")
    assert alone is not None
    assert together is not None
    np.testing.assert_array_equal(alone.mean, study.expected_effects.mean)
    np.testing.assert_array_equal(alone.mean, together.mean)
    np.testing.assert_allclose(alone.root @ alone.root.T, together.root @ together.root.T)
    assert flat.shared(replace(STUDY, method=flat)).prior() is None


def test_a_consensus_that_is_not_informed_begins_with_nothing() -> None:
    method = replace(SOTTOVOCE, shared_model="consensus")
    state = method.shared(replace(STUDY, method=method)).state()
    np.testing.assert_array_equal(state.mean, np.zeros(M))
    np.testing.assert_array_equal(state.covariance, 0.5 * np.eye(M))


def test_whose_trials_all_failed_says_zeros() -> None:
    agent = Agent(STUDY, 4, seed=0)
    for _ in range(STUDY.method.initial):
        agent.tell(agent.ask(), None)
    np.testing.assert_array_equal(agent.message().vector, np.zeros(M))


def test_agents_tell_each_other_where_trials_fail() -> None:
    """Half of the space fails; after one release all expect less of it, without a failure told."""
    values = np.random.default_rng(1).normal(size=(STUDY.agents, STUDY.method.initial))
    vectors = []
    for n in range(STUDY.agents):
        agent = Agent(STUDY, n, seed=0)
        for value in values[n]:
            params = agent.ask()
            agent.tell(params, None if params["x"] > 0.5 else float(value))
        vectors.append(agent.message().vector)
    length = np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)[:, None]
    release = np.mean(np.asarray(vectors) * np.minimum(1.0, 1.0 / length), axis=0)
    state = STUDY.consensus.heard(STUDY.consensus.prior, STUDY.method.initial, release, 1e-3)
    line = np.random.default_rng(2).random((400, 2))
    expected = STUDY.effects(line) @ (state.mean - STUDY.consensus.before.mean)
    assert expected[line[:, 0] < 0.4].mean() > expected[line[:, 0] > 0.6].mean() + 0.2


def test_an_agent_cuts_nothing_so_that_the_server_does() -> None:
    agent = Agent(STUDY, 4, seed=0)
    lengths = []
    for _ in range(STUDY.method.initial):
        params = agent.ask()
        agent.tell(params, params["x"])
        lengths.append(np.linalg.norm(agent.message().vector) if not agent.starting else 0.0)
    assert lengths[-1] > 1.0  # the clip


def hill(points: Floats) -> Floats:
    """The same for all agents: a narrow top in a corner, where only some begin."""
    return np.asarray(-np.sum((points - np.array([0.85, 0.15])) ** 2, axis=-1))


MIXED = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0), Category("c", ("a", "b", "c"))])


def mixed_hill(points: Floats) -> Floats:
    """One choice is better, and the others are not."""
    return np.asarray(hill(points[..., :2]) + 0.5 * points[..., 3])


@pytest.mark.parametrize(
    ("space", "function", "best"), [(PLANE, hill, 0.0), (MIXED, mixed_hill, 0.5)]
)
def test_forty_agents_with_one_function_and_no_noise_get_further_than_alone(
    space: Space, function: Function, best: float
) -> None:
    problem = GivenProblem(space, Surrogate(), function, noise=0.01, best=best)
    open_door = Mechanism(clip=1.0, participation=1.0, noise=0.0)
    methods = replace(GP, initial=4), replace(SOTTOVOCE, initial=4, mechanism=open_door)
    alone, together = (
        simulate(FederatedStudy(space, method, 40, 4), problem, Draws(1, 0)) for method in methods
    )
    np.testing.assert_array_equal(alone.points[:, :4], together.points[:, :4])
    one, two = (each.simple_regret[:, 1].mean() for each in (alone, together))
    assert two < 0.8 * one  # already by their first query
    assert together.simple_regret[:, -1].mean() <= alone.simple_regret[:, -1].mean() * 1.1
