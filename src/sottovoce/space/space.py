"""The search space, and the unit cube [0, 1]^D it is searched in.

Symbols: D coordinates; u a point of the cube, (..., D); k the place of a value among the values
of its parameter (0, 1, ...). `snap` and `index` follow the array API standard; `encode` and
`points` give NumPy arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import accumulate
from typing import Any

import numpy as np

from sottovoce.arrays import Array, FloatArray, array_namespace
from sottovoce.space.checks import check_keys, check_known, in_cube, require
from sottovoce.space.parameters import Category, Float, Integer, Parameter

__all__ = ["MAX_POINTS", "Category", "Float", "Integer", "Parameter", "Space"]

MAX_POINTS = 2048  # a larger space is searched as a cube, not as a list of its points
_KINDS: dict[str, Any] = {"float": Float, "integer": Integer, "category": Category}


@dataclass(frozen=True)
class Space:
    """The parameters to search over, in the order of their coordinates in the cube.

    Args:
        parameters: one or more of `Float`, `Integer` and `Category`, with names that differ.

    Example:
        >>> space = Space([Float("rate", 0.0, 2.0), Category("kernel", ("rbf", "linear"))])
        >>> space.encode({"rate": 0.5, "kernel": "rbf"})
        array([0.25, 1.  , 0.  ])
        >>> space.decode([0.25, 1.0, 0.0])
        {'rate': 0.5, 'kernel': 'rbf'}
    """

    parameters: Sequence[Parameter]

    def __post_init__(self) -> None:
        parameters = self.parameters
        ok = isinstance(parameters, Sequence) and len(parameters) >= 1
        ok = ok and all(isinstance(p, Parameter) for p in parameters)
        rule = "parameters must be a sequence of one or more Float, Integer or Category"
        require(ok, f"{rule}, got {parameters=}")
        object.__setattr__(self, "parameters", tuple(parameters))
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        require(not repeated, f"names of parameters must all differ, got {repeated=}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(p.name for p in self.parameters)

    @property
    def dims(self) -> int:
        """D, the number of coordinates."""
        return sum(p.width for p in self.parameters)

    @property
    def splittable(self) -> tuple[int, ...]:
        """The coordinates that may be cut into regions: those of numbers, not of categories."""
        return tuple(at.start for p, at in self.blocks() if not isinstance(p, Category))

    @property
    def size(self) -> int | None:
        """The number of points; None if a parameter is continuous."""
        sizes = [p.size for p in self.parameters if p.size is not None]
        return math.prod(sizes) if len(sizes) == len(self.parameters) else None

    @property
    def finite(self) -> bool:
        """Whether there are few enough points to list them all."""
        return self.size is not None and self.size <= MAX_POINTS

    @property
    def continuous(self) -> bool:
        """Whether every point of the cube is a point of the space."""
        return all(isinstance(p, Float) and p.size is None for p in self.parameters)

    @property
    def rounding(self) -> FloatArray:
        """How far each coordinate of a point may come back from its value, (D,)."""
        each = [p.rounding if isinstance(p, Float) else 0.0 for p in self.parameters]
        return np.repeat(np.asarray(each) + 1e-14, [p.width for p in self.parameters])

    def blocks(self) -> list[tuple[Parameter, slice]]:
        """Each parameter with its coordinates of the cube."""
        ends = accumulate(p.width for p in self.parameters)
        return [
            (p, slice(end - p.width, end)) for p, end in zip(self.parameters, ends, strict=True)
        ]

    def _check_finite(self) -> None:
        size = self.size
        require(self.finite, f"size must be at most {MAX_POINTS} to list points, got {size=}")

    def points(self) -> FloatArray:
        """All points of a finite space, (size, D), the first parameter slowest."""
        self._check_finite()
        grid = np.indices([p.size or 0 for p in self.parameters], dtype=np.float64)
        flat = grid.reshape(len(self.parameters), -1)
        return np.concatenate([p._place(k) for p, k in zip(self.parameters, flat, strict=True)], -1)

    def index(self, u: Array) -> Array:
        """The row of `points()` that each point snaps to: (..., D) -> (...) of integers."""
        self._check_finite()
        u = in_cube("space", u, self.dims)
        xp, row = array_namespace(u), 0
        for p, at in self.blocks():
            row = row * (p.size or 0) + xp.astype(p._index(u[..., at]), xp.int64)
        return row

    def snap(self, u: Array) -> Array:
        """Move each point to where the values it decodes to sit: (..., D) -> (..., D)."""
        u = in_cube("space", u, self.dims)
        return array_namespace(u).concat([p._snap(u[..., at]) for p, at in self.blocks()], axis=-1)

    def encode(self, params: Mapping[str, Any]) -> FloatArray:
        """Where the values sit, (D,)."""
        check_keys("parameter", params, self.names)
        return np.concatenate([p.encode(params[p.name]) for p in self.parameters])

    def decode(self, u: Array) -> dict[str, Any]:
        """The values at one point, (D,), by name."""
        u = in_cube("space", u, self.dims, single=True)
        return {p.name: p._decode(u[at]) for p, at in self.blocks()}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON or TOML; equal spaces give the same keys in the same order."""
        return {"parameters": [_to_table(p) for p in self.parameters]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Space:
        """The space that `to_dict`, or a person, wrote."""
        check_keys("key of the space", data, ["parameters"])
        tables = data["parameters"]
        require(isinstance(tables, list | tuple), f"parameters must be a list, got {tables!r}")
        return cls([_from_table(f"parameters[{i}]", table) for i, table in enumerate(tables)])


def _to_table(p: Parameter) -> dict[str, Any]:
    table: dict[str, Any] = {"type": type(p).__name__.lower()}
    for f in fields(p):
        value = getattr(p, f.name)
        if f.init and value is not None:  # TOML has no null
            table[f.name] = list(value) if isinstance(value, tuple) else value
    return table


def _from_table(where: str, table: Any) -> Parameter:
    keys = {kind: [f for f in fields(cls) if f.init] for kind, cls in _KINDS.items()}
    every = dict.fromkeys(f.name for known in keys.values() for f in known)
    check_keys(f"key of {where}", table, ["type"], list(every))
    kind = table["type"]
    check_known(f"type of {where}", kind, list(_KINDS))
    needed = [f.name for f in keys[kind] if f.default is MISSING]
    check_keys(f"key of {where}", table, ["type", *needed], [f.name for f in keys[kind]])
    parameter: Parameter = _KINDS[kind](**{key: table[key] for key in table if key != "type"})
    return parameter
