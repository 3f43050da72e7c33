from __future__ import annotations

import math

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.lab.problems.functions import (
    ACKLEY_GREATEST,
    BRANIN_GREATEST,
    BRANIN_LEAST,
    HARTMANN3_GREATEST,
    HARTMANN6_GREATEST,
    Ackley,
    Branin,
    Hartmann3,
    Hartmann6,
    StandardFunction,
)

EVERY = [Branin(), Hartmann3(), Hartmann6(), Ackley(dims=1), Ackley(), Ackley(dims=6)]
WIDEST = [Branin(shift=0.15), Hartmann3(shift=0.114), Hartmann6(shift=0.15), Ackley(shift=0.5)]


def at(problem: StandardFunction, *x: float) -> float:
    """The scaled function at a point of its customary domain."""
    u = problem.setting.space.encode({f"x{d}": value for d, value in enumerate(x, start=1)})
    return float(problem.scaled(u))


def test_branin_has_its_published_values() -> None:
    def branin(x: float, y: float) -> float:
        return BRANIN_GREATEST - (BRANIN_GREATEST - BRANIN_LEAST) * at(Branin(), x, y)

    assert branin(0, 0) == pytest.approx(55.602113, abs=1e-6)
    assert branin(-5, 0) == pytest.approx(308.129096, abs=1e-6)
    for best in ((-math.pi, 12.275), (math.pi, 2.275), (9.42478, 2.475)):
        assert branin(*best) == pytest.approx(0.397887, abs=1e-6)


def test_hartmann_has_its_published_maxima() -> None:
    assert pytest.approx(3.86278, abs=1e-5) == HARTMANN3_GREATEST
    assert pytest.approx(3.32237, abs=1e-5) == HARTMANN6_GREATEST
    assert at(Hartmann3(), 0.114614, 0.555649, 0.852547) == pytest.approx(1, abs=1e-6)
    six = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
    assert at(Hartmann6(), *six) == pytest.approx(1, abs=1e-6)
    # elsewhere, by hand from the published tables: the heights are 1, 1.2, 3, 3.2
    far = 3 * 0.3689**2 + 10 * 0.117**2 + 30 * 0.2673**2
    farther = 0.1 * 0.4699**2 + 10 * 0.4387**2 + 35 * 0.747**2
    third = 3 * 0.1091**2 + 10 * 0.8732**2 + 30 * 0.5547**2
    fourth = 0.1 * 0.0381**2 + 10 * 0.5743**2 + 35 * 0.8828**2
    hills = zip((1, 1.2, 3, 3.2), (far, farther, third, fourth), strict=True)
    by_hand = sum(height * math.exp(-exponent) for height, exponent in hills)
    assert at(Hartmann3(), 0, 0, 0) * HARTMANN3_GREATEST == pytest.approx(by_hand)


def test_ackley_has_its_published_values() -> None:
    def ackley(*x: float) -> float:
        return ACKLEY_GREATEST * (1 - at(Ackley(dims=len(x)), *x))

    assert ackley(0, 0, 0) == pytest.approx(0, abs=1e-12)
    assert ackley(1, 1) == pytest.approx(3.6253849, abs=1e-6)
    assert ackley(1) == pytest.approx(ackley(1, 1, 1, 1))
    assert ackley(3, -4) == pytest.approx(20 - 20 * math.exp(-0.2 * math.sqrt(12.5)))


@pytest.mark.parametrize("problem", EVERY, ids=lambda p: p.name)
def test_values_fill_the_unit_interval(problem: StandardFunction) -> None:
    u = np.random.default_rng(0).random((100_000, problem.setting.space.dims))
    corners = np.indices((2,) * u.shape[1]).reshape(u.shape[1], -1).T.astype(float)
    values = problem.scaled(np.concatenate([u, corners]))
    assert values.min() >= 0
    assert values.min() < 0.1
    assert values.max() <= 1
    assert problem.scaled(problem.maximiser) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("problem", EVERY[:3], ids=lambda p: p.name)
def test_the_maximiser_of_a_smooth_function_is_where_it_is_level(problem: StandardFunction) -> None:
    steps = 1e-5 * np.eye(problem.maximiser.size)
    ahead, behind = (problem.scaled(problem.maximiser + s * steps) for s in (1, -1))
    assert np.allclose((ahead - behind) / 2e-5, 0, rtol=0, atol=1e-7)
    assert np.all(np.maximum(ahead, behind) < 1)


@pytest.mark.parametrize("problem", EVERY + WIDEST, ids=lambda p: p.name)
def test_every_agents_optimum_is_exact_and_inside_the_cube(problem: StandardFunction) -> None:
    objectives = problem.draw(300, np.random.default_rng(0))
    assert np.allclose(objectives.optimum, 1, rtol=0, atol=1e-12)
    moved = problem.maximiser + objectives.shifts
    assert np.all((moved >= 0) & (moved <= 1))
    assert np.array_equal(objectives.values(moved[:, None])[:, 0], objectives.optimum)
    # and it is the top: a little off in any direction is lower
    step = np.random.default_rng(1).uniform(-0.01, 0.01, size=(300, 20, moved.shape[1]))
    assert np.all(objectives.values(moved[:, None] + step) < objectives.optimum[:, None])


@pytest.mark.parametrize("problem", EVERY + WIDEST, ids=lambda p: p.name)
def test_shifts_are_uniform_up_to_the_one_allowed(problem: StandardFunction) -> None:
    shifts = problem.draw(2000, np.random.default_rng(0)).shifts
    assert np.max(np.abs(shifts)) <= problem.shift
    assert np.max(np.abs(shifts)) > 0.99 * problem.shift
    assert np.std(shifts) == pytest.approx(problem.shift / 3**0.5, rel=0.05)
    assert np.all(np.abs(np.mean(shifts, axis=0)) < 0.06 * problem.shift)


def test_an_agents_objective_is_the_function_moved_by_its_shift() -> None:
    problem = Branin()
    objectives = problem.draw(5, np.random.default_rng(0))
    inside = np.random.default_rng(1).uniform(0.1, 0.9, size=(5, 30, 2))
    found = objectives.values(inside)
    for n in range(5):
        assert np.allclose(found[n], problem.scaled(inside[n] - objectives.shifts[n]))


def test_beyond_the_domain_the_value_is_that_at_its_side() -> None:
    problem = Ackley(shift=0.3)
    objectives = problem.draw(50, np.random.default_rng(0))
    n = int(np.argmax(objectives.shifts[:, 0]))
    reach = float(objectives.shifts[n, 0])
    points = np.tile([[0.0, 0.5], [reach / 2, 0.5], [reach, 0.5], [reach + 0.1, 0.5]], (50, 1, 1))
    first, second, third, fourth = objectives.values(points)[n]
    assert first == second == pytest.approx(third)
    assert fourth != pytest.approx(third)


def test_without_a_shift_all_agents_have_the_function_itself() -> None:
    problem = Hartmann6(shift=0)
    points = np.broadcast_to(np.random.default_rng(0).random((10, 6)), (4, 10, 6))
    values = problem.draw(4, np.random.default_rng(0)).values(points)
    assert np.all(values == problem.scaled(points[0]))


def test_noise_is_the_option_and_kernels_are_fitted() -> None:
    for problem in EVERY:
        assert problem.draw(1, np.random.default_rng(0)).noise == 0.1
        assert problem.setting.surrogate.kernel is None
    assert Branin(noise=0.02).draw(1, np.random.default_rng(0)).noise == 0.02


def test_a_user_sees_the_customary_domain() -> None:
    assert Branin().setting.space.decode(np.asarray([0.0, 1.0])) == {"x1": -5.0, "x2": 15.0}
    assert Ackley().setting.space.decode(np.asarray([1.0, 0.5])) == {"x1": 32.768, "x2": 0.0}


def test_another_seed_draws_other_shifts() -> None:
    one, two = (Branin().draw(3, np.random.default_rng(seed)).shifts for seed in (0, 1))
    assert not np.any(one == two)


def test_objectives_for_nobody_are_refused() -> None:
    with pytest.raises(InvalidInput, match="agents must be at least 1"):
        Branin().draw(0, np.random.default_rng(0))
