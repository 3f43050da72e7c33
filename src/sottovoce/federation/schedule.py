"""What changes with the round: who searches alone, how widely agents explore, what is released.

Symbols: t query number (1, 2, ...; query t uses the broadcast of round t − 1); p_t chance that an
agent searches alone; β_t scale of its posterior draw; γ_t maximal information gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from sottovoce.errors import check

_EXPONENTS = {"root": 0.5, "inverse": 1.0, "square": 2.0, "since-release": 0.5}


@dataclass(frozen=True)
class SoloProbability:
    """p_t: 1 − 1/√t ("root"), 1 − 1/t ("inverse"), 1 − 1/t² ("square"), or a constant.

    "since-release": 1 − 1/√k at the k-th query since the last release.
    """

    DOC: ClassVar[str] = "p_t, chance to search alone: root, inverse, square, since-release"

    kind: Literal["root", "inverse", "square", "constant", "since-release"] = "root"
    value: float = 1.0  # of the constant

    def __post_init__(self) -> None:
        kinds = (*_EXPONENTS, "constant")
        check(self.kind in kinds, f"solo must be one of {kinds}", kind=self.kind)
        check(0 <= self.value <= 1, "p_t must be in [0, 1]", p_t=self.value)

    def __call__(self, t: int) -> float:
        """p_t for query t ≥ 1; of "since-release", for the t-th query since the last release."""
        check(t >= 1, "queries are numbered from 1", t=t)
        if self.kind == "constant":
            return self.value
        return 1.0 - math.pow(t, -_EXPONENTS[self.kind])


@dataclass(frozen=True)
class Exploration:
    """β_t: 1 ("one"), or B + σ√(2(γ_{t−1} + 1 + log(4/δ))) ("theorem")."""

    kind: Literal["one", "theorem"] = "one"
    norm: float = 1.0  # B, bound on the RKHS norm of the objectives
    noise: float = 0.1  # σ, standard deviation of the observation noise
    failure: float = 0.1  # δ of the theorem

    def __post_init__(self) -> None:
        check(self.kind in ("one", "theorem"), "beta must be 'one' or 'theorem'", kind=self.kind)
        check(
            self.norm > 0 and self.noise > 0, "B and σ must be above 0", B=self.norm, σ=self.noise
        )
        check(0 < self.failure < 1, "the theorem's delta must be in (0, 1)", delta=self.failure)

    def __call__(self, t: int, dims: int) -> float:
        """β_t for query t ≥ 1 in D dimensions."""
        check(t >= 1, "queries are numbered from 1", t=t)
        if self.kind == "one":
            return 1.0
        gain = information_gain(t - 1, dims)
        return self.norm + self.noise * math.sqrt(2 * (gain + 1 + math.log(4 / self.failure)))


def information_gain(t: int, dims: int) -> float:
    """γ_t of the squared exponential kernel by its known order, (log t)^(D+1), with factor 1."""
    return math.log(max(t, 1)) ** (dims + 1)


@dataclass(frozen=True)
class ReleaseSchedule:
    """Which rounds have a release: every `every`-th, up to and with round `last` (None: no end).

    Between two releases agents keep the last broadcast. After the last one no more privacy is
    spent, and agents that follow broadcasts go on alone.
    """

    every: int = field(default=1, metadata={"doc": "rounds from one release to the next"})
    last: int | None = field(default=None, metadata={"doc": "the last round with a release"})

    def __post_init__(self) -> None:
        check(self.every >= 1, "every must be at least 1", every=self.every)
        check(
            self.last is None or self.last >= 0, "the last round must be at least 0", last=self.last
        )

    def released(self, round_number: int) -> bool:
        """Whether the round has a release."""
        return round_number in self.among(round_number + 1)

    def over(self, round_number: int) -> bool:
        """Whether the last release lies before this round."""
        return self.last is not None and round_number > self.last

    def since(self, t: int) -> int:
        """How many queries, t included, have had the broadcast that query t has."""
        last = t - 1 if self.last is None else min(t - 1, self.last)
        return t - last // self.every * self.every

    def count(self, rounds: int) -> int:
        """How many of the first `rounds` rounds have a release."""
        return len(self.among(rounds))

    def among(self, rounds: int) -> range:
        """Those of the first `rounds` rounds that have a release."""
        return range(0, rounds if self.last is None else min(rounds, self.last + 1), self.every)
