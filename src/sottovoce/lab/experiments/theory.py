"""The theorem's regret bound, term by term, as a function of the public constants.

    R_T = Õ( (B + 1/p_1) γ_T √T  +  Σ_t ψ_t  +  B Σ_t ϑ_t )
    ψ_t = (1 − p_t) P φ_max q⁻¹ (Δ_t + z S √M),  Δ_t = Σ_n (ε B t² + B + √M + d_n + √γ_t)
    ϑ_t = (1 − p_t) Σ_i Σ_{n clipped} φ_n^(i)

Õ hides constants and logarithms, so only directions and proportions mean anything: every hidden
factor is taken as 1 here. What privacy adds is zS√M in ψ_t, and ϑ_t; that part is `added`.
Symbols as in the paper; N agents, T rounds, c share of vectors clipped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sottovoce.errors import check
from sottovoce.federation.schedule import information_gain
from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.experiments.figure import FACTORS, Claim, Figure
from sottovoce.lab.experiments.results import ClaimResult, CurveResult, FigureResult, Summary
from sottovoce.lab.experiments.store import RunResult
from sottovoce.lab.experiments.verdicts import interval_of, judge, measured
from sottovoce.pages.trace import Trace

B = 1.0  # bound on the objectives' norm
DISTANCE = 0.04  # d_n: the synthetic agents differ by ±0.02 at every point


@dataclass(frozen=True)
class Terms:
    """The bound's parts that depend on the others, summed over t = 1..T."""

    others: float  # Σ (1 − p_t) P φ_max q⁻¹ Δ_t
    noise: float  # Σ (1 − p_t) P φ_max q⁻¹ z S √M
    clipping: float  # B Σ ϑ_t

    @property
    def added(self) -> float:
        """What privacy adds to the bound."""
        return self.noise + self.clipping


def bound(study: FederatedStudy, clipped: float) -> Terms:
    """The terms for a private study in which the share `clipped` of all vectors is cut down."""
    method, mechanism = study.method, study.method.mechanism
    check(mechanism is not None, "the theorem's terms need a mechanism", method=method.name)
    check(0 <= clipped <= 1, "the clipped share must be in [0, 1]", clipped=clipped)
    others = noise = clipping = 0.0
    if mechanism is not None:
        M, P, q = method.features, method.regions, mechanism.rate(study.agents)
        for t in range(1, study.rounds + 1):
            share = 1.0 - method.solo_probability(t)
            reach = share * P * float(study.weights(t - 1).max()) / q
            gain = math.sqrt(information_gain(t, study.space.dims))
            error = B * t * t / math.sqrt(M)  # ε = O(M^(−1/2))
            others += reach * study.agents * (error + B + math.sqrt(M) + DISTANCE + gain)
            noise += reach * mechanism.noise * mechanism.clip * math.sqrt(M)
            clipping += B * share * P * clipped
    return Terms(others, noise, clipping)


def bound_result(
    frame: FigureResult, figure: Figure, summaries: Mapping[str, Summary]
) -> FigureResult:
    """The figure of the bound: what privacy adds, relative to the common setting."""
    added = {}
    for curve in figure.curves:
        clipped = summaries[curve.label].clipped_fraction or 0.0
        added[curve.label] = bound(curve.config.study(), clipped).added
    curves, claims = [], []
    for entry in figure.vary:
        ratios = [added[entry.label(f)] / added["base"] for f in FACTORS]
        curves.append(_curve(entry.symbol, ratios, None))
        low, _, high = ratios
        right = high > low if entry.direction == "up" else high < low
        claims.append(
            ClaimResult(
                f"the bound {entry.verb} with {entry.symbol}",
                entry.paper,
                high / low,
                0.0,
                f"× {low:.2f} at half, × {high:.2f} at double",
                "holds" if right else "does not hold",
            )
        )
    return replace(
        frame,
        name=f"{figure.name}-bound",
        seconds=0.0,  # the runs are counted with what was measured
        y_label="what privacy adds to the bound, relative",
        curves=tuple(curves),
        claims=tuple(claims),
    )


def measured_result(
    frame: FigureResult, figure: Figure, results: Mapping[str, list[RunResult]]
) -> FigureResult:
    """The figure of what was measured: mean regret, relative to the common setting."""
    base = measured(results["base"], "mean")
    curves, claims = [], []
    for entry in figure.vary:
        ratios = [measured(results[entry.label(f)], "mean") / base.mean() for f in FACTORS]
        means, errors, _ = zip(*map(interval_of, ratios), strict=True)
        curves.append(_curve(entry.symbol, means, errors if len(base) > 1 else None))
        low, high = entry.label(FACTORS[0]), entry.label(FACTORS[2])
        better, worse = (low, high) if entry.direction == "up" else (high, low)
        words, why = f"regret {entry.verb} with {entry.symbol}", entry.cause
        claim = Claim(words, entry.paper, better, than=worse, cause=why)
        claims.append(judge(claim, results, {}))
    return replace(
        frame,
        name=f"{figure.name}-measured",
        title="The theorem's constants: measured regret",
        y_label="mean simple regret, relative",
        curves=tuple(curves),
        claims=tuple(claims),
    )


def _curve(label: str, means: Sequence[float], errors: Sequence[float] | None) -> CurveResult:
    return CurveResult(
        label=label,
        role="method",
        method="dp-fts-de",
        parameters={},
        epsilon=None,
        delta=None,
        adjacency=None,
        clipped_fraction=None,
        signal_to_noise=None,
        regret=Trace(FACTORS, tuple(means), None if errors is None else tuple(errors)),
    )
