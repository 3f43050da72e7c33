"""Draws the pictures of docs/concepts.md, in docs/pictures: `python tools/pictures.py`.

What is computed is computed by the package; the rest is boxes and arrows.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.events import SubsampledGaussian

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SITE, HUB, INK, SOFT = "#0b7a75", "#b3541e", "#1d2125", "#6b7278"
RELEASES, DELTA = 16, 1e-5


def _empty(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    return figure, figure.subplots()


def _stage(width: float, height: float) -> tuple[Figure, Any]:
    """An empty stage of that many inches, without axes."""
    figure, axes = _empty(width, height)
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.axis("off")
    return figure, axes


def _box(axes: Any, at: tuple[float, float], words: str, colour: str, width: float = 1.5) -> None:
    x, y = at
    look: dict[str, Any] = {"boxstyle": "round,pad=0.03", "fc": "white", "ec": colour, "lw": 1.6}
    axes.add_patch(FancyBboxPatch((x - width / 2, y - 0.28), width, 0.56, **look))
    axes.text(x, y, words, ha="center", va="center", fontsize=8.5, color=INK)


def _arrow(
    axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str, bend: float = 0.0
) -> None:
    look = {"arrowstyle": "-|>", "color": colour, "lw": 1.3, "shrinkA": 2, "shrinkB": 2}
    look["connectionstyle"] = f"arc3,rad={bend}"
    axes.annotate("", end, start, arrowprops=look)


def _note(axes: Any, x: float, y: float, words: str) -> None:
    axes.text(x, y, words, ha="center", va="center", fontsize=8, color=SOFT)


def federation() -> Figure:
    """Sites, the coordinator, what goes each way."""
    figure, axes = _stage(7.6, 3.2)
    hub = (6.4, 1.6)
    for k, name in enumerate(("site A", "site B", "site C")):
        y = 2.75 - 1.15 * k
        _box(axes, (0.95, y), f"{name}\ndata, trials", SITE)
        _arrow(axes, (1.78, y + 0.1), (hub[0] - 0.85, hub[1] + 0.12), SITE, -0.08)
        _arrow(axes, (hub[0] - 0.85, hub[1] - 0.12), (1.78, y - 0.12), HUB, -0.08)
    _box(axes, hub, "coordinator\nledger, budget", HUB, 1.6)
    _note(axes, 3.7, 2.95, "a vector made from its trials,\nwith noise, sealed")
    _note(axes, 3.7, 0.22, "the sum of all vectors and noise:\nthe same for everybody")
    return figure


def shares() -> Figure:
    """A vector in shares, and the sums of shares."""
    figure, axes = _stage(7.6, 3.4)
    for k in range(3):
        y = 2.85 - 1.15 * k
        _box(axes, (0.95, y), f"vector of {'ABC'[k]}\n+ noise", SITE)
        _box(axes, (3.9, y), f"member {k + 1}\nadds its shares", SITE, 1.6)
        _arrow(axes, (4.75, y), (5.75, 1.75), HUB)
        for j in range(3):
            _arrow(axes, (1.78, y), (3.07, 2.85 - 1.15 * j), SOFT)
    _box(axes, (6.6, 1.7), "the noised sum,\nnothing before it", HUB, 1.6)
    _note(axes, 2.42, 3.3, "one share each, sealed")
    _note(axes, 5.4, 3.0, "sums of shares")
    return figure


def two_worlds() -> Figure:
    """What is published with a site and without it, at ε = 1."""
    figure, axes = _empty(7.0, 3.0)
    # the Gaussian whose one release has that ε
    noise = _noise_for(1.0)
    x = np.linspace(-3.4 * noise, 1 + 3.4 * noise, 400)
    for mean, colour, words in ((0.0, SOFT, "without your site"), (1.0, SITE, "with your site")):
        density = np.exp(-(((x - mean) / noise) ** 2) / 2) / (noise * math.sqrt(2 * math.pi))
        axes.plot(x, density, color=colour, lw=1.8, label=words)
        axes.fill_between(x, density, color=colour, alpha=0.12, lw=0)
    axes.annotate("", (1, 0.02 / noise), (0, 0.02 / noise), arrowprops={"arrowstyle": "<->"})
    axes.text(0.5, 0.035 / noise, "your vector", ha="center", fontsize=8.5)
    axes.set(
        yticks=[], xlabel=f"what is published, in lengths of your vector (ε = 1, δ = {DELTA:g})"
    )
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure


def _noise_for(wanted: float) -> float:
    """z of one release without sampling that has this ε, by bisection."""
    low, high = 0.5, 50.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _spent(middle, 1) > wanted else (low, middle)
    return high


def _spent(noise: float, releases: int) -> float:
    event = SubsampledGaussian(noise=noise, participation=1.0, agents=100)
    return float(epsilon([event] * releases, DELTA, "pld"))


def spending() -> Figure:
    """ε after each release."""
    figure, axes = _empty(7.0, 3.2)
    counts = list(range(1, RELEASES + 1))
    for noise, colour in ((4.0, HUB), (8.0, SITE), (16.0, SOFT)):
        axes.plot(
            counts,
            [_spent(noise, k) for k in counts],
            "o-",
            ms=3,
            color=colour,
            label=f"z = {noise:g}",
        )
    axes.set(xlabel="releases", ylabel=f"ε at δ = {DELTA:g}", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, lw=0.5)
    axes.legend(frameon=False, fontsize=9, title="noise over sensitivity", title_fontsize=8.5)
    return figure


def main() -> None:
    """Draw them all."""
    FOLDER.mkdir(exist_ok=True)
    drawn = {"federation": federation, "sum": shares, "epsilon": two_worlds, "releases": spending}
    with matplotlib.rc_context({"svg.hashsalt": "sottovoce", "svg.fonttype": "path"}):
        for name, draw in drawn.items():
            draw().savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
