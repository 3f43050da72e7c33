"""The kinds of parameters, each with its own coordinates of the unit cube.

Symbols: u coordinates in [0, 1], (..., width); k the place of a value among the values of its
parameter (0, 1, ...). A number takes one coordinate, a category one per choice (one-hot).
`snap` follows the array API standard; `encode` gives NumPy arrays.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from sottovoce.arrays import Array, FloatArray, array_namespace
from sottovoce.space.checks import in_cube, require

MAX_INTEGER = 2**40  # up to it, every integer of a range has a float coordinate of its own
_SCALARS = (str, int, float, bool)


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and type(value) is not bool  # a bool is an int to Python


def _key(choice: object) -> tuple[bool, object]:
    return type(choice) is bool, choice  # 1 == True, so equality alone would mix them up


@dataclass(frozen=True)
class _Parameter(ABC):
    """What all kinds share. Methods with an underscore take coordinates already clipped."""

    name: str

    def __post_init__(self) -> None:
        ok = isinstance(self.name, str) and self.name != ""
        self._check(ok, f"name must be a non-empty str, got name={self.name!r}")

    def _check(self, condition: bool, message: str) -> None:
        require(condition, f"parameter {self.name!r}: {message}")

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def width(self) -> int:
        """How many coordinates of the cube the parameter takes."""
        return 1

    @abstractmethod
    def _index(self, u: Array) -> Array:
        """k of the value at each point, as floats: (..., width) -> (...)."""

    @abstractmethod
    def _place(self, k: Array) -> Array:
        """Where the k-th value sits: (...) floats -> (..., width)."""

    @abstractmethod
    def _decode(self, u: Array) -> Any:
        """The value at one point, (width,)."""

    def _snap(self, u: Array) -> Array:
        return self._place(self._index(u))

    def snap(self, coords: Array) -> Array:
        """Move each point to where the value it decodes to sits: (..., width) -> the same."""
        return self._snap(in_cube(f"parameter {self.name!r}", coords, self.width))

    def decode(self, coords: Array) -> Any:
        """The value at one point, (width,)."""
        return self._decode(in_cube(f"parameter {self.name!r}", coords, self.width, single=True))


@dataclass(frozen=True)
class _Number(_Parameter):
    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, log = self.low, self.high, self.log
        self._set(low=self._number("low", low), high=self._number("high", high))
        self._check(self.low < self.high, f"low must be below high, got {low=}, {high=}")
        self._check(isinstance(log, bool), f"log must be a bool, got {log=}")
        self._check(not log or self.low > 0, f"log needs low above 0, got {low=}")

    @abstractmethod
    def _number(self, label: str, value: object) -> float:
        """`value` as a plain number of the right kind."""

    @abstractmethod
    def _range(self) -> tuple[float, float]:
        """Where u = 0 lies, and how far beyond it u = 1."""

    # Offsets from the lower end, not logarithms of values: a range far from 0 keeps its digits.
    def _to_unit(self, offset: Array, xp: Any) -> Array:
        start, length = self._range()
        if self.log:
            return xp.log1p(offset / start) / math.log1p(length / start)
        return offset / length

    def _from_unit(self, x: Array, xp: Any) -> Array:
        start, length = self._range()
        if self.log:
            return start * xp.expm1(x * math.log1p(length / start))
        return x * length


@dataclass(frozen=True)
class Float(_Number):
    """A real number in a range.

    Args:
        name: its key in the parameters of a trial.
        low, high: the ends, included.
        log: whether it is spread evenly in the logarithm.
        steps: how many values it takes, equally spaced (in the logarithm if `log`); None: any.

    Example:
        >>> Float("rate", 1.0, 4.0, log=True, steps=3).decode([0.5])
        2.0
    """

    steps: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, steps = self.low, self.high, self.steps
        rule = "high / low must be finite" if self.log else "high - low must be finite"
        finite = math.isfinite(high / low if self.log else high - low)
        self._check(finite, f"{rule}, got {low=}, {high=}")
        if steps is not None:
            ok = _is_number(steps, Integral) and steps >= 2
            self._check(ok, f"steps must be an int of at least 2, got {steps=}")
            apart = 4 * (steps - 1) * (1e-9 + self.rounding) < 1
            rule = "steps must be far enough apart to be told from rounding"
            self._check(apart, f"{rule}, got {low=}, {high=}, {steps=}")
            self._set(steps=int(steps))

    @property
    def size(self) -> int | None:
        """The number of steps; None if continuous."""
        return self.steps

    def encode(self, value: object) -> FloatArray:
        """Where `value` sits, (1,)."""
        v, ends = self._number("value", value), f"from {self.low!r} to {self.high!r}"
        inside = min(max(v, self.low), self.high)
        # an end step may miss its bound by rounding
        slack = (1e-9 + self.rounding) * (inside if self.log else self.high - self.low)
        ok = abs(v - inside) <= (slack if self.steps else 0)
        self._check(ok, f"value must be in the range {ends}, got {value=}")
        u = np.asarray([self._to_unit(inside - self.low, math)])
        snapped = np.asarray(self._snap(u))
        ok = bool(abs(u - snapped)[0] <= (1e-9 + self.rounding))
        self._check(ok, f"value must be one of the {self.steps} steps {ends}, got {value=}")
        return snapped

    def _number(self, label: str, value: object) -> float:
        try:
            number = float(value) if _is_number(value, Real) else math.nan  # type: ignore[arg-type]
        except OverflowError:  # an int beyond the largest float
            number = math.inf
        ok = math.isfinite(number)
        self._check(ok, f"{label} must be a finite number, got {label}={value!r}")
        return number + 0.0  # -0.0 becomes 0.0, so that equal spaces are written alike

    def _range(self) -> tuple[float, float]:
        return self.low, self.high - self.low

    @property
    def rounding(self) -> float:
        """How far in u a point may come back from a value; a range far from 0 rounds coarsely."""
        return 4 * math.ulp(max(abs(self.low), abs(self.high))) / (self.high - self.low)

    def _decode(self, u: Array) -> float:
        x = float(self._snap(u)[0])
        if x == 1:  # exactly, whatever rounding does
            return self.high
        return min(self.low + float(self._from_unit(x, math)), self.high)

    def _index(self, u: Array) -> Array:
        return array_namespace(u).floor(u[..., 0] * ((self.steps or 2) - 1) + 0.5)

    def _place(self, k: Array) -> Array:
        return k[..., None] / ((self.steps or 2) - 1)

    def _snap(self, u: Array) -> Array:
        return u if self.steps is None else super()._snap(u)


@dataclass(frozen=True)
class Integer(_Number):
    """An integer in a range.

    Integer v owns the cell from v - 0.5 to v + 0.5 and sits at its centre, on a linear scale or,
    with `log`, on a logarithmic one: a uniform u gives every integer its cell's share.

    Args:
        name: its key in the parameters of a trial.
        low, high: the ends, included.
        log: whether it is spread evenly in the logarithm.
        step: it takes only every step-th integer from low to high; None: all.

    Example:
        >>> [Integer("batch", 16, 64, step=16).decode([u]) for u in (0.0, 0.5, 1.0)]
        [16, 48, 64]
    """

    low: int
    high: int
    step: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, step = self.low, self.high, 1 if self.step is None else self.step
        ok = low >= -MAX_INTEGER and high <= MAX_INTEGER
        self._check(ok, f"bounds must be within ±{MAX_INTEGER}, got {low=}, {high=}")
        ok = _is_number(step, Integral) and step >= 1 and (high - low) % step == 0
        self._check(ok, f"step must be an int that divides {high - low=}, got {step=}")
        self._check(not self.log or step == 1, f"log needs a step of 1, got {step=}")
        self._set(step=None if step == 1 else int(step))  # equal spaces are written alike

    @property
    def size(self) -> int:
        """The number of integers in the range."""
        return (self.high - self.low) // (self.step or 1) + 1

    def encode(self, value: object) -> FloatArray:
        """Where `value` sits, (1,)."""
        v, ok = self._number("value", value), f"value must be from {self.low} to {self.high}"
        self._check(self.low <= v <= self.high, f"{ok}, got {value=}")
        k, rest = divmod(v - self.low, self.step or 1)
        self._check(rest == 0, f"value must be a step of {self.step} from {self.low}, got {value=}")
        return np.asarray(self._place(np.asarray(float(k))))

    def _number(self, label: str, value: object) -> int:
        # a whole float is welcome: numbers pass through files and tools that know no integers
        whole = isinstance(value, float | np.floating) and float(value).is_integer()
        ok = whole or _is_number(value, Integral)
        self._check(ok, f"{label} must be an integer, got {label}={value!r}")
        return int(value)  # type: ignore[call-overload, no-any-return]

    def _range(self) -> tuple[float, float]:
        return self.low - 0.5, self.size

    def _decode(self, u: Array) -> int:
        return self.low + (self.step or 1) * int(self._index(u))

    def _index(self, u: Array) -> Array:
        xp = array_namespace(u)
        # in_cube, as u = 1 belongs to the last cell
        return xp.clip(xp.floor(self._from_unit(u[..., 0], xp)), 0.0, self.size - 1.0)

    def _place(self, k: Array) -> Array:
        xp, k = array_namespace(k), k[..., None]
        if self.log:
            return (self._to_unit(k, xp) + self._to_unit(k + 1.0, xp)) / 2
        return self._to_unit(k + 0.5, xp)


@dataclass(frozen=True)
class Category(_Parameter):
    """One of several choices, one coordinate each (one-hot); the largest coordinate wins.

    True and 1 are different choices; 1 and 1.0 are the same one, given twice.

    Args:
        name: its key in the parameters of a trial.
        choices: two or more strings, numbers or booleans that all differ.

    Example:
        >>> Category("kernel", ("rbf", "linear")).encode("linear")
        array([0., 1.])
    """

    choices: tuple[str | int | float | bool, ...]
    # compared, so that Category("a", (1, 2)) is not equal to Category("a", (True, 2))
    _types: tuple[type, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        choices = self.choices
        ok = isinstance(choices, list | tuple)  # a set has no order, a str is one choice
        self._check(ok, f"choices must be a tuple or list, got {choices=}")
        for choice in choices:
            ok = type(choice) in _SCALARS and (type(choice) is not float or math.isfinite(choice))
            self._check(ok, f"a choice must be a str, int, finite float or bool, got {choice=}")
        self._check(len(choices) >= 2, f"choices must be at least 2, got {choices=}")
        distinct = set(map(_key, choices))
        self._check(len(distinct) == len(choices), f"choices must all differ, got {choices=}")
        self._set(choices=tuple(choices), _types=tuple(map(type, choices)))

    @property
    def width(self) -> int:
        """One coordinate per choice."""
        return len(self.choices)

    @property
    def size(self) -> int:
        """The number of choices."""
        return len(self.choices)

    def encode(self, value: object) -> FloatArray:
        """The one-hot coordinates of `value`, (width,)."""
        plain = value.item() if isinstance(value, np.generic) else value
        keys = [_key(choice) for choice in self.choices]
        # others, an array say, may not compare to a plain bool
        ok = isinstance(plain, _SCALARS) and _key(plain) in keys
        self._check(ok, f"value must be one of {self.choices}, got {value=}")
        return np.asarray(self._place(np.asarray(float(keys.index(_key(plain))))))

    def _decode(self, u: Array) -> str | int | float | bool:
        return self.choices[int(self._index(u))]

    def _index(self, u: Array) -> Array:
        xp = array_namespace(u)
        return xp.astype(xp.argmax(u, axis=-1), u.dtype)

    def _place(self, k: Array) -> Array:
        xp = array_namespace(k)
        return xp.stack([xp.astype(k == j, k.dtype) for j in range(self.width)], axis=-1)


Parameter: TypeAlias = Float | Integer | Category
