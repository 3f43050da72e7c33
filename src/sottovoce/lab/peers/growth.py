"""How the gain grows with N and ε: one figure, from the kept runs of the sections `growth-N`.

Each panel is a problem. Over N, the regret of `sottovoce` after 20 trials as a share of that of
`gp` alone, a line for each ε, and the ceiling without noise; a level for noise alone. Bars are one
standard error over runs. What goes alone, or hears noise, does not depend on how many others there
are: both are meaned over the sizes at which they were run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.files import write_whole
from sottovoce.lab.peers.readings import kept
from sottovoce.lab.peers.sections import (
    CONTROL,
    EPSILONS,
    FEDERATIONS,
    GP,
    GROWTH_PROBLEMS,
    GROWTH_TRIALS,
    OURS,
    SIZES,
)
from sottovoce.lab.peers.together import curves_of
from sottovoce.lab.report.figures import check_figure

FloatArray = NDArray[np.float64]
QUIET = "sottovoce/quiet"
COLOURS = ("#c6dbef", "#8fbbdc", "#4f93c8", "#1f68ad", "#08306b")  # from ε = 0.1 to 10
_LOOKS: dict[str, Any] = {"capsize": 2, "linewidth": 1.6, "ms": 5, "elinewidth": 0.9}


@dataclass(frozen=True)
class Level:
    """A regret as a share of that of `gp` alone, with its standard error."""

    mean: float
    error: float


def last_regrets(folder: Path, problem: str, entry: str, agents: int, epsilon: float) -> FloatArray:
    """Of each run that is kept, the regret after the last trial, (R,)."""
    for part in FEDERATIONS[f"growth-{agents}"]:
        if entry in part.entries and part.size.epsilon == epsilon:
            tasks = kept(part.tasks(folder / "together", problem, entry))
            return curves_of(tasks)[:, -1] if tasks else np.zeros(0)
    return np.zeros(0)


def alone(folder: Path, problem: str, entry: str) -> FloatArray:
    """The same of an entry to which the number of agents is nothing, meaned by agents."""
    runs = [(n, last_regrets(folder, problem, entry, n, 1.0)) for n in SIZES]
    known = [(n * len(each), each.mean()) for n, each in runs if len(each)]
    if not known:
        return np.zeros(0)
    weights, means = np.asarray(known).T
    return np.asarray([np.sum(weights * means) / np.sum(weights)])


def levels(folder: Path, problem: str, entry: str, epsilon: float) -> dict[int, Level]:
    """By N, as far as it was run."""
    solo = alone(folder, problem, GP)
    found: dict[int, Level] = {}
    for n in SIZES:
        each = last_regrets(folder, problem, entry, n, epsilon)
        if len(each) and len(solo):
            error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0
            found[n] = Level(float(each.mean() / solo[0]), float(error / solo[0]))
    return found


def draw_growth(folder: Path, path: Path) -> Path:
    """Write the figure of what is kept."""
    check_figure(path)
    from matplotlib.figure import Figure

    there = [p for p in GROWTH_PROBLEMS if levels(folder, p, OURS, 1.0)]
    if not there:
        raise InvalidInput(f"{folder} holds no runs of the sections growth-N to draw")
    figure = Figure(figsize=(4.6 * len(there), 4.2), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(there), squeeze=False, sharey=True)[0]
    for axes, problem in zip(panels, there, strict=True):
        _draw(axes, folder, problem)
    panels[0].set_ylabel("regret, as a share of that of gp alone")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    write_whole(path, lambda part: figure.savefig(part, format=path.suffix[1:], metadata={}))
    return path


def _draw(axes: Any, folder: Path, problem: str) -> None:
    for epsilon, colour in zip(EPSILONS, COLOURS, strict=True):
        found = levels(folder, problem, OURS, epsilon)
        _line(axes, found, color=colour, marker="o", label=f"ε = {epsilon:g}")
    quiet = levels(folder, problem, QUIET, 1.0)
    _line(axes, quiet, color="#222222", marker="s", linestyle="--", label="without noise")
    solo, noise = alone(folder, problem, GP), alone(folder, problem, CONTROL)
    axes.axhline(1.0, color="#b2560d", linewidth=1.4, label="gp alone")
    if len(noise):
        share = float(noise[0] / solo[0])
        axes.axhline(share, color="#777777", linewidth=1.2, linestyle=":", label="noise only")
    axes.set_xscale("log")
    axes.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
    axes.minorticks_off()
    axes.set_xlim(0.8 * SIZES[0], 1.25 * SIZES[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("sites")
    axes.set_title(f"{problem}, after {GROWTH_TRIALS} trials in all", loc="left", fontsize=11)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _line(axes: Any, found: dict[int, Level], **look: Any) -> None:
    means, errors = [one.mean for one in found.values()], [one.error for one in found.values()]
    axes.errorbar(list(found), means, yerr=errors, **look, **_LOOKS)
