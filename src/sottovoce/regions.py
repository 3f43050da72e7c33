"""The P sub-regions of the unit cube, who explores which, and what each agent's vector weighs.

Symbols: P regions, N agents, D dimensions, t round (0, 1, ...); φ_n^(i) weight of agent n in
region i; a strength of the preference; a_t its value in round t; 𝒯_t = a/(a_t − 1) temperature.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from array_api_compat import device
from numpy.typing import NDArray

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import check


@dataclass(frozen=True)
class Regions:
    """Equal boxes that tile the unit cube: `splits[d]` slices along dimension d.

    Boxes are numbered with the first dimension slowest, as in the paper: for P = 4, D = 2 they
    are (low, low), (low, high), (high, low), (high, high).
    """

    splits: tuple[int, ...]

    @property
    def count(self) -> int:
        """P, the number of boxes."""
        return math.prod(self.splits)

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower corners, (P, D)."""
        return np.asarray(self._corner_index() / np.asarray(self.splits))

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper corners, (P, D): the largest float inside, as boxes are half-open below 1."""
        corners = (self._corner_index() + 1) / np.asarray(self.splits)
        return np.where(corners < 1, np.nextafter(corners, 0), 1.0)

    def _corner_index(self) -> NDArray[np.float64]:
        grid = np.indices(self.splits).reshape(len(self.splits), -1)
        return grid.T.astype(float)

    def index(self, x: Array) -> Array:
        """The box each point lies in: (..., D) -> (...) of integers."""
        xp = array_namespace(x)
        box = xp.zeros(x.shape[:-1], dtype=xp.int64, device=device(x))
        for d, slices in enumerate(self.splits):
            if slices > 1:
                # counted against the corners themselves, so that a corner is never on two sides
                inside = xp.zeros_like(box)
                for edge in range(1, slices):
                    inside = inside + xp.astype(x[..., d] >= edge / slices, xp.int64)
                box = box * slices + inside
        return box


def equal_boxes(count: int, dims: int, splittable: Sequence[int] | None = None) -> Regions:
    """P equal boxes in D dimensions.

    The prime factors of P, largest first, each go to the dimension with the fewest slices so far
    (the first of them on a tie): P = 4 halves the first two dimensions, P = 6 makes 3 × 2.
    `splittable` names the dimensions that may be cut; a category's should not be.
    """
    allowed = list(range(dims)) if splittable is None else list(splittable)
    check(count >= 1, "regions must be at least 1", regions=count)
    check(
        count == 1 or bool(allowed), "more than one region needs a numeric parameter", regions=count
    )
    splits = [1] * dims
    for prime in _prime_factors(count):
        d = min(allowed, key=lambda k: splits[k])
        splits[d] *= prime
    return Regions(tuple(splits))


def _prime_factors(n: int) -> list[int]:
    factors, divisor = [], 2
    while n > 1:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    return factors[::-1]


def assigned(agents: int, count: int) -> NDArray[np.int64]:
    """The region each agent explores at first: n mod P, (N,)."""
    check(agents >= count, "regions must not outnumber agents", regions=count, agents=agents)
    return np.arange(agents) % count


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

    def __call__(self, t: int, assignment: NDArray[np.int64], regions: int) -> NDArray[np.float64]:
        """φ of round t, (P, N); each row sums to 1 over all N agents, present or not."""
        own = assignment[None, :] == np.arange(regions)[:, None]
        a_t = self.level(t)
        if self.kind == "softmax":
            # (a·1 + 1)/𝒯_t; the common "+ 1" cancels and is left out to keep exp small
            raw = np.exp(np.where(own, 0.0, -(a_t - 1.0)))
        else:
            raw = np.where(own, a_t if self.kind == "ratio" else a_t * a_t, 1.0)
        total = raw.sum(axis=1, keepdims=True)
        return np.asarray(raw / total)


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
