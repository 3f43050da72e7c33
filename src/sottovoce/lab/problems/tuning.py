"""Functions of numbers alone with the shapes that tuning has (see `shaped`).

Where the parameters' names sound like those of a network, it is to show what the shape is taken
from; nothing is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.lab.problems.shaped import Coordinates, FloatArray, ShapedFunction
from sottovoce.space import Float, Space

_RATE = Float("rate", 1e-5, 1.0, log=True)
_DECAY = Float("decay", 1e-6, 1e-1, log=True)
_DROPOUT = Float("dropout", 0.0, 0.8)
_MOMENTUM = Float("momentum", 0.0, 0.99)


@dataclass(frozen=True, kw_only=True)
class Steep(ShapedFunction):
    """One narrow band, a slope on one side and nearly a wall on the other (4 parameters)."""

    kind: ClassVar[str] = "steep"
    space: ClassVar[Space] = Space([_RATE, _DECAY, _DROPOUT, _MOMENTUM])

    def score(self, z: Coordinates) -> FloatArray:
        """The band leans a little; what else there is matters little."""
        beyond = z["rate"] - 0.55 - 0.15 * (z["decay"] - 0.5)
        band = np.where(beyond < 0, 1 / (1 + (beyond / 0.12) ** 2), np.exp(-((beyond / 0.04) ** 2)))
        rest = 0.3 * (z["decay"] - 0.5) ** 2 + 0.3 * (z["dropout"] - 0.4) ** 2
        return np.asarray(band * (1 - rest - 0.2 * (z["momentum"] - 0.6) ** 2))

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The middle of the band."""
        return {"rate": 0.55, "decay": 0.5, "dropout": 0.4, "momentum": 0.6}


@dataclass(frozen=True, kw_only=True)
class Few(ShapedFunction):
    """Two of six parameters matter, and not apart from each other."""

    kind: ClassVar[str] = "few"
    space: ClassVar[Space] = Space(
        [
            _RATE,
            _DROPOUT,
            _MOMENTUM,
            _DECAY,
            Float("smoothing", 0.0, 0.3),
            Float("warmup", 0.0, 1.0),
        ]
    )

    def score(self, z: Coordinates) -> FloatArray:
        """A tilted hill of two, and a hundredth of the rest."""
        rate = z["rate"] - 0.3
        decay = z["decay"] - 0.65 + 0.4 * rate
        others = sum(
            (z[name] - 0.5) ** 2 for name in ("dropout", "momentum", "smoothing", "warmup")
        )
        return np.asarray(0.97 * np.exp(-8 * rate**2 - 12 * decay**2) + 0.03 * (1 - others))

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The top of the hill."""
        others = dict.fromkeys(("dropout", "momentum", "smoothing", "warmup"), 0.5)
        return {"rate": 0.3, "decay": 0.65, **others}


@dataclass(frozen=True, kw_only=True)
class Plateau(ShapedFunction):
    """A hill in ten terraces, and beyond a bound a plain where nothing is learnt (3 parameters)."""

    kind: ClassVar[str] = "plateau"
    space: ClassVar[Space] = Space([_RATE, _DECAY, _DROPOUT])

    def score(self, z: Coordinates) -> FloatArray:
        """Nearly flat between the steps."""
        away = (z["rate"] - 0.45) ** 2 + (z["decay"] - 0.35) ** 2 + (z["dropout"] - 0.6) ** 2
        hill = np.exp(-6 * away)
        return np.where(z["rate"] > 0.75, 0.0, 0.095 * np.floor(10 * hill) + 0.05 * hill)

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The top."""
        return {"rate": 0.45, "decay": 0.35, "dropout": 0.6}


@dataclass(frozen=True, kw_only=True)
class Failing(ShapedFunction):
    """The best is near the edge beyond which trials fail, as those that diverge (3 parameters)."""

    kind: ClassVar[str] = "failing"
    space: ClassVar[Space] = Space([_RATE, _MOMENTUM, _DECAY])

    def score(self, z: Coordinates) -> FloatArray:
        """Rate and momentum together are what is too much."""
        pace = z["rate"] + 0.5 * z["momentum"]
        away = 4 * (pace - 0.85) ** 2 + (z["momentum"] - 0.5) ** 2 + (z["decay"] - 0.4) ** 2
        return np.where(pace > 0.88, np.nan, np.exp(-away))

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """A little before the edge."""
        return {"rate": 0.6, "momentum": 0.5, "decay": 0.4}


@dataclass(frozen=True, kw_only=True)
class Cliff(ShapedFunction):
    """A long ramp that ends in a cliff, whose edge another parameter moves (5 parameters)."""

    kind: ClassVar[str] = "cliff"
    space: ClassVar[Space] = Space(
        [_RATE, Float("warmup", 0.0, 1.0), _DECAY, _DROPOUT, Float("smoothing", 0.0, 0.3)]
    )

    def score(self, z: Coordinates) -> FloatArray:
        """Up to the edge, and down at once."""
        beyond = z["rate"] - 0.58 - 0.2 * z["warmup"]
        ramp = np.where(beyond < 0, 1 + 0.8 * beyond, np.maximum(1 - 25 * beyond, 0.3))
        rest = 0.2 * (z["dropout"] - 0.3) ** 2 + 0.15 * (z["decay"] - 0.5) ** 2
        rest = rest + 0.1 * (z["warmup"] - 0.7) ** 2 + 0.05 * (z["smoothing"] - 0.2) ** 2
        return np.asarray(ramp - rest)

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The edge."""
        return {"rate": 0.72, "warmup": 0.7, "dropout": 0.3, "decay": 0.5, "smoothing": 0.2}


@dataclass(frozen=True, kw_only=True)
class Ridge(ShapedFunction):
    """Three parameters that only their sum makes good or bad: a ridge across the space."""

    kind: ClassVar[str] = "ridge"
    space: ClassVar[Space] = Space([_RATE, Float("batch", 8.0, 1024.0, log=True), _MOMENTUM])

    def score(self, z: Coordinates) -> FloatArray:
        """A sharp ridge, slowly rising to its top."""
        pace = z["rate"] - 0.7 * z["batch"] + 1.2 * z["momentum"]
        along = 0.25 * (z["batch"] - 0.3) ** 2 + 0.3 * (z["momentum"] - 0.6) ** 2
        return np.asarray(np.exp(-(((pace - 1.0) / 0.15) ** 2)) * (1 - along))

    def best_floats(self, z: Coordinates) -> dict[str, FloatArray | float]:
        """The top."""
        return {"rate": 0.49, "batch": 0.3, "momentum": 0.6}
