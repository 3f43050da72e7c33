"""The coordinator's result, from its ledger and journal: nobody's values are in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sottovoce.errors import InvalidInput, LedgerError
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.coordinator.journal import NAME, read_journal
from sottovoce.flower.result.data import CoordinatorResult, RoundResult
from sottovoce.privacy.accountant import replace_one
from sottovoce.privacy.budget import Budget
from sottovoce.privacy.events import adjacency
from sottovoce.privacy.ledger import Entry, read_ledger

LEDGER = "ledger.db"
_OURS = ("budget", "simulation")  # what a ledger holds beside the study's own constants
_COUNTS = ("replied", "spoke", "absent", "left", "refused", "rejected")


def coordinator_result(folder: Path, *, study: str) -> CoordinatorResult:
    """What the ledger in a folder, and the journal beside it, say; neither is touched."""
    view, journal = read_ledger(folder / LEDGER), read_journal(folder / NAME)
    own = {key: value for key, value in view.constants.items() if key not in _OURS}
    try:
        constants = FederatedStudy.from_dict(own)
    except InvalidInput as error:
        raise LedgerError(f"{folder / LEDGER} is of no study that can be told: {error}") from error
    events = [entry.release.event for entry in view.entries]
    budget = _budget(view.constants.get("budget"))
    ends = [line for line in journal if line.get("event") in ("finished", "stopped")]
    finished = [line for line in ends if line.get("event") == "finished"]
    last = ends[-1] if ends and ends[-1] is journal[-1] else {}
    return CoordinatorResult(
        study=study,
        fingerprint=constants.fingerprint,
        method=constants.method.name,
        agents=constants.agents,
        trials=constants.method.initial + constants.rounds,
        over=any(line.get("head") == view.head for line in finished),
        stopped=str(last.get("reason"))[:500] if last.get("event") == "stopped" else None,
        done=_whole(finished[-1].get("done")) if finished else None,
        rounds=tuple(_round(entry, journal) for entry in view.entries),
        releases=len(events),
        releases_planned=len(constants.release_rounds),
        epsilon=budget.spent(events) if events else 0.0,
        replace_one=replace_one(events, budget.delta, budget.accountant) if events else 0.0,
        delta=budget.delta,
        granted=budget.epsilon,
        accountant=budget.accountant,
        adjacency=adjacency(events),
        simulation=view.constants.get("simulation") is True,
    )


def _budget(noted: Any) -> Budget:
    if not isinstance(noted, dict):
        raise LedgerError("a ledger that no federation wrote: it holds no budget")
    return Budget(float(noted["epsilon"]), float(noted["delta"]), str(noted["accountant"]))


def _round(entry: Entry, journal: list[dict[str, Any]]) -> RoundResult:
    line: dict[str, Any] = {}
    for each in journal:
        if each.get("event") == "closed" and each.get("round") == entry.round:
            line = each
    when = str(line["time"])[:40] if "time" in line else None
    return RoundResult(entry.round, when, *(_whole(line.get(name)) for name in _COUNTS))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
