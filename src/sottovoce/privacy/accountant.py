"""Events in, ε(δ) out.

- moments: the paper's. Abadi et al. 2016 with integer orders λ = 1..32; a bound, and loose.
- rdp: Rényi accounting by dp-accounting; a bound.
- pld: privacy loss distributions by dp-accounting; a bound, and the tightest here. When q = 1, the
  exact Gaussian formula, rounded up.
- gdp: the central-limit formula of Gaussian DP; an APPROXIMATION that can lie below the truth
  (the exact formula, hence a bound, when q = 1).

Noise that agents add in shares is Gaussian noise at a δ that is a trifle smaller, by any of them.

All speak of zero-out adjacency (see `events`); `replace_one` says what replacing a record costs.
Fixed-size sampling has a sound bound here in `rdp` alone, through replace-one adjacency; the others
refuse it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr, logsumexp

from sottovoce.errors import UnsupportedEvent, check
from sottovoce.privacy.events import (
    Event,
    Events,
    NonPrivate,
    SharedGaussian,
    SubsampledGaussian,
    grouped,
)

if TYPE_CHECKING:  # at run time it is imported where it is used: it takes a second
    import dp_accounting

Accountant = Callable[[Events, float], float]

BOUNDS = ("moments", "rdp", "pld")  # what may guard a budget
MOST_SAMPLED = 10_000  # rounds by pld: for more its grids take minutes and gigabytes

LARGEST_EXPONENT = 700.0  # e to it is a double still

_MOMENT_ORDERS = np.arange(1, 33)
# whole orders: for others dp-accounting's series does not always converge
_RENYI_ORDERS = [*range(2, 65), 80, 96, 128, 192, 256, 512, 1024]


def moments(events: Events, delta: float) -> float:
    """min over λ of (Σ α(λ) + log(1/δ))/λ, the bound the paper prints."""
    groups = _readable(events, delta, "moments")
    if not groups:
        return 0.0
    total = np.zeros(_MOMENT_ORDERS.size)
    for event, count in groups:
        total += count * _log_moments(event.noise, event.participation)
    return float(np.min((total - math.log(delta)) / _MOMENT_ORDERS))


def _log_moments(z: float, q: float) -> NDArray[np.float64]:
    """α(λ) = log E_{x~N(0,z²)}[((1−q) + q exp((2x−1)/(2z²)))^(λ+1)] for each λ.

    Of Abadi's two directions this one is never the smaller (Mironov et al. 2019, section 3.3);
    it has a closed form: Σ_k C(λ+1,k) (1−q)^(λ+1−k) q^k exp(k(k−1)/(2z²)).
    """
    alphas = []
    for n in _MOMENT_ORDERS + 1:
        k = np.arange(n + 1)
        choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        others = (n - k) * math.log1p(-q) if q < 1 else np.where(k == n, 0.0, -np.inf)
        alphas.append(logsumexp(choose + others + k * math.log(q) + k * (k - 1) / (2 * z * z)))
    return np.asarray(alphas)


def rdp(events: Events, delta: float) -> float:
    """Rényi DP. For fixed-size samples, Wang et al. 2019 under replace-one adjacency."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    groups = _readable(events, delta, "rdp", allow_fixed=True)
    fixed = {event.sampling == "fixed" for event, _ in groups}
    if len(fixed) > 1:
        raise UnsupportedEvent("rdp composes one kind of sampling at a time, got both")
    relation = NeighboringRelation
    adjacency = relation.REPLACE_ONE if True in fixed else relation.REPLACE_SPECIAL
    accountant = RdpAccountant(_RENYI_ORDERS, adjacency)
    for event, count in groups:
        accountant.compose(_translated(event), count)
    return float(accountant.get_epsilon(delta))


def pld(events: Events, delta: float, *, replaced: bool = False) -> float:
    """Privacy loss distributions, rounded upward; without sampling, the Gaussian formula.

    `replaced`: against one record replaced, see `replace_one`.

    dp-accounting rounds losses upward, but convolving n rounds errs by up to n·2⁻⁵³ in δ, as
    measured against the formula: eight times that is kept back.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    groups = _readable(events, delta, "pld")
    if all(event.participation == 1 for event, _ in groups):
        return _gaussian_epsilon(_gaussian_distance(groups) * (1 + replaced), delta)
    rounds = sum(count for _, count in groups)
    if rounds > MOST_SAMPLED:
        raise UnsupportedEvent(f"pld takes at most {MOST_SAMPLED} sampled rounds, got {rounds}")
    kept_back = rounds * 2.0**-50
    # the losses spread over about 1/z²: a step in proportion keeps the grid's size in bounds
    widest = max(event.noise**-2 for event, _ in groups) * (1 + replaced) ** 2
    if delta <= kept_back or widest > 1e6:  # a step that wide overflows, and protects nobody
        return math.inf
    relation = NeighboringRelation
    adjacency = relation.REPLACE_ONE if replaced else relation.REPLACE_SPECIAL
    step = 1e-4 * max(1.0, widest / 25 * max(1.0, rounds / 1000))
    accountant = PLDAccountant(adjacency, step)
    for event, count in groups:
        accountant.compose(_translated(event), count)
    with np.errstate(over="ignore"):  # e^ε may overflow: then ε is infinite
        return float(accountant.get_epsilon(delta - kept_back))


def gdp(events: Events, delta: float) -> float:
    """μ² = Σ q²(exp(1/z²) − 1), or Σ 1/z² for q = 1; then ε solves δ(ε; μ) = δ."""
    groups = _readable(events, delta, "gdp")
    square = 0.0
    for event, count in groups:
        rate, inverse = event.participation, event.noise**-2
        if rate < 1 and inverse > LARGEST_EXPONENT:
            return math.inf  # exp would overflow: there is no protection to speak of
        square += count * (inverse if rate == 1 else rate**2 * math.expm1(inverse))
    return _gaussian_epsilon(math.sqrt(square), delta)


def _gaussian_distance(groups: Sequence[tuple[SubsampledGaussian, int]]) -> float:
    """μ of all releases together, when none is sampled: they are as one with μ² = Σ 1/z²."""
    return math.sqrt(sum(count * event.noise**-2 for event, count in groups))


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """ε with Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) = δ (Balle and Wang 2018), rounded up.

    Without its second term it gives a bound, ε ≤ μ²/2 + μ√(2 log 1/δ), which stands where the
    equation is lost in rounding. 1e-9 is added: far more than rounding takes from the solution.
    """

    def excess(epsilon: float) -> float:
        first = float(log_ndtr(mu / 2 - epsilon / mu))
        second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
        return math.exp(first) * -math.expm1(min(second - first, 0.0)) - delta

    if math.erf(mu / math.sqrt(8)) <= delta:  # δ at ε = 0
        return 0.0
    found = mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta))
    if mu < 1e6 and excess(0.0) > 0 > excess(found):
        found = float(brentq(excess, 0.0, found, xtol=1e-10))
    return found * (1 + 1e-9) + 1e-9


def _readable(
    events: Events, delta: float, name: str, *, allow_fixed: bool = False
) -> list[tuple[SubsampledGaussian, int]]:
    """The events that spend, with their counts; refuses what `name` has no bound for."""
    check(0 < delta < 1, "delta must be in (0, 1)", delta=delta)
    readable = []
    for event, count in grouped(events).items():
        if not isinstance(event, SubsampledGaussian):
            raise UnsupportedEvent(f"{name} knows no bound for {event!r}")
        if event.sampling == "fixed" and not allow_fixed:
            raise UnsupportedEvent(
                f"{name} has no sound bound for fixed-size sampling; use rdp, or Poisson sampling"
            )
        readable.append((event, count))
    return readable


def _translated(event: SubsampledGaussian) -> dp_accounting.DpEvent:
    """The event in dp-accounting's words."""
    import dp_accounting

    if event.sampling == "poisson":
        return dp_accounting.PoissonSampledDpEvent(
            event.participation, dp_accounting.GaussianDpEvent(event.noise)
        )
    # Replacing a vector moves the sum by twice the zero-out sensitivity, and dp-accounting reads
    # the multiplier against the sensitivity of the adjacency in force: hence z/2.
    size = round(event.participation * event.agents)
    return dp_accounting.SampledWithoutReplacementDpEvent(
        event.agents, size, dp_accounting.GaussianDpEvent(event.noise / 2)
    )


ACCOUNTANTS: dict[str, Accountant] = {"moments": moments, "rdp": rdp, "pld": pld, "gdp": gdp}


def epsilon(events: Events, delta: float, accountant: str = "pld") -> float:
    """ε(δ) of the events, for zero-out adjacency; ∞ if any of them was not private.

    Args:
        events: of all releases, one by one, or each with its count.
        delta: δ.
        accountant: "moments", "rdp", "pld", or "gdp", which is no bound.

    Example:
        >>> event = Mechanism(participation=1.0, noise=4.0).event(100, "planned")
        >>> round(epsilon({event: 4}, delta=1e-5), 2)
        1.99
    """
    if accountant not in ACCOUNTANTS:
        check(False, f"accountant must be one of {sorted(ACCOUNTANTS)}", accountant=accountant)
    counts = grouped(events)
    check(0 < delta < 1, "delta must be in (0, 1)", delta=delta)
    if any(isinstance(event, NonPrivate) for event in counts):
        return math.inf
    return _measured(ACCOUNTANTS[accountant], counts, delta)


def _measured(measure: Accountant, counts: Counter[Event], delta: float) -> float:
    """What an accountant says of Gaussians, at a δ without what shares of noise differ from them.

    If outputs are within β of others, in total variation, that are (ε, δ')-private, they are
    (ε, δ' + (1 + e^ε)β)-private. The ε in there is at most the one for half of δ.
    """
    gaussian, apart = Counter[Event](), 0.0
    for event, count in counts.items():
        if isinstance(event, SharedGaussian):
            apart += count * event.distance
            event = SubsampledGaussian(event.noise, 1.0, event.agents)
        gaussian[event] += count
    if apart == 0:
        return measure(gaussian, delta)
    most = measure(gaussian, delta / 2)
    kept_back = apart * (1 + math.exp(most)) if most < LARGEST_EXPONENT else math.inf
    return measure(gaussian, delta - kept_back) if kept_back <= delta / 2 else math.inf


def replace_one(events: Events, delta: float, accountant: str = "pld") -> float:
    """ε(δ) against one record at a site replaced by another: an agent's vectors v become any v'.

    Both lie within Δ of zero, so the sum moves by up to 2Δ: without sampling, ε at z/2. Under
    Poisson sampling no pair is worse than v' = −v of length Δ, which `pld` takes: given x ~ N(v)
    the divergence is E[q − (α−1)(1−q)e^U − αq e^W]₊ at α = e^ε ≥ 1, with U = log N(0)/N(v) and
    W = log N(v')/N(v) Gaussian; it grows with their covariances (Kahane 1986), which are all
    largest there, and α < 1 swaps v and v'. A fixed sample's ε is of this kind already.

    Args:
        events, delta: as for `epsilon`.
        accountant: the same; under Poisson sampling only "pld" has an answer.

    Example:
        >>> event = Mechanism(participation=1.0, noise=4.0).event(100, "planned")
        >>> round(replace_one({event: 4}, delta=1e-5), 2)
        4.38
    """
    counts = grouped(events)
    exposed = any(isinstance(event, NonPrivate) for event in counts)
    if accountant == "pld" and not exposed:
        return _measured(partial(pld, replaced=True), counts, delta)
    if accountant in ACCOUNTANTS and not exposed and any(map(_poisson_sampled, counts)):
        raise UnsupportedEvent(
            f"{accountant} has no sound bound for a record replaced under Poisson sampling; use pld"
        )
    return epsilon({_halved(event): count for event, count in counts.items()}, delta, accountant)


def _poisson_sampled(event: Event) -> bool:
    return (
        isinstance(event, SubsampledGaussian)
        and event.sampling == "poisson"
        and event.participation < 1
    )


def _halved(event: Event) -> Event:
    """The event with half the noise, or as it is if it is not a release of all agents."""
    if isinstance(event, SharedGaussian):
        return replace(event, noise=event.noise / 2)
    if isinstance(event, SubsampledGaussian) and event.participation == 1:
        return replace(event, noise=event.noise / 2)
    return event


def every_epsilon(
    events: Events, delta: float, measure: Callable[[Events, float, str], float] = epsilon
) -> dict[str, float]:
    """ε(δ) by each accountant that has an answer for these events.

    Args:
        events, delta: as for `epsilon`.
        measure: what to ask each for: `epsilon`, or `replace_one`.

    Example:
        >>> event = Mechanism(participation=1.0, noise=4.0).event(100, "planned")
        >>> {name: round(e, 2) for name, e in every_epsilon({event: 4}, delta=1e-5).items()}
        {'moments': 2.53, 'rdp': 2.17, 'pld': 1.99, 'gdp': 1.99}
    """
    counts = grouped(events)
    answers = {}
    for name in ACCOUNTANTS:
        try:
            answers[name] = measure(counts, delta, name)
        except UnsupportedEvent:
            continue
    return answers
