"""Attacks the release and measures a lower bound on ε, for the code as it is and broken on purpose.

    python benchmarks/audit.py [--trials 200000] [--seed 0]

One agent, the canary, sends a vector ten times as long as the clip, or zeros, in every round.
Whoever reads the broadcasts, and knows every other vector and every public constant, has to tell
which. If an event E has probability TPR with the canary and FPR without, then
ε ≥ log((TPR − δ)/FPR), and likewise with the two exchanged. E is chosen on the first half of the
trials and its two probabilities are bounded on the second (Clopper-Pearson, 97.5 % each), so the
bound holds with 95 % confidence. The code as it is must stay below the ε it claims (by pld),
every broken version must come out above the ε it still claims.

Symbols: N agents, P regions, M features; φ weights; S clip, c = S/√P; q participation; z noise
multiplier; Δ sensitivity; T rounds; B trials.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from unittest.mock import patch
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from sottovoce.federation.aggregate import aggregate
from sottovoce.federation.methods import DP_FTS, DP_FTS_DE, SOTTOVOCE, Method, for_real_world
from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.problems.synthetic import SPACE
from sottovoce.privacy import Event, Mechanism, Seeded, Source, epsilon, paper_delta
from sottovoce.privacy.release import noise_scale, sample, sensitivity

# `sottovoce.privacy.release` as an attribute is the function of that name
RELEASE = import_module("sottovoce.privacy.release")

FEATURES = 8
AGENTS = 29
LENGTH = 10.0  # of the canary's vector, in clips
CONFIDENCE = 0.975  # of each of the two probabilities
AT_ONCE = 5_000  # trials held in memory
ENOUGH_DIGITS = 9  # statistics closer than this differ by rounding alone

Reals = NDArray[np.float64]
Breakage = Callable[["Setting"], AbstractContextManager[object]]


@dataclass(frozen=True)
class Setting:
    """A federation, the rounds that are attacked, and the δ of the claim."""

    name: str
    method: Method
    rounds: range
    delta: float

    @property
    def mechanism(self) -> Mechanism:
        """How the sums are protected."""
        assert self.method.mechanism is not None
        return self.method.mechanism

    @property
    def study(self) -> FederatedStudy:
        """The public constants."""
        return FederatedStudy(SPACE, self.method, AGENTS, self.rounds.stop)

    @property
    def canary(self) -> int:
        """The agent that moves the sum the most."""
        return int(np.argmax(np.linalg.norm(self.study.weights(self.rounds.start), axis=0)))


def _protected(method: Method, mechanism: Mechanism) -> Method:
    count = 1 if method.basis == "effects" else FEATURES  # or as many as the space has
    return replace(method, features=count, mechanism=mechanism)


_ALL_IN = _protected(DP_FTS, Mechanism(clip=8.0, participation=1.0))
_SOTTOVOCE = _protected(SOTTOVOCE, Mechanism(clip=1.0, participation=1.0, noise=2.0))
_PAPER = Mechanism(clip=22.0, participation=0.35)
_LANDMINE = for_real_world(DP_FTS_DE)

# the paper's Δ is reached where the weights are uniform, from round 40 on
SETTINGS = (
    Setting("one release, q = 1", _ALL_IN, range(1), 1e-5),
    Setting("sottovoce: four, q = 1", _SOTTOVOCE, range(0, 8, 2), 1e-5),
    Setting(
        "five, q = 0.35, P = 4, paper Δ",
        _protected(_LANDMINE, _PAPER),
        range(40, 45),
        paper_delta(AGENTS),
    ),
    Setting(
        "five, q = 0.35, P = 4, tight Δ",
        _protected(_LANDMINE, replace(_PAPER, sensitivity="tight")),
        range(5),
        paper_delta(AGENTS),
    ),
)


class Many:
    """Draws for many independent trials in one release: coins get a leading axis of trials."""

    simulation = True

    def __init__(self, seed: int, trials: int) -> None:
        self._one = Seeded(seed)
        self._trials = trials
        self.label = self._one.label

    def coins(self, count: int, probability: float) -> NDArray[np.bool_]:
        """(B, 1, count), which the weights (P, count) broadcast against."""
        return self._one.coins(self._trials * count, probability).reshape(-1, 1, count)

    def subset(self, count: int, size: int) -> NDArray[np.bool_]:
        """(B, 1, count)."""
        return np.stack([self._one.subset(count, size) for _ in range(self._trials)])[:, None]

    def add_gaussian(self, values: Reals, scale: float) -> Reals:
        """Noise for the sums of all trials, (B, P, M)."""
        return self._one.add_gaussian(values, scale)


def _no_clip(_: Setting) -> AbstractContextManager[object]:
    return patch.object(RELEASE, "clipped", lambda vectors, limit: vectors)


def _half_the_noise(_: Setting) -> AbstractContextManager[object]:
    def half(weights: Reals, features: int, mechanism: Mechanism) -> float:
        return noise_scale(weights, features, mechanism) / 2

    return patch.object(RELEASE, "noise_scale", half)


def _noise_used_twice(_: Setting) -> AbstractContextManager[object]:
    draw = Seeded.add_gaussian
    used: WeakKeyDictionary[Seeded, Reals] = WeakKeyDictionary()

    def stale(self: Seeded, values: Reals, scale: float) -> Reals:
        if self not in used:
            used[self] = draw(self, np.zeros_like(values), scale)
            return values + used[self]
        return values + used.pop(self)

    return patch.object(Seeded, "add_gaussian", stale)


def _always_in_the_sample(setting: Setting) -> AbstractContextManager[object]:
    def rigged(agents: int, mechanism: Mechanism, source: Source) -> NDArray[np.bool_]:
        chosen = sample(agents, mechanism, source)
        chosen[..., setting.canary] = True
        return chosen

    return patch.object(RELEASE, "sample", rigged)


HONEST = "as it is"
VERSIONS: dict[str, Breakage] = {
    HONEST: lambda _: nullcontext(),
    "no clip": _no_clip,
    "half the noise": _half_the_noise,
    "noise used twice": _noise_used_twice,
    "always in the sample": _always_in_the_sample,
}


def versions_of(setting: Setting) -> list[str]:
    """Those that make a difference in the setting."""
    pointless = set()
    if len(setting.rounds) < 2:
        pointless.add("noise used twice")
    if setting.mechanism.participation == 1:
        pointless.add("always in the sample")
    return [name for name in VERSIONS if name not in pointless]


def vectors_of(setting: Setting, step: int, present: bool) -> Reals:
    """What the agents send in the attacked round number `step`, (N, M).

    The canary's direction is the first feature. The others stay off it, so that the secret of
    who was in the sample hides nothing, and differ from round to round. The canary's sign
    alternates, so that noise used twice cancels where the canary does not.
    """
    limit = setting.mechanism.clip / math.sqrt(setting.method.regions)
    features = setting.study.method.features
    vectors = limit * np.random.default_rng(step).standard_normal((AGENTS, features))
    vectors[:, 0] = 0.0
    vectors[setting.canary] = 0.0
    if present:
        vectors[setting.canary, 0] = (-1) ** step * LENGTH * limit
    return vectors


def watch(
    setting: Setting, present: bool, trials: int, random: np.random.Generator
) -> tuple[Reals, list[Event]]:
    """The broadcasts of all rounds along the canary's direction, (T, B), and what they claim.

    In units of the canary's honest share of the sum: 1 if it is in the sample, plus noise.
    """
    study, canary = setting.study, setting.canary
    seen: list[Reals] = []
    events: list[Event] = []
    for done in range(0, trials, AT_ONCE):
        source = Many(int(random.integers(2**62)), min(AT_ONCE, trials - done))
        rows, events = [], []
        for step, number in enumerate(setting.rounds):
            vectors = vectors_of(setting, step, present)
            published = aggregate(study, number, vectors, source)
            weights = study.weights(number)[:, canary]
            along = (-1) ** step * published.vectors[..., 0] @ weights / np.linalg.norm(weights)
            rows.append(along / _honest_share(setting, number))
            events.append(published.event)
        seen.append(np.stack(rows))
    return np.concatenate(seen, axis=1), events


def _honest_share(setting: Setting, number: int) -> float:
    """c‖φ‖₂/q: how far a canary of norm c or more moves the joint sum."""
    limit = setting.mechanism.clip / math.sqrt(setting.method.regions)
    weights = setting.study.weights(number)[:, setting.canary]
    return float(limit * np.linalg.norm(weights) / setting.mechanism.rate(AGENTS))


def statistics(setting: Setting, seen: Reals) -> list[Reals]:
    """What the attacker looks at, (B,) each: high with the canary, low without.

    The log likelihood ratio under the honest mechanism; and, if there are two rounds or more,
    the sum of the first two, in which noise used twice cancels.
    """
    q = setting.mechanism.participation
    ratio = np.zeros(seen.shape[1])
    for row, number in zip(seen, setting.rounds, strict=True):
        spread = sensitivity(setting.study.weights(number), setting.mechanism)
        scale = setting.mechanism.noise * spread / _honest_share(setting, number)
        absent = math.log(max(1 - q, sys.float_info.min))
        ratio += np.logaddexp(absent, math.log(q) + (2 * row - 1) / (2 * scale * scale))
    looked_at = [ratio] if len(seen) < 2 else [ratio, seen[0] + seen[1]]
    return [np.round(values, ENOUGH_DIGITS) for values in looked_at]


def lower_bounds(
    hits: NDArray[np.int64], false_hits: NDArray[np.int64], trials: int, delta: float
) -> Reals:
    """log((TPR − δ)/FPR) from counts out of `trials`, TPR bounded below and FPR above."""
    with np.errstate(invalid="ignore"):  # no hits, or nothing but hits, are put right at once
        least = beta.ppf(1 - CONFIDENCE, hits, trials - hits + 1)
        most = beta.ppf(CONFIDENCE, false_hits + 1, trials - false_hits)
    least, most = np.where(hits == 0, 0.0, least), np.where(false_hits == trials, 1.0, most)
    return np.asarray(np.log(np.maximum((least - delta) / most, 1.0)))


def attack(without: list[Reals], with_canary: list[Reals], delta: float) -> float:
    """The lower bound on ε from the statistics of both worlds, a pair for each statistic."""
    pairs = list(zip(without, with_canary, strict=True))
    pairs += [(-there, -not_there) for not_there, there in pairs]  # the other direction
    half = pairs[0][0].size // 2
    levels = 1 - np.geomspace(1 / half, 1.0, 200)
    best, chosen, threshold = -1.0, 0, 0.0
    for index, pair in enumerate(pairs):
        low, high = (np.sort(values[:half]) for values in pair)
        places = (levels * (half - 1)).round().astype(int)
        tried = np.unique(np.concatenate([low[places], high[places]]))
        false_hits = half - np.searchsorted(low, tried, side="right")
        hits = half - np.searchsorted(high, tried, side="right")
        bounds = lower_bounds(hits, false_hits, half, delta)
        if bounds.max() > best:
            at = int(np.argmax(bounds))
            best, chosen, threshold = float(bounds[at]), index, float(tried[at])
    above = [np.count_nonzero(values[half : 2 * half] > threshold) for values in pairs[chosen]]
    false_hits, hits = np.asarray(above)
    return float(lower_bounds(hits, false_hits, half, delta))


@cache
def _claim(events: tuple[Event, ...], delta: float) -> float:
    return epsilon(events, delta, "pld")


def audit(setting: Setting, version: str, trials: int, seed: int) -> tuple[float, float]:
    """The ε that a version claims for its releases, and the least that it has in truth."""
    random = np.random.default_rng(seed)
    with VERSIONS[version](setting):
        absent, _ = watch(setting, False, trials, random)
        present, events = watch(setting, True, trials, random)
    bound = attack(statistics(setting, absent), statistics(setting, present), setting.delta)
    return _claim(tuple(events), setting.delta), bound


def main() -> int:
    parser = argparse.ArgumentParser(description="Attack the release; bound ε from below.")
    parser.add_argument("--trials", type=int, default=200_000, help="in each of the two worlds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.trials < 2 or options.seed < 0:
        parser.error("trials must be at least 2, and seed at least 0")
    print(f"{'setting':<32}{'version':<22}{'δ':>8}{'claimed ε':>11}{'measured ε ≥':>14}  verdict")
    wrong = 0
    for setting in SETTINGS:
        for version in versions_of(setting):
            claim, bound = audit(setting, version, options.trials, options.seed)
            honest = version == HONEST
            verdict = ("missed", "caught")[bound > claim]
            if honest:
                verdict = ("holds", "REFUTED")[bound > claim]
            wrong += honest == (bound > claim)
            row = f"{setting.name:<32}{version:<22}{setting.delta:>8.2g}{claim:>11.2f}"
            print(f"{row}{bound:>14.2f}  {verdict}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
