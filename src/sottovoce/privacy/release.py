"""The subsampled Gaussian release over the joint vector of all regions.

Symbols: N agents, P regions, M features; ω_n (M,) the vector of agent n; φ_n^(i) its weight in
region i, each region's weights summing to 1 over all N; S clip, c = S/√P the bound on one
vector's norm; q participation; z noise multiplier; Δ sensitivity of the joint (P·M) sum.

    ω^(i) = Σ_{n in sample} φ_n^(i) clip(ω_n, c) / q  +  N(0, (zΔ)² I)        for each region i

Two steps, kept apart: `limited_sum` bounds what one agent can move, `add_noise` covers that
bound. Absent agents are zero rows: the sum is divided by the public q, never by a head count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, to_device
from numpy.typing import NDArray

from sottovoce.errors import check
from sottovoce.privacy.events import (
    LARGEST,
    SAMPLINGS,
    SANE,
    SMALLEST,
    DataFree,
    Event,
    NonPrivate,
    Sampling,
    SubsampledGaussian,
)
from sottovoce.privacy.noise import Source

Sensitivity = Literal["paper", "tight"]
SENSITIVITIES: tuple[Sensitivity, ...] = ("paper", "tight")
_ROWS = 1024  # clipped and summed at a time: they stay in the processor's cache


@dataclass(frozen=True)
class Mechanism:
    """The public constants of a release: what one agent can move, and what covers that.

    Example:
        >>> mechanism = Mechanism(clip=5.0, participation=1.0, noise=4.0)
        >>> round(epsilon([mechanism.event(100, "planned")] * 4, delta=1e-5), 2)
        1.99
    """

    clip: float = field(default=11.0, metadata={"doc": "S, bound on the norm of a vector"})
    participation: float = field(
        default=0.25, metadata={"doc": "q, chance that an agent is in a sum"}
    )
    noise: float = field(default=1.0, metadata={"doc": "z, noise over sensitivity"})
    sampling: Sampling = field(
        default="poisson", metadata={"doc": "who is in a sum: poisson, fixed (size)"}
    )
    sensitivity: Sensitivity = field(
        default="paper", metadata={"doc": "bound on one agent's effect: paper, tight"}
    )

    def __post_init__(self) -> None:
        check(self.clip > 0, "S must be above 0", S=self.clip)
        # with a smaller S, squares underflow to zero and long vectors pass
        check(self.clip >= SMALLEST, f"S must be at least {SMALLEST:g}", S=self.clip)
        check(
            0 < self.participation <= 1,
            "participation must be in (0, 1]",
            participation=self.participation,
        )
        check(0 <= self.noise < math.inf, "z must be finite and at least 0", z=self.noise)
        check(
            self.noise == 0 or SMALLEST <= self.noise <= LARGEST, f"z must be {SANE}", z=self.noise
        )
        check(
            self.clip <= LARGEST or self.noise == 0,
            f"noise needs a finite clip S, of at most {LARGEST:g}",
            S=self.clip,
            z=self.noise,
        )
        check(
            self.sampling in SAMPLINGS,
            f"sampling must be one of {SAMPLINGS}",
            sampling=self.sampling,
        )
        check(
            self.sensitivity in SENSITIVITIES,
            f"sensitivity must be one of {SENSITIVITIES}",
            sensitivity=self.sensitivity,
        )

    def sample_size(self, agents: int) -> int:
        """How many agents a fixed-size sample takes: qN to the nearest, at least one."""
        return max(1, round(self.participation * agents))

    def rate(self, agents: int) -> float:
        """The q that is divided by and accounted for: exact for the sampling in use."""
        if self.sampling == "fixed":
            return self.sample_size(agents) / agents
        return self.participation

    def event(self, agents: int, source: str) -> Event:
        """What one release spends."""
        if self.noise == 0:
            return NonPrivate(source)
        rate = self.rate(agents)
        # a fixed sample of everybody is no sampling at all, hence Poisson's q = 1
        sampling: Sampling = "poisson" if rate == 1 else self.sampling
        return SubsampledGaussian(self.noise, rate, agents, sampling, source)


@dataclass(frozen=True)
class Release:
    """What may be broadcast, and what it spent."""

    vectors: NDArray[np.float64]  # (P, M)
    event: Event


def clipped(vectors: Any, limit: float) -> Any:
    """Each row scaled down to norm `limit` if above it; rows that are not sane become zero."""
    sane, divisors = _divisors(vectors, limit)
    return sane / divisors


def _divisors(vectors: Any, limit: float, summed: Any = None) -> tuple[Any, Any]:
    """The rows, zero where they are not sane, and what scales each down: at least 1.

    summed: the rows' sums of squares, of whoever has a faster way to them.
    """
    xp = array_namespace(vectors)
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        squares = xp.sum(vectors * vectors, axis=-1, keepdims=True) if summed is None else summed
    # An entry beyond LARGEST alone has a larger square, and NaN is below nothing: where all sums
    # are below this, no entry needs a look.
    if not bool(xp.all(squares < LARGEST**2 / 2)):
        usable = xp.all(xp.isfinite(vectors) & (xp.abs(vectors) <= LARGEST), axis=-1, keepdims=True)
        vectors = xp.where(usable, vectors, xp.zeros_like(vectors))
        squares = xp.sum(vectors * vectors, axis=-1, keepdims=True)
    excess = xp.sqrt(squares) / limit
    return vectors, xp.where(excess > 1, excess, xp.ones_like(excess))


def sensitivity(weights: NDArray[np.float64], mechanism: Mechanism) -> float:
    """Δ: how far one agent's vector can move the joint sum (in L2).

    paper: φ_max S/q. tight: c · max_n ‖(φ_n^(i))_i‖₂ / q, never larger, since
    ‖(φ_n^(i))_i‖₂ ≤ √P φ_max and c = S/√P.
    """
    regions, agents = weights.shape
    if mechanism.sensitivity == "tight":
        largest = float(np.max(np.linalg.norm(weights, axis=0))) / math.sqrt(regions)
    else:
        largest = float(np.max(weights))
    return float(largest * mechanism.clip / mechanism.rate(agents))


def noise_scale(weights: NDArray[np.float64], features: int, mechanism: Mechanism) -> float:
    """zΔ, the standard deviation of the noise in each coordinate.

    The sum is taken in floating point: clipping and adding N rows err by less than
    (N² + M)·2⁻⁵² of one agent's share, which the last factor covers.
    """
    if mechanism.noise == 0:
        return 0.0
    rounding = (weights.shape[1] ** 2 + features) * 2.0**-52
    return float(mechanism.noise * sensitivity(weights, mechanism) * (1 + rounding))


def limited_sum(
    vectors: Any,
    weights: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    mechanism: Mechanism,
) -> NDArray[np.float64]:
    """Step 1: Σ over the chosen of φ_n^(i) clip(ω_n) / q, (P, M); one agent moves it by ≤ Δ."""
    regions, agents = weights.shape
    xp = array_namespace(vectors)
    limit = mechanism.clip / math.sqrt(regions)
    shares = weights * chosen / mechanism.rate(agents)
    if _in_blocks(vectors):
        return _sum_by_blocks(vectors, shares, chosen, limit)
    shares = xp.asarray(shares, dtype=vectors.dtype, device=vectors.device)
    total = shares @ clipped(vectors, limit)
    return np.asarray(to_device(total, "cpu"), dtype=np.float64)


def _in_blocks(vectors: Any) -> bool:
    """Whether there are so many that they do not fit a processor's cache."""
    return isinstance(vectors, np.ndarray) and vectors.dtype == np.float64 and len(vectors) > _ROWS


def _sum_by_blocks(
    vectors: NDArray[np.float64],
    shares: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    limit: float,
) -> NDArray[np.float64]:
    """The same of the chosen alone, read once: a block is looked at, and summed while close by.

    What would scale a row down scales its share instead, which is the same product.
    """
    total = np.zeros((len(shares), vectors.shape[1]))
    places = np.flatnonzero(chosen)
    for start in range(0, len(places), _ROWS):
        rows = places[start : start + _ROWS]
        block = vectors[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", block, block)[:, None]
        sane, divisors = _divisors(block, limit, squares)
        total += (shares[:, rows] / divisors[:, 0]) @ sane
    return total


def sample(agents: int, mechanism: Mechanism, source: Source) -> NDArray[np.bool_]:
    """Who is in the sum. Drawn by the server in secret, over all agents, present or not."""
    if mechanism.sampling == "fixed":
        return source.subset(agents, mechanism.sample_size(agents))
    return source.coins(agents, mechanism.participation)


def release(
    vectors: Any,
    weights: NDArray[np.float64],
    mechanism: Mechanism,
    source: Source,
) -> Release:
    """One private release: vectors (N, M), zero rows for the absent; weights (P, N).

    An empty sample publishes pure noise, as it must: nothing may tell that it was empty.
    """
    _check_shapes(vectors, weights)
    agents, features = vectors.shape
    chosen = sample(agents, mechanism, source)
    total = limited_sum(vectors, weights, chosen, mechanism)
    noised = source.add_gaussian(total, noise_scale(weights, features, mechanism))
    return Release(noised, mechanism.event(agents, source.label))


def noise_only(
    weights: NDArray[np.float64], features: int, mechanism: Mechanism, source: Source
) -> Release:
    """The control: what `release` publishes when nobody says anything."""
    silence = np.zeros((weights.shape[0], features))
    scale = noise_scale(weights, features, mechanism)
    return Release(source.add_gaussian(silence, scale), DataFree(source.label))


def unprotected(vectors: Any, weights: NDArray[np.float64], label: str = "none") -> Release:
    """The weighted mean itself, for the methods without privacy: ε is infinite."""
    _check_shapes(vectors, weights)
    open_door = Mechanism(clip=math.inf, participation=1.0, noise=0.0)
    everyone = np.ones(weights.shape[1], dtype=np.bool_)
    return Release(limited_sum(vectors, weights, everyone, open_door), NonPrivate(label))


def _check_shapes(vectors: Any, weights: NDArray[np.float64]) -> None:
    check(vectors.ndim == 2, "vectors must be (agents, features)", shape=tuple(vectors.shape))
    check(
        weights.ndim == 2 and weights.shape[1] == vectors.shape[0],
        "weights must be (regions, agents)",
        weights=tuple(weights.shape),
        vectors=tuple(vectors.shape),
    )
    check(
        bool(np.all(np.isfinite(weights)) and np.all(weights >= 0)),
        "weights must be finite and at least 0",
    )


@dataclass(frozen=True)
class Diagnostics:
    """How a release went. Computed from the bare vectors, hence NOT private: simulation only."""

    clipped: float  # share of all agents whose vector was cut down
    signal_to_noise: float  # norm of the full weighted mean over the norm expected of the noise


def diagnose(vectors: Any, weights: NDArray[np.float64], mechanism: Mechanism) -> Diagnostics:
    """What a researcher wants to see of a simulated release, and a deployment must not."""
    regions, agents = weights.shape
    xp = array_namespace(vectors)
    norms = xp.sqrt(xp.sum(vectors * vectors, axis=-1))
    cut = float(xp.mean(xp.astype(norms > mechanism.clip / math.sqrt(regions), vectors.dtype)))
    everyone = np.ones(agents, dtype=np.bool_)
    whole = limited_sum(vectors, weights, everyone, mechanism) * mechanism.rate(agents)
    features = int(vectors.shape[1])
    noise = noise_scale(weights, features, mechanism) * math.sqrt(regions * features)
    signal = float(np.linalg.norm(whole))
    return Diagnostics(cut, signal / noise if noise > 0 else math.inf)
