"""Figures in the paper's form: lines with a band of one standard error, as PNG and SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sottovoce.errors import MissingExtra, StorageError, check
from sottovoce.files import write_whole
from sottovoce.report.chart import FEW_POINTS
from sottovoce.report.files import check_content
from sottovoce.report.scale import band, x_axis, y_axis
from sottovoce.report.styles import styles_for
from sottovoce.report.text import counted

# What would make two equal runs give different bytes
_UNDATED = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_GREY = "#555555"


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
    curves: Sequence[tuple[str, dict[str, Any]]], path: Path, title: str, note: str
) -> None:
    """Write the figure: `curves` are (label, {"t", "mean", "stderr"})."""
    check_figure(path)
    lines = [{"label": label, "role": "method", "regret": curve} for label, curve in curves]
    labels = ("queries after the initial points", "simple regret, mean over agents")
    _save(_drawn(lines, title, note, labels), path)


def draw_figure(figure: dict[str, Any], folder: Path) -> list[Path]:
    """Write NAME.png and NAME.svg, from the content of a figure file; returns where they are."""
    check_content(figure, f"the figure {figure.get('name')!r}")
    paths = [folder / f"{figure['name']}{ending}" for ending in (".png", ".svg")]
    for path in paths:
        check_figure(path)
    runs = counted(figure["runs"], "run", "runs")
    note = f"{figure['problem']}, {runs}, bands ± 1 standard error."
    if any(spent for curve in figure["curves"] for spent in (curve["epsilon"] or {}).values()):
        note += " A simulation: its seeded noise protects nobody."
    title = f"{figure['title']} ({figure['paper']})" if figure["paper"] else figure["title"]
    drawn = _drawn(figure["curves"], title, note, (figure["x_label"], figure["y_label"]))
    for path in paths:
        _save(drawn, path)
    return paths


def _drawn(
    curves: Sequence[dict[str, Any]], title: str, note: str, axis_labels: tuple[str, str]
) -> Any:
    from matplotlib.figure import Figure

    lines = [curve["regret"] for curve in curves]
    labels = [textwrap.fill(curve["label"], 44) for curve in curves]
    rows = sum(label.count("\n") + 1 for label in labels)
    beneath = rows > 4
    figure = Figure(figsize=(7.0, 4.4 + beneath * 0.11 * rows), dpi=150, layout="constrained")
    axes = figure.subplots()
    handles = []
    for style, line in zip(styles_for([c["role"] for c in curves]), lines, strict=True):
        look: dict[str, Any] = {"color": style.colour, "linewidth": 0.9 * style.width}
        dashes = (0, style.dashes) if style.dashes else "-"
        marker = "o" if len(line["t"]) <= FEW_POINTS else None
        look |= {"linestyle": dashes, "marker": marker, "ms": 4, "zorder": 2 + style.in_front}
        look["clip_on"] = marker is None  # a mark on the edge is shown whole
        handles += axes.plot(line["t"], line["mean"], **look)
        axes.fill_between(line["t"], *band(line), color=style.colour, alpha=style.band, lw=0)
    x, y = x_axis(lines), y_axis(lines)
    axes.set_xlim(x.low, x.high)
    axes.set_ylim(y.low, y.high)
    axes.set_xlabel(textwrap.fill(axis_labels[0], 80), parse_math=False)
    axes.set_ylabel(textwrap.fill(axis_labels[1], 50), parse_math=False)
    heading = axes.set_title(textwrap.fill(title, 75), loc="left", fontsize=11)
    heading.set_parse_math(False)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    note = textwrap.fill(note, 120)
    if beneath:
        _add_legend(figure, handles, labels, note)
    else:
        _add_legend(axes, handles, labels)
        below = figure.supxlabel(note, fontsize=7.5, x=0.01, ha="left", color=_GREY)
        below.set_parse_math(False)
    return figure


def _add_legend(owner: Any, handles: list[Any], labels: list[str], note: str = "") -> None:
    """Few curves have their legend inside the axes; many beneath them, with the note as a title."""
    looks: dict[str, Any] = {"frameon": False, "handlelength": 3.4, "fontsize": 9.5}
    if note:
        looks |= {"loc": "outside lower center", "ncols": 2, "fontsize": 8.5, "title": note}
        looks |= {"title_fontsize": 7.5, "alignment": "left"}
    stand_ins = ["x"] * len(labels)  # Matplotlib would drop a label that begins with _
    legend = owner.legend(handles, stand_ins, **looks)
    legend.get_title().set(parse_math=False, color=_GREY)
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)
        text.set_parse_math(False)


def _save(figure: Any, path: Path) -> None:
    import matplotlib

    def write(part: Path) -> None:
        kind = path.suffix[1:]
        figure.savefig(part, format=kind, metadata=_UNDATED[path.suffix])

    with matplotlib.rc_context({"svg.hashsalt": "sottovoce"}):
        write_whole(path, write)
