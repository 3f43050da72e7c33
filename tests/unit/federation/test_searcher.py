from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.federation.exchange import exchanged

from sottovoce.arrays import Array
from sottovoce.errors import ProtocolError
from sottovoce.federation.agent import Agent
from sottovoce.federation.domain import Box
from sottovoce.federation.draws import COIN, DrawSource, Recipe
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.methods import POOLED_TS, TS
from sottovoce.federation.parts import acquisitions
from sottovoce.federation.parts.messages import feature_sums, residual_mean
from sottovoce.federation.parts.shared_models import Pooled
from sottovoce.federation.schedule import Exploration, SoloProbability
from sottovoce.federation.searcher import Direction, Searcher
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.gp.shared import SharedPosterior
from sottovoce.space import Category, Float, Integer, Space

PLANE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
MIXED = Space([Float("rate", 1e-4, 1.0, log=True), Integer("n", 1, 8), Category("c", ("a", "b"))])
GRID = Space([Float("x", 0.0, 1.0, steps=15), Float("y", 0.0, 1.0, steps=15)])
SPACES = {"plane": PLANE, "mixed": MIXED, "grid": GRID}
SURROGATES = {
    "fixed": Surrogate(Kernel(0.3, 1.0, 0.01)),
    "fitted": Surrogate(refit=2),
    "raw": Surrogate(refit=2, standardise=False),
}
TOP = np.asarray([0.7, 0.3])
HALF = SoloProbability("constant", 0.5)
ALONE, NEAR, FOLLOWING = 0.2, 0.6, 0.9  # coins that choose each way at p_t = 1/2


def study(space: Space = PLANE, agents: int = 8, **changes: Any) -> FederatedStudy:
    return FederatedStudy(space, replace(POOLED_TS, **{"initial": 5, **changes}), agents, 8)


def height(space: Space, params: dict[str, Any]) -> float:
    """The same hill for all, on the first two coordinates."""
    return 50.0 - 20.0 * float(np.sum((space.encode(params)[:2] - TOP) ** 2))


def begun(agent: Agent, sign: float = 1.0) -> Agent:
    """The agent after its initial trials."""
    while agent.starting:
        params = agent.ask()
        agent.tell(params, sign * height(agent.study.space, params))
    return agent


def told_of(federation: FederatedStudy) -> Broadcast:
    """What all agents together say of the hill, without noise."""
    said = [begun(Agent(federation, n)).message().vector for n in range(federation.agents)]
    return Broadcast(federation.fingerprint, 0, np.mean(said, axis=0)[None], "00" * 32)


def goes_on(agent: Agent, heard: Broadcast, queries: int = 4) -> list[Any]:
    """What an agent does from here on."""
    did: list[Any] = []
    begun(agent)
    if agent.round == 0:
        did.append(agent.message(0).to_bytes())
        agent.receive(heard)
    for _ in range(queries):
        did.append(agent.ask())
        agent.tell(did[-1], height(agent.study.space, did[-1]))
    return [*did, agent.best]


class Scripted:
    """Draws whose coin is given; the rest is another's."""

    def __init__(self, real: DrawSource, coin: float) -> None:
        self._real, self._coin = real, coin

    def __call__(self, name: str, number: int, recipe: Recipe) -> tuple[Array, ...]:
        return (np.asarray([self._coin]),) if name == COIN else self._real(name, number, recipe)


def asked(agent: Searcher, coin: float) -> dict[str, Any]:
    """What the agent asks for when its coin falls so."""
    real = agent._batch.draw
    agent._batch.draw = Scripted(real, coin)
    try:
        return agent.ask()
    finally:
        agent._batch.draw = real


def learnt(agent: Searcher, releases: int | None = None) -> SharedPosterior:
    """What it knows of the function that all share."""
    shared = agent._batch.shared
    assert isinstance(shared, Pooled)
    return shared.posterior(releases)


def tries(agent: Agent, coin: float, queries: int) -> list[dict[str, Any]]:
    """What the agent asks for, query by query, with the same coin."""
    found = []
    for _ in range(queries):
        found.append(asked(agent, coin))
        agent.tell(found[-1], height(agent.study.space, found[-1]))
    return found


def fits(agent: Agent) -> tuple[Kernel | None, Kernel | None]:
    """Its own fitted kernel, and the one jointly with the shared function."""
    return agent._batch.own.kernel, agent._batch.joint.kernel


def fitted_at(agent: Agent) -> tuple[int, int]:
    """After how many trials each was fitted."""
    return agent._batch.own.trials, agent._batch.joint.trials


def parts_of(kernel: Kernel | None) -> list[NDArray[np.float64]]:
    assert kernel is not None
    return [np.asarray(part) for part in kernel.parts]


# the start


@pytest.mark.parametrize("space", SPACES)
def test_its_first_points_are_those_of_the_public_design(space: str) -> None:
    federation = study(SPACES[space])
    for index in (0, 3, 7):
        searcher = Searcher(federation, index, seed=index)
        for k in range(5):
            asked = searcher.ask()
            assert searcher.ask() == asked  # chance has no part in it
            wanted = federation.space.decode(federation.public_design[index, k])
            assert asked == wanted
            searcher.tell(asked, 1.0)
        assert not searcher.starting


def test_a_failed_first_trial_takes_its_turn() -> None:
    federation = study()
    agent = Agent(federation, 2)
    agent.tell(agent.ask(), None)
    np.testing.assert_allclose(
        PLANE.encode(agent.ask()), federation.public_design[2, 1], atol=1e-12
    )


# what it says


@pytest.mark.parametrize("direction", get_args(Direction))
def test_it_says_the_sums_over_its_first_trials_whatever_comes_later(direction: Direction) -> None:
    federation = study()
    agent = begun(Agent(federation, 1, direction=direction, seed=0))
    raw = np.asarray(agent._values())[None] * (1.0 if direction == "maximize" else -1.0)
    wanted = feature_sums(federation.features(federation.public_design[1:2]), raw)[0]
    for _ in range(2):
        params = agent.ask()
        agent.tell(params, 1e6)
    np.testing.assert_allclose(agent.message().vector, wanted, atol=1e-9)


def test_agents_that_say_sums_need_no_chance_to_speak() -> None:
    spoken = [begun(Agent(study(), 4, seed=seed)).message().vector for seed in (1, 2)]
    np.testing.assert_array_equal(spoken[0], spoken[1])


def test_an_agent_whose_trials_all_failed_says_nothing_and_goes_on() -> None:
    federation = study()
    agent = Agent(federation, 0, seed=0)
    for _ in range(5):
        agent.tell(agent.ask(), None)
    np.testing.assert_array_equal(agent.message().vector, np.zeros(16))
    agent.receive(told_of(federation))
    for _ in range(4):
        params = agent.ask()
        agent.tell(params, None)
    assert (agent.trials, agent.observations) == (9, 0)


# what it learns


def test_it_learns_once_from_each_broadcast() -> None:
    federation = study()
    agent = begun(Agent(federation, 0, seed=0))
    first = told_of(federation)
    again = Broadcast(first.study, 2, np.repeat(first.vectors, 2, axis=0), "11" * 32)
    for heard in (first, again):
        agent.receive(heard)
        known = learnt(agent)
        for _ in range(2):
            params = agent.ask()
            agent.tell(params, height(PLANE, params))
            assert learnt(agent) is known
        np.testing.assert_array_equal(known.mean, federation.shared_posterior(heard.vectors).mean)
    np.testing.assert_array_equal(
        learnt(agent, 1).mean, federation.shared_posterior(first.vectors).mean
    )


def test_before_a_broadcast_it_knows_nothing_of_the_others() -> None:
    agent = begun(Agent(study(), 0, seed=0))
    np.testing.assert_array_equal(learnt(agent).mean, np.zeros(16))


def test_what_it_learns_is_what_the_study_says() -> None:
    federation = study()
    agent = begun(Agent(federation, 0, seed=0))
    heard = told_of(federation)
    agent.receive(heard)
    np.testing.assert_array_equal(
        learnt(agent).mean, federation.shared_posterior(heard.vectors).mean
    )


def test_what_it_says_later_is_what_its_values_tell_beyond_what_it_heard() -> None:
    federation = study()
    agent = begun(Agent(federation, 1, seed=0))
    heard = told_of(federation)
    agent.receive(heard)
    for value in (50.0, None, 3.0):
        agent.tell(agent.ask(), value)
    points, raw = agent._points()[None], agent._batch.raw()
    rows = federation.features(points)
    known = rows @ federation.shared_posterior(heard.vectors).mean
    wanted = residual_mean(rows, raw, known, 5, 0.03)[0]
    np.testing.assert_allclose(agent.message(2).vector, wanted, atol=1e-12)


def test_an_agent_that_missed_a_broadcast_learns_of_it_from_the_next() -> None:
    federation = study(agents=6)
    server = Server.simulation(federation, seed=0)
    agents = [begun(Agent(federation, n, seed=n)) for n in range(6)]
    for number in (0, 2):
        heard = exchanged(server, agents, number, deaf=[0] if number == 0 else [])
        for agent in agents[1:] if number == 0 else agents:
            agent.tell(agent.ask(), 1.0)
    assert heard.vectors.shape == (2, 16)
    np.testing.assert_array_equal(server.broadcast(0).vectors, heard.vectors[:1])
    means = [learnt(agent).mean for agent in agents]
    np.testing.assert_array_equal(means[0], means[1])


@pytest.mark.parametrize("rows", [1, 3])
def test_a_broadcast_with_too_few_or_too_many_releases_is_refused(rows: int) -> None:
    federation = study()
    agent = begun(Agent(federation, 0, seed=0))
    with pytest.raises(ProtocolError, match=r"finite and of shape \(2, 16\)"):
        agent.receive(Broadcast(federation.fingerprint, 2, np.ones((rows, 16)), "00" * 32))


def test_a_broadcast_that_tells_an_earlier_round_otherwise_is_refused() -> None:
    federation = study()
    agent = begun(Agent(federation, 0, seed=0))
    first = told_of(federation)
    agent.receive(first)
    other = np.concatenate([first.vectors + 1e-9, first.vectors])
    with pytest.raises(ProtocolError, match="round 0 was broadcast before, with other content"):
        agent.receive(Broadcast(federation.fingerprint, 2, other, "11" * 32))
    assert agent.round == 1


def test_a_kernel_fitted_late_is_fitted_to_what_was_known_at_the_time() -> None:
    federation = study(solo=HALF)
    first = told_of(federation)
    more = first.vectors + np.random.default_rng(0).standard_normal((1, 16))
    second = Broadcast(first.study, 2, np.concatenate([first.vectors, more]), "11" * 32)
    fitted = []
    for early in (True, False):
        agent = begun(Agent(federation, 2, surrogate=Surrogate(refit=50), seed=3))
        agent.receive(first)
        if early:
            asked(agent, NEAR)
        for x in (0.1, 0.9):
            agent.tell({"x": x, "y": x}, 1.0)
        agent.receive(second)
        asked(agent, NEAR)
        fitted.append(parts_of(agent._batch.joint.kernel))
    for one, two in zip(*fitted, strict=True):
        np.testing.assert_array_equal(one, two)


# the three ways


class Watched(Box):
    """A domain that only notes which way an agent goes."""

    way = ""

    def own(self, t: int, some: Array) -> Array:
        return self._went("alone")

    def joint(self, t: int, some: Array) -> Array:
        return self._went("near")

    def shared(self, t: int, weights: Array, some: Array) -> Array:
        return self._went("following")

    def _went(self, way: str) -> Array:
        self.way = way
        return np.full((1, self._study.space.dims), 0.5)


def watched(federation: FederatedStudy) -> tuple[Agent, Watched]:
    """An agent after its initial trials, and what notes its ways."""
    agent = begun(Agent(federation, 0, seed=0))
    noting = Watched(agent._batch)
    agent._batch.domain = noting
    return agent, noting


def ways(agent: Agent, noting: Watched, count: int = 3600) -> Counter[str]:
    """Which way it goes, over coins spread evenly over [0, 1)."""
    seen: Counter[str] = Counter()
    for k in range(count):
        asked(agent, (k + 0.5) / count)
        seen[noting.way] += 1
    return seen


def test_it_goes_alone_with_chance_p_and_divides_the_rest_between_two_ways() -> None:
    federation = study(trust_gate=False)
    agent, noting = watched(federation)
    assert ways(agent, noting) == {"alone": 3600}  # nobody has told it anything yet
    agent.receive(told_of(federation))
    wanted = {1: 0.0, 3: 0.0, 7: 0.0, 10: 1 / 2, 15: 2 / 3}  # 1 − 1/√k, k-th since a release
    for t in range(1, 17):
        if t in wanted:
            rest = round(3600 * (1.0 - wanted[t]) / 2)
            shares = {"alone": 3600 - 2 * rest, "near": rest, "following": rest}
            assert ways(agent, noting) == Counter(shares)
        agent.tell({"x": 0.5, "y": 0.5}, 1.0)


@pytest.mark.parametrize("alike", [0.0, 0.3, 1.0])
def test_with_a_trust_gate_it_follows_as_far_as_its_values_bear_that_out_and_else_goes_alone(
    monkeypatch: pytest.MonkeyPatch, alike: float
) -> None:
    monkeypatch.setattr(acquisitions, "shared_fraction", lambda *_: np.asarray([alike]))
    federation = study()
    agent, noting = watched(federation)
    agent.receive(told_of(federation))
    for t in range(1, 17):
        if t in (1, 9, 16):
            rest = round(1800 * (1.0 - federation.method.solo_probability(t)))
            follows = round(rest * max(alike, t**-0.5))  # few values are no reason for doubt
            alone = 3600 - rest - follows
            assert ways(agent, noting) == Counter(
                {"alone": alone, "near": rest, "following": follows}
            )
        agent.tell({"x": 0.5, "y": 0.5}, 1.0)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("space", ["plane", "grid"])
def test_an_agent_like_the_others_follows_and_one_of_its_own_kind_soon_does_not(
    space: str, surrogate: str
) -> None:
    federation = study(SPACES[space], agents=400, mechanism=None, solo=HALF)
    heard, above = told_of(federation), []
    for own in (False, True):
        agent = Agent(federation, 1, surrogate=SURROGATES[surrogate], seed=1)
        while agent.trials < 15:
            params = agent.ask()
            x = agent.study.space.encode(params)
            value = height(SPACES[space], params)
            agent.tell(params, float(np.sin(20.0 * x[0]) * np.cos(17.0 * x[1])) if own else value)
        agent.receive(heard)
        above.append(float(acquisitions._gate(agent._batch, 100, 0.75)[0]))
    follows = [(1.0 - coin) / 0.25 for coin in above]  # at p_t = 1/2 a quarter would
    assert follows[0] > 0.8
    assert follows[1] < 0.3


def test_its_own_coins_fall_in_those_shares() -> None:
    federation = study(solo=HALF, trust_gate=False)
    agent, noting = watched(federation)
    agent.receive(told_of(federation))
    seen: Counter[str] = Counter()
    for _ in range(4000):
        agent.ask()
        seen[noting.way] += 1
    for way, share in (("alone", 0.5), ("near", 0.25), ("following", 0.25)):
        assert abs(seen[way] / 4000 - share) < 0.035  # 5 standard deviations at a quarter


@pytest.mark.parametrize("message", ["posterior-draw", "posterior-mean"])
def test_an_agent_that_follows_never_searches_jointly(message: str) -> None:
    federation = study(message=message, shared_model="broadcast", acquisition="thompson", solo=HALF)
    agent, noting = watched(federation)
    agent.receive(told_of(federation))
    assert ways(agent, noting) == {"alone": 1800, "following": 1800}


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("space", SPACES)
def test_alone_it_does_exactly_what_an_agent_without_others_does(
    space: str, surrogate: str
) -> None:
    federation = study(SPACES[space], solo=HALF)
    agent = begun(Agent(federation, 2, surrogate=SURROGATES[surrogate], seed=3))
    agent.message()
    agent.receive(told_of(federation))
    agent._batch.joint_kernel()  # even if it has a model jointly with the shared function too
    solo_study = FederatedStudy(
        SPACES[space], replace(TS, initial=5, initial_design="public"), 8, 8
    )
    solo = begun(Agent(solo_study, 2, surrogate=SURROGATES[surrogate], seed=3))
    alone = [solo.ask()]
    for _ in range(3):
        solo.tell(alone[-1], height(SPACES[space], alone[-1]))
        alone.append(solo.ask())
    assert tries(agent, ALONE, 4) == alone


@pytest.mark.parametrize("space", ["plane", "grid"])
def test_told_by_many_it_follows_to_near_the_top_of_what_all_share(space: str) -> None:
    federation = study(SPACES[space], agents=400, mechanism=None)
    heard = told_of(federation)
    for index in range(5):
        agent = begun(Agent(federation, index, seed=index))
        agent.receive(heard)
        found = SPACES[space].encode(asked(agent, FOLLOWING))
        assert np.linalg.norm(found - TOP) < 0.15


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("space", ["plane", "grid"])
def test_jointly_with_the_shared_function_it_leans_on_it_and_trusts_it(
    space: str, surrogate: str
) -> None:
    federation = study(SPACES[space], agents=400, mechanism=None, solo=HALF)
    agent = begun(Agent(federation, 1, surrogate=SURROGATES[surrogate], seed=1))
    agent.receive(told_of(federation))
    found = [SPACES[space].encode(asked(agent, NEAR)) for _ in range(15)]  # each from a draw
    assert np.median(np.linalg.norm(np.asarray(found) - TOP, axis=1)) < 0.25
    trust = parts_of(agent._batch.joint.kernel)[3]
    assert trust.shape == (1,)
    assert trust[0] > 0.01


def test_it_does_not_forget_though_nobody_speaks_any_more() -> None:
    federation = study(agents=400, mechanism=None, solo=HALF, trust_gate=False)
    agent = begun(Agent(federation, 0, seed=0))
    agent.receive(told_of(federation))
    for _ in range(6):
        params = asked(agent, FOLLOWING)
        assert np.linalg.norm(PLANE.encode(params) - TOP) < 0.15
        agent.tell(params, -99.0)  # so that its own model would never go there


@pytest.mark.parametrize("space", SPACES)
def test_each_way_fits_the_kernel_it_needs_and_no_other(space: str) -> None:
    federation = study(SPACES[space], solo=HALF, trust_gate=False)
    heard = told_of(federation)
    agent = begun(Agent(federation, 2, surrogate=SURROGATES["fitted"], seed=3))
    agent.receive(heard)
    asked(agent, FOLLOWING)
    assert fits(agent) == (None, None)
    asked(agent, NEAR)
    alone, near = fits(agent)
    assert alone is None
    assert parts_of(near)[3].shape == (1,)
    asked(agent, ALONE)
    alone, same = fits(agent)
    assert parts_of(alone)[3] == 0.0
    assert same is near
    tries(agent, FOLLOWING, 2)  # two more trials, so a fit of each is due
    asked(agent, NEAR)
    assert fitted_at(agent) == (5, 7)
    same, near = fits(agent)
    assert same is alone
    asked(agent, ALONE)
    assert fitted_at(agent) == (7, 7)
    assert fits(agent)[0] is not alone
    assert fits(agent)[1] is near


def test_an_agent_that_knows_its_kernel_fits_only_its_trust() -> None:
    federation = study(solo=HALF)
    known = SURROGATES["fixed"].kernel
    assert known is not None
    agent = begun(Agent(federation, 2, surrogate=SURROGATES["fixed"], seed=3))
    agent.receive(told_of(federation))
    asked(agent, ALONE)
    asked(agent, NEAR)
    assert agent._batch.own.kernel is None
    lengthscale, variance, noise, _ = parts_of(agent._batch.joint.kernel)
    unit = np.var(agent._batch.raw())  # jointly with others values are taken with variance 1
    assert lengthscale[0] == known.lengthscale
    assert (variance[0], noise[0]) == pytest.approx((known.variance / unit, known.noise / unit))


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("space", SPACES)
def test_a_late_broadcast_finds_an_agent_that_went_alone_ready_to_learn(
    space: str, surrogate: str
) -> None:
    federation = study(SPACES[space], solo=HALF)
    heard = told_of(federation)
    late = begun(Agent(federation, 2, surrogate=SURROGATES[surrogate], seed=3))
    for _ in range(3):  # alone, as the broadcast is late
        params = late.ask()
        late.tell(params, height(SPACES[space], params))
    before = late._batch.own.kernel
    late.receive(heard)
    early = Agent(federation, 2, surrogate=SURROGATES[surrogate], seed=3)
    for point, value in zip(late._points(), late._values(), strict=True):
        early.tell(SPACES[space].decode(point), value)
    early.receive(heard)
    for agent in (late, early):
        asked(agent, NEAR)
    pairs = zip(
        parts_of(late._batch.joint.kernel), parts_of(early._batch.joint.kernel), strict=True
    )
    for one, two in pairs:
        assert one.shape == (1,)
        np.testing.assert_allclose(one, two, rtol=1e-9)
    assert late._batch.own.kernel is before
    for coin in (ALONE, NEAR, FOLLOWING):
        (params,) = tries(late, coin, 1)
        np.testing.assert_allclose(SPACES[space].encode(params), late._points()[-1], atol=1e-12)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("space", SPACES)
def test_an_agent_that_minimises_does_what_one_that_maximises_the_opposite_does(
    space: str, surrogate: str
) -> None:
    federation = study(SPACES[space])
    heard = told_of(federation)
    asked = []
    directions: list[tuple[float, Direction]] = [(1.0, "maximize"), (-1.0, "minimize")]
    for sign, direction in directions:
        agent = Agent(federation, 3, direction=direction, surrogate=SURROGATES[surrogate], seed=5)
        begun(agent, sign)
        said = agent.message().vector
        agent.receive(heard)
        for _ in range(3):
            params = agent.ask()
            agent.tell(params, sign * height(SPACES[space], params))
        asked.append((said.tolist(), agent._points().tolist(), agent.best[0]))
    assert asked[0] == asked[1]


@pytest.mark.parametrize("space", ["plane", "grid"])
def test_jointly_with_others_values_are_standardised_whatever_its_surrogate(space: str) -> None:
    federation = study(SPACES[space], solo=HALF)
    heard = told_of(federation)
    found = []
    for surrogate in ("fitted", "raw"):
        agent = begun(Agent(federation, 2, surrogate=SURROGATES[surrogate], seed=3))
        agent.receive(heard)
        found.append(tries(agent, NEAR, 4))
    assert found[0] == found[1]


@pytest.mark.parametrize("coin", [ALONE, NEAR])
def test_wider_exploration_spreads_its_queries_on_a_list_too(coin: float) -> None:
    found = []
    for exploration in (Exploration(), Exploration("theorem", norm=20.0)):
        federation = study(GRID, agents=50, solo=HALF, exploration=exploration)
        agent = begun(Agent(federation, 0, surrogate=SURROGATES["fixed"], seed=0))
        agent.receive(told_of(federation))
        found.append(len({tuple(asked(agent, coin).values()) for _ in range(200)}))
    assert found[1] > 1.1 * found[0]  # which points they are depends on the linear algebra


# whole federations, and saving


@pytest.mark.parametrize("space", SPACES)
def test_agents_and_a_server_find_the_hill(space: str) -> None:
    federation = study(SPACES[space], agents=12)
    agents = [begun(Agent(federation, n, seed=n)) for n in range(12)]
    server = Server.simulation(federation, seed=0)
    first = np.mean([agent.best[1] for agent in agents])
    for t in range(8):
        if server.next_round() == t:
            exchanged(server, agents, t)
        for agent in agents:
            params = agent.ask()
            agent.tell(params, height(SPACES[space], params))
    assert len(server.events) == 4
    better = np.mean([agent.best[1] for agent in agents])
    assert better > first
    assert better > 49.0


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("space", ["mixed", "grid"])
@pytest.mark.parametrize("moment", ["new", "started", "told", "asked alone", "said", "heard"])
def test_a_saved_agent_goes_on_learning_as_if_never_stopped(
    space: str, surrogate: str, moment: str, tmp_path: Path
) -> None:
    federation = study(SPACES[space], solo=HALF)
    heard = told_of(federation)
    agent = Agent(federation, 1, surrogate=SURROGATES[surrogate], seed=8)
    if moment == "started":
        agent.tell(agent.ask(), 0.5)
    elif moment != "new":
        begun(agent)
    if moment == "asked alone":
        agent.tell(agent.ask(), 1.0)
    if moment == "said":
        agent.message()
    if moment == "heard":
        agent.receive(heard)
        for coin in (NEAR, ALONE, FOLLOWING):
            agent.tell(asked(agent, coin), 0.25)
    agent.save(tmp_path / "agent.json")
    restored = Agent.load(tmp_path / "agent.json", federation, SURROGATES[surrogate])
    restored.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "agent.json").read_text()
    assert goes_on(restored, heard) == goes_on(agent, heard)


def test_a_saved_agent_keeps_both_its_kernels(tmp_path: Path) -> None:
    federation = study(GRID, solo=HALF)
    agent = begun(Agent(federation, 1, seed=8))
    agent.receive(told_of(federation))
    asked(agent, NEAR)
    agent.save(tmp_path / "near.json")
    written = json.loads((tmp_path / "near.json").read_text())
    wanted = parts_of(agent._batch.joint.kernel)
    assert written["own"] == [None, 0]
    assert (written["joint"][0][3], written["joint"][1]) == (wanted[3].tolist(), 5)
    assert math.isfinite(float(wanted[3][0]))
    asked(agent, ALONE)
    agent.save(tmp_path / "both.json")
    restored = Agent.load(tmp_path / "both.json", federation)
    assert fitted_at(restored) == (5, 5)
    for one, two in zip(parts_of(restored._batch.joint.kernel), wanted, strict=True):
        np.testing.assert_array_equal(one, two)
    for one, two in zip(
        parts_of(restored._batch.own.kernel), parts_of(agent._batch.own.kernel), strict=True
    ):
        np.testing.assert_array_equal(one, two)
