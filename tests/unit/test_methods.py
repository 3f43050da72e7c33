from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.methods import (
    CONTROL,
    DP_FTS,
    DP_FTS_DE,
    FTS,
    FTS_DE,
    METHODS,
    TS,
    Method,
    for_real_world,
    method_named,
)
from sottovoce.privacy.release import Mechanism
from sottovoce.regions import REAL_WORLD
from sottovoce.schedule import OwnBelief


def test_the_methods_have_these_names() -> None:
    assert list(METHODS) == [
        "ts",
        "fts",
        "fts-server",
        "fts-de",
        "dp-fts",
        "dp-fts-de",
        "control",
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
    assert private == {"dp-fts", "dp-fts-de", "control"}
    assert not dataclasses.replace(DP_FTS, mechanism=Mechanism(noise=0.0)).private


def test_the_synthetic_settings_are_the_papers() -> None:
    assert DP_FTS_DE.mechanism == Mechanism(clip=11.0, participation=0.25, noise=1.0)
    assert DP_FTS.mechanism is not None
    assert DP_FTS.mechanism.clip == 8.0
    assert (DP_FTS_DE.regions, FTS_DE.regions, DP_FTS.regions, FTS.regions) == (2, 2, 1, 1)
    assert all(m.features == 50 and m.initial == 10 for m in METHODS.values())
    assert all(m.lengthscale == 0.03 and m.regularisation == 0.01 for m in METHODS.values())
    assert all(m.own_belief == OwnBelief("root") for m in METHODS.values())


def test_noisy_trials_may_be_repeated() -> None:
    assert all(method.repeats == "allow" for method in METHODS.values())


def test_only_distributed_exploration_starts_in_a_region() -> None:
    local = {name for name, method in METHODS.items() if method.local_start}
    assert local == {"fts-de", "dp-fts-de", "control"}


def test_who_hears_whom_is_as_named() -> None:
    assert {n: m.exchange for n, m in METHODS.items() if m.exchange != "server"} == {
        "ts": "none",
        "fts": "peer",
    }


def test_the_control_differs_from_its_method_in_name_and_broadcast_alone() -> None:
    assert dataclasses.replace(CONTROL, name="dp-fts-de", control=False) == DP_FTS_DE


def test_the_real_world_settings_are_the_papers() -> None:
    real = for_real_world(DP_FTS_DE)
    assert real.mechanism is not None
    assert (real.regions, real.mechanism.clip, real.mechanism.participation) == (4, 22.0, 0.35)
    assert (real.features, real.lengthscale, real.regularisation) == (100, 0.01, 1e-6)
    assert real.own_belief(4) == 0.75
    assert real.weights == REAL_WORLD
    assert real.repeats == "replace"
    without_regions = for_real_world(DP_FTS)
    assert without_regions.mechanism is not None
    assert (without_regions.regions, without_regions.mechanism.clip) == (1, 11.0)
    alone = for_real_world(TS)
    assert (alone.exchange, alone.mechanism, alone.regions) == ("none", None, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"exchange": "radio"},
        {"repeats": "never"},
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


@pytest.mark.parametrize("exchange", ["none", "peer"])
def test_without_a_server_nothing_can_be_protected(exchange: Any) -> None:
    with pytest.raises(InvalidInput, match="only a server can protect a sum"):
        Method("mine", exchange=exchange, mechanism=Mechanism())


@pytest.mark.parametrize("mechanism", [None, Mechanism(noise=0.0)])
def test_a_control_needs_noise_to_imitate(mechanism: Mechanism | None) -> None:
    with pytest.raises(InvalidInput, match="a control needs a mechanism with noise"):
        Method("mine", mechanism=mechanism, control=True)
