"""Draws have names: what is drawn under one does not depend on what else is drawn."""

from __future__ import annotations

import random as chances
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.arrays import Array
from sottovoce.federation import draws as names
from sottovoce.federation.draws import DrawSource, OwnDraws
from sottovoce.simulation import Draws, draws_of_agent

NAMES = [word for key, word in vars(names).items() if key.isupper()]
AGENTS = 5


def some(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    return random.standard_normal((n, 3)), random.random(n)


def numbers(source: DrawSource, name: str, number: int) -> list[float]:
    normals, uniforms = source(name, number, some)
    assert (normals.shape, uniforms.shape) == ((1, 3), (1,))
    return [*normals[0].tolist(), float(uniforms[0])]


def test_each_name_is_a_word_of_its_own() -> None:
    assert len(NAMES) == 10
    assert len(set(NAMES)) == len(NAMES)


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 3)), min_size=2, max_size=12),
    st.randoms(use_true_random=False),
    st.integers(1, AGENTS + 1),
)
@settings(max_examples=40, deadline=None)
def test_two_orders_of_asking_give_the_same_numbers(
    asked: list[tuple[str, int]], chance: chances.Random, chunk: int
) -> None:
    other = asked.copy()
    chance.shuffle(other)
    one, two = (draws_of_agent(Draws(7, 0, chunk=chunk), AGENTS, 3) for _ in range(2))
    first = {key: numbers(one, *key) for key in asked}
    assert {key: numbers(two, *key) for key in other} == first


@pytest.mark.parametrize("order", [*permutations(("coin", "belief", "coin"))])
def test_asked_again_it_deals_the_same(order: tuple[str, ...]) -> None:
    source = draws_of_agent(Draws(7, 0), AGENTS, 3)
    found = [numbers(source, name, 2) for name in order]
    coins = [drawn for name, drawn in zip(order, found, strict=True) if name == "coin"]
    assert coins[0] == coins[1]


def test_another_name_number_agent_run_or_seed_gives_other_numbers() -> None:
    sources = [
        draws_of_agent(Draws(seed, run), AGENTS, agent)
        for seed in (7, 8)
        for run in (0, 1)
        for agent in (0, 3)
    ]
    seen = [
        numbers(source, name, number)
        for source in sources
        for name in NAMES
        for number in (0, 1, 2)
    ]
    flat = [number for drawn in seen for number in drawn]
    assert len(set(flat)) == len(flat) == 2 * 2 * 2 * 10 * 3 * 4


def test_an_agent_with_a_generator_of_its_own_draws_in_the_order_in_which_it_asks() -> None:
    source, same = OwnDraws(np.random.default_rng(4)), np.random.default_rng(4)
    for name, number in (("coin", 1), ("belief", 1), ("coin", 1)):
        drawn = source(name, number, some)
        for one, two in zip(drawn, some(same, 1), strict=True):
            np.testing.assert_array_equal(one, two)
