from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import (
    DP_FTS,
    DP_FTS_DE,
    FTS_DE,
    GP,
    POOLED_TS,
    POOLED_TS_CONTROL,
    SOTTOVOCE,
    TS,
    Method,
)
from sottovoce.federation.planning import (
    DELTA,
    MOST_FEATURES,
    few_trials,
    plan_study,
    sized,
    within,
)
from sottovoce.federation.schedule import ReleaseSchedule
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.kernel import Kernel
from sottovoce.lab.experiments.forecast import (
    LITTLE,
    SIMULATED,
    TRIALS,
    Gain,
    Ratio,
    _few,
    advice,
    forecast,
    forecast_gain,
    planned,
)
from sottovoce.lab.problems import problem_named
from sottovoce.privacy.accountant import epsilon as spent
from sottovoce.privacy.release import Mechanism
from sottovoce.space import Float, Space

KEYS = {
    *("advice", "because", "weak_delta", "parameters"),
    *("epsilon", "replace_one", "delta", "adjacency", "agents", "dims", "rounds", "releases"),
    *("noise", "clip", "participation", "features", "initial"),
    *("revealed", "signal_to_noise", "gain"),
}


def mechanism_of(method: Method) -> Mechanism:
    assert method.mechanism is not None
    return method.mechanism


def spent_by(method: Method, agents: int, rounds: int, delta: float) -> float:
    event = mechanism_of(method).event(agents, "test")
    return spent([event] * method.releases.count(rounds), delta, "pld")


# M and ℓ


def test_more_dimensions_have_more_features_in_pairs_and_a_longer_scale() -> None:
    methods = [sized(POOLED_TS, dims) for dims in range(1, 13)]
    features = [method.features for method in methods]
    assert all(count % 2 == 0 for count in features)
    assert all(one < two for one, two in pairwise(features))
    assert all(one.lengthscale < two.lengthscale for one, two in pairwise(methods))
    assert (features[0], methods[0].lengthscale) == (16, 0.25)


def test_only_the_features_are_sized() -> None:
    method = sized(POOLED_TS_CONTROL, 3)
    same: dict[str, Any] = {"features": POOLED_TS.features, "lengthscale": 0.4}
    assert replace(method, **same) == POOLED_TS_CONTROL


def test_a_kernel_that_is_known_gives_its_length_scale() -> None:
    method = sized(POOLED_TS, 1, Kernel(0.03, 1.0, 0.01))
    assert method.lengthscale == 0.03
    assert method.features == 2 * math.ceil(1 / 0.03)  # two for each hill that fits in
    assert sized(POOLED_TS, 2, Kernel(0.9, 1.0, 0.01)).features == 32


@pytest.mark.parametrize(("lengthscale", "dims"), [(0.05, 3), (0.03, 500), (1e-300, 2), (0.3, 40)])
def test_there_are_never_more_features_than_the_most(lengthscale: float, dims: int) -> None:
    assert sized(POOLED_TS, dims, Kernel(lengthscale, 1.0, 0.01)).features == MOST_FEATURES
    assert sized(POOLED_TS, 1000).features == MOST_FEATURES


@pytest.mark.parametrize("method", [GP, SOTTOVOCE], ids=["gp", "sottovoce"])
@pytest.mark.parametrize(("dims", "first"), [(1, 4), (3, 4), (4, 5), (8, 6), (16, 8), (500, 8)])
def test_of_a_search_by_expected_improvement_only_the_first_trials_are_sized(
    method: Method, dims: int, first: int
) -> None:
    assert sized(method, dims) == replace(method, initial=first)
    assert sized(method, dims, Kernel(0.03, 1.0, 0.01)) == replace(method, initial=first)
    assert few_trials(dims) == first


def test_more_parameters_never_have_fewer_first_trials() -> None:
    counts = [few_trials(dims) for dims in range(1, 100)]
    assert counts == sorted(counts)


@pytest.mark.parametrize("dims", [0, -2])
def test_without_dimensions_nothing_can_be_sized(dims: int) -> None:
    with pytest.raises(InvalidInput, match=f"dims must be at least 1, got dims={dims}"):
        sized(SOTTOVOCE, dims)


# z


@pytest.mark.parametrize(("target", "delta"), [(0.1, 0.003), (1.0, 1e-6), (9.91, 0.003)])
def test_all_releases_stay_within_epsilon_and_hardly_below(target: float, delta: float) -> None:
    method = within(SOTTOVOCE, 100, 40, target, delta)
    assert 0.99 * target < spent_by(method, 100, 40, delta) <= target
    same = replace(mechanism_of(method), noise=mechanism_of(SOTTOVOCE).noise)
    assert replace(method, mechanism=same) == SOTTOVOCE


def test_a_smaller_epsilon_or_delta_needs_more_noise() -> None:
    noises = [mechanism_of(within(SOTTOVOCE, 50, 5, e, 1e-3)).noise for e in (3.0, 1.0, 0.3)]
    assert all(one < two for one, two in pairwise(noises))
    noises = [mechanism_of(within(SOTTOVOCE, 50, 5, 1.0, d)).noise for d in (1e-2, 1e-3, 1e-6)]
    assert all(one < two for one, two in pairwise(noises))


def test_noise_grows_with_the_number_of_releases_and_not_with_silent_rounds() -> None:
    everybody = replace(mechanism_of(DP_FTS), participation=1.0)
    noises = []
    for last in (0, 3):
        method = replace(DP_FTS, mechanism=everybody, releases=ReleaseSchedule(last=last))
        few, many = (within(method, 50, rounds, 2.0, 1e-3) for rounds in (4, 400))
        assert few == many
        assert spent_by(many, 50, 400, 1e-3) <= 2.0
        noises.append(mechanism_of(few).noise)
    # four Gaussian releases together are one with half the noise
    assert noises[1] == pytest.approx(2 * noises[0], rel=1e-3)


def test_samples_of_a_fixed_size_are_kept_within_epsilon_by_rdp() -> None:
    method = replace(DP_FTS_DE, mechanism=Mechanism(participation=0.5, sampling="fixed"))
    private = mechanism_of(within(method, 20, 2, 3.0, 0.01))
    assert 2.9 < spent([private.event(20, "test")] * 2, 0.01, "rdp") <= 3.0


def test_a_mechanism_without_noise_gets_some() -> None:
    bare = replace(SOTTOVOCE, mechanism=replace(mechanism_of(SOTTOVOCE), noise=0.0))
    assert within(bare, 50, 5, 1.0, 1e-3) == within(SOTTOVOCE, 50, 5, 1.0, 1e-3)


@pytest.mark.parametrize("method", [TS, FTS_DE])
def test_a_method_that_protects_nothing_takes_no_epsilon(method: Method) -> None:
    with pytest.raises(InvalidInput, match=f"'{method.name}' protects nothing"):
        within(method, 50, 5, 1.0, 1e-3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0.0}, "epsilon must be finite and above 0"),
        ({"epsilon": -1.0}, "epsilon must be finite and above 0"),
        ({"epsilon": math.nan}, "epsilon must be finite and above 0"),
        ({"epsilon": math.inf}, "epsilon must be finite and above 0"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\)"),
        ({"delta": 2.0}, r"delta must be in \(0, 1\)"),
        ({"rounds": 0}, "rounds must be at least 1, got rounds=0"),
        ({"rounds": -5}, "rounds must be at least 1, got rounds=-5"),
        ({"agents": 0}, "agents must be at least 1, got agents=0"),
    ],
)
@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_wrong_promises_are_refused(sampling: Any, changes: dict[str, Any], said: str) -> None:
    method = replace(SOTTOVOCE, mechanism=Mechanism(participation=0.5, sampling=sampling))
    given = {"agents": 50, "rounds": 5, "epsilon": 1.0, "delta": 1e-3, **changes}
    with pytest.raises(InvalidInput, match=said):
        within(method, **given)


# the gain


def test_a_rehearsal_compares_the_study_with_going_alone_and_with_noise() -> None:
    study = planned(4, 1, 3, 5.0)
    seen = list[tuple[int, int]]()
    found = forecast_gain(study, 2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k, 6) for k in range(1, 7)]
    assert (found.runs, found.agents, found.trials) == (2, 4, 7)
    for ratio in (found.over_alone, found.over_noise):
        assert ratio.low <= ratio.gain <= ratio.high < 1
    assert forecast_gain(study, 2) == found
    assert forecast_gain(study, 2, seed=1) != found


def test_a_large_federation_is_simulated_by_few_agents_with_the_noise_of_all() -> None:
    study = planned(1000, 2, 40, 1.0)
    few = _few(study)
    assert few.agents == SIMULATED
    assert few.method.initial + few.rounds == TRIALS
    assert few.release_noise == pytest.approx(study.release_noise, rel=1e-6)
    shared = planned(1000, 2, 40, 1.0, unreliable=33)
    assert _few(shared).release_noise == pytest.approx(shared.release_noise, rel=1e-6)
    assert shared.release_noise > study.release_noise


def gain(over_alone: Ratio, over_noise: Ratio) -> Gain:
    return Gain(0.1, 0.1, 0.1, over_alone, over_noise, 4, 4, 20)


GOOD, NONE, BAD = Ratio(0.3, 0.2, 0.4), Ratio(0.0, -0.1, 0.1), Ratio(-0.3, -0.4, -0.2)
LIKELY = Ratio(0.2, -0.1, 0.4)


@pytest.mark.parametrize(
    ("revealed", "gained", "word"),
    [
        (0.9, gain(GOOD, GOOD), "join"),
        (0.9, gain(GOOD, NONE), "do not join"),  # the gain is there with noise alone too
        (0.9, gain(BAD, GOOD), "do not join"),
        (0.9, gain(GOOD, LIKELY), "unclear"),
        (0.9, gain(LIKELY, GOOD), "unclear"),
        (0.001, gain(GOOD, GOOD), "do not join"),
        (0.001, None, "do not join"),
        (0.9, None, "unclear"),
        (None, gain(GOOD, GOOD), "join"),
    ],
)
def test_whether_to_join_follows_from_what_is_heard_and_what_it_gains(
    revealed: float | None, gained: Gain | None, word: str
) -> None:
    assert advice(revealed, gained)[0] == word


# all together


def test_a_forecast_has_the_settings_and_what_they_spend() -> None:
    found = forecast(planned(100, 2, 10, 1.0), DELTA, 0)
    assert set(found) == KEYS
    assert (found["agents"], found["dims"], found["rounds"], found["releases"]) == (100, 2, 10, 4)
    assert found["delta"] == 1e-5
    assert found["adjacency"] == "zero-out"
    method = within(sized(SOTTOVOCE, 2), 100, 10, 1.0, DELTA)
    assert found["noise"] == mechanism_of(method).noise
    space = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
    study = FederatedStudy(space, method, 100, 10)
    assert found["features"] == study.effects.count == study.method.features
    assert found["initial"] == method.initial == few_trials(2)
    assert found["epsilon"] == spent_by(method, 100, 10, DELTA) <= 1.0
    assert found["gain"] is None
    assert found["signal_to_noise"] > 0
    assert not found["weak_delta"]


def test_a_forecast_may_forecast_gain_on_a_mixed_space() -> None:
    space = problem_named("choices").setting.space
    study = plan_study(space, agents=4, rounds=3, epsilon=5.0)
    found = forecast(study, DELTA, 2)
    assert found["parameters"] == 3
    assert found["dims"] == 6  # a choice among four has four
    assert found["gain"]["runs"] == 2
    assert found["advice"] in ("join", "do not join", "unclear")


@pytest.mark.parametrize("agents", [10, 200, 1000])
def test_with_next_to_no_epsilon_nobody_should_join(agents: int) -> None:
    found = forecast(planned(agents, 3, 20, 0.001), DELTA, 0)
    assert found["advice"] == "do not join"


def test_more_agents_or_a_larger_epsilon_reveal_more() -> None:
    few, many = (forecast(planned(n, 2, 10, 0.05), 1e-5, 0) for n in (10, 2000))
    generous = forecast(planned(10, 2, 10, 2.0), 1e-5, 0)
    for better in (many, generous):
        assert better["signal_to_noise"] > few["signal_to_noise"]
        assert 0 < few["revealed"] < better["revealed"] < 1
    assert few["revealed"] < LITTLE < many["revealed"]


def test_a_delta_near_one_over_n_is_told_to_be_weak() -> None:
    assert forecast(planned(100, 1, 5, 1.0, delta=0.01), 0.01, 0)["weak_delta"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"agents": 1}, "a federation needs at least 2 agents, got agents=1"),
        ({"agents": -3}, "a federation needs at least 2 agents"),
        ({"dims": 0}, "dims must be at least 1"),
        ({"rounds": 0}, "rounds must be a whole number above 0"),
        ({"epsilon": 0.0}, "epsilon must be finite and above 0"),
        ({"delta": 2.0}, r"delta must be in \(0, 1\)"),
    ],
)
def test_a_study_of_nonsense_is_refused(changes: dict[str, Any], said: str) -> None:
    given = {"agents": 10, "dims": 1, "rounds": 3, "epsilon": 1.0}
    with pytest.raises(InvalidInput, match=said):
        planned(**{**given, **changes})


def test_one_run_tells_nothing_and_what_is_not_protected_is_not_planned() -> None:
    with pytest.raises(InvalidInput, match="runs must be 0, or 2 and more"):
        forecast(planned(4, 1, 3, 1.0), DELTA, 1)
    with pytest.raises(InvalidInput, match="at least 2 runs"):
        forecast_gain(planned(4, 1, 3, 1.0), 1)
    alone = FederatedStudy(Space([Float("x", 0.0, 1.0)]), GP, 4, 3)
    with pytest.raises(InvalidInput, match="only a method that protects its sums"):
        forecast(alone, DELTA, 0)
