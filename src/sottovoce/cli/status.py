"""`sottovoce status`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sottovoce.cli.ledgers import ledger_in, together
from sottovoce.cli.show import (
    OUT,
    Found,
    Json,
    by_others,
    interruptible,
    meanings,
    number,
    print_json,
)
from sottovoce.errors import InvalidInput, LedgerError, check

if TYPE_CHECKING:
    from sottovoce.federation.study import FederatedStudy
    from sottovoce.privacy.events import Event
    from sottovoce.privacy.ledger import Entry

_REFRESH = 1.0  # seconds
_SAID = "what the release said"
_COUNTS = ("replied", "spoke", "absent", "rejected")
_OURS = ("budget", "simulation")  # what a ledger holds beside the study's own constants


def status(
    ledgers: Annotated[
        list[Path] | None,
        typer.Argument(help="Ledgers, or coordinators' project folders; default: this folder."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh until the study is over.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Where federations stand: rounds released, privacy spent and left, who was there."""
    paths = [ledger_in(path) for path in ledgers or [Path()]]
    check(len(set(paths)) == len(paths), "a ledger must be given once")
    found = [look(path) for path in paths]
    if as_json:
        sum_ = {} if len(found) == 1 else {"ledgers": found, "together": _together(paths, found)}
        print_json(sum_ or found[0])
        return
    if not watch:
        OUT.print(_pages(paths, found))
        return
    shown = Live(_pages(paths, found), console=OUT, auto_refresh=False)
    with interruptible("stopped watching; the study goes on"), shown as live:
        while not all(each["over"] for each in found):
            time.sleep(_REFRESH)
            found = [look(path) for path in paths]
            live.update(_pages(paths, found), refresh=True)


def _together(paths: Sequence[Path], found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    from sottovoce.privacy.ledger import read_ledger

    events = [entry.release.event for path in paths for entry in read_ledger(path).entries]
    return together(events, [each["delta"] for each in found])


def _pages(paths: Sequence[Path], found: Sequence[dict[str, Any]]) -> Group:
    """A page for each ledger, and what they come to for who was in all of them."""
    if len(found) == 1:
        return _page(found[0])
    shown: list[RenderableType] = []
    for path, each in zip(paths, found, strict=True):
        shown += [Text(str(path), style="bold"), _page(each), Text()]
    all_ = _together(paths, found)
    shown.append(
        Text(
            f"All {len(found)} together, for a site that spoke in every round of each: "
            f"ε = {number(all_['epsilon'])} for all that it said (zero-out), "
            f"{number(all_['replace_one'])} for one record at it (replace-one); "
            f"δ = {all_['delta']:.3g}, pld. Which studies a site was in only the site knows: "
            f"`sottovoce purse show`."
        )
    )
    return Group(*shown)


def look(ledger: Path) -> dict[str, Any]:
    """What a ledger, and the journal beside it, say of their study; neither is touched."""
    from sottovoce.flower.coordinator.journal import NAME, read_journal
    from sottovoce.privacy.events import adjacency
    from sottovoce.privacy.ledger import read_ledger

    view, journal = read_ledger(ledger), read_journal(ledger.parent / NAME)
    study = _study(view.constants, ledger)
    events = [entry.release.event for entry in view.entries]
    releases = study.method.releases.count(study.rounds)
    ended = [line for line in journal if line.get("event") in ("finished", "stopped")]
    finished = any(line.get("head") == view.head for line in ended)
    stopped = str(journal[-1].get("reason")) if ended and journal[-1] is ended[-1] else None
    all_released = len(view.entries) >= releases
    return {
        "method": study.method.name,
        "agents": study.agents,
        "rounds": study.rounds,
        "feature_seed": study.feature_seed,
        "fingerprint": study.fingerprint,
        "simulation": view.constants.get("simulation") is True,
        "releases": releases,
        "released": len(view.entries),
        "over": all_released and (finished or not journal),
        "stopped": None if finished else stopped,
        "adjacency": adjacency(events),
        **_privacy(events, view.constants.get("budget"), study.agents),
        "by_round": [_round(entry, study, journal) for entry in view.entries],
        "journal": bool(journal),
        "head": view.head,
    }


def _study(constants: dict[str, Any], ledger: Path) -> FederatedStudy:
    from sottovoce.federation.study import FederatedStudy

    own = {key: value for key, value in constants.items() if key not in _OURS}
    try:
        return FederatedStudy.from_dict(own)
    except InvalidInput as error:
        raise LedgerError(f"ledger {ledger} is of no study that can be told: {error}") from error


def _privacy(events: list[Event], budget: Any, agents: int) -> dict[str, Any]:
    """ε spent, and left of what was granted; without a budget at the paper's δ."""
    from sottovoce.privacy.budget import paper_delta

    known = isinstance(budget, dict)
    delta = float(budget["delta"]) if known else paper_delta(max(agents, 2))
    granted = float(budget["epsilon"]) if known else None
    spent, replaced = _spent(tuple(events), delta)
    tightest = "pld" if "pld" in spent else "rdp"
    by = str(budget["accountant"]) if known else tightest
    epsilon = spent.get(by)
    left = None if granted is None or epsilon is None else max(0.0, granted - epsilon)
    return {
        "epsilon": epsilon,
        "epsilon_by_accountant": spent,
        "replace_one": replaced,
        "accountant": by,
        "delta": delta,
        "granted": granted,
        "left": left,
    }


@lru_cache(maxsize=4)  # watching, the same question comes once a second
def _spent(events: tuple[Event, ...], delta: float) -> tuple[Found, Found]:
    """Of a site's whole contribution, and of one record replaced by another."""
    from sottovoce.privacy.accountant import BOUNDS, epsilon, every_epsilon, replace_one

    def bounds(measure: Callable[..., float]) -> Found:
        found = every_epsilon(events, delta, measure)
        return {n: found[n] if math.isfinite(found[n]) else None for n in BOUNDS if n in found}

    return bounds(epsilon), bounds(replace_one)


def _round(entry: Entry, study: FederatedStudy, journal: list[dict[str, Any]]) -> dict[str, Any]:
    from sottovoce.flower.coordinator.worth import worth

    line: dict[str, Any] = {}
    for each in journal:
        if each.get("event") == "closed" and each.get("round") == entry.round:
            line = each
    counts = {name: value if isinstance(value := line.get(name), int) else None for name in _COUNTS}
    return {
        "round": entry.round,
        "time": str(line["time"])[:40] if "time" in line else None,
        **counts,
        **worth(entry, study, counts["spoke"])._asdict(),
        "digest": entry.digest,
    }


def _page(found: dict[str, Any]) -> Group:
    kind = "simulation of a study" if found["simulation"] else "study"
    title = (
        f"{found['method']}, {found['agents']} agents, {found['rounds']} rounds, feature seed "
        f"{found['feature_seed']}; {kind} {found['fingerprint'][:12]}"
    )
    state = "over" if found["over"] else "not over"
    if found["stopped"] is not None:
        state = f"stopped: {found['stopped']}"
    shown: list[RenderableType] = [
        Text(title),
        Text(f"Released: {found['released']} of {found['releases']} rounds; the study is {state}."),
        Text(_guarantee(found)),
        *map(Text, meanings(found["epsilon_by_accountant"], found["replace_one"])),
    ]
    table = Table(title="Rounds released")
    for column in ("round", "time (UTC)", *_COUNTS, _SAID):
        left = column in ("time (UTC)", _SAID)
        table.add_column(column, justify="left" if left else "right", no_wrap=left)
    for each in found["by_round"]:
        when = "unknown" if each["time"] is None else each["time"][5:19].replace("T", " ")
        words = [when, *(_word(each[name]) for name in _COUNTS)]
        table.add_row(str(each["round"]), *words, each["said"])
    notes = [Text("What a release said is an estimate from what was sent to all.")]
    if not found["journal"]:
        notes.append(Text("There is no journal beside the ledger: who was there is unknown."))
    rounds: list[RenderableType] = [table, *notes] if found["by_round"] else []
    return Group(*shown, *rounds, Text(f"Newest digest: {found['head']}"))


def _guarantee(found: dict[str, Any]) -> str:
    """ε with everything that must stand beside it."""
    main = found["accountant"]
    others = by_others(found["epsilon_by_accountant"], main)
    granted, left = found["granted"], found["left"]
    budget = "no budget was set" if granted is None else f"{granted:.4g} granted"
    if left is not None:
        budget += f", {left:.4g} left"
    seeded = " Its seeded noise protects nobody." if found["simulation"] else ""
    return (
        f"Spent: ε = {number(found['epsilon'])} ({main}), {others}; {budget}; "
        f"δ = {found['delta']:.3g}, {found['adjacency']} adjacency.{seeded}"
    )


def _word(value: object) -> str:
    return "unknown" if value is None else str(value)
