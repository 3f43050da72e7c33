from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sottovoce.errors import InvalidInput, SpaceError
from sottovoce.space import MAX_POINTS, Category, Float, Integer, Parameter, Space
from sottovoce.space.parameters import MAX_INTEGER
from sottovoce.space.regions import equal_boxes

SMALL = Space(
    [
        Integer("layers", 1, 3),
        Category("kernel", ("rbf", "linear")),
        Float("rate", 0.001, 0.1, log=True, steps=3),
    ]
)
MIXED = Space(
    [Float("C", 1e-4, 10), Category("kernel", ("rbf", "linear", "poly")), Integer("depth", 1, 8)]
)


def fails(message: str, call: Callable[[], object]) -> None:
    with pytest.raises(SpaceError) as caught:
        call()
    assert message in str(caught.value)


# construction


@pytest.mark.parametrize("name", ["", 3, None, b"x"])
def test_a_name_must_be_a_non_empty_str(name: Any) -> None:
    for make in (lambda: Float(name, 0, 1), lambda: Category(name, ("a", "b"))):
        fails(f"name must be a non-empty str, got name={name!r}", make)


@pytest.mark.parametrize(
    "low", [math.nan, math.inf, -math.inf, True, "0", None, 1j, 10**400, np.bool_(True), [0]]
)
def test_a_bound_of_a_float_must_be_a_finite_number(low: Any) -> None:
    fails(f"low must be a finite number, got low={low!r}", lambda: Float("x", low, 1))
    fails(f"high must be a finite number, got high={low!r}", lambda: Float("x", 0, low))


@pytest.mark.parametrize("low", [0.5, True, "0", None, math.nan, math.inf, np.bool_(True)])
def test_a_bound_of_an_integer_must_be_an_integer(low: Any) -> None:
    fails(f"low must be an integer, got low={low!r}", lambda: Integer("n", low, 9))
    fails(f"high must be an integer, got high={low!r}", lambda: Integer("n", -9, low))


@pytest.mark.parametrize("kind", [Float, Integer])
def test_low_must_be_below_high(kind: type[Float] | type[Integer]) -> None:
    fails("parameter 'x': low must be below high, got low=3, high=1", lambda: kind("x", 3, 1))
    fails("low must be below high, got low=2, high=2", lambda: kind("x", 2, 2))


@pytest.mark.parametrize("kind", [Float, Integer])
def test_log_needs_a_positive_low(kind: type[Float] | type[Integer]) -> None:
    fails("log needs low above 0, got low=0", lambda: kind("x", 0, 1, log=True))
    fails("log needs low above 0, got low=-1", lambda: kind("x", -1, 1, log=True))


@pytest.mark.parametrize("kind", [Float, Integer])
@pytest.mark.parametrize("log", [1, "yes", None])
def test_log_must_be_a_bool(kind: type[Float] | type[Integer], log: Any) -> None:
    fails(f"log must be a bool, got log={log!r}", lambda: kind("x", 1, 2, log=log))


@pytest.mark.parametrize("steps", [1, 0, -2, 2.5, 3.0, "3", True])
def test_steps_must_be_an_int_of_at_least_two(steps: Any) -> None:
    rule = f"steps must be an int of at least 2, got steps={steps!r}"
    fails(rule, lambda: Float("x", 0, 1, steps=steps))


def test_steps_too_close_for_floats_are_refused() -> None:
    rule = "steps must be far enough apart to be told from rounding"
    fails(rule, lambda: Float("x", 0, 1, steps=10**9))
    fails(rule, lambda: Float("x", 1, 1 + 1e-12, steps=1000))
    fails(rule, lambda: Float("x", 1, 1 + 1e-12, log=True, steps=1000))
    assert Float("x", 0, 1, steps=10**7).size == 10**7


def test_a_range_that_overflows_is_refused() -> None:
    fails("high - low must be finite", lambda: Float("x", -1e308, 1e308))
    fails("high / low must be finite", lambda: Float("x", 1e-300, 1e300, log=True))


def test_integers_too_large_for_their_own_coordinate_are_refused() -> None:
    rule = f"bounds must be within ±{MAX_INTEGER}"
    fails(rule, lambda: Integer("n", 0, MAX_INTEGER + 1))
    fails(rule, lambda: Integer("n", -MAX_INTEGER - 1, 0))
    assert Integer("n", -MAX_INTEGER, MAX_INTEGER).size == 2 * MAX_INTEGER + 1


@pytest.mark.parametrize("step", [0, -2, 4, 2.0, True, "2"])
def test_a_step_of_integers_must_divide_their_range(step: Any) -> None:
    fails(
        f"step must be an int that divides high - low=10, got {step=}",
        lambda: Integer("n", 0, 10, step=step),
    )


def test_integers_on_a_logarithmic_scale_have_no_step() -> None:
    fails("log needs a step of 1, got step=2", lambda: Integer("n", 2, 8, log=True, step=2))


def test_a_step_of_one_is_none() -> None:
    assert Integer("n", 2, 8, log=True, step=1) == Integer("n", 2, 8, log=True)


def test_a_value_between_the_steps_of_integers_is_refused() -> None:
    rule = "value must be a step of 32 from 32, got value=48"
    fails(rule, lambda: Integer("n", 32, 128, step=32).encode(48))


def test_bounds_and_steps_become_plain_python_numbers() -> None:
    x = Float("x", np.float32(0), np.int64(2), steps=np.int64(5))  # type: ignore[arg-type]
    assert [type(v) for v in (x.low, x.high, x.steps)] == [float, float, int]
    assert x == Float("x", Fraction(0), 2.0, steps=5)  # type: ignore[arg-type]
    n = Integer("n", np.int32(1), 4.0)  # type: ignore[arg-type]
    assert [type(v) for v in (n.low, n.high)] == [int, int]
    assert n == Integer("n", 1, 4)


def test_a_negative_zero_bound_is_written_as_zero() -> None:
    assert json.dumps(Space([Float("x", -0.0, 1)]).to_dict()) == json.dumps(
        Space([Float("x", 0, 1)]).to_dict()
    )


@pytest.mark.parametrize("choices", ["ab", {"a", "b"}, 3, None, b"ab"])
def test_choices_must_be_a_tuple_or_list(choices: Any) -> None:
    fails("choices must be a tuple or list", lambda: Category("c", choices))


@pytest.mark.parametrize("choice", [None, (1, 2), [1], 1j, np.int64(1), math.nan, math.inf])
def test_a_choice_must_be_of_an_allowed_type(choice: Any) -> None:
    rule = f"a choice must be a str, int, finite float or bool, got choice={choice!r}"
    fails(rule, lambda: Category("c", ("a", choice)))


def test_a_category_needs_two_choices() -> None:
    fails("choices must be at least 2, got choices=('a',)", lambda: Category("c", ("a",)))
    fails("choices must be at least 2, got choices=()", lambda: Category("c", ()))


@pytest.mark.parametrize("choices", [("a", "b", "a"), (1, 2, 1), (1, 1.0), (True, False, True)])
def test_choices_must_differ(choices: Any) -> None:
    fails("choices must all differ, got choices=", lambda: Category("c", choices))


def test_choices_may_come_as_a_list() -> None:
    assert Category("c", ["a", "b"]) == Category("c", ("a", "b"))  # type: ignore[arg-type]


def test_categories_of_other_types_are_not_equal() -> None:
    assert Category("c", (1, 0)) != Category("c", (True, False))
    assert Category("c", (1, 0)) != Category("c", (1.0, 0.0))
    assert Category("c", (1, 0)) == Category("c", (1, 0))


def test_parameters_and_spaces_are_frozen_and_hashable() -> None:
    for value in (*MIXED.parameters, MIXED):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.name = "other"  # type: ignore[misc, union-attr]
        assert isinstance(hash(value), int)


def test_a_space_error_is_also_a_value_error() -> None:
    assert issubclass(SpaceError, InvalidInput)
    with pytest.raises(ValueError, match="low must be below high"):
        Float("x", 1, 0)


# width, size


@pytest.mark.parametrize(
    ("parameter", "width", "size"),
    [
        (Float("x", 0, 1), 1, None),
        (Float("x", 0, 1, steps=5), 1, 5),
        (Integer("n", -2, 3), 1, 6),
        (Integer("n", 32, 128, step=32), 1, 4),
        (Category("c", ("a", "b", "c")), 3, 3),
    ],
)
def test_width_and_size(parameter: Parameter, width: int, size: int | None) -> None:
    assert parameter.width == width
    assert parameter.size == size


# where values sit


@pytest.mark.parametrize(
    ("parameter", "value", "coords"),
    [
        (Float("x", -1, 3), -1, [0]),
        (Float("x", -1, 3), 0, [0.25]),
        (Float("x", -1, 3), np.float32(3), [1]),
        (Float("x", 1e-4, 1, log=True), 0.01, [0.5]),
        (Float("x", 0, 2, steps=5), 1.5, [0.75]),
        (Float("x", 1, 100, log=True, steps=3), 10, [0.5]),
        (Integer("n", 1, 4), 1, [0.125]),
        (Integer("n", 1, 4), np.int64(4), [0.875]),
        (Integer("n", 1, 4), 2.0, [0.375]),
        (Integer("n", 32, 128, step=32), 96, [0.625]),
        (Category("c", ("a", "b", "c")), "b", [0, 1, 0]),
        (Category("c", (1, True, "1")), 1, [1, 0, 0]),
        (Category("c", (1, True, "1")), True, [0, 1, 0]),
        (Category("c", (1, True, "1")), np.bool_(True), [0, 1, 0]),
        (Category("c", (0.5, 2)), np.int32(2), [0, 1]),
    ],
)
def test_a_value_sits_where_it_should(parameter: Parameter, value: Any, coords: Any) -> None:
    found = parameter.encode(value)
    assert found.dtype == np.float64
    assert found.shape == (parameter.width,)
    np.testing.assert_allclose(found, coords, rtol=0, atol=1e-15)


def test_an_integer_on_a_log_scale_sits_at_the_centre_of_its_cell() -> None:
    n = Integer("n", 1, 8, log=True)
    first, last = math.log(0.5), math.log(8.5)
    for v in range(1, 9):
        centre = (math.log(v - 0.5) + math.log(v + 0.5)) / 2
        np.testing.assert_allclose(n.encode(v), [(centre - first) / (last - first)], rtol=1e-14)


def test_an_integer_on_a_log_scale_gets_the_share_of_its_cell() -> None:
    n = Integer("n", 1, 8, log=True)
    for v in range(1, 8):
        edge = (math.log(v + 0.5) - math.log(0.5)) / (math.log(8.5) - math.log(0.5))
        assert n.decode([edge - 1e-12]) == v
        assert n.decode([edge + 1e-12]) == v + 1


def test_decoded_values_are_plain_python_objects() -> None:
    assert type(Float("x", 0, 1).decode(np.array([0.5]))) is float
    assert type(Float("x", 0, 1, steps=3).decode([0.5])) is float
    assert type(Integer("n", 0, 1, log=False).decode(np.array([0.5]))) is int
    assert type(Integer("n", 1, 9, log=True).decode(np.array([0.5]))) is int
    name = "a fresh " + str(id(object()))
    assert Category("c", ("a", name)).decode(np.array([0.1, 0.2])) is name


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("steps", [None, 7])
def test_the_ends_of_a_float_decode_and_encode_exactly(log: bool, steps: int | None) -> None:
    # low + (high - low) rounds to below high for the first pair, exp(log) for the second
    for low, high in [(0.82, 1.91), (0.76, 2.07), (0.1, 0.7)]:
        x = Float("x", low, high, log, steps)
        assert x.decode([0.0]) == low
        assert x.decode([1.0]) == high
        assert x.encode(low) == [0]
        assert x.encode(high) == [1]


def test_rounding_does_not_carry_a_float_beyond_its_bound() -> None:
    just_below = math.nextafter(1, 0)
    assert 0.32 + 0.32 * math.expm1(just_below * math.log1p((0.86 - 0.32) / 0.32)) > 0.86
    assert Float("x", 0.32, 0.86, log=True).decode([just_below]) == 0.86


def test_steps_are_equally_spaced() -> None:
    x = Float("x", 1, 10_000, log=True, steps=5)
    values = [x.decode([k / 4]) for k in range(5)]
    np.testing.assert_allclose(values, [1, 10, 100, 1000, 10_000], rtol=1e-14)
    assert x.decode([0.374]) == values[1]
    assert x.decode([0.376]) == values[2]


def test_the_ends_of_the_cube_are_the_first_and_last_integer() -> None:
    for n in (Integer("n", -3, 5), Integer("n", 3, 5, log=True)):
        assert n.decode([0.0]) == n.low
        assert n.decode([1.0]) == n.high


def test_coordinates_are_clipped_to_the_cube() -> None:
    assert Float("x", 2, 4).decode([1.5]) == 4
    assert Float("x", 2, 4).decode([-math.inf]) == 2
    assert Integer("n", 2, 4).decode([7]) == 4
    assert MIXED.decode([-1, 9, 0, 0, 3]) == {"C": 1e-4, "kernel": "rbf", "depth": 8}
    np.testing.assert_array_equal(Float("x", 2, 4).snap([[1.5], [-0.5], [0.3]]), [[1], [0], [0.3]])


def test_a_tie_between_choices_goes_to_the_first() -> None:
    c = Category("c", ("a", "b", "c"))
    assert c.decode([0, 0, 0]) == "a"
    assert c.decode([0, 0.7, 0.7]) == "b"
    np.testing.assert_array_equal(c.snap([[0, 0.7, 0.7], [0.1, 0, 0.2]]), [[0, 1, 0], [0, 0, 1]])


# values outside


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "0.5", None, 10**400, np.zeros(1)])
def test_a_float_refuses_what_is_not_a_finite_number(value: Any) -> None:
    fails(
        f"parameter 'x': value must be a finite number, got value={value!r}",
        lambda: Float("x", 0, 1).encode(value),
    )


@pytest.mark.parametrize(
    "x", [Float("x", 0, 1), Float("x", 0, 1, steps=3), Float("x", 0.1, 1, True)]
)
@pytest.mark.parametrize("value", [-0.01, 1.01, -1e300])
def test_a_float_refuses_values_outside_its_range(x: Float, value: float) -> None:
    fails(f"value must be in the range from {x.low} to 1.0, got value=", lambda: x.encode(value))


def test_a_continuous_float_gives_no_slack_at_its_bounds() -> None:
    x = Float("x", 0.5, 1)
    fails("value must be in the range", lambda: x.encode(math.nextafter(0.5, 0)))
    fails("value must be in the range", lambda: x.encode(math.nextafter(1, 2)))


def test_a_log_range_gives_no_slack_at_a_tiny_lower_end() -> None:
    x = Float("x", 1e-12, 1, log=True, steps=4)
    fails("value must be in the range", lambda: x.encode(0))
    fails("value must be in the range", lambda: x.encode(-1e-12))


@pytest.mark.parametrize("value", [0.3, 0.2500001, 0.25 - 1e-8])
def test_a_float_refuses_values_off_its_steps(value: float) -> None:
    fails(
        "value must be one of the 5 steps from 0.0 to 1.0, got value=",
        lambda: Float("x", 0, 1, steps=5).encode(value),
    )


def test_a_value_may_miss_its_step_by_rounding() -> None:
    tenths = Float("x", 0, 0.3, steps=4)
    assert 0.1 + 0.2 > 0.3
    assert tenths.encode(0.1 + 0.2) == [1]
    assert tenths.encode(0.2 + 1e-11) == [2 / 3]
    assert tenths.encode(-1e-11) == [0]
    far = Float("x", 1e9, 1e9 + 1e-3, steps=3)
    assert far.encode(far.decode([0.5])) == [0.5]


@pytest.mark.parametrize("value", [2.5, True, "2", None, math.nan, np.bool_(True)])
def test_an_integer_refuses_what_is_not_an_integer(value: Any) -> None:
    fails(
        f"parameter 'n': value must be an integer, got value={value!r}",
        lambda: Integer("n", 1, 4).encode(value),
    )


@pytest.mark.parametrize("value", [0, 5, -(10**30)])
def test_an_integer_refuses_values_outside_its_range(value: int) -> None:
    fails(f"value must be from 1 to 4, got value={value}", lambda: Integer("n", 1, 4).encode(value))


@pytest.mark.parametrize("value", ["A", True, 2, None, ["a"], math.nan, np.array(["a", "b"])])
def test_a_category_refuses_what_is_not_a_choice(value: Any) -> None:
    fails(
        "parameter 'c': value must be one of ('a', 'b', 1), got value=",
        lambda: Category("c", ("a", "b", 1)).encode(value),
    )


# the space


@pytest.mark.parametrize("parameters", [[], (), "ab", 3, None, ["lr"], Float("x", 0, 1)])
def test_a_space_needs_a_sequence_of_parameters(parameters: Any) -> None:
    rule = "parameters must be a sequence of one or more Float, Integer or Category"
    fails(rule, lambda: Space(parameters))


def test_names_must_be_unique() -> None:
    twice: list[Parameter] = [Float("x", 0, 1), Integer("n", 0, 1), Integer("x", 0, 1)]
    fails("names of parameters must all differ, got repeated=['x']", lambda: Space(twice))


def test_a_space_knows_its_shape() -> None:
    assert MIXED.names == ("C", "kernel", "depth")
    assert MIXED.dims == 5
    assert MIXED.splittable == (0, 4)
    assert MIXED.size is None
    assert not MIXED.finite
    assert SMALL.size == 18
    assert SMALL.finite
    assert isinstance(MIXED.parameters, tuple)
    assert Space(list(MIXED.parameters)) == MIXED


def test_regions_may_cut_only_the_numbers_of_a_space() -> None:
    assert equal_boxes(4, MIXED.dims, MIXED.splittable).splits == (2, 1, 1, 1, 2)


def test_a_space_of_more_points_than_the_limit_is_not_finite() -> None:
    assert Space([Integer("n", 1, MAX_POINTS)]).finite
    large = Space([Integer("n", 0, MAX_POINTS)])
    assert large.size == MAX_POINTS + 1
    assert not large.finite
    rule = f"size must be at most 2048 to list points, got size={MAX_POINTS + 1}"
    fails(rule, large.points)
    fails(rule, lambda: large.index([[0.5]]))
    fails("got size=None", MIXED.points)


def test_points_are_listed_with_the_first_parameter_slowest() -> None:
    points = SMALL.points()
    assert points.shape == (18, 4)
    assert points.dtype == np.float64
    values = [tuple(SMALL.decode(p).values()) for p in points]
    assert values[0] == (1, "rbf", 0.001)
    assert values[2] == (1, "rbf", 0.1)
    assert values[3] == (1, "linear", 0.001)
    assert values[6] == (2, "rbf", 0.001)
    assert len(set(values)) == 18


def test_index_finds_the_row_of_points_that_a_point_snaps_to() -> None:
    u = np.array([[[0.9, 0.2, 0.3, 0.6]], [[0.0, 1.0, 0.0, 0.0]]])
    rows = SMALL.index(u)
    assert rows.shape == (2, 1)
    assert rows.dtype == np.int64
    assert rows.tolist() == [[2 * 6 + 1 * 3 + 1], [0]]
    np.testing.assert_array_equal(SMALL.points()[rows], SMALL.snap(u))


def test_encode_and_decode_go_by_name() -> None:
    u = MIXED.encode({"depth": 8, "kernel": "linear", "C": 10})
    np.testing.assert_allclose(u, [1, 0, 1, 0, 15 / 16])
    assert MIXED.decode(u) == {"C": 10.0, "kernel": "linear", "depth": 8}
    assert list(MIXED.decode(u)) == ["C", "kernel", "depth"]


def test_a_misspelt_name_is_named_with_the_nearest_known_one() -> None:
    params = {"C": 1, "kernle": "rbf", "depth": 2}
    fails("unknown parameter 'kernle': did you mean 'kernel'?", lambda: MIXED.encode(params))


def test_an_unknown_name_far_from_all_lists_the_known_ones() -> None:
    params = {"C": 1, "kernel": "rbf", "depth": 2, "momentum": 0}
    fails("unknown parameter 'momentum': known are C, kernel, depth", lambda: MIXED.encode(params))
    bad: Any = {**params, 3: 4}
    del bad["momentum"]
    fails("unknown parameter 3", lambda: MIXED.encode(bad))


def test_missing_names_are_named() -> None:
    fails(
        "every parameter must be given, missing ['C', 'depth']",
        lambda: MIXED.encode({"kernel": "rbf"}),
    )


@pytest.mark.parametrize("params", [None, [("C", 1)], "C"])
def test_values_must_come_as_a_mapping(params: Any) -> None:
    fails("a mapping is needed, got", lambda: MIXED.encode(params))


def test_an_error_in_a_value_names_its_parameter() -> None:
    fails(
        "parameter 'depth': value must be from 1 to 8, got value=9",
        lambda: MIXED.encode({"C": 1, "kernel": "rbf", "depth": 9}),
    )


@pytest.mark.parametrize("shape", [(), (4,), (6,), (1, 5), (5, 1)])
def test_decode_refuses_the_wrong_shape(shape: tuple[int, ...]) -> None:
    fails(
        f"coordinates must have shape (5,), got shape={shape}",
        lambda: MIXED.decode(np.zeros(shape)),
    )


@pytest.mark.parametrize("shape", [(), (4,), (5, 4)])
def test_snap_and_index_refuse_the_wrong_shape(shape: tuple[int, ...]) -> None:
    fails(
        f"coordinates must have shape (..., 5), got shape={shape}",
        lambda: MIXED.snap(np.zeros(shape)),
    )
    fails("coordinates must have shape (..., 4)", lambda: SMALL.index(np.zeros((*shape, 3))))


def test_a_parameter_refuses_the_wrong_shape() -> None:
    c = Category("c", ("a", "b"))
    fails("parameter 'c': coordinates must have shape (2,)", lambda: c.decode([0, 1, 0]))
    fails("parameter 'c': coordinates must have shape (..., 2)", lambda: c.snap([0, 1, 0]))


def test_nan_coordinates_are_refused() -> None:
    u = np.array([0, math.nan, 0, 0, 0])
    fails("coordinates must not be NaN", lambda: MIXED.decode(u))
    fails("coordinates must not be NaN", lambda: MIXED.snap(u[None]))
    fails("coordinates must not be NaN", lambda: SMALL.index(u[:4]))
    fails("coordinates must not be NaN", lambda: Integer("n", 0, 1).decode([math.nan]))


@pytest.mark.parametrize("u", ["half", None, [[0], [0, 1]], {"C": 1}])
def test_coordinates_must_be_numbers(u: Any) -> None:
    fails("space: coordinates must", lambda: MIXED.decode(u))


def test_snap_keeps_the_batch_axes_and_leaves_its_argument_alone() -> None:
    u = np.full((2, 3, 5), 0.4)
    u[..., 1] = 2
    before = u.copy()
    assert MIXED.snap(u).shape == (2, 3, 5)
    assert MIXED.snap(np.zeros((0, 5))).shape == (0, 5)
    np.testing.assert_array_equal(u, before)
    np.testing.assert_allclose(MIXED.snap(u)[1, 2], [0.4, 1, 0, 0, 7 / 16])


class Foreign:
    """Just enough of another array library to pass through `Float.snap`."""

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)
        self.shape = self.data.shape

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return SimpleNamespace(
            __name__="foreign",
            isnan=lambda x: Foreign(np.isnan(x.data)),
            any=lambda x: x.data.any(),
            clip=lambda x, low, high: Foreign(np.clip(x.data, low, high)),
        )


def test_arrays_of_another_library_stay_with_it() -> None:
    snapped = Float("x", 0, 1).snap(Foreign([[0.5], [2.0]]))
    assert isinstance(snapped, Foreign)
    np.testing.assert_array_equal(snapped.data, [[0.5], [1.0]])


@pytest.mark.parametrize("space", [SMALL, MIXED, Space([Integer("n", 1, 9, log=True)])])
def test_a_strict_array_library_gives_the_same_answers(space: Space) -> None:
    strict = pytest.importorskip("array_api_strict")
    u = np.random.default_rng(0).random((4, 3, space.dims))
    np.testing.assert_allclose(np.asarray(space.snap(strict.asarray(u))), space.snap(u))
    assert space.decode(strict.asarray(u[0, 0])) == space.decode(u[0, 0])
    if space.finite:
        np.testing.assert_array_equal(np.asarray(space.index(strict.asarray(u))), space.index(u))


# plain data


def test_a_space_is_written_as_plain_data_in_a_fixed_order() -> None:
    space = Space(
        [
            Float("rate", 0.001, 1, log=True),
            Float("drop", 0, 1, steps=5),
            Integer("n", 1, 4),
            Category("c", ("a", 1, True, 0.5)),
        ]
    )
    assert json.dumps(space.to_dict()) == (
        '{"parameters": ['
        '{"type": "float", "name": "rate", "low": 0.001, "high": 1.0, "log": true}, '
        '{"type": "float", "name": "drop", "low": 0.0, "high": 1.0, "log": false, "steps": 5}, '
        '{"type": "integer", "name": "n", "low": 1, "high": 4, "log": false}, '
        '{"type": "category", "name": "c", "choices": ["a", 1, true, 0.5]}]}'
    )
    assert Space.from_dict(space.to_dict()) == space


def table(**changes: Any) -> dict[str, Any]:
    plain = {"type": "float", "name": "x", "low": 0, "high": 1} | changes
    return {"parameters": [{k: v for k, v in plain.items() if v != "absent"}]}


def test_optional_keys_may_be_left_out() -> None:
    assert Space.from_dict(table()) == Space([Float("x", 0, 1)])
    assert Space.from_dict(table(steps=None)) == Space([Float("x", 0, 1)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "key of the space: a mapping is needed, got None"),
        ({}, "every key of the space must be given, missing ['parameters']"),
        ({"paramters": []}, "unknown key of the space 'paramters': did you mean 'parameters'?"),
        ({"parameters": "x"}, "parameters must be a list, got 'x'"),
        ({"parameters": {"x": 1}}, "parameters must be a list, got {'x': 1}"),
        ({"parameters": ["x"]}, "key of parameters[0]: a mapping is needed, got 'x'"),
        ({"parameters": []}, "parameters must be a sequence of one or more"),
        (table(hihg=1), "unknown key of parameters[0] 'hihg': did you mean 'high'?"),
        (table(tpye=1, type="absent"), "'tpye': did you mean 'type'?"),
        (table(type="absent"), "every key of parameters[0] must be given, missing ['type']"),
        (table(type="flaot"), "unknown type of parameters[0] 'flaot': did you mean 'float'?"),
        (table(type=[1]), "unknown type of parameters[0] [1]: known are float, integer, category"),
        (
            table(type="integer", steps=3),
            "unknown key of parameters[0] 'steps': did you mean 'step'?",
        ),
        (table(choices=["a", "b"]), "unknown key of parameters[0] 'choices': known are type, name"),
        (table(low="absent"), "every key of parameters[0] must be given, missing ['low']"),
        (table(high=0), "parameter 'x': low must be below high, got low=0, high=0"),
        (table(_types=3), "unknown key of parameters[0] '_types'"),
    ],
)
def test_bad_plain_data_is_refused_by_name(data: Any, message: str) -> None:
    fails(message, lambda: Space.from_dict(data))
