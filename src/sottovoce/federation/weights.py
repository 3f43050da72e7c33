"""What each agent's vector weighs in each region, round by round.

Symbols: P regions, N agents, t round (0, 1, ...); φ_n^(i) weight of agent n in region i; a strength
of the preference; a_t its value in round t; 𝒯_t = a/(a_t − 1) temperature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.errors import check


@dataclass(frozen=True)
class Weights:
    """How much more a region listens to the agents that explore it, and until when.

    a_t holds its first value for `hold` rounds, then falls linearly to 1 over `decay` rounds.
    - softmax: φ ∝ exp((a·1[n in i] + 1)/𝒯_t) with a_t from a + 1 to 1 (the paper's, a = 15)
    - ratio:   φ ∝ a_t against 1, a_t from a to 1 (appendix, weights 2: a = 1000)
    - square:  φ ∝ a_t² against 1, a_t from a to 1 (appendix, weights 3: a = 40)
    `adaptive=False` keeps the first value for ever (𝒯_t = 1).
    """

    kind: Literal["softmax", "ratio", "square"] = "softmax"
    strength: float = 15.0
    hold: int = 5
    decay: int = 5
    adaptive: bool = True

    def __post_init__(self) -> None:
        kinds = ("softmax", "ratio", "square")
        check(self.kind in kinds, f"weights must be one of {kinds}", kind=self.kind)
        check(
            self.strength > 0 and math.isfinite(self.strength),
            "strength must be finite and above 0",
            strength=self.strength,
        )
        check(
            self.hold >= 0 and self.decay >= 0,
            "hold and decay must be at least 0",
            hold=self.hold,
            decay=self.decay,
        )

    def level(self, t: int) -> float:
        """a_t. The paper's synthetic schedule: 16 for t ≤ 5, then 16, 12.25, 8.5, 4.75, 1."""
        first = self.strength + 1 if self.kind == "softmax" else self.strength
        if not self.adaptive or (t <= self.hold and self.hold > 0):
            return first
        if t > self.hold + self.decay or self.decay <= 1:
            return 1.0
        step = t - self.hold - 1 if self.hold else t
        return first + (1.0 - first) * min(step / (self.decay - 1), 1.0)

    def __call__(self, t: int, assignment: IntArray, regions: int) -> FloatArray:
        """φ of round t, (P, N); each row sums to 1 over all N agents, present or not."""
        own = assignment[None, :] == np.arange(regions)[:, None]
        a_t = self.level(t)
        if self.kind == "softmax":
            # (a·1 + 1)/𝒯_t; the common "+ 1" cancels and is left out to keep exp small
            raw = np.where(own, 1.0, np.exp(-(a_t - 1.0)))
        else:
            raw = np.where(own, a_t if self.kind == "ratio" else a_t * a_t, 1.0)
        raw /= raw.sum(axis=1, keepdims=True)
        return raw


REAL_WORLD = Weights(hold=10, decay=30)
UNIFORM = Weights(hold=0, decay=0)

NAMED_WEIGHTS: dict[str, Weights] = {
    "synthetic": Weights(),
    "real-world": REAL_WORLD,
    "uniform": UNIFORM,
    "non-adaptive": Weights(adaptive=False),
    # the appendix's three others, on the schedule of the real problems
    "weights-1": Weights(strength=9.0, hold=10, decay=30),
    "weights-2": Weights("ratio", 1000.0, hold=10, decay=30),
    "weights-3": Weights("square", 40.0, hold=10, decay=30),
}
