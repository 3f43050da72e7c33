"""What a federation is to gain: its settings, simulated on functions of a GP (`gp`).

Symbols: N agents, D dimensions, T rounds.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np

from sottovoce.errors import check
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.methods import GP, SOTTOVOCE, Method
from sottovoce.federation.planning import sized, within
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.experiments.budgeting import in_shares
from sottovoce.lab.problems import problem_named
from sottovoce.privacy.accountant import epsilon as spent
from sottovoce.privacy.accountant import replace_one
from sottovoce.privacy.budget import paper_delta
from sottovoce.privacy.events import adjacency
from sottovoce.privacy.release import Mechanism
from sottovoce.secure_sum.terms import SecureSum
from sottovoce.simulation import Draws, simulate
from sottovoce.simulation.problem import Objectives, Setting
from sottovoce.space import Float, Space

LITTLE = 0.25  # of the common function: what is revealed below it hardly helps anybody
ALIKE = 0.3  # α of the simulated problem: agents' functions are 0.7 common + 0.3 their own


@dataclass(frozen=True)
class Gain:
    """Mean regret over t = 1..T, of agents alone and together, on functions of a GP."""

    alone: float
    together: float
    gain: float  # 1 − together/alone
    error: float  # its standard error over runs
    runs: int


@dataclass(frozen=True)
class _Unknown:
    """A problem whose kernel agents do not know."""

    name: str

    @property
    def setting(self) -> Setting:
        return replace(problem_named(self.name).setting, surrogate=Surrogate())

    def draw(self, agents: int, random: np.random.Generator) -> Objectives:
        return problem_named(self.name).draw(agents, random)


def forecast_gain(
    method: Method,
    dims: int,
    agents: int,
    rounds: int,
    runs: int,
    seed: int = 0,
    sums: SecureSum | None = None,
) -> Gain:
    """The method against the search alone, run by run on the same functions."""
    check(runs >= 2, "a forecast of the gain needs at least 2 runs", runs=runs)
    check(
        dims <= 6,
        "a forecast of the gain has at most 6 dimensions; 0 runs do without one",
        dims=dims,
    )
    smooth = max(0.25 * math.sqrt(dims), 0.3)
    problem = _Unknown(f"gp:alpha={ALIKE:g},dims={dims},lengthscale={smooth:.3g}")
    space = problem.setting.space
    regret = [
        [
            simulate(study, problem, Draws(seed, run)).simple_regret[:, 1:].mean()
            for run in range(runs)
        ]
        for study in (
            FederatedStudy(space, replace(GP, initial=method.initial), agents, rounds),
            FederatedStudy(space, method, agents, rounds, sums=sums),
        )
    ]
    alone, together = (np.asarray(values) for values in regret)
    apart = (alone - together) / alone.mean()
    error = float(apart.std(ddof=1) / math.sqrt(runs))
    return Gain(float(alone.mean()), float(together.mean()), float(apart.mean()), error, runs)


def forecast(
    agents: int,
    dims: int,
    rounds: int,
    epsilon: float,
    delta: float | None,
    runs: int,
    unreliable: int | None = None,
) -> dict[str, Any]:
    """The settings, what the releases are to reveal, and the gain to expect.

    unreliable: k of sums that nobody can open alone; None: a server is trusted.
    """
    check(agents >= 2, "a federation needs at least 2 agents", agents=agents)
    check(runs == 0 or runs >= 2, "runs must be 0, or 2 and more", runs=runs)
    resolved = paper_delta(agents) if delta is None else delta
    sums = None if unreliable is None else SecureSum(unreliable)
    if sums is not None:
        sums.check(agents)
    method = within(sized(SOTTOVOCE, dims), agents, rounds, epsilon, resolved, sums)
    space = Space([Float(f"x{d}", 0.0, 1.0) for d in range(1, dims + 1)])
    study = FederatedStudy(space, method, agents, rounds, sums=sums)
    mechanism = cast(Mechanism, method.mechanism)
    event = planned_event(study, "plan")
    events = [event] * method.releases.count(rounds)
    points = [method.initial + number for number in study.release_rounds]
    gained = forecast_gain(method, dims, agents, rounds, runs, sums=sums) if runs else None
    return {
        **in_shares(event, len(events), resolved),
        "epsilon": spent(events, resolved),
        "replace_one": {"pld": replace_one(events, resolved)},
        "delta": resolved,
        "adjacency": adjacency(events),
        "agents": agents,
        "dims": dims,
        "rounds": rounds,
        "releases": len(events),
        "noise": mechanism.noise,
        "clip": mechanism.clip,
        "participation": mechanism.participation,
        "features": study.method.features,
        "initial": method.initial,
        "revealed": study.consensus.revealed(points, study.release_noise),
        "signal_to_noise": study.consensus.signal(points[0], study.release_noise),
        "gain": None if gained is None else asdict(gained),
    }
