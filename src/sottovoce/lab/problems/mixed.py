"""Functions of mixed spaces: floats, integers and choices (see `shaped`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.lab.problems.shaped import Coordinates, FloatArray, ShapedFunction
from sottovoce.space import Category, Float, Integer, Space

_RATE = Float("rate", 1e-5, 1.0, log=True)
_SWITCH = (False, True)


def _of(table: tuple[float, ...], index: FloatArray) -> FloatArray:
    """What a table says of each choice."""
    return np.asarray(table)[np.asarray(index, dtype=np.int64)]


@dataclass(frozen=True, kw_only=True)
class Choices(ShapedFunction):
    """A choice of four, each with a hill of its own; one of them heeds one parameter less."""

    kind: ClassVar[str] = "choices"
    space: ClassVar[Space] = Space(
        [
            Category("kernel", ("rbf", "poly", "sigmoid", "linear")),
            Float("C", 1e-3, 1e3, log=True),
            Float("gamma", 1e-4, 1e1, log=True),
        ]
    )
    heights: ClassVar[tuple[float, ...]] = (1.0, 0.93, 0.8, 0.88)
    centres: ClassVar[tuple[tuple[float, ...], ...]] = (
        (0.6, 0.3, 0.7, 0.45),
        (0.35, 0.6, 0.2, 0.5),
    )
    narrow: ClassVar[tuple[tuple[float, ...], ...]] = ((4, 8, 6, 3), (14, 10, 8, 0))

    def score(self, z: Coordinates) -> FloatArray:
        """The hill of the choice."""
        kernel = z["kernel"]
        away = np.zeros_like(kernel)
        for name, centres, narrow in zip(("C", "gamma"), self.centres, self.narrow, strict=True):
            away = away + _of(narrow, kernel) * (z[name] - _of(centres, kernel)) ** 2
        return np.asarray(_of(self.heights, kernel) * np.exp(-away))

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The top of its hill."""
        return {
            "C": _of(self.centres[0], z["kernel"]),
            "gamma": _of(self.centres[1], z["kernel"]),
        }


@dataclass(frozen=True, kw_only=True)
class Bowl(ShapedFunction):
    """Six parameters of all kinds, each of which matters by itself, some more than others."""

    kind: ClassVar[str] = "bowl"
    space: ClassVar[Space] = Space(
        [
            Float("x", -5.0, 5.0),
            _RATE,
            Integer("units", 1, 32),
            Integer("layers", 1, 6),
            Category("activation", ("relu", "tanh", "gelu")),
            Category("bias", _SWITCH),
        ]
    )

    def score(self, z: Coordinates) -> FloatArray:
        """A sum of squares, and of what a wrong choice costs."""
        loss = 2 * (z["x"] - 0.7) ** 2 + 2 * (z["rate"] - 0.35) ** 2
        loss = loss + 1.5 * (z["units"] - 0.55) ** 2 + (z["layers"] - 0.4) ** 2
        loss = loss + _of((0.3, 0.0, 0.15), z["activation"]) + _of((0.2, 0.0), z["bias"])
        return np.asarray(1 - loss / 3.2)

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The bottom of the bowl."""
        return {"x": 0.7, "rate": 0.35}


@dataclass(frozen=True, kw_only=True)
class Switches(ShapedFunction):
    """Three switches that lean on each other, a small integer, and a float."""

    kind: ClassVar[str] = "switches"
    space: ClassVar[Space] = Space(
        [
            Category("a", _SWITCH),
            Category("b", _SWITCH),
            Category("c", _SWITCH),
            Integer("layers", 1, 4),
            Float("x", 0.0, 1.0),
        ]
    )

    def score(self, z: Coordinates) -> FloatArray:
        """a on, b off and c on is best; b is without effect while a is off."""
        a, b, c = z["a"], z["b"], z["c"]
        wrong = 0.3 * (1 - a) + 0.2 * a * b + 0.15 * np.abs(c - a)
        return np.asarray(1 - wrong - 0.3 * np.abs(z["layers"] - 0.6) - 0.5 * (z["x"] - 0.3) ** 2)

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The same for all."""
        return {"x": 0.3}


@dataclass(frozen=True, kw_only=True)
class Memory(ShapedFunction):
    """More is better, until it fits no longer: a network's width, depth, batch, and rate."""

    kind: ClassVar[str] = "memory"
    space: ClassVar[Space] = Space(
        [
            Integer("width", 16, 256, step=16),
            Integer("depth", 1, 8),
            Category("batch", (16, 32, 64, 128)),
            _RATE,
        ]
    )

    def score(self, z: Coordinates) -> FloatArray:
        """What is gained by width and depth levels off; the rate must suit them."""
        load = z["width"] + 0.5 * z["depth"] + 0.15 * z["batch"]
        size = 0.35 * (1 - np.exp(-3 * z["width"])) + 0.25 * (1 - np.exp(-2.5 * z["depth"]))
        rate = 0.4 * np.exp(-(((z["rate"] - self._rate(z)) / 0.15) ** 2))
        return np.where(load > 1.3, np.nan, size + rate - _of((0.04, 0.0, 0.01, 0.03), z["batch"]))

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The rate that suits."""
        return {"rate": self._rate(z)}

    def _rate(self, z: Coordinates) -> FloatArray:
        return np.asarray(0.65 - 0.25 * z["width"] + 0.08 * z["batch"])


@dataclass(frozen=True, kw_only=True)
class Pipeline(ShapedFunction):
    """Eight parameters of a pipeline; which of them matter depends on the model chosen."""

    kind: ClassVar[str] = "pipeline"
    space: ClassVar[Space] = Space(
        [
            Category("scaler", ("none", "standard", "quantile")),
            Category("model", ("linear", "tree", "net")),
            Category("balanced", _SWITCH),
            Integer("depth", 1, 10),
            Integer("components", 2, 20),
            _RATE,
            Float("penalty", 1e-6, 1e2, log=True),
            Float("sample", 0.2, 1.0),
        ]
    )

    def score(self, z: Coordinates) -> FloatArray:
        """Each model has a height, a scaler it suits, and parameters it heeds."""
        model = z["model"]
        suits = _of((0.1, 0.0, 0.05, 0.0, 0.0, 0.02, 0.2, 0.03, 0.0), 3 * model + z["scaler"])
        loss = suits + 0.03 * (1 - z["balanced"]) + 0.25 * (z["components"] - 0.4) ** 2
        loss = loss + _of((0.0, 0.5, 0.3), model) * (z["depth"] - 0.55) ** 2
        loss = loss + _of((0.0, 0.0, 0.8), model) * (z["rate"] - 0.45) ** 2
        loss = loss + _of((0.5, 0.0, 0.3), model) * (z["penalty"] - 0.6) ** 2
        return np.asarray(_of((0.82, 0.93, 1.0), model) - loss - 0.1 * (z["sample"] - 0.7) ** 2)

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The same for all models; some do not heed them."""
        return {"rate": 0.45, "penalty": 0.6, "sample": 0.7}
