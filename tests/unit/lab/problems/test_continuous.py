from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.lab.problems.continuous import APART, FREQUENCIES, Continuous, GaussianProcess
from sottovoce.lab.problems.waves import Waves, drawn_waves, highest_points, quasirandom_points


def waves(count: int = 5, dims: int = 3, lengthscale: float = 0.3, seed: int = 0) -> Waves:
    random = np.random.default_rng(seed)
    return drawn_waves(count, random.standard_normal((64, dims)) / lengthscale, random)


def drawn(agents: int = 6, seed: int = 0, **options: float | None) -> Continuous:
    made = GaussianProcess(**options)  # type: ignore[arg-type]
    return made.draw(agents, np.random.default_rng(seed))


def dense(objectives: Continuous, count: int, seed: int = 0) -> NDArray[np.float64]:
    """The objectives at many random points, the same for all: (N, count)."""
    dims = objectives.functions.frequencies.shape[1]
    return objectives.functions.at_all(np.random.default_rng(seed).random((count, dims)))


@pytest.mark.parametrize("dims", [1, 2, 6])
def test_functions_have_the_mean_and_the_covariance_of_the_gp(dims: int) -> None:
    random = np.random.default_rng(0)
    frequencies = random.standard_normal((FREQUENCIES, dims)) / 0.2
    points = np.random.default_rng(1).random((12, dims)) * min(1.0, 0.8 / dims**0.5)
    values = drawn_waves(4000, frequencies, random).at_all(points)
    assert np.allclose(values.mean(axis=0), 0, atol=0.08)
    # 1/√1024 for the frequencies, 1/√4000 for the draws, four standard deviations of both
    expected = covariance(Kernel(0.2), points, points)
    assert np.allclose(values.T @ values / 4000, expected, rtol=0, atol=0.15)
    assert np.allclose(np.mean(values**2, axis=0), 1, rtol=0, atol=0.1)


def test_all_ways_to_evaluate_agree() -> None:
    functions = waves()
    points = np.random.default_rng(1).random((40, 3))
    shared = functions.at_all(points)
    x = np.broadcast_to(points, (5, 40, 3))
    assert np.allclose(functions.values(x), shared, rtol=0, atol=1e-12)
    assert np.allclose(functions.values_and_gradients(x)[0], shared, rtol=0, atol=1e-12)
    by_hand = np.cos(points @ functions.frequencies.T) @ functions.cosines[2]
    by_hand += np.sin(points @ functions.frequencies.T) @ functions.sines[2]
    assert np.allclose(shared[2], by_hand, rtol=0, atol=1e-12)


def test_more_points_than_fit_a_block_are_valued_all_the_same() -> None:
    functions = waves(count=3)
    x = np.random.default_rng(1).random((3, 1300, 3))
    whole = functions.values(x)
    assert np.array_equal(whole[:, 700:720], functions.values(x[:, 700:720]))
    many = waves(count=1100)
    x = np.random.default_rng(2).random((1100, 1, 3))
    assert np.array_equal(
        many.values(x)[1000:1003], many.part(slice(1000, 1003)).values(x[1000:1003])
    )


def test_gradients_are_those_of_the_values() -> None:
    functions = waves()
    x = np.random.default_rng(1).random((5, 7, 3))
    _, gradients = functions.values_and_gradients(x)
    for d in range(3):
        step = np.zeros(3)
        step[d] = 1e-6
        slope = (functions.values(x + step) - functions.values(x - step)) / 2e-6
        assert np.allclose(gradients[..., d], slope, rtol=0, atol=1e-7)


def test_sums_and_multiples_of_functions_are_what_they_say() -> None:
    functions, points = waves(), np.random.default_rng(1).random((9, 3))
    by = np.arange(1.0, 6.0)
    at = functions.at_all(points)
    raised = functions.raised(by)
    assert np.allclose(raised.at_all(points), at + by[:, None])
    assert np.allclose(raised.times(by).at_all(points), by[:, None] * (at + by[:, None]))
    one = raised.part(slice(2, 3))
    assert np.allclose(functions.plus(one).at_all(points), at + at[2] + 3)


@pytest.mark.parametrize("dims", range(1, 7))
def test_candidates_are_spread_evenly(dims: int) -> None:
    points = quasirandom_points(4096, dims)
    assert points.shape == (4096, dims)
    assert points.min() >= 0
    assert points.max() < 1
    halves = (points < 0.5) @ (2 ** np.arange(dims))
    counts = np.bincount(halves, minlength=2**dims) * 2**dims / 4096
    assert np.all(np.abs(counts - 1) < 0.25)  # at random, the worst of 64 would be off by 0.3
    assert len(np.unique(points, axis=0)) == 4096


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("dims", "lengthscale"), [(1, 0.2), (1, 0.01), (2, 0.2), (3, 0.2), (6, 0.2)]
)
def test_the_optimum_is_at_least_what_a_dense_search_finds(
    dims: int, lengthscale: float, seed: int
) -> None:
    objectives = drawn(3, seed, dims=dims, lengthscale=lengthscale, alpha=0.7)
    best = dense(objectives, 30_000).max(axis=1)
    assert np.all(objectives.optimum >= best - 1e-12)
    if dims == 1:  # so dense that it must be just as good
        assert np.all(objectives.optimum <= best + 1e-4)


@pytest.mark.parametrize("dims", [2, 6])
def test_a_far_longer_search_finds_nothing_better(dims: int) -> None:
    objectives = drawn(3, 1, dims=dims, alpha=1.0)
    deep = highest_points(objectives.functions, 2**15, 400)
    assert np.all(objectives.optimum >= objectives.values(deep[:, None])[:, 0] - 1e-6)


@pytest.mark.parametrize("dims", [1, 3])
def test_the_maximisers_are_tops_in_the_cube(dims: int) -> None:
    objectives = drawn(dims=dims)
    x = objectives.maximisers
    assert np.all((x >= 0) & (x <= 1))
    value, gradient = objectives.functions.values_and_gradients(x[:, None])
    assert np.allclose(value[:, 0], objectives.optimum, rtol=0, atol=1e-12)
    ahead = np.clip(x + gradient[:, 0], 0, 1) - x  # no way uphill but out of the cube
    assert np.all(np.abs(ahead) < 1e-3)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_with_alpha_1_each_function_is_scaled_to_the_unit_interval(dims: int) -> None:
    objectives = drawn(dims=dims, alpha=1.0)
    values = dense(objectives, 20_000)
    assert np.allclose(objectives.optimum, 1, rtol=0, atol=1e-6)
    assert values.min() >= -1e-6
    assert np.all(values.min(axis=1) < 0.1)


def test_in_six_dimensions_functions_leave_the_unit_interval_by_a_tenth_at_most() -> None:
    optimum = np.concatenate([drawn(4, seed, dims=6, alpha=1.0).optimum for seed in range(2)])
    assert optimum.min() >= 1 - 1e-9
    assert optimum.max() < 1.1


def test_alpha_mixes_the_same_functions() -> None:
    base, own, mixed = (dense(drawn(alpha=alpha), 50) for alpha in (0.0, 1.0, 0.7))
    assert np.allclose(base, base[0], rtol=0, atol=1e-15)
    assert np.allclose(mixed, 0.7 * own + 0.3 * base, rtol=0, atol=1e-12)


def test_with_alpha_1_agents_have_nothing_in_common() -> None:
    values = dense(drawn(40, dims=3, alpha=1.0), 2000)
    between = np.asarray(np.corrcoef(values))[np.triu_indices(40, k=1)]
    assert abs(np.mean(between)) < 0.05


def test_without_alpha_agents_differ_from_a_common_function_by_the_stated_deviation() -> None:
    objectives, common = drawn(1000), drawn(1, alpha=0.0)
    apart = dense(objectives, 300) - dense(common, 300)
    assert np.std(apart) == pytest.approx(0.02, rel=0.05)
    assert np.allclose(np.std(apart, axis=0), APART, rtol=0.1)
    assert np.all(np.abs(np.mean(apart, axis=0)) < 4 * APART / 1000**0.5)
    between = np.asarray(np.corrcoef(apart[:30]))[np.triu_indices(30, k=1)]
    assert abs(np.mean(between)) < 0.1


def test_what_tells_agents_apart_is_smooth() -> None:
    objectives, common = drawn(50, dims=1), drawn(1, dims=1, alpha=0.0)
    line = np.linspace(0, 1, 501)[:, None]
    apart = objectives.functions.at_all(line) - common.functions.at_all(line)
    slope = np.diff(apart, axis=1) * 500
    assert np.std(slope) == pytest.approx(APART / 0.2, rel=0.2)


def test_agents_know_the_kernel_and_take_values_as_they_come() -> None:
    setting = GaussianProcess(dims=4, lengthscale=0.3).setting
    assert setting.space.dims == 4
    assert setting.space.continuous
    assert setting.surrogate.kernel == Kernel(0.3, 1.0, 0.1**2)
    assert not setting.surrogate.standardise
    assert drawn().noise == 0.1


def test_another_seed_draws_other_functions() -> None:
    assert not np.allclose(dense(drawn(seed=1), 50), dense(drawn(seed=0), 50))


def test_objectives_for_nobody_are_refused() -> None:
    with pytest.raises(InvalidInput, match="agents must be at least 1"):
        drawn(0)
