"""What the kept runs of a section say: curves, and verdicts against the best way to go alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sottovoce.lab.peers.comparison import (
    MARGIN,
    Paired,
    best_solo,
    carried,
    paired,
    trials_needed,
)
from sottovoce.lab.peers.sections import CONTROL, OURS, SOLO, Part, Tasks
from sottovoce.lab.peers.together import curves_of

FloatArray = NDArray[np.float64]
LEAST = 2  # runs, for an interval


def kept(tasks: Tasks) -> Tasks:
    """Those of an entry's runs, from the first on, that are there."""
    there = [task.path.is_file() for task in tasks]
    return tasks[: there.index(False)] if False in there else tasks


def curves_in(
    folder: Path, parts: Sequence[Part], problem: str, least: int = LEAST
) -> dict[str, FloatArray]:
    """Each entry's runs on a problem, (R, trials), from whichever part has it; R may differ."""
    found: dict[str, FloatArray] = {}
    for part in parts:
        if problem not in part.problems:
            continue
        for entry in part.entries:
            tasks = kept(part.tasks(folder / "together", problem, entry))
            if len(tasks) >= least:
                found[entry] = curves_of(tasks)
    return carried(found) if found else found


@dataclass(frozen=True)
class Reading:
    """One problem of a section: an entry beside the best solo search."""

    problem: str
    curves: dict[str, FloatArray]
    solo: str
    after: int
    over_solo: Paired
    over_solo_all: Paired  # over all trials
    over_control: Paired | None  # over all trials
    needs: float

    @property
    def excess(self) -> float:
        """By how much its regret is above that of the best solo search, as a share of it."""
        return self.over_solo.ours / self.over_solo.other - 1 if self.over_solo.other > 0 else 0.0

    def mean(self, entry: str, after: int | None = None) -> float | None:
        """An entry's mean regret after so many trials."""
        if entry not in self.curves:
            return None
        return float(self.curves[entry][:, (after or self.after) - 1].mean())

    def over(self, entry: str) -> Paired | None:
        """Our entry against another, after the last trial that is judged."""
        if entry not in self.curves:
            return None
        at = self.after - 1
        return paired(self.curves[OURS][:, at], self.curves[entry][:, at])

    @property
    def runs(self) -> int:
        """How many runs our entry has."""
        return len(self.curves[OURS])


def reading(
    problem: str, curves: dict[str, FloatArray], entry: str = OURS, solo: Sequence[str] = SOLO
) -> Reading | None:
    """None while our entry, or any solo search, has not been run."""
    if entry not in curves or not any(name in curves for name in solo):
        return None
    best, after = best_solo(curves, solo)
    target = float(curves[best][:, after - 1].mean())
    control = None
    if CONTROL in curves:
        control = paired(curves[entry].mean(axis=1), curves[CONTROL].mean(axis=1))
    judged = paired(curves[entry][:, after - 1], curves[best][:, after - 1])
    all_along = paired(curves[entry].mean(axis=1), curves[best].mean(axis=1))
    needs = trials_needed(curves[entry].mean(axis=0), target)
    shown = curves if entry == OURS else {**curves, OURS: curves[entry]}
    return Reading(problem, shown, best, after, judged, all_along, control, needs)


def readings(folder: Path, parts: Sequence[Part], entry: str = OURS) -> list[Reading]:
    """All problems of a section that our entry was run on."""
    names = dict.fromkeys(
        problem for part in parts if entry in part.entries for problem in part.problems
    )
    each = (reading(name, curves_in(folder, parts, name), entry) for name in names)
    return [one for one in each if one is not None]


@dataclass(frozen=True)
class Counts:
    """A section in numbers."""

    problems: int
    better: int
    worse: tuple[str, ...]
    sooner: int  # problems on which it is better over all trials
    later: int  # and worse
    beyond: int  # problems with more than 3 % more regret than the best solo search
    needs: float  # the median
    told: int  # problems with a control
    heard: int  # of these, better than it over all trials
    harmed: int  # of these, worse

    @property
    def joins(self) -> bool:
        """Whether joining is what the section speaks for: a gain in most, harm in none."""
        return 2 * self.better > self.problems and not self.worse


def counted(found: Sequence[Reading]) -> Counts:
    """The verdicts of a section."""
    over = [one.over_control.word for one in found if one.over_control is not None]
    return Counts(
        problems=len(found),
        better=sum(one.over_solo.word == "better" for one in found),
        worse=tuple(one.problem for one in found if one.over_solo.word == "worse"),
        sooner=sum(one.over_solo_all.word == "better" for one in found),
        later=sum(one.over_solo_all.word == "worse" for one in found),
        beyond=sum(one.excess > MARGIN for one in found),
        needs=float(np.median([one.needs for one in found])),
        told=len(over),
        heard=over.count("better"),
        harmed=over.count("worse"),
    )
