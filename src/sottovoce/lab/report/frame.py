"""What a figure on paper has around its lines: title, axes, legend, note."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from sottovoce.lab.report.plot import Plot

_GREY = "#555555"
_MANY = 4  # so many rows of a legend have room among the lines


def empty_figure(plot: Plot) -> tuple[Any, Any]:
    """A figure and its axes, with room for the legend."""
    from matplotlib.figure import Figure

    rows = _rows(plot)
    beneath = rows > _MANY
    figure = Figure(figsize=(7.0, 4.4 + beneath * 0.11 * rows), dpi=150, layout="constrained")
    return figure, figure.subplots()


def write_words(axes: Any, plot: Plot, handles: Sequence[Any]) -> None:
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
