"""How much noise a promise needs, and a guard that keeps it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from scipy.optimize import brentq

from sottovoce.errors import BudgetExceeded, check
from sottovoce.privacy.accountant import BOUNDS, epsilon
from sottovoce.privacy.events import Event, SharedGaussian, SubsampledGaussian, adjacency

MOST_NOISE = 1e5
_NOISE_RANGE = (1e-2, MOST_NOISE)  # outside it a multiplier means no protection, or no signal


def paper_delta(agents: int) -> float:
    """δ = N^(−1.1), the paper's. Weak: it lets one agent in N^1.1 federations go unprotected."""
    check(agents >= 2, "delta = N^-1.1 needs at least 2 agents", agents=agents)
    return math.pow(agents, -1.1)


@dataclass(frozen=True)
class Budget:
    """The promise: never more than ε at δ.

    Args:
        epsilon: the most that may be spent.
        delta: with what probability the promise may fail.
        accountant: who counts, one whose answer is a bound: "moments", "rdp" or "pld".

    Example:
        >>> event = Mechanism(participation=1.0, noise=4.0).event(100, "planned")
        >>> round(Budget(epsilon=2.0, delta=1e-5).allow([event] * 3, event), 2)
        1.99
        >>> Budget(epsilon=2.0, delta=1e-5).allow([event] * 4, event)
        Traceback (most recent call last):
        sottovoce.errors.BudgetExceeded: this release would bring ε to 2.258, the budget is 2 ...
    """

    epsilon: float
    delta: float
    accountant: str = "pld"

    def __post_init__(self) -> None:
        check(
            0 < self.epsilon < math.inf,
            "epsilon must be finite and above 0",
            epsilon=self.epsilon,
        )
        check(0 < self.delta < 1, "delta must be in (0, 1)", delta=self.delta)
        check(
            self.accountant in BOUNDS,
            f"a budget needs an accountant that bounds ε, one of {BOUNDS}",
            accountant=self.accountant,
        )

    def spent(self, events: Sequence[Event]) -> float:
        """ε of what has been released."""
        return epsilon(events, self.delta, self.accountant)

    def allow(self, events: Sequence[Event], following: Event) -> float:
        """ε once `following` is released too; refused if that is more than was granted."""
        whole = [*events, following]
        after = self.spent(whole)
        if not after <= self.epsilon:  # a NaN is refused too
            raise BudgetExceeded(
                f"this release would bring ε to {after:.4g}, the budget is {self.epsilon:.4g} "
                f"({self.accountant}, δ = {self.delta:.3g}, {adjacency(whole)} adjacency)"
            )
        return after


def noise_for(
    target: float,
    delta: float,
    event: SubsampledGaussian | SharedGaussian,
    rounds: int,
    accountant: str = "pld",
) -> float:
    """The least z (five digits, rounded up) with which `rounds` such events stay within target.

    Args:
        target, delta: ε and δ.
        event: what each of the `rounds` releases does; its own z is ignored.
        rounds: how many releases there are.
        accountant: who counts, as for `epsilon`.

    Example:
        >>> event = Mechanism(participation=1.0).event(100, "planned")
        >>> noise_for(1.0, 1e-5, event, rounds=4)
        7.4614
    """
    check(0 < target < math.inf, "epsilon must be finite and above 0", epsilon=target)
    check(rounds >= 1, "rounds must be at least 1", rounds=rounds)

    @cache  # an answer by pld takes half a second, and the search asks for some twice
    def excess(log_z: float, by: str) -> float:
        likewise = replace(event, noise=math.exp(log_z))
        return min(epsilon({likewise: rounds}, delta, by) - target, 1e6)

    low, high = (math.log(z) for z in _NOISE_RANGE)
    if accountant == "pld" and excess(high, "rdp") <= 0 < excess(low, "rdp"):
        # rdp answers in milliseconds and from above: most of the search is done with it
        high = float(brentq(excess, low, high, args=("rdp",), xtol=1e-3)) + 1e-2
        low = high
        while low > math.log(_NOISE_RANGE[0]) and excess(low, "pld") <= 0:
            low -= math.log(1.25)
    check(
        excess(high, accountant) <= 0,
        f"no noise multiplier up to {_NOISE_RANGE[1]:g} gives that epsilon by {accountant}",
        epsilon=target,
    )
    if excess(low, accountant) <= 0:
        return _rounded_up(math.exp(low))
    z = _rounded_up(math.exp(float(brentq(excess, low, high, args=(accountant,), xtol=1e-4))))
    while excess(math.log(z), accountant) > 0:
        z = _rounded_up(z * (1 + 1e-4))
    return z


def _rounded_up(z: float) -> float:
    """z to five significant digits, never below it."""
    places = 4 - math.floor(math.log10(z))
    return round(math.ceil(z * 10.0**places - 1e-9) / 10.0**places, places)
