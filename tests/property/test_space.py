from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sottovoce.space import Category, Float, Integer, Parameter, Space
from sottovoce.space.parameters import MAX_INTEGER

names = st.text(min_size=1, max_size=8)
units = st.floats(0, 1)
scalars = st.text(max_size=5) | st.integers(-5, 5) | st.booleans() | st.floats(-5, 5)


@st.composite
def floats(draw: st.DrawFn, stepped: bool | None = None) -> Float:
    log = draw(st.booleans())
    low = draw(st.floats(1e-8, 1e4) if log else st.floats(-1e4, 1e4))
    # a range narrow against its distance from 0 has fewer than 12 digits of u to give back
    high = low + max(abs(low), 1e-3) * draw(st.floats(0.1, 1e6))
    if stepped is None:
        stepped = draw(st.booleans())
    steps = draw(st.integers(2, 50) | st.integers(2, 10**6)) if stepped else None
    return Float(draw(names), low, high, log, steps)


@st.composite
def integers(draw: st.DrawFn, most: int = MAX_INTEGER) -> Integer:
    log = draw(st.booleans())
    low = draw(st.integers(1 if log else -most, most - 1) | st.integers(1, 3))
    high = draw(st.integers(low + 1, most) | st.integers(low + 1, min(low + 9, most)))
    divisors = [s for s in (2, 3, 32) if (high - low) % s == 0 and high - low > s and not log]
    return Integer(draw(names), low, high, log, draw(st.sampled_from([None, *divisors])))


@st.composite
def categories(draw: st.DrawFn) -> Category:
    choices = st.lists(scalars, min_size=2, max_size=6, unique_by=lambda c: (type(c) is bool, c))
    return Category(draw(names), tuple(draw(choices)))


parameters = floats() | integers() | categories()
discrete = floats(stepped=True) | integers() | categories()
spaces = st.lists(parameters, min_size=1, max_size=4, unique_by=lambda p: p.name).map(Space)


@st.composite
def small_spaces(draw: st.DrawFn) -> Space:
    small = st.one_of(
        st.builds(Float, names, st.just(-1), st.just(2), steps=st.integers(2, 6)),
        st.builds(Float, names, st.just(0.1), st.just(2), st.just(True), st.integers(2, 6)),
        st.builds(Integer, names, st.integers(1, 9), st.integers(10, 14), st.booleans()),
        categories(),
    )
    listed = st.lists(small, min_size=1, max_size=4, unique_by=lambda p: p.name)
    space = Space(draw(listed))
    assume(space.finite)
    return space


def coordinates(draw: st.DrawFn, width: int) -> NDArray[np.float64]:
    return np.array(draw(st.lists(units, min_size=width, max_size=width)))


def same(a: object, b: object) -> bool:
    return type(a) is type(b) and a == b


def inside(p: Parameter, value: Any) -> bool:
    if isinstance(p, Category):
        return any(value is choice for choice in p.choices)
    return type(value) is type(p.low) and bool(p.low <= value <= p.high)


@given(st.data(), discrete)
def test_every_discrete_value_comes_back_from_the_cube(data: st.DataObject, p: Parameter) -> None:
    value: Any
    if isinstance(p, Category):
        value = data.draw(st.sampled_from(p.choices))
    elif isinstance(p, Integer):
        value = p.low + (p.step or 1) * data.draw(st.integers(0, p.size - 1))
    else:
        steps = p.steps or 0
        value = p.decode([data.draw(st.integers(0, steps - 1)) / (steps - 1)])
    assert same(p.decode(p.encode(value)), value)


@given(st.data(), floats(stepped=False))
def test_every_real_value_comes_back_up_to_rounding(data: st.DataObject, p: Float) -> None:
    value = data.draw(st.floats(p.low, p.high))
    back = p.decode(p.encode(value))
    assert math.isclose(back, value, rel_tol=1e-12, abs_tol=1e-12 * (p.high - p.low))


@given(st.data(), discrete)
def test_decoding_a_discrete_value_again_gives_that_value(
    data: st.DataObject, p: Parameter
) -> None:
    value = p.decode(data.draw(st.composite(coordinates)(p.width)))
    assert same(p.decode(p.encode(value)), value)


@given(st.data(), spaces)
def test_snap_is_where_decoded_values_sit(data: st.DataObject, space: Space) -> None:
    u = data.draw(st.composite(coordinates)(space.dims))
    snapped = space.snap(u)
    np.testing.assert_allclose(space.encode(space.decode(u)), snapped, rtol=0, atol=1e-12)
    again = space.decode(snapped)
    assert all(same(v, again[name]) for name, v in space.decode(u).items())


@given(st.data(), spaces)
def test_snap_is_idempotent_and_stays_in_the_cube(data: st.DataObject, space: Space) -> None:
    wild = st.lists(st.floats(-2, 3), min_size=space.dims, max_size=space.dims)
    u = np.array(data.draw(st.lists(wild, min_size=1, max_size=3)))
    snapped = space.snap(u)
    assert ((snapped >= 0) & (snapped <= 1)).all()
    np.testing.assert_array_equal(space.snap(snapped), snapped)


@given(st.data(), spaces)
def test_snap_of_a_batch_is_snap_of_each_point(data: st.DataObject, space: Space) -> None:
    rows = [data.draw(st.composite(coordinates)(space.dims)) for _ in range(3)]
    batch = space.snap(np.array(rows)[:, None])
    for row, snapped in zip(rows, batch, strict=True):
        np.testing.assert_array_equal(space.snap(row), snapped[0])


@given(st.data(), spaces)
def test_decoded_values_are_inside_the_space(data: st.DataObject, space: Space) -> None:
    wild = st.lists(st.floats(allow_nan=False), min_size=space.dims, max_size=space.dims)
    values = space.decode(np.array(data.draw(wild)))
    assert all(inside(p, values[p.name]) for p in space.parameters)


@given(names, st.floats(allow_nan=False, allow_infinity=False), st.data())
def test_a_float_never_leaves_even_an_awkward_range(
    name: str, low: float, data: st.DataObject
) -> None:
    high = data.draw(st.floats(low, allow_infinity=False))
    assume(low < high and math.isfinite(high - low))
    log = low > 0 and math.isfinite(high / low) and data.draw(st.booleans())
    assert low <= Float(name, low, high, log).decode([data.draw(units)]) <= high


@given(st.integers(-50, 50), st.integers(1, 40), st.integers(1, 7))
def test_uniform_coordinates_hit_every_integer_equally_often(low: int, gap: int, per: int) -> None:
    n = Integer("n", low, low + gap)
    cells = (gap + 1) * per
    hits = [n.decode([(j + 0.5) / cells]) for j in range(cells)]
    assert hits == [low + j // per for j in range(cells)]


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_uniform_coordinates_hit_every_choice_equally_often(width: int, seed: int) -> None:
    c = Category("c", tuple(f"choice {j}" for j in range(width)))
    # all rotations of a point are equally likely; each makes another choice the winner
    u = np.random.default_rng(seed).random(width)
    hits = [c.decode(np.roll(u, shift)) for shift in range(width)]
    assert sorted(map(str, hits)) == sorted(map(str, c.choices))


@given(small_spaces())
def test_points_and_index_are_inverse(space: Space) -> None:
    points = space.points()
    assert points.shape == (space.size, space.dims)
    np.testing.assert_array_equal(space.index(points), np.arange(len(points)))
    np.testing.assert_array_equal(space.snap(points), points)


@given(st.data(), small_spaces())
def test_index_is_the_row_of_the_snapped_point(data: st.DataObject, space: Space) -> None:
    u = data.draw(st.composite(coordinates)(space.dims))
    np.testing.assert_array_equal(space.points()[int(space.index(u))], space.snap(u))


@given(spaces)
def test_a_space_comes_back_from_json(space: Space) -> None:
    written = json.dumps(space.to_dict(), allow_nan=False)
    back = Space.from_dict(json.loads(written))
    assert back == space
    assert hash(back) == hash(space)
    assert json.dumps(back.to_dict()) == written
