"""Is sharing worth it? A study's settings, simulated on made-up functions on its space.

Each run has three federations that meet the same functions: agents that go alone (`gp`, our best
solo search), agents that hear noise alone, and the study. What the study gains over the first is
what a site gets from joining; what it gains over the second is what comes from the others. Runs
differ much in how hard their functions are, so regrets are compared as ratios within a run.

A large federation is simulated by a few of its agents, with the noise of all: what an agent hears
is a mean over fewer own parts then, which makes the forecast a little too low.

Symbols: N agents, D dimensions, T rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
from scipy.stats import t as student

from sottovoce.arrays import FloatArray
from sottovoce.errors import check
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.methods import GP
from sottovoce.federation.planning import DELTA, plan_study
from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.experiments.budgeting import in_shares
from sottovoce.lab.problems.madeup import MadeUp
from sottovoce.privacy.accountant import epsilon as spent
from sottovoce.privacy.accountant import replace_one
from sottovoce.privacy.events import adjacency
from sottovoce.privacy.release import Mechanism, noise_scale
from sottovoce.secure_sum.terms import SecureSum
from sottovoce.simulation import Draws, simulate
from sottovoce.space import Float, Space

LITTLE = 0.05  # of the common function: less than that helps nobody
SIMULATED = 12  # agents at most
TINY = 1e-3  # of the range of values: regret that is as good as none
TRIALS = 20  # at most: what the others know helps early
WEAK = 0.1  # δ times N, above which the promise is weak
JOIN, ALONE, UNCLEAR = "join", "do not join", "unclear"
Progress = Callable[[int, int], None]  # how much is done, of how much


@dataclass(frozen=True)
class Ratio:
    """How much less regret one has than another, as a share: the mean of log ratios over runs."""

    gain: float  # 1 − the geometric mean of the ratios
    low: float  # its 95 % interval
    high: float


@dataclass(frozen=True)
class Gain:
    """Mean regrets over simulated trials after the initial ones, and what joining is to save."""

    alone: float
    noise_only: float
    together: float
    over_alone: Ratio
    over_noise: Ratio  # what comes from the others
    runs: int
    agents: int
    trials: int  # in all, the initial ones included


def forecast_gain(
    study: FederatedStudy, runs: int, seed: int = 0, progress: Progress | None = None
) -> Gain:
    """The study against going alone and against noise alone, run by run on the same functions."""
    check(runs >= 2, "a forecast of the gain needs at least 2 runs", runs=runs)
    small, problem = _few(study), MadeUp(study.space)
    method = small.method
    methods = (replace(GP, initial=method.initial), replace(method, noise_only=True), method)
    regret = np.zeros((len(methods), runs))
    for run in range(runs):
        for k, each in enumerate(methods):
            outcome = simulate(replace(small, method=each), problem, Draws(seed, run))
            regret[k, run] = outcome.simple_regret[:, 1:].mean()
            if progress is not None:
                progress(run * len(methods) + k + 1, len(methods) * runs)
    alone, noise, together = np.maximum(regret, 0.0) + TINY
    return Gain(
        alone=float(alone.mean()),
        noise_only=float(noise.mean()),
        together=float(together.mean()),
        over_alone=_ratio(together, alone),
        over_noise=_ratio(together, noise),
        runs=runs,
        agents=small.agents,
        trials=method.initial + small.rounds,
    )


def _ratio(ours: FloatArray, other: FloatArray) -> Ratio:
    """Student's interval of the mean log ratio, (R,) each."""
    logs = np.log(ours / other)
    error = float(logs.std(ddof=1) / math.sqrt(len(logs)))
    mean, reach = float(logs.mean()), float(student.ppf(0.975, len(logs) - 1)) * error
    return Ratio(*(1.0 - math.exp(min(each, 50.0)) for each in (mean, mean + reach, mean - reach)))


def _few(study: FederatedStudy) -> FederatedStudy:
    """The same with few agents and trials, and in its sums the noise of all N agents."""
    method, agents = study.method, min(study.agents, SIMULATED)
    rounds = max(min(study.rounds, TRIALS - method.initial), 1)
    few = FederatedStudy(study.space, method, agents, rounds, study.feature_seed)
    mechanism = method.mechanism
    if mechanism is None:
        return few
    here = noise_scale(few.weights(0), method.features, replace(mechanism, noise=1.0))
    scaled = replace(mechanism, noise=study.release_noise / here)
    return replace(few, method=replace(method, mechanism=scaled))


def advice(revealed: float | None, gained: Gain | None) -> tuple[str, str]:
    """Whether to join, and why."""
    if revealed is not None and revealed < LITTLE:
        why = f"all releases together are to reveal {revealed:.1%} of what sites have in common"
        return ALONE, why
    if gained is None:
        return UNCLEAR, "nothing was simulated"
    alone, noise = gained.over_alone, gained.over_noise
    if alone.high < 0:
        return ALONE, "in the simulations joining was worse than going alone"
    if noise.low <= 0:
        why = "in the simulations what the others send is not told apart from noise"
        return (ALONE if noise.gain < LITTLE else UNCLEAR), why
    if alone.low <= 0:
        return UNCLEAR, "in the simulations the gain is not told apart from none"
    return JOIN, "in the simulations joining was better than alone and than noise"


def forecast(
    study: FederatedStudy,
    delta: float,
    runs: int,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The settings of a study, what its releases are to reveal, and whether to join it."""
    check(study.agents >= 2, "a federation needs at least 2 agents", agents=study.agents)
    check(runs == 0 or runs >= 2, "runs must be 0, or 2 and more", runs=runs)
    method, rounds = study.method, study.rounds
    check(method.private, "only a method that protects its sums can be planned", method=method.name)
    mechanism = cast(Mechanism, method.mechanism)
    event = planned_event(study, "plan")
    events = [event] * method.releases.count(rounds)
    revealed, signal = _revealed(study)
    gained = forecast_gain(study, runs, progress=progress) if runs else None
    word, why = advice(revealed, gained)
    return {
        **in_shares(event, len(events), delta),
        "advice": word,
        "because": why,
        "epsilon": spent(events, delta),
        "replace_one": {"pld": replace_one(events, delta)},
        "delta": delta,
        "weak_delta": delta * study.agents > WEAK,
        "adjacency": adjacency(events),
        "agents": study.agents,
        "parameters": len(study.space.parameters),
        "dims": study.space.dims,
        "rounds": rounds,
        "releases": len(events),
        "noise": mechanism.noise,
        "clip": mechanism.clip,
        "participation": mechanism.participation,
        "features": method.features,
        "initial": method.initial,
        "revealed": revealed,
        "signal_to_noise": signal,
        "gain": None if gained is None else asdict(gained),
    }


def _revealed(study: FederatedStudy) -> tuple[float | None, float | None]:
    """The share of the common function that releases are to reveal, and the first one's signal.

    Neither is known of a method that finds no consensus.
    """
    if not study.method.shared.consensus:
        return None, None
    points = [study.method.initial + number for number in study.release_rounds]
    consensus, noise = study.consensus, study.release_noise
    return consensus.revealed(points, noise), consensus.signal(points[0], noise)


def planned(
    agents: int,
    dims: int,
    rounds: int,
    epsilon: float,
    delta: float = DELTA,
    unreliable: int | None = None,
) -> FederatedStudy:
    """The study for so many numbers, with no more said of the space."""
    check(agents >= 2, "a federation needs at least 2 agents", agents=agents)
    check(dims >= 1, "dims must be at least 1", dims=dims)
    space = Space([Float(f"x{d}", 0.0, 1.0) for d in range(1, dims + 1)])
    sums = None if unreliable is None else SecureSum(unreliable)
    if sums is not None:
        sums.check(agents)
    return plan_study(space, agents=agents, rounds=rounds, epsilon=epsilon, delta=delta, sums=sums)
