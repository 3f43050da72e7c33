"""What a study promises, as numbers: to a site, to a person, and if parties collude."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sottovoce import __version__
from sottovoce.errors import InvalidInput
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.study import FederatedStudy
from sottovoce.files import read_toml
from sottovoce.flower.sites import NAME as SITES
from sottovoce.flower.sites import read_roster
from sottovoce.flower.studyfile import NOBODY, StudyFile, read_study, study_from
from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.events import Event, SharedGaussian, SubsampledGaussian

STRICTER = (1.0, 0.5, 0.25)  # of the ε in the file


class Bound(NamedTuple):
    """ε for one of the two things that are protected, and what it lets anybody guess."""

    epsilon: float
    right: float  # how often a guess between the two worlds can be right at most; 0.5 is blind


@dataclass(frozen=True)
class League:
    """Who would have to collude where nobody is trusted. Symbols as in `secure_sum.terms`."""

    unreliable: int  # k
    members: int  # h
    threshold: int  # t
    twice: int  # 2t − h
    fewest: int  # speakers that a release needs; the coordinator may leave out the others
    aggregators: int
    opened: tuple[Bound, Bound]  # a site and a record, once t members and the coordinator collude
    doubled: tuple[Bound, Bound] | None  # the same if 2k sites fail; None: there are not so many
    # if k are in league with a coordinator that leaves out as many others as it may; None: no noise
    left_out: tuple[Bound, Bound] | None
    roster: str  # digest of all keys; empty while they are not known

    @property
    def absent(self) -> int:
        """How many sites a release does without: absent, or left out by the coordinator."""
        return self.unreliable // 2


@dataclass(frozen=True)
class Promise:
    """All that a study promises, by its public constants."""

    file: StudyFile
    event: Event
    releases: int
    site: Bound
    record: Bound
    league: League | None  # None: the coordinator is trusted
    version: str

    @property
    def study(self) -> FederatedStudy:
        """The study."""
        return self.file.study

    @property
    def noise(self) -> float:
        """z."""
        return getattr(self.event, "noise", math.nan)

    @property
    def participation(self) -> float:
        """q."""
        return getattr(self.event, "participation", 1.0)

    @property
    def numbers(self) -> int:
        """How many one message has."""
        return self.study.method.features

    @property
    def draft(self) -> bool:
        """Whether the study is not settled yet, as its sites' keys are part of it."""
        return self.league is not None and not self.league.roster


class Stricter(NamedTuple):
    """What another ε would cost."""

    epsilon: float
    record: float
    noise: float
    revealed: float | None  # of what sites have in common; None: the method has no such figure


def promise_of(file: StudyFile) -> Promise:
    """What the study in a file promises."""
    study = file.study
    event, releases = planned_event(study, "planned"), len(study.release_rounds)
    site, record = _bounds({event: releases}, file.delta)
    league = _league(file, event, releases)
    return Promise(file, event, releases, site, record, league, __version__)


def _league(file: StudyFile, event: Event, releases: int) -> League | None:
    sums, agents = file.study.sums, file.study.agents
    if sums is None or not isinstance(event, SharedGaussian):
        return None
    committee, k = sums.committee(agents), sums.unreliable
    one, fewer = event.counting_on(1), event.counting_on(agents - 2 * k)
    least = event.counting_on(agents - k // 2 - k)
    if one is None:
        raise InvalidInput("a study without sites promises nothing")
    return League(
        unreliable=k,
        members=len(committee.members),
        threshold=committee.threshold,
        twice=committee.twice,
        fewest=agents - k // 2,
        aggregators=sums.aggregators,
        opened=_bounds({one: releases}, file.delta),
        doubled=None if fewer is None else _bounds({fewer: releases}, file.delta),
        left_out=None if least is None else _bounds({least: releases}, file.delta),
        roster=sums.roster,
    )


def _bounds(events: Mapping[Event, int], delta: float) -> tuple[Bound, Bound]:
    """Of a site's whole contribution, and of one record replaced."""
    found = []
    for measure in (epsilon, replace_one):
        accountant = "rdp" if _fixed(events) else "pld"
        spent = measure(events, delta, accountant)
        apart = _apart(spent, delta)
        if not _sampled(events):  # the answer is exact, and quick
            apart = min(apart, _distance(measure, events))
        found.append(Bound(spent, (1 + apart) / 2))
    return found[0], found[1]


def _apart(spent: float, delta: float) -> float:
    """The most that two (ε, δ)-private worlds can be apart, in total variation."""
    return 1.0 if spent > 700 else (math.expm1(spent) + 2 * delta) / (math.exp(spent) + 1)


def _distance(measure: Callable[..., float], events: Mapping[Event, int]) -> float:
    """The least δ at which ε is zero, which is the total variation; rounded up."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if measure(events, middle) <= 0 else (middle, high)
    return high


def _sampled(events: Mapping[Event, int]) -> bool:
    return any(isinstance(e, SubsampledGaussian) and e.participation < 1 for e in events)


def _fixed(events: Mapping[Event, int]) -> bool:
    return any(isinstance(e, SubsampledGaussian) and e.sampling == "fixed" for e in events)


def study_in(path: Path) -> tuple[StudyFile, Path]:
    """The study meant by a path, a file or a project's folder; and the file."""
    file = path / "study.toml" if path.is_dir() else path
    if not file.is_file():
        what = "has no study.toml" if path.is_dir() else "is not there"
        raise InvalidInput(f"{path} {what}: give a study.toml, or a project's folder")
    return read_study(file), file


def stricter(path: Path) -> list[Stricter]:
    """What the study in a file would be with its ε, a half and a quarter of it."""
    data, keys = read_toml(path), path.with_name(SITES)
    sealed = data["study"].get("trust") == NOBODY and keys.exists()
    roster = read_roster(keys) if sealed else None
    found = []
    for share in STRICTER:
        target = share * float(data["study"]["epsilon"])
        file = study_from({**data, "study": {**data["study"], "epsilon": target}}, None, roster)
        study = file.study
        event = planned_event(study, "planned")
        accountant = "rdp" if _fixed({event: 1}) else "pld"
        record = replace_one({event: len(study.release_rounds)}, file.delta, accountant)
        noise = math.nan if study.method.mechanism is None else study.method.mechanism.noise
        found.append(Stricter(target, record, noise, revealed(study)))
    return found


def revealed(study: FederatedStudy) -> float | None:
    """How much of what sites have in common the releases are to reveal, before any is made."""
    if study.method.shared.consensus:
        points = [study.method.initial + number for number in study.release_rounds]
        return study.consensus.revealed(points, study.release_noise)
    if study.method.shared_model == "pooled":
        return study.pooled.revealed(study.release_noise, len(study.release_rounds))
    return None
