"""What a coordinator's folder says of a study while it runs, as data for its live page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sottovoce.errors import LedgerError, SottovoceError
from sottovoce.federation.study import FederatedStudy
from sottovoce.files import read_toml
from sottovoce.flower.coordinator.coordinator import GRACE
from sottovoce.flower.coordinator.journal import NAME as JOURNAL
from sottovoce.flower.coordinator.journal import read_journal
from sottovoce.flower.coordinator.worth import Worth, worth
from sottovoce.flower.pages.glimpse import LEDGER, glimpse
from sottovoce.flower.result.coordinator import coordinator_result
from sottovoce.flower.result.data import CoordinatorResult
from sottovoce.flower.sites import NAME as SITES
from sottovoce.flower.sites import read_sites
from sottovoce.flower.studyfile import STUDY, StudyFile
from sottovoce.privacy.ledger import read_ledger

TROUBLE = ("refused", "rejected", "failed", "late", "left", "ahead", "stopped")
ENDED = ("closed", "finished", "stopped")
SHOWN = 30  # lines of trouble, the newest
_OURS = ("budget", "simulation")  # what a ledger holds beside the study's own constants
_LONGEST = 300  # characters of a reason: what a site sends is not to fill the page

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Open:
    """A step that is under way."""

    round: int
    trials: int | None
    since: str | None
    until: str | None  # when whoever has not answered counts as absent
    summing: bool  # whether who spoke is settled, so that members add up


@dataclass(frozen=True)
class SiteLine:
    """What the coordinator knows of one site: that it answers, and what went wrong."""

    name: str
    state: str  # in the step under way, or in the last one
    answered: int  # steps
    troubles: Counter[str]


@dataclass(frozen=True)
class Trouble:
    """A line of the journal that a person should see."""

    event: str
    round: int | None
    time: str | None
    who: str
    reason: str


@dataclass(frozen=True)
class CoordinatorView:
    """All that the page shows. `result` is None, and `error` says why, if the ledger is no use."""

    study: str
    result: CoordinatorResult | None
    error: str | None
    step: Open | None
    sites: tuple[SiteLine, ...]
    worth: Mapping[int, Worth]
    planned: tuple[int, ...]  # rounds with a release
    initial: int  # trials of a site before the first of them
    troubles: tuple[Trouble, ...]
    head: str | None  # the ledger's newest digest
    last: str | None  # when anything was last written down


def look_at_coordinator(project: Path, folder: Path, study: str) -> CoordinatorView:
    """The study as the ledger, the journal and the list of sites have it now."""
    with glimpse(folder) as copy:
        journal = read_journal(copy / JOURNAL)
        result, error, head = None, None, None
        rounds: tuple[int, ...] = ()
        initial = 0
        said: dict[int, Worth] = {}
        try:
            result = coordinator_result(copy, study=study)
            view = read_ledger(copy / LEDGER)
            constants = {k: v for k, v in view.constants.items() if k not in _OURS}
            plan = FederatedStudy.from_dict(constants)
            rounds, initial, head = tuple(plan.release_rounds), plan.method.initial, view.head
            spoke = {each.round: each.spoke for each in result.rounds}
            said = {e.round: worth(e, plan, spoke.get(e.round)) for e in view.entries}
        except LedgerError as problem:
            error = str(problem).replace(str(copy), str(folder))
    step = _open(journal, _seconds(project))
    names = _names(project, result)
    return CoordinatorView(
        study=study,
        result=result,
        error=error,
        step=step,
        sites=_sites(journal, names, step),
        worth=said,
        planned=rounds,
        initial=initial,
        troubles=_troubles(journal, names),
        head=head,
        last=_text(journal[-1].get("time")) if journal else None,
    )


def _open(journal: Sequence[Line], seconds: float) -> Open | None:
    """The step that was opened and not ended."""
    begun: Line | None = None
    summing = False
    for line in journal:
        event = line.get("event")
        if event == "opened":
            begun, summing = line, False
        elif event in ENDED:
            begun = None
        elif event == "settled":
            summing = True
    if begun is None or not isinstance(begun.get("round"), int):
        return None
    trials = begun["trials"] if isinstance(begun.get("trials"), int) else None
    since, until = _text(begun.get("time")), None
    if since is not None and trials is not None:
        with suppress(ValueError, OverflowError):
            end = datetime.fromisoformat(since) + timedelta(seconds=trials * seconds + GRACE)
            until = end.isoformat(timespec="seconds")
    return Open(begun["round"], trials, since, until, summing)


def _seconds(project: Path) -> float:
    """What a trial may take, by study.toml."""
    with suppress(SottovoceError, KeyError, TypeError, ValueError):
        table = read_toml(project / STUDY)["study"]
        return float(table.get("cadence", table.get("trial_limit", StudyFile.trial_limit)))
    return StudyFile.trial_limit


def _names(project: Path, result: CoordinatorResult | None) -> list[str]:
    with suppress(SottovoceError):
        return list(read_sites(project / SITES))
    return [] if result is None else [f"site {agent}" for agent in range(result.agents)]


def _sites(
    journal: Sequence[Line], names: Sequence[str], step: Open | None
) -> tuple[SiteLine, ...]:
    """Each site by the journal; without a step under way as it was in the last one."""
    begun = max((k for k, line in enumerate(journal) if line.get("event") == "opened"), default=0)
    rounds: dict[int, set[Any]] = {agent: set() for agent in range(len(names))}
    troubles = {agent: Counter[str]() for agent in rounds}
    state = dict.fromkeys(rounds, "not yet" if step is not None else "absent")
    for k, line in enumerate(journal):
        agent, event = line.get("agent"), line.get("event")
        if not isinstance(agent, int) or agent not in rounds:
            continue
        if event == "answered":
            rounds[agent].add(line.get("round"))
        elif event in TROUBLE:
            troubles[agent][event] += 1
        if k > begun and event in ("answered", "refused", "left", "rejected"):
            state[agent] = event
    return tuple(
        SiteLine(name, state[agent] if journal else "not yet", len(rounds[agent]), troubles[agent])
        for agent, name in enumerate(names)
    )


def _troubles(journal: Sequence[Line], names: Sequence[str]) -> tuple[Trouble, ...]:
    """The newest first."""
    found = [line for line in journal if line.get("event") in TROUBLE]
    return tuple(
        Trouble(
            str(line["event"]),
            line["round"] if isinstance(line.get("round"), int) else None,
            _text(line.get("time")),
            _who(line, names),
            str(line.get("reason", ""))[:_LONGEST],
        )
        for line in found[: -SHOWN - 1 : -1]
    )


def _who(line: Line, names: Sequence[str]) -> str:
    number = line.get("agent", line.get("member"))
    if isinstance(number, int) and 0 <= number < len(names):
        return names[number]
    return "–"


def _text(value: object) -> str | None:
    return None if value is None else str(value)[:40]
