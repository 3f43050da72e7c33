"""Searches compared: paired over runs, by rank, and by the trials that one saves another.

Symbols: R runs, L trials, P problems, S searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from scipy.stats import t as student

from sottovoce.errors import check

FloatArray = NDArray[np.float64]
LEVEL = 0.95
CHECKPOINTS = (5, 8, 10, 15, 20, 30, 50, 60)  # trials in all
AFTER = 30  # trials, after which solo is what is to be reached
MARGIN = 0.03  # more regret than this beyond the best solo search is told


@dataclass(frozen=True)
class Paired:
    """How much larger the other's regret is, run by run: the mean, and how far 95 % reach."""

    ours: float
    other: float
    mean: float
    reach: float

    @property
    def word(self) -> str:
        """What can be told."""
        if self.mean - self.reach > 0:
            return "better"
        return "worse" if self.mean + self.reach < 0 else "–"


def paired(ours: FloatArray, other: FloatArray) -> Paired:
    """Student's interval over the runs that both have, the first of (R,) each."""
    common = min(len(ours), len(other))
    ours, other = ours[:common], other[:common]
    apart = other - ours
    reach = np.inf
    if len(apart) > 1:
        error = apart.std(ddof=1) / np.sqrt(len(apart))
        reach = float(student.ppf((1 + LEVEL) / 2, len(apart) - 1) * error)
    return Paired(float(ours.mean()), float(other.mean()), float(apart.mean()), reach)


def filled(by_search: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """While a run has no value, its regret is the largest that any run of the problem shows."""
    largest = max(float(np.nanmax(each)) for each in by_search.values())
    return {name: np.where(np.isnan(each), largest, each) for name, each in by_search.items()}


def carried(by_search: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Between the numbers of trials that a vote was held for, the last one's regret stands."""
    whole = {}
    for name, each in by_search.items():
        rows = each.copy()
        for k in range(1, rows.shape[1]):
            rows[:, k] = np.where(np.isnan(rows[:, k]), rows[:, k - 1], rows[:, k])
        whole[name] = rows
    return filled(whole)


def best_solo(curves: Mapping[str, FloatArray], solo: Sequence[str]) -> tuple[str, int]:
    """Which of the solo entries that there are, and the trial after which it is judged."""
    after = min(AFTER, next(iter(curves.values())).shape[1])
    known = [name for name in solo if name in curves]
    check(bool(known), "there must be a solo search to compare with", solo=",".join(solo))
    return min(known, key=lambda name: float(curves[name][:, after - 1].mean())), after


def mean_ranks(means: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over problems of each search's rank, 1 the best; ties share theirs."""
    names = list(means[0])
    ranks = [rankdata([each[name] for name in names]) for each in means]
    return dict(zip(names, np.mean(ranks, axis=0).tolist(), strict=True))


def trials_needed(curve: FloatArray, target: float) -> float:
    """How many trials a mean curve (L,) needs to come down to the target; inf: more than L."""
    below = np.flatnonzero(curve <= target)
    return float(below[0] + 1) if below.size else np.inf


def at(curve: FloatArray, checkpoints: Sequence[int] = CHECKPOINTS) -> dict[int, float]:
    """The curve (L,) at the checkpoints that it reaches, by trials in all."""
    return {n: float(curve[n - 1]) for n in checkpoints if n <= len(curve)}
