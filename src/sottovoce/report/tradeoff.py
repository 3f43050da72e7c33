"""What a figure of privacy against utility shows, on paper and on the page: points and levels.

A point is where a curve of a series ends, over its ε; a level is where another curve ends, a line
over the whole width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.report.labels import Box, Spot, along, box_around, place_labels
from sottovoce.report.scale import Axis, y_axis
from sottovoce.report.styles import LEVEL_DASHES, Style, styles_for
from sottovoce.report.text import epsilon, full_label, last_value, measure_of

FILLED = "ε by moments, the paper’s accountant"
HOLLOW = "ε by pld, the tightest accountant"
SHAPES = ("circle", "square", "triangle", "diamond")  # of the marks, one for each series


@dataclass(frozen=True)
class Point:
    """One curve of a series; `pld` is None where that accountant gives no number."""

    label: str
    words: str  # all of it, for a reader who asks
    moments: float
    pld: float | None
    value: float
    error: float


@dataclass(frozen=True)
class Series:
    """Points of one line, by growing ε."""

    name: str
    style: Style
    shape: str
    points: tuple[Point, ...]

    def lines(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Both lines, (ε, value) in order: by moments, and by pld."""
        solid = [(point.moments, point.value) for point in self.points]
        dashed = [(point.pld, point.value) for point in self.points if point.pld is not None]
        return sorted(solid), sorted(dashed)


@dataclass(frozen=True)
class Level:
    """A curve to compare with, which has no ε to stand at."""

    label: str
    style: Style
    value: float
    error: float
    text: str


@dataclass(frozen=True)
class Tradeoff:
    """The whole picture."""

    series: tuple[Series, ...]
    levels: tuple[Level, ...]
    looks: tuple[Series | Level, ...]  # what stands for each curve of the file, in its order
    x: Axis
    y: Axis

    def places(
        self, spot: Callable[[float, float], Spot], size: float, mark: float, field: Box
    ) -> list[tuple[str, Spot]]:
        """The names of points for which there is room, and the middle of each.

        spot: from (ε, value) to the picture. size: of the font. mark: half a mark's width.
        """
        points = [point for series in self.series for point in series.points]
        names = [(point.label, spot(point.moments, point.value)) for point in points]
        lines = [line for series in self.series for line in series.lines()]
        marks = [box_around(spot(*pair), mark, mark) for line in lines for pair in line]
        drawn = [[spot(*pair) for pair in line] for line in lines]
        drawn += [
            [spot(self.x.low, level.value), spot(self.x.high, level.value)] for level in self.levels
        ]
        for point in points:
            for at in (point.moments, point.pld):
                ends = (point.value - point.error, point.value + point.error)
                drawn += [[spot(at, end) for end in ends]] if at is not None else []
        inked = [ink for line in drawn for ink in along(line, size / 2)]
        found = place_labels(names, size, mark + size / 5, field, marks, inked)
        return [(n, place) for (n, _), place in zip(names, found, strict=True) if place]


def tradeoff_of(figure: dict[str, Any]) -> Tradeoff:
    """What to draw of a figure file of this kind."""
    curves = figure["curves"]
    names = list(dict.fromkeys(c["series"] for c in curves if c.get("series") is not None))
    others = [curve for curve in curves if curve.get("series") is None]
    styles = styles_for(["method"] * len(names) + [curve["role"] for curve in others])
    measure = measure_of(figure)
    series = tuple(
        Series(
            name,
            replace(styles[k], dashes=()),
            SHAPES[k % len(SHAPES)],
            _points([c for c in curves if c.get("series") == name], measure),
        )
        for k, name in enumerate(names)
    )
    levels = tuple(
        Level(
            curve["label"],
            replace(styles[len(names) + k], dashes=LEVEL_DASHES[k % len(LEVEL_DASHES)]),
            *_end(curve),
            last_value(curve["regret"]),
        )
        for k, curve in enumerate(others)
    )
    ends = [_end(curve) for curve in curves]
    points = [point for one in series for point in one.points]
    highest = max(max(point.moments, point.pld or 0.0) for point in points)
    y = y_axis([{"mean": [value], "stderr": [error]} for value, error in ends])
    named, rest = {one.name: one for one in series}, iter(levels)
    looks = tuple(
        next(rest) if curve.get("series") is None else named[curve["series"]] for curve in curves
    )
    return Tradeoff(series, levels, looks, Axis(0.0, 1.08 * highest or 1.0), y)


def _points(curves: Sequence[dict[str, Any]], measure: str) -> tuple[Point, ...]:
    points = []
    for curve in curves:
        spent = curve["epsilon"]
        pld = spent.get("pld")
        by = f"ε = {epsilon(spent['moments'])} by moments"
        by += f", {epsilon(pld)} by pld" if pld is not None else ""
        words = f"{full_label(curve)}: {measure} {last_value(curve['regret'])} at {by}"
        points.append(Point(curve["label"], words, spent["moments"], pld, *_end(curve)))
    return tuple(sorted(points, key=lambda point: point.moments))


def _end(curve: dict[str, Any]) -> tuple[float, float]:
    line = curve["regret"]
    return line["mean"][-1], line["stderr"][-1] if line["stderr"] else 0.0
