"""Privacy against utility on paper: points over ε, and levels to compare them with."""

from __future__ import annotations

from typing import Any

from sottovoce.lab.report.frame import empty_figure, write_words
from sottovoce.lab.report.plot import Level, Plot, Series
from sottovoce.lab.report.styles import ANY, PLD_DASHES

# A corner of one looks out from under another at the same point
_MARKERS = {"circle": ("o", 6.5), "square": ("s", 7.2), "triangle": ("^", 8.5), "diamond": ("D", 7)}
_MARK, _FONT = 7.0, 7.5  # of marks and of the points' names, in points
_FILLED: dict[str, Any] = {"linewidth": 1.6, "markeredgecolor": "white", "markeredgewidth": 0.8}
_HOLLOW: dict[str, Any] = {"linestyle": (0, PLD_DASHES), "linewidth": 0.9, "mfc": "white"}


def drawn_points(plot: Plot) -> Any:
    """The figure of a plot that has points."""
    figure, axes = empty_figure(plot)
    levels = [_draw_level(axes, level) for level in plot.levels]
    first_on_top = [_draw_series(axes, series) for series in plot.series[::-1]]
    accountants = _keys()[: len(plot.legend) - len(plot.series) - len(levels)]
    write_words(axes, plot, [*first_on_top[::-1], *accountants, *levels])
    _write_names(figure, axes, plot)
    return figure


def _draw_series(axes: Any, series: Series) -> Any:
    """Both lines with their marks; returns the one by the figure's accountant."""
    colour, (marker, size) = series.key.style.colour, _MARKERS[series.shape]
    bars = [(p.pld, p) for p in series.points] + [(p.spent, p) for p in series.points]
    for at, point in bars:
        if at is not None and point.error:
            ends = [point.value - point.error, point.value + point.error]
            axes.plot([at, at], ends, color=colour, linewidth=0.8, zorder=3, clip_on=False)
    solid, dashed = (list(zip(*line, strict=True)) for line in series.lines())
    look: dict[str, Any] = {"color": colour, "marker": marker, "ms": size, "clip_on": False}
    if dashed:  # a line without points would reach for the figure's corner in its layout
        axes.plot(*dashed, zorder=4, **look, **_HOLLOW)
    (handle,) = axes.plot(*solid, zorder=5, **look, **_FILLED)
    return handle


def _draw_level(axes: Any, level: Level) -> Any:
    style = level.key.style
    ends = (level.value - level.error, level.value + level.error)
    axes.axhspan(*ends, color=style.colour, alpha=style.band, lw=0)
    dashes = (0, style.dashes) if style.dashes else "-"
    return axes.axhline(level.value, color=style.colour, linewidth=1.2, linestyle=dashes)


def _keys() -> list[Any]:
    """For the legend: which mark is which accountant, in no series' colour."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"color": ANY.colour, "marker": "o", "ms": _MARK}
    return [Line2D([], [], **look, **_FILLED), Line2D([], [], **look, **_HOLLOW)]


def _write_names(figure: Any, axes: Any, plot: Plot) -> None:
    """Beside each point what it is, where there is room for it."""
    from matplotlib.patheffects import withStroke

    figure.draw_without_rendering()  # only the layout knows how large the axes are
    box = axes.get_window_extent()
    inch = figure.dpi / 72

    def spot(right: float, up: float) -> tuple[float, float]:
        return box.width * plot.x.place(right), box.height * (1 - plot.y.place(up))

    field = (2 * inch, 0.0, box.width + 4 * inch, box.height - inch)
    edge = [withStroke(linewidth=2.0, foreground="white")]
    for name, (x, y) in plot.names(spot, _FONT * inch, _MARK / 2 * inch, field):
        text = axes.text(
            x / box.width, 1 - y / box.height, name, transform=axes.transAxes, fontsize=_FONT,
            ha="center", va="center", zorder=6, parse_math=False, path_effects=edge,
        )  # fmt: skip
        text.set_in_layout(False)
