"""What a release did to privacy, as frozen values that accountants read.

An event says everything an accountant needs and nothing about any agent. Events that spend
alike compare equal, so equal rounds can be counted and composed at once; where the randomness
came from is recorded but does not enter the comparison.

Adjacency. Two federations are adjacent when one agent's vectors are replaced by zero in every
round ("zero-out"); the number of agents, regions, weights, S, q and z are public constants.
Fixed-size sampling is bounded through replace-one adjacency, of which zero-out is a special case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from sottovoce.errors import LedgerError, check

Sampling = Literal["poisson", "fixed"]
SAMPLINGS: tuple[Sampling, ...] = ("poisson", "fixed")

SMALLEST, LARGEST = 1e-100, 1e100  # beyond them squares under- or overflow
LEAST_SHARE = 2.0**16  # steps of the grid
SANE = f"between {SMALLEST:g} and {LARGEST:g}"


@dataclass(frozen=True)
class SubsampledGaussian:
    """One release of a noised sum over a random subset of the agents."""

    noise: float  # z: standard deviation of the noise over the sensitivity
    participation: float  # q: chance that an agent's vector is in the sum
    agents: int
    sampling: Sampling = "poisson"
    source: str = field(default="unknown", compare=False)

    def __post_init__(self) -> None:
        check(0 < self.noise < float("inf"), "z must be finite and above 0", z=self.noise)
        check(SMALLEST <= self.noise <= LARGEST, f"z must be {SANE}", z=self.noise)
        check(
            0 < self.participation <= 1,
            "participation must be in (0, 1]",
            participation=self.participation,
        )
        check(self.agents >= 1, "agents must be at least 1", agents=self.agents)
        check(
            self.sampling in SAMPLINGS,
            f"sampling must be one of {SAMPLINGS}",
            sampling=self.sampling,
        )


@dataclass(frozen=True)
class SharedGaussian:
    """One release of a sum to which every agent has added its own share of the noise.

    A share is a discrete Gaussian of variance (zL)²/(N − k) on whole numbers, of which one agent's
    contribution moves at most L = 2^bits: the noise of any N − k agents has multiplier z.
    """

    noise: float  # z: standard deviation of the noise of N − k agents over the sensitivity
    agents: int  # N
    unreliable: int  # k: agents whose noise is not counted on: absent, careless or in league
    numbers: int  # how many the released vector has
    bits: int  # the sensitivity is 2^bits steps of the grid
    source: str = field(default="unknown", compare=False)

    def __post_init__(self) -> None:
        check(0 < self.noise < float("inf"), "z must be finite and above 0", z=self.noise)
        check(self.agents >= 1, "agents must be at least 1", agents=self.agents)
        rule = "k, the agents not counted on, must be in [0, N)"
        check(0 <= self.unreliable < self.agents, rule, k=self.unreliable, N=self.agents)
        check(self.numbers >= 1, "a vector must have a number at least", numbers=self.numbers)
        # with noise that coarse, shares would not add up to what they are accounted as
        rule = f"a share of the noise must have a scale of at least {LEAST_SHARE:g} steps"
        check(self.bits >= 1 and self.share >= LEAST_SHARE, rule, share=self.share, bits=self.bits)

    @property
    def share(self) -> float:
        """The scale of one agent's noise, in steps."""
        return self.noise * 2.0**self.bits / math.sqrt(self.agents - self.unreliable)

    @property
    def distance(self) -> float:
        """How far the release may be, in total variation, from a Gaussian that is rounded.

        A discrete Gaussian of scale σ ≥ 10 is within 1/(24σ²) of a rounded one, number by number.
        The sum of n shares is within 2.2n·exp(−π²s²) of one discrete Gaussian, which for shares of
        s ≥ 2¹⁶ is no number that a double knows (docs/privacy.md has both arguments).
        """
        return self.numbers / (24 * (self.noise * 2.0**self.bits) ** 2)

    def counting_on(self, reliable: int) -> SharedGaussian | None:
        """What the same release spends if only so many agents add noise; None: it is not private.

        The noise of one share stays as it is, so fewer of them make a smaller z.
        """
        if reliable < 1:
            return None
        noise = self.noise * math.sqrt(reliable / (self.agents - self.unreliable))
        return replace(self, noise=noise, unreliable=self.agents - reliable)

    @property
    def price(self) -> float:
        """The noise of a release that all agents are in, over that of a trusted server."""
        return math.sqrt(self.agents / (self.agents - self.unreliable))


@dataclass(frozen=True)
class NonPrivate:
    """A release without protection: ε is infinite."""

    source: str = field(default="unknown", compare=False)


@dataclass(frozen=True)
class DataFree:
    """A release that holds no agent's data, such as pure noise: it spends nothing."""

    source: str = field(default="unknown", compare=False)


Event = SubsampledGaussian | SharedGaussian | NonPrivate | DataFree
Events = Iterable[Event] | Mapping[Event, int]  # one by one, or each with its count

_KINDS: dict[str, type[Event]] = {
    "subsampled-gaussian": SubsampledGaussian,
    "shared-gaussian": SharedGaussian,
    "non-private": NonPrivate,
    "data-free": DataFree,
}


def to_dict(event: Event) -> dict[str, Any]:
    """A JSON-able form of the event; `from_dict` turns it back."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(event, cls))
    return {"kind": kind, **asdict(event)}


def from_dict(data: Mapping[str, Any]) -> Event:
    """The event that `to_dict` wrote; anything else is refused, never guessed."""
    rest = dict(data)
    kind = rest.pop("kind", None)
    if kind not in _KINDS:
        raise LedgerError(f"event kind must be one of {sorted(_KINDS)}, got {kind!r}")
    try:
        return _KINDS[kind](**rest)
    except (TypeError, ValueError) as error:
        raise LedgerError(f"not a valid {kind} event: {error}") from error


def adjacency(events: Events) -> str:
    """Between which federations ε is a bound: "replace-one" says more, and includes "zero-out"."""
    fixed = any(isinstance(e, SubsampledGaussian) and e.sampling == "fixed" for e in events)
    return "replace-one" if fixed else "zero-out"


def grouped(events: Events) -> Counter[Event]:
    """How often each event occurs, leaving out those that spend nothing."""
    counts = Counter(events)
    for free in [event for event in counts if isinstance(event, DataFree)]:
        del counts[free]
    return counts
