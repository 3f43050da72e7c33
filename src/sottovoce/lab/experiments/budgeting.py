"""Answers for someone planning a study: what ε a noise gives, what noise an ε needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

from sottovoce.errors import InvalidInput, check
from sottovoce.federation.planning import MOST_FEATURES
from sottovoce.privacy.accountant import (
    ACCOUNTANTS,
    MOST_SAMPLED,
    epsilon,
    every_epsilon,
    replace_one,
)
from sottovoce.privacy.budget import noise_for, paper_delta
from sottovoce.privacy.events import Event, SharedGaussian, SubsampledGaussian, adjacency
from sottovoce.privacy.release import Mechanism
from sottovoce.secure_sum.grid import grid_for

STRICTER = (1e-5, 1e-6)


@dataclass(frozen=True)
class Plan:
    """A study as a privacy officer sees it."""

    agents: int
    rounds: int
    participation: float
    delta: float | None = None  # None: N^(−1.1)
    sampling: str = "poisson"
    unreliable: int | None = None  # k of noise in shares; None: a server adds the noise

    def __post_init__(self) -> None:
        check(self.agents >= 1, "agents must be at least 1", agents=self.agents)
        check(self.rounds >= 1, "rounds must be at least 1", rounds=self.rounds)
        check(self.rounds <= 10**9, "rounds must be at most a billion", rounds=self.rounds)
        check(self.delta is None or 0 < self.delta < 1, "delta must be in (0, 1)", delta=self.delta)
        _ = self.event(1.0), self.resolved_delta

    @property
    def resolved_delta(self) -> float:
        """δ as given, or the paper's."""
        return paper_delta(self.agents) if self.delta is None else self.delta

    def event(self, noise: float) -> SubsampledGaussian | SharedGaussian:
        """One round at noise multiplier z."""
        if self.unreliable is not None:
            rule = "noise in shares has all agents in every sum: participation must be 1"
            check(self.participation == 1, rule, participation=self.participation)
            return grid_for(self.agents, self.unreliable, noise, MOST_FEATURES).event("plan")
        sampling = cast(Literal["poisson", "fixed"], self.sampling)
        check(0 < noise < math.inf, "z must be finite and above 0", z=noise)
        mechanism = Mechanism(participation=self.participation, noise=noise, sampling=sampling)
        return cast(SubsampledGaussian, mechanism.event(self.agents, "plan"))


def answer(
    plan: Plan, *, noise: float | None, epsilon: float | None, accountant: str
) -> dict[str, Any]:
    """ε by each accountant asked for, at the noise given or at the noise that ε needs.

    `epsilon` is of a site's whole contribution, `replace_one` of one record replaced by another.
    """
    if (noise is None) == (epsilon is None):
        raise InvalidInput("give either a noise z or a target epsilon, not both and not neither")
    if accountant not in (*ACCOUNTANTS, "all"):
        known = ", ".join((*ACCOUNTANTS, "all"))
        raise InvalidInput(f"accountant must be one of {known}, got {accountant!r}")
    if noise is None:
        noise = noise_for(
            cast(float, epsilon),
            plan.resolved_delta,
            plan.event(1.0),
            plan.rounds,
            _guide(plan, accountant),
        )
    return {
        **in_shares(plan.event(noise), plan.rounds, plan.resolved_delta),
        "epsilon": _epsilons(plan, noise, accountant),
        "replace_one": _replaced(plan, noise, accountant),
        "noise": noise,
        "delta": plan.resolved_delta,
        "agents": plan.agents,
        "rounds": plan.rounds,
        "participation": getattr(plan.event(noise), "participation", 1.0),
        "sampling": plan.sampling,
        "adjacency": adjacency([plan.event(noise)]),
    }


def in_shares(event: Event, rounds: int, delta: float) -> dict[str, Any]:
    """Of noise in shares: its price in noise, and ε if fewer sites fail than planned, or more."""
    if not isinstance(event, SharedGaussian):
        return {}
    n, k = event.agents, event.unreliable
    table = []
    for failing in sorted({0, k, min(2 * k, n - 1), min(3 * k, n - 1), n - 1}):
        fewer = event.counting_on(n - failing)
        if fewer is not None:
            spent = {"epsilon": epsilon, "replace_one": replace_one}
            found = {name: measure({fewer: rounds}, delta) for name, measure in spent.items()}
            table.append({"failing": failing, **_finite(found)})
    return {"unreliable": k, "price": event.price, "if_failing": table}


def costs_of_stricter_delta(plan: Plan, result: dict[str, Any]) -> tuple[str, dict[float, float]]:
    """(accountant, δ → ε): what the same noise costs at δ below the one used."""
    name = _guide(plan, "all")
    events = {plan.event(result["noise"]): plan.rounds}
    return name, {d: epsilon(events, d, name) for d in STRICTER if d < result["delta"]}


def _guide(plan: Plan, accountant: str) -> str:
    """The accountant a noise is chosen by: the one asked for, or the tightest sound one."""
    if accountant != "all":
        return accountant
    event = plan.event(1.0)
    if isinstance(event, SharedGaussian):
        return "pld"
    too_many = event.participation < 1 and plan.rounds > MOST_SAMPLED
    return "rdp" if event.sampling == "fixed" or too_many else "pld"


def _epsilons(plan: Plan, noise: float, accountant: str) -> dict[str, float | None]:
    events = {plan.event(noise): plan.rounds}
    if accountant == "all":
        return _finite(every_epsilon(events, plan.resolved_delta))
    return _finite({accountant: epsilon(events, plan.resolved_delta, accountant)})


def _replaced(plan: Plan, noise: float, accountant: str) -> dict[str, float | None]:
    """By the accountant asked for; by all that have an answer, if it has none."""
    found = every_epsilon({plan.event(noise): plan.rounds}, plan.resolved_delta, replace_one)
    return _finite({accountant: found[accountant]} if accountant in found else found)


def _finite(found: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in found.items()}
