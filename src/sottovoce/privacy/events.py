"""What a release did to privacy, as frozen values that accountants read.

An event says everything an accountant needs and nothing about any agent. Events that spend
alike compare equal, so equal rounds can be counted and composed at once; where the randomness
came from is recorded but does not enter the comparison.

Adjacency. Two federations are adjacent when one agent's vectors are replaced by zero in every
round ("zero-out"); the number of agents, regions, weights, S, q and z are public constants.
Fixed-size sampling is bounded through replace-one adjacency, of which zero-out is a special case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sottovoce.errors import LedgerError, check

Sampling = Literal["poisson", "fixed"]
SAMPLINGS: tuple[Sampling, ...] = ("poisson", "fixed")

SMALLEST, LARGEST = 1e-100, 1e100  # beyond them squares under- or overflow
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
        check(0 < self.participation <= 1, "q must be in (0, 1]", q=self.participation)
        check(self.agents >= 1, "agents must be at least 1", agents=self.agents)
        check(
            self.sampling in SAMPLINGS,
            f"sampling must be one of {SAMPLINGS}",
            sampling=self.sampling,
        )


@dataclass(frozen=True)
class NonPrivate:
    """A release without protection: ε is infinite."""

    source: str = field(default="unknown", compare=False)


@dataclass(frozen=True)
class DataFree:
    """A release that holds no agent's data, such as pure noise: it spends nothing."""

    source: str = field(default="unknown", compare=False)


Event = SubsampledGaussian | NonPrivate | DataFree
Events = Iterable[Event] | Mapping[Event, int]  # one by one, or each with its count

_KINDS: dict[str, type[SubsampledGaussian] | type[NonPrivate] | type[DataFree]] = {
    "subsampled-gaussian": SubsampledGaussian,
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
