"""Figures in the paper's form, as PNG, SVG and PDF: lines with a band of one standard error, or
points of privacy against utility. The caption says what they cost in privacy."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sottovoce.errors import MissingExtra, StorageError, check
from sottovoce.files import write_whole
from sottovoce.lab.experiments.results import FigureResult
from sottovoce.lab.report.plot import FEW_POINTS, Level, Plot, Series, line_plot, plot_of
from sottovoce.pages.styles import ANY, PLD_DASHES
from sottovoce.pages.trace import Trace

# What would make two equal runs give different bytes
_UNDATED = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_GREY = "#555555"
_MANY = 4  # so many rows of a legend have room among the lines
# A corner of one looks out from under another at the same point
_MARKERS = {"circle": ("o", 6.5), "square": ("s", 7.2), "triangle": ("^", 8.5), "diamond": ("D", 7)}
_MARK, _FONT = 7.0, 7.5  # of marks and of the points' names, in points
_FILLED: dict[str, Any] = {"linewidth": 1.6, "markeredgecolor": "white", "markeredgewidth": 0.8}
_HOLLOW: dict[str, Any] = {"linestyle": (0, PLD_DASHES), "linewidth": 0.9, "mfc": "white"}


def check_figure(path: Path) -> None:
    """Say at once if the figure cannot be drawn, rather than after the work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra("drawing a figure", "figures") from error
    kinds = tuple(_UNDATED)
    check(path.suffix in kinds, f"a figure's name must end in one of {kinds}", name=str(path))
    if not path.parent.is_dir():
        raise StorageError(f"{path} could not be written: there is no folder {path.parent}")


def draw_convergence(
    curves: Sequence[tuple[str, Trace]],
    path: Path,
    title: str,
    note: str,
    measure: str = "simple regret",
    x_label: str = "queries after the initial points",
) -> None:
    """Write the figure of methods by their labels; `measure` says what y is."""
    check_figure(path)
    words = (title, note, x_label, f"{measure}, mean over agents")
    methods = [(label, trace, "method") for label, trace in curves]
    _save(_drawn_lines(line_plot(methods, *words)), path)


def draw_figures(figures: Sequence[FigureResult], folder: Path) -> list[Path]:
    """Draw them all into a folder, made if need be; returns where they are."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder} cannot be used for figures: {error}") from error
    return [path for figure in figures for path in draw_figure(figure, folder)]


def draw_figure(figure: FigureResult, folder: Path) -> list[Path]:
    """Write NAME.png, NAME.svg and NAME.pdf; returns where they are."""
    paths = [folder / f"{figure.name}{ending}" for ending in _UNDATED]
    for path in paths:
        check_figure(path)
    plot = plot_of(figure)
    drawn = drawn_points(plot) if plot.series else _drawn_lines(plot)
    for path in paths:
        _save(drawn, path)
    return paths


def _drawn_lines(plot: Plot) -> Any:
    figure, axes = _empty_figure(plot)
    handles = []
    for line in plot.lines:
        style, trace = line.key.style, line.trace
        look: dict[str, Any] = {"color": style.colour, "linewidth": 0.9 * style.width}
        dashes = (0, style.dashes) if style.dashes else "-"
        marker = "o" if len(trace.t) <= FEW_POINTS else None
        look |= {"linestyle": dashes, "marker": marker, "ms": 4, "zorder": 2 + style.in_front}
        look["clip_on"] = marker is None  # a mark on the edge is shown whole
        handles += axes.plot(trace.t, trace.mean, **look)
        axes.fill_between(trace.t, *trace.band, color=style.colour, alpha=style.band, lw=0)
    _write_words(axes, plot, handles)
    axes.locator_params(axis="x", integer=True)  # queries are whole
    return figure


def drawn_points(plot: Plot) -> Any:
    """The figure of a plot that has points."""
    figure, axes = _empty_figure(plot)
    levels = [_draw_level(axes, level) for level in plot.levels]
    first_on_top = [_draw_series(axes, series) for series in plot.series[::-1]]
    accountants = _accountant_keys()[: len(plot.legend) - len(plot.series) - len(levels)]
    _write_words(axes, plot, [*first_on_top[::-1], *accountants, *levels])
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


def _accountant_keys() -> list[Any]:
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


def _empty_figure(plot: Plot) -> tuple[Any, Any]:
    """A figure and its axes, with room for the legend."""
    from matplotlib.figure import Figure

    rows = _rows(plot)
    beneath = rows > _MANY
    figure = Figure(figsize=(7.0, 4.4 + beneath * 0.11 * rows), dpi=150, layout="constrained")
    return figure, figure.subplots()


def _write_words(axes: Any, plot: Plot, handles: Sequence[Any]) -> None:
    """Title, axes and legend; nothing in them is read as mathematics.

    handles: what was drawn for each row of the legend.
    """
    axes.set_xlim(plot.x.low, plot.x.high)
    axes.set_ylim(plot.y.low, plot.y.high)
    axes.set_xlabel(textwrap.fill(plot.x_label, 80), parse_math=False)
    axes.set_ylabel(textwrap.fill(plot.y_label, 50), parse_math=False)
    heading = axes.set_title(textwrap.fill(plot.title, 75), loc="left", fontsize=11)
    heading.set_parse_math(False)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    _write_legend(axes, plot, handles)


def _write_legend(axes: Any, plot: Plot, handles: Sequence[Any]) -> None:
    """Few curves have their legend among them; many beneath, with the note as its title."""
    labels, note = [_wrapped(key.label) for key in plot.legend], textwrap.fill(plot.note, 120)
    looks: dict[str, Any] = {"frameon": False, "handlelength": 3.4, "fontsize": 9.5}
    owner = axes
    if _rows(plot) > _MANY:
        looks |= {"loc": "outside lower center", "ncols": 2, "fontsize": 8.5, "title": note}
        looks |= {"title_fontsize": 7.5, "alignment": "left"}
        owner = axes.figure
    else:
        below = owner.figure.supxlabel(note, fontsize=7.5, x=0.01, ha="left", color=_GREY)
        below.set_parse_math(False)
    stand_ins = ["x"] * len(labels)  # Matplotlib would drop a label that begins with _
    legend = owner.legend(handles, stand_ins, **looks)
    legend.get_title().set(parse_math=False, color=_GREY)
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)
        text.set_parse_math(False)


def _wrapped(label: str) -> str:
    return textwrap.fill(label, 44)


def _rows(plot: Plot) -> int:
    return sum(_wrapped(key.label).count("\n") + 1 for key in plot.legend)


def _save(figure: Any, path: Path) -> None:
    import matplotlib

    def write(part: Path) -> None:
        kind = path.suffix[1:]
        figure.savefig(part, format=kind, metadata=_UNDATED[path.suffix])

    # fonts as outlines that journals take, not as Type 3
    with matplotlib.rc_context({"svg.hashsalt": "sottovoce", "pdf.fonttype": 42}):
        write_whole(path, write)
