"""Figures in the paper's form, as PNG and SVG: lines with a band of one standard error, or points
of privacy against utility."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sottovoce.errors import MissingExtra, StorageError, check
from sottovoce.files import write_whole
from sottovoce.report.chart import FEW_POINTS
from sottovoce.report.files import check_content
from sottovoce.report.frame import Words, empty_figure, write_legend, write_words
from sottovoce.report.pointfigure import drawn_points
from sottovoce.report.scale import band, x_axis, y_axis
from sottovoce.report.styles import styles_for
from sottovoce.report.text import counted

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
    curves: Sequence[tuple[str, dict[str, Any]]],
    path: Path,
    title: str,
    note: str,
    measure: str = "simple regret",
) -> None:
    """Write the figure: `curves` are (label, {"t", "mean", "stderr"}), `measure` says what y is."""
    check_figure(path)
    lines = [{"label": label, "role": "method", "regret": curve} for label, curve in curves]
    labels = ("queries after the initial points", f"{measure}, mean over agents")
    _save(_drawn_lines(lines, Words(title, note, *labels)), path)


def draw_figure(figure: dict[str, Any], folder: Path) -> list[Path]:
    """Write NAME.png and NAME.svg, from the content of a figure file; returns where they are."""
    check_content(figure, f"the figure {figure.get('name')!r}")
    paths = [folder / f"{figure['name']}{ending}" for ending in (".png", ".svg")]
    for path in paths:
        check_figure(path)
    points = figure["kind"] == "tradeoff"
    facts = [figure["problem"], *([figure["objective"]] if figure["objective"] else [])]
    facts.append(counted(figure["runs"], "run", "runs"))
    facts.append(f"{'bars and bands' if points else 'bands'} ± 1 standard error")
    note = f"{', '.join(facts)}."
    if any(spent for curve in figure["curves"] for spent in (curve["epsilon"] or {}).values()):
        note += " A simulation: its seeded noise protects nobody."
    title = f"{figure['title']} ({figure['paper']})" if figure["paper"] else figure["title"]
    words = Words(title, note, figure["x_label"], figure["y_label"])
    drawn = drawn_points(figure, words) if points else _drawn_lines(figure["curves"], words)
    for path in paths:
        _save(drawn, path)
    return paths


def _drawn_lines(curves: Sequence[dict[str, Any]], words: Words) -> Any:
    lines = [curve["regret"] for curve in curves]
    labels = [curve["label"] for curve in curves]
    figure, axes = empty_figure(labels)
    handles = []
    for style, line in zip(styles_for([c["role"] for c in curves]), lines, strict=True):
        look: dict[str, Any] = {"color": style.colour, "linewidth": 0.9 * style.width}
        dashes = (0, style.dashes) if style.dashes else "-"
        marker = "o" if len(line["t"]) <= FEW_POINTS else None
        look |= {"linestyle": dashes, "marker": marker, "ms": 4, "zorder": 2 + style.in_front}
        look["clip_on"] = marker is None  # a mark on the edge is shown whole
        handles += axes.plot(line["t"], line["mean"], **look)
        axes.fill_between(line["t"], *band(line), color=style.colour, alpha=style.band, lw=0)
    write_words(axes, words, x_axis(lines), y_axis(lines))
    write_legend(axes, handles, labels, words.note)
    return figure


def _save(figure: Any, path: Path) -> None:
    import matplotlib

    def write(part: Path) -> None:
        kind = path.suffix[1:]
        figure.savefig(part, format=kind, metadata=_UNDATED[path.suffix])

    with matplotlib.rc_context({"svg.hashsalt": "sottovoce"}):
        write_whole(path, write)
