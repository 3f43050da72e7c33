"""The demonstration: does hearing the others, in private, beat going alone?"""

from __future__ import annotations

from dataclasses import replace

from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.figure import Curve
from sottovoce.lab.experiments.results import Summary
from sottovoce.lab.experiments.runner import run_all, summarise
from sottovoce.lab.experiments.tasks import RunCallback
from sottovoce.pages.trace import Trace

PROBLEM = "bowl"  # six parameters: floats, one on a log scale, integers and choices
AGENTS = 40
TRIALS = 25  # in all, the initial ones included
EPSILON, DELTA = 2.0, 1e-5
MILESTONES = (10, 15, 25)  # trials in all


def demo_curves(runs: int, seed: int) -> list[Curve]:
    """Together within ε, alone, by the paper's method with its own noise, and hearing noise."""
    labels = {
        "sottovoce": f"sottovoce: together, ε = {EPSILON:g}",
        "gp": "gp: alone",
        "sottovoce-control": "control: noise only",
        "dp-fts-de": "DP-FTS-DE: the paper's",
    }
    return [Curve(label, _config(method, runs, seed)) for method, label in labels.items()]


def _config(method: str, runs: int, seed: int) -> RunConfig:
    epsilon = EPSILON if method.startswith("sottovoce") else None
    config = RunConfig(PROBLEM, method, AGENTS, 1, runs, seed, delta=DELTA, epsilon=epsilon)
    return replace(config, rounds=TRIALS - config.resolved_method().initial)


def run_curve(curve: Curve, callback: RunCallback | None = None) -> Summary:
    """The summary of one method."""
    return summarise(curve.config, run_all(curve.config, callback=callback))


def by_trials(curve: Curve, summary: Summary) -> Trace:
    """The regret by trials in all: methods differ in how many initial ones they need."""
    initial, regret = curve.config.resolved_method().initial, summary.regret
    return replace(regret, t=tuple(t + initial for t in regret.t))
