"""Settings for a federation, from what is public alone: N, D, T, ε and δ, never anybody's data.

The rules below were chosen on functions of a GP (`gp`), the rehearsal's own, and are the same for
every problem. Symbols: N agents, D dimensions, T rounds, M features, ℓ length scale, z noise.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from sottovoce.belief import Belief
from sottovoce.errors import InvalidInput, check
from sottovoce.kernel import Kernel
from sottovoce.methods import SOTTOVOCE, TS, Method
from sottovoce.privacy.accountant import epsilon as spent
from sottovoce.privacy.accountant import replace_one
from sottovoce.privacy.budget import noise_for, paper_delta
from sottovoce.privacy.events import SubsampledGaussian, adjacency
from sottovoce.privacy.release import Mechanism
from sottovoce.problems import problem_named
from sottovoce.problems.protocol import Objectives, Setting
from sottovoce.simulate import Draws, simulate
from sottovoce.space import Float, Space
from sottovoce.study import Study

MOST_FEATURES = 256
MOST_ROUNDS = 1_000_000
LITTLE = 0.25  # of the common function: what is revealed below it hardly helps anybody
ALIKE = 0.3  # α of the rehearsal: agents' functions are 0.7 common + 0.3 their own


def planned(method: Method, dims: int, kernel: Kernel | None = None) -> Method:
    """A method that learns, with M and ℓ for D dimensions, or for a kernel that is known."""
    check(dims >= 1, "dims must be at least 1", dims=dims)
    lengthscale = 0.25 * math.sqrt(dims) if kernel is None else float(kernel.lengthscale)
    # the power itself may be too large for a float
    many = -dims * math.log(lengthscale) > math.log(MOST_FEATURES)
    cells = MOST_FEATURES if many else math.ceil(lengthscale**-dims)
    features = min(max(16 * dims, 2 * cells), MOST_FEATURES)
    return replace(method, features=features, lengthscale=lengthscale)


def check_epsilon(method: Method, epsilon: float) -> None:
    """Refuse an ε for a method without noise, or one that cannot be kept."""
    if method.mechanism is None:
        raise InvalidInput(f"method {method.name!r} protects nothing, so it takes no epsilon")
    check(0 < epsilon < math.inf, "epsilon must be finite and above 0", epsilon=epsilon)


def within(method: Method, agents: int, rounds: int, epsilon: float, delta: float) -> Method:
    """The method with the least noise that keeps all its releases within ε, by pld or rdp."""
    check_epsilon(method, epsilon)
    check(agents >= 1, "agents must be at least 1", agents=agents)
    check(rounds >= 1, "rounds must be at least 1", rounds=rounds)
    check(rounds <= MOST_ROUNDS, f"rounds must be at most {MOST_ROUNDS}", rounds=rounds)
    unit = replace(cast(Mechanism, method.mechanism), noise=1.0)
    event, releases = unit.event(agents, "plan"), method.speaking.count(rounds)
    noise = _least_noise(cast(SubsampledGaussian, event), releases, epsilon, delta)
    return replace(method, mechanism=replace(unit, noise=noise))


@lru_cache(maxsize=256)
def _least_noise(event: SubsampledGaussian, releases: int, epsilon: float, delta: float) -> float:
    accountant = "rdp" if event.sampling == "fixed" else "pld"
    return noise_for(epsilon, delta, event, releases, accountant)


@dataclass(frozen=True)
class Rehearsal:
    """Mean regret over t = 1..T, of agents alone and together, on functions of a GP."""

    alone: float
    together: float
    gain: float  # 1 − together/alone
    error: float  # its standard error over runs
    runs: int


@dataclass(frozen=True)
class _Stage:
    """The rehearsal's problem: agents do not know the kernel."""

    name: str

    @property
    def setting(self) -> Setting:
        return replace(problem_named(self.name).setting, belief=Belief())

    def draw(self, agents: int, random: np.random.Generator) -> Objectives:
        return problem_named(self.name).draw(agents, random)


def rehearse(
    method: Method, dims: int, agents: int, rounds: int, runs: int, seed: int = 0
) -> Rehearsal:
    """The method against solo search, run by run on the same functions."""
    check(runs >= 2, "a rehearsal needs at least 2 runs", runs=runs)
    check(dims <= 6, "a rehearsal has at most 6 dimensions; 0 runs do without one", dims=dims)
    smooth = max(0.25 * math.sqrt(dims), 0.3)
    stage = _Stage(f"gp:alpha={ALIKE:g},dims={dims},lengthscale={smooth:.3g}")
    space = stage.setting.space
    regret = [
        [
            simulate(Study(space, each, agents, rounds), stage, Draws(seed, run))
            .simple_regret[:, 1:]
            .mean()
            for run in range(runs)
        ]
        for each in (TS, method)
    ]
    alone, together = (np.asarray(values) for values in regret)
    apart = (alone - together) / alone.mean()
    error = float(apart.std(ddof=1) / math.sqrt(runs))
    return Rehearsal(float(alone.mean()), float(together.mean()), float(apart.mean()), error, runs)


def forecast(
    agents: int, dims: int, rounds: int, epsilon: float, delta: float | None, runs: int
) -> dict[str, Any]:
    """The settings, what the releases are to reveal, and what a rehearsal gains."""
    check(agents >= 2, "a federation needs at least 2 agents", agents=agents)
    check(runs == 0 or runs >= 2, "runs must be 0, or 2 and more", runs=runs)
    resolved = paper_delta(agents) if delta is None else delta
    method = within(planned(SOTTOVOCE, dims), agents, rounds, epsilon, resolved)
    space = Space([Float(f"x{d}", 0.0, 1.0) for d in range(1, dims + 1)])
    study = Study(space, method, agents, rounds)
    mechanism = cast(Mechanism, method.mechanism)
    events = [mechanism.event(agents, "plan")] * method.speaking.count(rounds)
    gained = rehearse(method, dims, agents, rounds, runs) if runs else None
    return {
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
        "features": method.features,
        "lengthscale": method.lengthscale,
        "initial": method.initial,
        "revealed": study.pool.revealed(study.release_noise, len(events)),
        "signal_to_noise": study.pool.signal(study.release_noise),
        "rehearsal": None if gained is None else asdict(gained),
    }
