from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import (
    CONTROL,
    DP_FTS,
    DP_FTS_DE,
    FTS,
    FTS_DE,
    GP,
    METHODS,
    POOLED_TS,
    POOLED_TS_CONTROL,
    SOTTOVOCE,
    SOTTOVOCE_CONTROL,
    TS,
    Method,
    for_real_world,
    method_named,
)
from sottovoce.federation.schedule import SoloProbability
from sottovoce.federation.weights import REAL_WORLD
from sottovoce.privacy.release import Mechanism


def test_the_methods_have_these_names() -> None:
    assert list(METHODS) == [
        "ts",
        "gp",
        "fts",
        "fts-server",
        "fts-de",
        "dp-fts",
        "dp-fts-de",
        "control",
        "pooled-ts",
        "pooled-ts-control",
        "sottovoce",
        "sottovoce-control",
    ]
    assert all(METHODS[name].name == name for name in METHODS)
    assert all(method_named(name) is METHODS[name] for name in METHODS)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        InvalidInput, match="unknown method 'dp-fts-d'; did you mean 'dp-fts-de'\\?"
    ):
        method_named("dp-fts-d")


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(InvalidInput) as caught:
        method_named("zzz")
    assert all(name in str(caught.value) for name in METHODS)
    assert "did you mean" not in str(caught.value)


def test_a_method_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TS.regions = 2  # type: ignore[misc]


def test_only_the_protected_methods_are_private() -> None:
    private = {name for name, method in METHODS.items() if method.private}
    assert private == {
        *("dp-fts", "dp-fts-de", "control"),
        *("pooled-ts", "pooled-ts-control", "sottovoce", "sottovoce-control"),
    }
    assert not dataclasses.replace(DP_FTS, mechanism=Mechanism(noise=0.0)).private


def test_the_synthetic_settings_are_the_papers() -> None:
    assert DP_FTS_DE.mechanism == Mechanism(clip=11.0, participation=0.25, noise=1.0)
    assert DP_FTS.mechanism is not None
    assert DP_FTS.mechanism.clip == 8.0
    assert (DP_FTS_DE.regions, FTS_DE.regions, DP_FTS.regions, FTS.regions) == (2, 2, 1, 1)
    theirs = {"ts", "fts", "fts-server", "fts-de", "dp-fts", "dp-fts-de", "control"}
    for method in METHODS.values():
        if method.name in theirs:
            assert (method.features, method.initial) == (50, 10)
            assert (method.lengthscale, method.regularisation) == (0.03, 0.01)
            assert method.solo == SoloProbability("root")
            assert method.acquisition == "thompson"
            assert (method.message, method.basis) == ("posterior-draw", "random")


def test_noisy_trials_may_be_repeated() -> None:
    assert all(method.repeats == "allow" for method in METHODS.values())


def test_only_distributed_exploration_starts_in_a_region() -> None:
    local = {name for name, method in METHODS.items() if method.initial_design == "region"}
    assert local == {"fts-de", "dp-fts-de", "control"}


def test_who_hears_whom_is_as_named() -> None:
    assert {n: m.shared_model for n, m in METHODS.items() if m.shared_model != "broadcast"} == {
        "ts": "none",
        "gp": "usual",
        "fts": "peer",
        "pooled-ts": "pooled",
        "pooled-ts-control": "pooled",
        "sottovoce": "informed-consensus",
        "sottovoce-control": "informed-consensus",
    }


def test_the_control_differs_from_its_method_in_name_and_broadcast_alone() -> None:
    assert dataclasses.replace(CONTROL, name="dp-fts-de", noise_only=False) == DP_FTS_DE
    for method, control in ((POOLED_TS, POOLED_TS_CONTROL), (SOTTOVOCE, SOTTOVOCE_CONTROL)):
        assert dataclasses.replace(control, name=method.name, noise_only=False) == method


@pytest.mark.parametrize("method", [POOLED_TS, SOTTOVOCE], ids=["pooled-ts", "sottovoce"])
def test_a_method_that_learns_speaks_four_times_early_with_everybody_in_the_sum(
    method: Method,
) -> None:
    assert method.mechanism is not None
    assert method.mechanism.participation == 1.0
    assert [r for r in range(100) if method.releases.released(r)] == [0, 2, 4, 6]


def test_the_methods_that_learn_are_made_of_these_parts() -> None:
    def parts(m: Method) -> tuple[str, ...]:
        return m.initial_design, m.message, m.shared_model, m.acquisition, m.basis

    pooled = ("public", "residual", "pooled", "joint-thompson", "quasirandom")
    assert parts(POOLED_TS) == pooled
    assert parts(SOTTOVOCE) == ("latin", "effects", "informed-consensus", "log-ei", "effects")
    assert parts(GP)[:1] + parts(GP)[2:] == ("latin", "usual", "log-ei", "effects")


def test_what_is_usual_is_known_of_effects_alone() -> None:
    with pytest.raises(InvalidInput, match="basis must be 'effects', got basis='random'"):
        dataclasses.replace(GP, basis="random")


def test_the_real_world_settings_are_the_papers() -> None:
    real = for_real_world(DP_FTS_DE)
    assert real.mechanism is not None
    assert (real.regions, real.mechanism.clip, real.mechanism.participation) == (4, 22.0, 0.35)
    assert (real.features, real.lengthscale, real.regularisation) == (100, 0.01, 1e-6)
    assert real.solo(4) == 0.75
    assert real.weights == REAL_WORLD
    assert real.repeats == "replace"
    without_regions = for_real_world(DP_FTS)
    assert without_regions.mechanism is not None
    assert (without_regions.regions, without_regions.mechanism.clip) == (1, 11.0)
    alone = for_real_world(TS)
    assert (alone.shared_model, alone.mechanism, alone.regions) == ("none", None, 1)


def test_of_a_method_that_learns_a_real_problem_changes_only_what_it_does_with_repeats() -> None:
    real = for_real_world(POOLED_TS)
    assert real.repeats == "replace"
    assert dataclasses.replace(real, repeats="allow") == POOLED_TS


@pytest.mark.parametrize("method", [GP, SOTTOVOCE], ids=["gp", "sottovoce"])
def test_a_search_by_expected_improvement_repeats_no_point_and_stays_as_it_is(
    method: Method,
) -> None:
    assert for_real_world(method) is method


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"initial_design": "everywhere"},
        {"message": "nothing"},
        {"shared_model": "radio"},
        {"acquisition": "oracle"},
        {"repeats": "never"},
        {"basis": "fourier"},
        {"shared_variance": 0.0},
        {"shared_variance": math.inf},
        {"regions": 0},
        {"features": 0},
        {"initial": 0},
        {"lengthscale": 0.0},
        {"lengthscale": math.nan},
        {"lengthscale": math.inf},
        {"regularisation": 0.0},
        {"regularisation": math.nan},
        {"regularisation": math.inf},
        {"regions": 1.5},
        {"features": 10.5},
        {"initial": 2.5},
    ],
)
def test_bad_values_are_refused_at_once(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Method(**{"name": "mine", **changes})


OVER = "a pooled model is of residuals over a public design, in one region"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"message": "posterior-draw"}, f"{OVER}, got message='posterior-draw'"),
        ({"message": "posterior-mean"}, f"{OVER}, got message='posterior-mean'"),
        ({"regions": 2}, f"{OVER}, got .*regions=2"),
        ({"initial_design": "uniform"}, f"{OVER}, got .*initial_design='uniform'"),
        ({"shared_model": "broadcast"}, "residuals are for a pooled model"),
        ({"shared_model": "peer", "mechanism": None}, "residuals are for a pooled model"),
        (
            {"shared_model": "broadcast", "message": "posterior-mean"},
            "the joint posterior needs a pooled model, or none at all",
        ),
        ({"features": 15}, "come in pairs: features must be even, got features=15"),
        ({"features": 0}, "features must be a whole number above 0"),
        ({"features": 16.0}, "features must be a whole number above 0"),
        ({"shared_variance": -1.0}, "shared_variance must be finite and above 0, got .*=-1.0"),
    ],
)
def test_a_method_that_pools_keeps_to_the_rules(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        dataclasses.replace(POOLED_TS, **changes)


CONSENSUS = "a consensus is of effects, from latin designs, and for an acquisition by log-ei"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"message": "posterior-mean"}, f"{CONSENSUS}, got message='posterior-mean'"),
        ({"initial_design": "public"}, f"{CONSENSUS}, got .*initial_design='public'"),
        ({"basis": "random"}, f"{CONSENSUS}, got .*basis='random'"),
        ({"acquisition": "thompson"}, f"{CONSENSUS}, got .*acquisition='thompson'"),
        ({"regions": 2}, CONSENSUS),
        ({"shared_model": "broadcast"}, "effects are said for a consensus"),
        ({"shared_model": "peer", "mechanism": None}, "effects are said for a consensus"),
        ({"features": 0}, "features must be a whole number above 0"),
        ({"shared_variance": 0.0}, "shared_variance must be finite and above 0"),
    ],
)
def test_a_method_that_finds_a_consensus_keeps_to_the_rules(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        dataclasses.replace(SOTTOVOCE, **changes)


def test_who_sends_nothing_may_have_any_message() -> None:
    for message in ("effects", "residual"):
        assert dataclasses.replace(GP, message=message).message == message


@pytest.mark.parametrize(("t", "alone"), [(1, 0.0), (7, 0.0), (10, 0.5), (22, 0.75), (106, 0.9)])
def test_who_learns_goes_alone_the_more_the_longer_nothing_was_released(
    t: int, alone: float
) -> None:
    assert POOLED_TS.solo_probability(t) == pytest.approx(alone)
    assert POOLED_TS_CONTROL.solo_probability(t) == POOLED_TS.solo_probability(t)


@pytest.mark.parametrize("method", [TS, FTS, DP_FTS, DP_FTS_DE])
def test_who_follows_goes_alone_the_more_the_more_it_has_tried(method: Method) -> None:
    assert [method.solo_probability(t) for t in (1, 4)] == [0.0, 0.5]


def test_only_those_who_pool_have_a_trust_gate() -> None:
    gated = {name for name, method in METHODS.items() if method.trust_gate}
    assert gated == {"pooled-ts", "pooled-ts-control"}


def test_random_features_need_not_come_in_pairs() -> None:
    assert dataclasses.replace(POOLED_TS, basis="random", features=15).features == 15


@pytest.mark.parametrize("shared_model", ["none", "peer"])
def test_without_a_server_nothing_can_be_protected(shared_model: str) -> None:
    with pytest.raises(InvalidInput, match="only a server's sum can be protected"):
        Method("mine", shared_model=shared_model, mechanism=Mechanism())


@pytest.mark.parametrize("mechanism", [None, Mechanism(noise=0.0)])
def test_a_control_needs_noise_to_imitate(mechanism: Mechanism | None) -> None:
    with pytest.raises(InvalidInput, match="a noise-only control needs a mechanism with noise"):
        Method("mine", mechanism=mechanism, noise_only=True)
