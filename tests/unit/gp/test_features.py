from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from sottovoce.arrays import Array
from sottovoce.errors import InvalidInput
from sottovoce.gp.features import (
    BLOCK,
    Basis,
    Features,
    cosine,
    cosine_and_sine,
    in_blocks,
    shared_features,
)
from sottovoce.gp.kernel import Kernel, covariance


def test_the_public_seed_gives_these_features_for_ever() -> None:
    features = shared_features(seed=7, count=100, dims=2, lengthscale=0.2)
    s = [
        [-0.18596415495238286, 9.23473539880809],
        [4.4576586466263475, 1.0708374458153338],
        [-6.6827543267343765, -5.929838833425844],
    ]
    b = [0.18832300494987644, 0.5063714662477025, 3.22706461695142]
    np.testing.assert_allclose(features.frequencies[[0, 1, 99]], s, rtol=1e-12)
    np.testing.assert_allclose(features.phases[[0, 1, 99]], b, rtol=1e-12)


def test_seed_count_and_dimension_each_change_all_draws() -> None:
    first = shared_features(1, 10, 2, 1.0).phases
    for other in (shared_features(2, 10, 2, 1.0), shared_features(1, 10, 3, 1.0)):
        assert not np.any(other.phases == first)
    assert not np.any(shared_features(1, 11, 2, 1.0).phases[:10] == first)


def test_length_scale_only_rescales_the_frequencies() -> None:
    one, half = shared_features(1, 10, 2, 1.0), shared_features(1, 10, 2, 0.5)
    np.testing.assert_array_equal(2 * one.frequencies, half.frequencies)
    np.testing.assert_array_equal(one.phases, half.phases)


def test_frequencies_are_standard_normal_and_phases_uniform() -> None:
    features = shared_features(3, 20_000, 2, 0.5)
    s = features.frequencies * 0.5
    assert abs(s.mean()) < 0.02
    assert abs(s.var() - 1) < 0.03
    assert abs(np.mean(s**4) - 3) < 0.2
    u = np.sort(features.phases / (2 * np.pi))
    assert 0 < u[0] < u[-1] < 1
    assert np.max(np.abs(u - (np.arange(20_000) + 0.5) / 20_000)) < 0.012


def test_features_are_the_cosines_scaled_to_unit_norm() -> None:
    features = shared_features(4, 30, 3, 0.3)
    x = np.random.default_rng(0).random((2, 5, 3))
    raw = np.sqrt(2 / 30) * np.cos(x @ features.frequencies.T + features.phases)
    expected = raw / np.linalg.norm(raw, axis=-1, keepdims=True)
    np.testing.assert_allclose(features(x), expected, atol=1e-14)
    assert features.count == 30


def test_many_features_reproduce_the_kernel() -> None:
    x = np.random.default_rng(0).random((6, 2))
    phi = shared_features(5, 20_000, 2, 0.4)(x)
    np.testing.assert_allclose(phi @ phi.T, covariance(Kernel(0.4), x, x), atol=0.03)


def test_features_that_all_vanish_give_zero_and_not_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.gp.features.cosine", lambda half, xp: xp.zeros_like(half))
    features = Features(np.ones((3, 1)), np.zeros(3))
    np.testing.assert_array_equal(features(np.ones((2, 1))), np.zeros((2, 3)))


def test_the_draws_follow_the_written_recipe() -> None:
    digest = hashlib.shake_256(b"sottovoce/features/v1/12/3/2").digest(8 * 9)
    words = [int.from_bytes(digest[8 * i : 8 * i + 8], "little") >> 11 for i in range(9)]
    uniforms = [float(Fraction(2 * word + 1, 2**54)) for word in words]
    normals = [NormalDist().inv_cdf(u) / 0.5 for u in uniforms[:6]]
    features = shared_features(12, 3, 2, 0.5)
    np.testing.assert_allclose(features.frequencies.ravel(), normals, rtol=1e-12)
    np.testing.assert_allclose(features.phases, 2 * np.pi * np.array(uniforms[6:]), rtol=1e-14)


def test_cosine_and_sine_through_the_tangent_agree_with_the_usual_ones() -> None:
    whole = np.arange(-8, 9) * np.pi / 2
    angle = np.concatenate([np.random.default_rng(0).normal(0, 300, 10_000), whole])
    np.testing.assert_allclose(cosine(angle / 2, np), np.cos(angle), rtol=0, atol=1e-15)
    cos, sin = cosine_and_sine(angle / 2, np)
    np.testing.assert_allclose(cos, np.cos(angle), rtol=0, atol=1e-15)
    np.testing.assert_allclose(sin, np.sin(angle), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("seed", "count", "dims", "lengthscale"),
    [(-1, 1, 1, 1.0), (True, 1, 1, 1.0), (0, 0, 1, 1.0), (0, 1, 0, 1.0), (0, 1, 1, 0.0)],
)
def test_arguments_out_of_range_are_refused(
    seed: int, count: int, dims: int, lengthscale: float
) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        shared_features(seed, count, dims, lengthscale)


# quasi-random


def test_the_public_seed_gives_these_quasirandom_features_for_ever() -> None:
    features = shared_features(7, 16, 2, 0.4, "quasirandom")
    s = [[3.8480929156943398, -2.7959087841989887], [-1.9113692592972233, -2.930132084974982]]
    np.testing.assert_allclose(features.frequencies[[0, 7]], s, rtol=1e-11)
    np.testing.assert_array_equal(features.frequencies[8:], features.frequencies[:8])
    np.testing.assert_array_equal(features.phases, np.repeat([0.0, -np.pi / 2], 8))


WAVES: tuple[Basis, ...] = ("random", "quasirandom")


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("count", [16, 50])
def test_quasirandom_features_are_nearer_to_the_kernel_than_as_many_random_ones(
    dims: int, count: int
) -> None:
    def error(basis: Basis, seed: int) -> float:
        x = np.random.default_rng(seed).random((40, dims))
        phi = shared_features(seed, count, dims, 0.4, basis)(x)
        return float(np.sqrt(np.mean((phi @ phi.T - covariance(Kernel(0.4), x, x)) ** 2)))

    random, even = (np.mean([error(b, seed) for seed in range(15)]) for b in WAVES)
    assert even < 0.85 * random


def test_quasirandom_features_have_unit_norm_before_any_scaling_and_know_only_differences() -> None:
    features = shared_features(2, 20, 3, 0.3, "quasirandom")
    x = np.random.default_rng(0).random((50, 3))
    raw = np.sqrt(2 / 20) * np.cos(x @ features.frequencies.T + features.phases)
    np.testing.assert_allclose(np.linalg.norm(raw, axis=-1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(features(x), raw, atol=1e-14)
    near = np.vecdot(features(x), features(x + np.array([0.1, -0.2, 0.05])))
    np.testing.assert_allclose(near, near[0], rtol=0, atol=1e-13)


def test_quasirandom_features_come_in_pairs_and_a_basis_must_be_known() -> None:
    with pytest.raises(InvalidInput, match="come in pairs: M must be even, got M=15"):
        shared_features(0, 15, 2, 0.4, "quasirandom")
    unknown: Any = "fourier"
    with pytest.raises(InvalidInput, match=r"basis must be one of .*got basis='fourier'"):
        shared_features(0, 16, 2, 0.4, unknown)


@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK, 3 * BLOCK + 7])
def test_points_valued_in_blocks_stay_in_their_places(count: int) -> None:
    x = np.random.default_rng(0).random((4, count, 2))
    factor, sizes = np.arange(1.0, 5.0)[:, None], list[int]()

    def part(entries: slice) -> Callable[[Array], Array]:
        def values(some: Array) -> Array:
            sizes.append(some.shape[0] * some.shape[1])
            return factor[entries] * some[..., 0]

        return values

    assert np.array_equal(in_blocks(part, x), factor * x[..., 0])
    assert max(sizes) <= BLOCK
