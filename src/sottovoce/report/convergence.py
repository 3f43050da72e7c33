"""Regret against queries, one line a method, with a band of one standard error."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sottovoce.errors import MissingExtra, StorageError, check

# Colour-blind safe (Okabe and Ito); each line also has a dash pattern of its own
_STYLES = (
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", ":"),
    ("#56B4E9", (0, (5, 1))),
    ("#E69F00", (0, (3, 1, 1, 1))),
    ("#000000", (0, (1, 1))),
)


def check_figure(path: Path) -> None:
    """Say at once if the figure cannot be drawn, rather than after the work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra("drawing a figure", "figures") from error
    kinds = (".png", ".svg", ".pdf")
    check(path.suffix in kinds, f"a figure's name must end in one of {kinds}", name=str(path))
    if not path.parent.is_dir():
        raise StorageError(f"{path} could not be written: there is no folder {path.parent}")


def draw_convergence(
    curves: Sequence[tuple[str, dict[str, Any]]], path: Path, title: str, note: str
) -> None:
    """Write the figure: `curves` are (label, {"t", "mean", "stderr"})."""
    check_figure(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.4), dpi=150, layout="constrained")
    axes = figure.subplots()
    for k, (label, curve) in enumerate(curves):
        colour, dashes = _STYLES[k % len(_STYLES)]
        t, mean, error = curve["t"], curve["mean"], curve["stderr"]
        low = [m - e for m, e in zip(mean, error, strict=True)]
        high = [m + e for m, e in zip(mean, error, strict=True)]
        axes.plot(t, mean, color=colour, linestyle=dashes, linewidth=1.8, label=label)
        axes.fill_between(t, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.set_xlabel("queries after the initial points")
    axes.set_ylabel("simple regret, mean over agents")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(textwrap.fill(note, 120), fontsize=7.5, x=0.01, ha="left", color="#555555")
    try:
        figure.savefig(path)
    except OSError as error:
        raise StorageError(f"{path} could not be written: {error}") from error
