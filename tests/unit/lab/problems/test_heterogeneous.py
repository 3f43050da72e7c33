from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.lab.problems.heterogeneous import Heterogeneous
from sottovoce.lab.problems.synthetic import Synthetic


def drawn(alpha: float, agents: int = 50, seed: int = 0) -> NDArray[np.float64]:
    return Heterogeneous(alpha).draw(agents, np.random.default_rng(seed)).table


def test_the_setting_and_the_noise_are_the_synthetic_problems() -> None:
    assert Heterogeneous().setting == Synthetic().setting
    assert Heterogeneous().draw(2, np.random.default_rng(0)).noise ** 2 == pytest.approx(0.01)


def test_with_alpha_0_all_agents_have_one_objective() -> None:
    table = drawn(0.0)
    assert np.all(table == table[0])
    assert (table.min(), table.max()) == (0.0, 1.0)


def test_with_alpha_1_each_agent_has_a_scaled_function_of_its_own() -> None:
    table = drawn(1.0)
    assert np.all(table.min(axis=1) == 0.0)
    assert np.all(table.max(axis=1) == 1.0)
    between = np.asarray(np.corrcoef(table))[np.triu_indices(50, k=1)]
    assert abs(np.mean(between)) < 0.02
    # each alone varies by chance at 1/0.03 length scales, so by about 1/√12
    assert 0.1 < np.std(between) < 0.4


def test_in_between_it_is_the_mixture_of_the_same_functions() -> None:
    base, own = drawn(0.0), drawn(1.0)
    assert np.allclose(drawn(0.7), 0.7 * own + 0.3 * base, rtol=0, atol=1e-15)


def test_more_alpha_makes_agents_more_different() -> None:
    apart = [np.mean(np.std(drawn(alpha), axis=0)) for alpha in (0.0, 0.3, 0.7, 1.0)]
    assert apart == sorted(apart)
    assert apart[0] == pytest.approx(0, abs=1e-15)
    assert apart[3] > 0.1


def test_another_seed_draws_other_functions() -> None:
    assert not np.allclose(drawn(0.0, seed=1), drawn(0.0, seed=0))


def test_objectives_for_nobody_are_refused() -> None:
    with pytest.raises(InvalidInput, match="agents must be at least 1"):
        drawn(0.7, agents=0)
