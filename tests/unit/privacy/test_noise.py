from __future__ import annotations

import builtins
import os
import random
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sottovoce.errors import InvalidInput, MissingExtra
from sottovoce.privacy.noise import Seeded, Source, SystemEntropy


@pytest.fixture(params=["system", "seeded"])
def source(request: pytest.FixtureRequest) -> Source:
    return SystemEntropy() if request.param == "system" else Seeded(3)


def test_noise_has_the_standard_deviation_asked_for_within_two_percent(source: Source) -> None:
    # 30,000 draws put 2 % at five standard errors: system entropy must not fail by chance
    drawn = source.add_gaussian(np.full((150, 200), 7.0), 2.5) - 7.0
    assert drawn.shape == (150, 200)
    assert drawn.std() == pytest.approx(2.5, rel=0.02)
    assert abs(drawn.mean()) < 5 * 2.5 / np.sqrt(drawn.size)


def test_noise_is_gaussian(source: Source) -> None:
    drawn = source.add_gaussian(np.zeros(5000), 1.5)
    assert stats.kstest(drawn / 1.5, "norm").pvalue > 1e-7


def test_no_noise_leaves_the_values_alone_and_gives_a_copy(source: Source) -> None:
    values = np.asarray([[1.0, -2.0]])
    same = source.add_gaussian(values, 0.0)
    assert np.array_equal(same, values)
    same[0, 0] = 9.0
    assert values[0, 0] == 1.0


def test_coins_fall_as_often_as_asked(source: Source) -> None:
    count = 40_000
    share = source.coins(count, 0.3).mean()
    assert share == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / count))
    assert source.coins(100, 1.0).all()


def test_a_subset_has_its_size_and_favours_nobody(source: Source) -> None:
    draws = np.asarray([source.subset(10, 3) for _ in range(3000)])
    assert (draws.sum(axis=1) == 3).all()
    assert draws.mean(axis=0) == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 3000))


def test_two_draws_differ(source: Source) -> None:
    first, second = (source.add_gaussian(np.zeros(5), 1.0) for _ in range(2))
    assert not np.any(first == second)


def test_a_seed_repeats_and_is_labelled_as_simulation() -> None:
    first, second = (Seeded(5).add_gaussian(np.zeros(5), 1.0) for _ in range(2))
    assert np.array_equal(first, second)
    assert Seeded(5).simulation
    assert "simulation-only" in Seeded(5).label


def test_system_entropy_is_not_a_simulation() -> None:
    assert not SystemEntropy().simulation


def test_the_systems_coins_are_what_the_operating_system_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = (SystemEntropy().coins(256, 0.5) for _ in range(2))
    assert not np.array_equal(first, second)
    low, high = (0.5 - 2**-10) * 2**64, (0.5 + 2**-10) * 2**64
    given = np.asarray([0, low, high, 2**64 - 1], dtype=np.uint64)
    monkeypatch.setattr(os, "urandom", lambda size: given.tobytes()[:size])
    assert SystemEntropy().coins(4, 0.5).tolist() == [True, True, False, False]


def test_the_systems_subsets_follow_the_operating_system_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def after_a_seed() -> list[bool]:
        random.seed(0)
        return [bool(drawn) for drawn in SystemEntropy().subset(300, 150)]

    assert after_a_seed() != after_a_seed()
    monkeypatch.setattr(random, "_urandom", lambda size: bytes(range(size)))
    assert after_a_seed() == after_a_seed()


def test_the_systems_noise_is_what_opendp_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SystemEntropy()
    real, returned = source._dp.m.make_gaussian, list[list[float]]()

    def watched(*space: Any, scale: float) -> Any:
        mechanism = real(*space, scale=scale)

        def run(values: list[float]) -> list[float]:
            returned.append(mechanism(values))
            return returned[-1]

        return run

    monkeypatch.setattr(source._dp.m, "make_gaussian", watched)
    drawn = source.add_gaussian(np.ones((2, 3)), 1.5)
    assert [drawn.ravel().tolist()] == returned


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True, None])
def test_a_seed_must_be_a_whole_number(seed: Any) -> None:
    with pytest.raises(InvalidInput, match="seed"):
        Seeded(seed)


def test_without_opendp_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refusing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("opendp"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(MissingExtra, match=r"pip install 'sottovoce\[deployment\]'"):
        SystemEntropy()
