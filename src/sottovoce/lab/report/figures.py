"""Figures in the paper's form, as PNG and SVG: lines with a band of one standard error, or points
of privacy against utility."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sottovoce.errors import MissingExtra, StorageError, check
from sottovoce.files import write_whole
from sottovoce.lab.experiments.results import FigureResult, Trace
from sottovoce.lab.report.frame import empty_figure, write_words
from sottovoce.lab.report.plot import FEW_POINTS, Plot, line_plot, plot_of
from sottovoce.lab.report.pointfigure import drawn_points

# What would make two equal runs give different bytes
_UNDATED = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


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
) -> None:
    """Write the figure of methods by their labels; `measure` says what y is."""
    check_figure(path)
    words = (title, note, "queries after the initial points", f"{measure}, mean over agents")
    methods = [(label, trace, "method") for label, trace in curves]
    _save(_drawn_lines(line_plot(methods, *words)), path)


def draw_figure(figure: FigureResult, folder: Path) -> list[Path]:
    """Write NAME.png and NAME.svg; returns where they are."""
    paths = [folder / f"{figure.name}{ending}" for ending in (".png", ".svg")]
    for path in paths:
        check_figure(path)
    plot = plot_of(figure)
    drawn = drawn_points(plot) if plot.series else _drawn_lines(plot)
    for path in paths:
        _save(drawn, path)
    return paths


def _drawn_lines(plot: Plot) -> Any:
    figure, axes = empty_figure(plot)
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
    write_words(axes, plot, handles)
    return figure


def _save(figure: Any, path: Path) -> None:
    import matplotlib

    def write(part: Path) -> None:
        kind = path.suffix[1:]
        figure.savefig(part, format=kind, metadata=_UNDATED[path.suffix])

    with matplotlib.rc_context({"svg.hashsalt": "sottovoce"}):
        write_whole(path, write)
