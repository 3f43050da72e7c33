"""The demonstration: does hearing the others, in private, beat going alone?"""

from __future__ import annotations

from typing import Any

from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.figure import Curve
from sottovoce.lab.experiments.results import Summary
from sottovoce.lab.experiments.runner import run_all, summarise
from sottovoce.lab.experiments.tasks import RunCallback

MILESTONES = (5, 10, 20, 40)


def demo_curves(runs: int, seed: int) -> list[Curve]:
    """TS, DP-FTS-DE with the paper's q = .5, z = 1, P = 2, S = 11, and its noise-only control."""
    mechanism: dict[str, Any] = {"clip": 11.0, "participation": 0.5, "noise": 1.0, "regions": 2}
    return [
        Curve("TS: alone", RunConfig(method="ts", runs=runs, seed=seed)),
        Curve("DP-FTS-DE: in private", RunConfig(runs=runs, seed=seed, changes=mechanism)),
        Curve(
            "control: noise only",
            RunConfig(method="control", runs=runs, seed=seed, changes=mechanism),
        ),
    ]


def run_curve(curve: Curve, callback: RunCallback | None = None) -> Summary:
    """The summary of one method."""
    return summarise(curve.config, run_all(curve.config, callback=callback))
