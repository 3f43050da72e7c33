from __future__ import annotations

import numpy as np
import pytest

from sottovoce.acquisition.thompson import exact_table
from sottovoce.errors import InvalidInput
from sottovoce.gp.kernel import covariance
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.synthetic import KERNEL, NOISE, SPACE, Synthetic


def drawn(seed: int, agents: int = 8) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    table = Synthetic().draw(agents, np.random.default_rng(seed)).table
    return np.asarray(table).reshape(agents, 1000)


def test_the_space_is_a_thousand_equally_spaced_points() -> None:
    points = SPACE.points()
    assert points.shape == (1000, 1)
    assert np.allclose(points[:, 0], np.linspace(0, 1, 1000), rtol=0, atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_objectives_lie_in_the_unit_interval_give_or_take_the_shift(seed: int) -> None:
    table = drawn(seed)
    assert table.min() >= -0.02
    assert table.max() <= 1.02
    base = (table.min(axis=0) + table.max(axis=0)) / 2  # with eight agents nearly always exact
    assert base.min() < 0.025
    assert base.max() > 0.975


@pytest.mark.parametrize("seed", range(3))
def test_objectives_differ_point_by_point_by_nothing_or_twice_the_shift(seed: int) -> None:
    table = drawn(seed, 20)
    apart = table[1:] - table[:1]
    rounded = np.round(apart / 0.04).astype(int)
    assert np.allclose(apart, 0.04 * rounded, rtol=0, atol=1e-12)
    assert set(np.unique(rounded)) == {-1, 0, 1}
    above = np.mean(table > (table.min(axis=0) + table.max(axis=0)) / 2)
    assert 0.47 < above < 0.53


def test_the_function_has_the_length_scale_of_the_paper() -> None:
    # correlation of a zero-mean GP at distance h is exp(−½ (h/0.03)²), averaged over many draws
    factor = exact_table(KERNEL, SPACE)
    functions = np.random.default_rng(0).standard_normal((400, factor.shape[1])) @ factor.T
    variance = np.mean(functions**2)
    assert variance == pytest.approx(1.0, abs=0.05)
    for lag in (15, 30, 60):
        found = np.mean(functions[:, lag:] * functions[:, :-lag]) / variance
        assert found == pytest.approx(np.exp(-0.5 * (lag / 999 / 0.03) ** 2), abs=0.05)


def test_the_published_objectives_vary_at_that_scale_too() -> None:
    # for a scaled GP path the mean squared slope over the variance is about 1/ℓ²
    ratios = []
    for seed in range(60):
        table = drawn(seed, 60)
        base = table.mean(axis=0)  # the shifts average out to 0.02/√60
        smooth = np.convolve(base, np.ones(9) / 9, mode="valid")
        slope = (smooth[9:] - smooth[:-9]) * 999 / 9
        ratios.append(np.mean(slope**2) / np.var(smooth))
    assert 0.02 < 1 / np.sqrt(np.mean(ratios)) < 0.04


def test_the_grids_features_give_the_kernel_back() -> None:
    factor, some = exact_table(KERNEL, SPACE), SPACE.points()[::50]
    assert np.allclose(factor[::50] @ factor[::50].T, covariance(KERNEL, some, some), atol=1e-10)


def test_values_are_read_at_the_points_asked_for() -> None:
    objectives = Synthetic().draw(3, np.random.default_rng(1))
    index = np.asarray([[0, 999], [5, 5], [700, 3]])
    found = objectives.values(SPACE.points()[index])
    assert found.shape == (3, 2)
    assert found[2, 1] == objectives.table[2, 3]
    assert found[0, 1] == objectives.table[0, 999]


def test_observations_carry_noise_of_variance_a_hundredth() -> None:
    objectives = Synthetic().draw(2, np.random.default_rng(0))
    assert objectives.noise == NOISE == 0.1
    assert objectives.noise**2 == pytest.approx(KERNEL.noise)


def test_agents_know_the_kernel_and_take_values_as_they_come() -> None:
    belief = Synthetic().setting.surrogate
    assert belief.kernel == KERNEL
    assert not belief.standardise
    assert (KERNEL.lengthscale, KERNEL.variance, KERNEL.noise) == (0.03, 1.0, 0.01)


def test_objectives_for_nobody_are_refused() -> None:
    with pytest.raises(InvalidInput, match="agents must be at least 1"):
        Synthetic().draw(0, np.random.default_rng(0))


def test_the_problem_is_known_by_its_name_and_takes_a_level() -> None:
    assert problem_named("synthetic") == Synthetic()
    assert Synthetic().name == "synthetic"
    with pytest.raises(InvalidInput, match="synthetic: unknown option 'alpha'; known are level"):
        problem_named("synthetic:alpha=1")


def test_a_level_is_subtracted_from_every_value_of_the_same_function() -> None:
    plain, lower = (
        problem.draw(3, np.random.default_rng(4)) for problem in (Synthetic(), Synthetic(level=0.5))
    )
    np.testing.assert_allclose(lower.table, plain.table - 0.5)
    np.testing.assert_allclose(lower.optimum, plain.optimum - 0.5)
