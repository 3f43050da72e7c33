"""A figure as it is drawn, on paper and on the page alike: lines, points, levels, axes, legend.

Each kind of figure is prepared here, once; whoever draws has only ink to add.

A figure of regret has a line for each curve. A figure of privacy against utility has points and
levels: a point is where a curve of a series ends, over its ε; a level is where another curve
ends, a line over the whole width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sottovoce.lab.experiments.results import CurveResult, FigureResult
from sottovoce.lab.report.caption import note
from sottovoce.lab.report.labels import Box, Spot, along, box_around, place_labels
from sottovoce.pages.scale import Axis, log_axis, x_axis, y_axis
from sottovoce.pages.styles import ANY, LEVEL_DASHES, Key, styles_for
from sottovoce.pages.text import epsilon, with_error
from sottovoce.pages.trace import Trace

FILLED = {
    "moments": "ε by moments, the paper’s accountant",
    "rdp": "ε by Rényi accounting",
}
HOLLOW = "ε by pld, the tightest accountant"
FEW_POINTS = 12  # of a line; so few are marked one by one
SHAPES = ("circle", "square", "triangle", "diamond")  # of the marks, one for each series


@dataclass(frozen=True)
class Line:
    """A curve over the whole of x, with its band."""

    key: Key
    trace: Trace


@dataclass(frozen=True)
class Point:
    """One curve of a series; `pld` is None where that accountant gives no number."""

    label: str
    words: str  # all of it, for a reader who asks
    spent: float  # ε by the figure's accountant
    pld: float | None
    value: float
    error: float


@dataclass(frozen=True)
class Series:
    """Points of one line, by growing ε."""

    key: Key
    shape: str
    points: tuple[Point, ...]

    def lines(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Both lines, (ε, value) in order: by the figure's accountant, and by pld."""
        solid = [(point.spent, point.value) for point in self.points]
        dashed = [(point.pld, point.value) for point in self.points if point.pld is not None]
        return sorted(solid), sorted(dashed)


@dataclass(frozen=True)
class Level:
    """A curve to compare with, which has no ε to stand at."""

    key: Key
    value: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Plot:
    """The whole picture.

    log_y: an axis to use instead of `y`, where it would show more. curve_keys: what stands for
    each curve of the figure, in its order.
    """

    title: str
    note: str
    x_label: str
    y_label: str
    x: Axis
    y: Axis
    log_y: Axis | None = None
    lines: tuple[Line, ...] = ()
    series: tuple[Series, ...] = ()
    levels: tuple[Level, ...] = ()
    legend: tuple[Key, ...]
    curve_keys: tuple[Key, ...]

    def names(
        self, spot: Callable[[float, float], Spot], size: float, mark: float, field: Box
    ) -> list[tuple[str, Spot]]:
        """The names of points for which there is room, and the middle of each.

        spot: from (ε, value) to the picture. size: of the font. mark: half a mark's width.
        """
        points = [point for series in self.series for point in series.points]
        names = [(point.label, spot(point.spent, point.value)) for point in points]
        lines = [line for series in self.series for line in series.lines()]
        marks = [box_around(spot(*pair), mark, mark) for line in lines for pair in line]
        drawn = [[spot(*pair) for pair in line] for line in lines]
        drawn += [
            [spot(self.x.low, level.value), spot(self.x.high, level.value)] for level in self.levels
        ]
        for point in points:
            for at in (point.spent, point.pld):
                ends = (point.value - point.error, point.value + point.error)
                drawn += [[spot(at, end) for end in ends]] if at is not None else []
        inked = [ink for line in drawn for ink in along(line, size / 2)]
        found = place_labels(names, size, mark + size / 5, field, marks, inked)
        return [(n, place) for (n, _), place in zip(names, found, strict=True) if place]


def plot_of(figure: FigureResult) -> Plot:
    """The figure as it is drawn."""
    if figure.kind == "tradeoff":
        return _tradeoff(figure)
    curves = [(curve.label, curve.regret, curve.role) for curve in figure.curves]
    words = (figure.heading, note(figure), figure.x_label, figure.y_label)
    return line_plot(curves, *words)


def line_plot(
    curves: Sequence[tuple[str, Trace, str]], title: str, note: str, x_label: str, y_label: str
) -> Plot:
    """Curves over x, each with its label and its role."""
    traces, styles = [trace for _, trace, _ in curves], styles_for([role for *_, role in curves])
    lines = tuple(
        Line(Key(label, style, with_error(*trace.last)), trace)
        for (label, trace, _), style in zip(curves, styles, strict=True)
    )
    keys = tuple(line.key for line in lines)
    return Plot(
        title=title,
        note=note,
        x_label=x_label,
        y_label=y_label,
        x=x_axis(traces),
        y=y_axis(traces),
        log_y=log_axis(traces),
        lines=lines,
        legend=keys,
        curve_keys=keys,
    )


def _tradeoff(figure: FigureResult) -> Plot:
    """Series and levels over ε."""
    curves = figure.curves
    names = list(dict.fromkeys(curve.series for curve in curves if curve.series is not None))
    others = [curve for curve in curves if curve.series is None]
    styles = styles_for(["method"] * len(names) + [curve.role for curve in others])
    series = []
    for k, name in enumerate(names):
        points = _points([curve for curve in curves if curve.series == name], figure)
        shape, style = SHAPES[k % len(SHAPES)], replace(styles[k], dashes=())
        series.append(Series(Key(name, style, _reach(points), shape), shape, points))
    levels = []
    for k, curve in enumerate(others):
        style = replace(styles[len(names) + k], dashes=LEVEL_DASHES[k % len(LEVEL_DASHES)])
        levels.append(Level(Key(curve.label, style, with_error(*curve.regret.last)), *_end(curve)))
    highest = max(max(p.spent, p.pld or 0.0) for one in series for p in one.points)
    by = [Key(FILLED[figure.accountant], ANY, shape="circle")]
    if any(p.pld is not None for one in series for p in one.points):
        by.append(Key(HOLLOW, ANY.by_pld, shape="circle", hollow=True))
    found, rest = {one.key.label: one.key for one in series}, [level.key for level in levels]
    left = iter(rest)
    return Plot(
        title=figure.heading,
        note=note(figure),
        x_label=figure.x_label,
        y_label=figure.y_label,
        x=Axis(0.0, 1.08 * highest or 1.0),
        y=y_axis([Trace((0.0,), (value,), (error,)) for value, error in map(_end, curves)]),
        series=tuple(series),
        levels=tuple(levels),
        legend=(*found.values(), *by, *rest),
        curve_keys=tuple(next(left) if c.series is None else found[c.series] for c in curves),
    )


def _points(curves: Sequence[CurveResult], figure: FigureResult) -> tuple[Point, ...]:
    points, by_moments = [], figure.accountant == "moments"
    for curve in curves:
        every = curve.epsilon or {}
        spent, pld = every[figure.accountant] or 0.0, every.get("pld") if by_moments else None
        by = f"ε = {epsilon(spent)} by {figure.accountant}"
        by += f", {epsilon(pld)} by pld" if pld is not None else ""
        words = f"{curve.full_label}: {figure.quantity} {with_error(*curve.regret.last)} at {by}"
        points.append(Point(curve.label, words, spent, pld, *_end(curve)))
    return tuple(sorted(points, key=lambda point: point.spent))


def _reach(points: Sequence[Point]) -> str:
    first, last = epsilon(points[0].spent), epsilon(points[-1].spent)
    return f"ε {first}" if first == last else f"ε {first} to {last}"


def _end(curve: CurveResult) -> tuple[float, float]:
    mean, error = curve.regret.last
    return mean, error or 0.0
