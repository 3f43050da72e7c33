"""kill -9, at random moments and at chosen ones, of every kind of process that a federation has."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.endtoend.federation import CLIENT, COORDINATOR, LINK, NODE, SUMS, Federation, Plan
from tests.endtoend.invariants import check_all, check_kept, require
from tests.endtoend.outcomes import Row, say

from sottovoce.privacy.ledger import LedgerView

SOTTOVOCE = Plan(rounds=8, method="sottovoce", settings="")
PAUSE = 12.0  # seconds; a round takes about as long
WATCH = 0.005  # seconds between two looks for the moment between the exchanges
NOBODY = "nothing was released, nothing was spent; run again"
MOMENTS = ("starting", "open", "just released", "released")
BETWEEN = "between the exchanges"  # who spoke is settled, no member has been asked
SITE = {"all of a site": "", "its SuperNode alone": NODE, "its ClientApp alone": CLIENT}
HUB = {"the coordinator's process": COORDINATOR}
MACHINE = {"the SuperLink alone": LINK, "all of the coordinator's machine": ""}


@dataclass(frozen=True)
class Victim:
    """Who is killed, again and again, and in what kind of study."""

    fault: str
    plan: Plan
    hub: dict[str, str] | None = None  # the coordinator's processes; None: a party's
    members: bool = False  # the party is one that adds up shares, while it is asked to


TRUSTED = Plan(trial_limit=15)
SHARED = Plan(trial_limit=15, sites=5, settings=SUMS)
SUMMED = replace(SHARED, aggregators=3)
VICTIMS = {
    "site": Victim("A site dies", TRUSTED),
    "coordinator": Victim("The coordinator dies", TRUSTED, HUB),
    "superlink": Victim("The SuperLink dies", TRUSTED, MACHINE),
    "sums-site": Victim("A site dies, trust nobody", SHARED),
    "sums-member": Victim("A member dies, trust nobody", SHARED, members=True),
    "sums-aggregator": Victim("An aggregator dies, trust nobody", SUMMED, members=True),
    "sums-coordinator": Victim("The coordinator dies, trust nobody", SHARED, HUB),
    "sums-superlink": Victim("The SuperLink dies, trust nobody", SHARED, MACHINE),
}


@dataclass(frozen=True)
class Kill:
    """One kill."""

    how: str  # what was killed
    moment: str
    released: int  # rounds, by then
    answered: int  # members that had their answer for the round on disk
    seconds: float  # since the study began


@dataclass
class Killed:
    """What came of the kills of one job."""

    kills: list[Kill] = field(default_factory=list)
    studies: int = 0
    runs: int = 0
    revived: int = 0  # times that a SuperNode ended by itself
    epsilon: float = 0.0
    granted: float = 0.0
    rounds: int = 0  # released

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Killed:
        """From plain data."""
        return cls(**{**data, "kills": [Kill(**kill) for kill in data["kills"]]})


class Killer:
    """Kills one kind of process again and again, until it has done so often enough."""

    def __init__(self, folder: Path, kills: int, random_: random.Random, first: int = 0) -> None:
        self.folder, self.left, self.random = folder, kills, random_
        self.came = Killed()
        self.seen: LedgerView | None = None
        self._first = first  # kills of other jobs come before these
        self._began = time.monotonic()

    def study(self, plan: Plan) -> Federation:
        """A new deployment."""
        self.came.studies += 1
        self.seen, self._began = None, time.monotonic()
        return Federation(self.folder / f"study-{self.came.studies}", plan)

    def look(self, fed: Federation) -> None:
        """The ledger must verify, and have lost nothing."""
        if fed.released:
            now = fed.ledger
            check_kept(self.seen, now)
            self.seen = now

    def killed(self, fed: Federation, how: str, moment: str) -> None:
        """Count a kill."""
        self.left -= 1
        seconds = round(time.monotonic() - self._began, 1)
        kill = Kill(how, moment, fed.released, fed.answers(fed.released), seconds)
        self.came.kills.append(kill)
        say(f"{how} killed {moment}, {kill.released} rounds released, {self.left} kills to go")

    def begin(self, fed: Federation, *, open_: bool = True) -> None:
        """Start a run, and wait until its process is there, or has opened a step, or is over."""
        lines = len(fed.journal)
        fed.submit()
        self.came.runs += 1
        fed.wait(fed.coordinating, "the coordinator has started")
        if open_:
            moved = "the coordinator has opened a step"
            fed.wait(lambda: len(fed.journal) > lines or not fed.coordinating(), moved)

    def strike_site(self, fed: Federation, kills: Counter[str]) -> None:
        """Kill a site, or one of its processes, at a random moment.

        One of those that are there, and not the last: without any, nothing would go on.
        """
        there = [name for name in fed.stage.sites if fed.connected(name)]
        name, how = self.random.choice(fed.stage.sites), self.random.choice(sorted(SITE))
        if name in there and len(there) >= 2 and fed.kill_party(name, SITE[how]):
            self._lost(fed, name, how, "at a random moment", kills)

    def strike_member(self, fed: Federation, kills: Counter[str]) -> None:
        """Kill one of those who add up shares, as soon as members are about to be asked."""
        members = fed.stage.aggregators or fed.stage.sites
        fed.wait(
            lambda: not fed.coordinating() or all(map(fed.connected, members)), "all are there"
        )
        name, how = self.random.choice(members), self.random.choice(sorted(SITE))
        if not self._settled(fed):
            return
        moment = BETWEEN
        if SITE[how] == CLIENT:  # which there is only when it has been asked
            moment = "while it adds up"
            end = time.monotonic() + PAUSE
            while not fed.alive(fed.folder(name), CLIENT) and time.monotonic() < end:
                time.sleep(WATCH)
        if fed.kill_party(name, SITE[how]):
            self._lost(fed, name, how, moment, kills)

    def _lost(self, fed: Federation, name: str, how: str, moment: str, kills: Counter[str]) -> None:
        """A party was killed: all but a ClientApp is started again."""
        kills[name] += 1
        self.killed(fed, how, moment)
        self.look(fed)
        time.sleep(self.random.uniform(0.0, 3.0))
        if SITE[how] != CLIENT:
            fed.clear_party(name)
            fed.start_site(name)

    def await_moment(self, fed: Federation) -> str:
        """Start a run, and wait for a moment of it, or until it is over; every other time that is
        exactly between the exchanges, where there are two."""
        number = self._first + len(self.came.kills)
        if fed.stage.study.study.sums is not None and number % 2 == 0:
            self.begin(fed)
            return BETWEEN if self._settled(fed) else ""
        moment, before = self.random.choice(MOMENTS), fed.released
        self.begin(fed, open_=moment != "starting")
        if moment.endswith("released"):
            fed.wait(lambda: fed.released > before or not fed.coordinating(), "a round is released")
        time.sleep(self.random.uniform(0.0, 1.0 if moment == "just released" else PAUSE))
        return {"starting": "while it starts", "open": "in an open step"}.get(
            moment, f"when a round was {moment}"
        )

    def _settled(self, fed: Federation) -> bool:
        """Wait for the moment between the exchanges; False if the run ended before it."""
        settled, looked = fed.counted("settled"), time.monotonic()
        while fed.counted("settled") == settled:
            if time.monotonic() > looked + 1.0:
                looked = time.monotonic()
                fed.revive()
                if not fed.coordinating():
                    return False
            time.sleep(WATCH)
        return True

    def strike_hub(self, fed: Federation, choices: dict[str, str], moment: str) -> None:
        """Kill processes of the coordinator's; if it was the link, start it again.

        Flower has to notice by itself that a run is no more.
        """
        how = self.random.choice(sorted(choices))
        fed.kill_party("superlink", choices[how])
        self.killed(fed, how, moment)
        if choices is not HUB:
            time.sleep(self.random.uniform(0.0, 2.0))
            fed.clear_party("superlink")
            fed.start_link()
        self.look(fed)


def kill_parties(killer: Killer, victim: Victim, plan: Plan) -> None:
    """Kill sites, or members, and start them again, while a study runs."""
    while killer.left > 0:
        kills: Counter[str] = Counter()
        with killer.study(plan) as fed:
            killer.begin(fed)
            while killer.left > 0:
                if not fed.coordinating():
                    if NOBODY in fed.finish().details:  # too many were away at once
                        killer.begin(fed)
                        continue
                    break
                if victim.members:
                    killer.strike_member(fed, kills)
                else:
                    time.sleep(killer.random.uniform(0.0, PAUSE))
                    fed.revive()
                    killer.strike_site(fed, kills)
            ended(killer, fed, kills)


def kill_hub(killer: Killer, victim: Victim, plan: Plan) -> None:
    """Kill the coordinator's processes; every time a new run goes on."""
    while killer.left > 0:
        with killer.study(plan) as fed:
            while killer.left > 0:
                moment = killer.await_moment(fed)
                if not fed.coordinating():
                    break
                killer.strike_hub(fed, victim.hub or HUB, moment)
            else:
                killer.begin(fed)
            ended(killer, fed, Counter())


def ended(killer: Killer, fed: Federation, kills: Counter[str]) -> None:
    """The last run must end well, with everything in its place."""
    found = fed.finish()
    while NOBODY in found.details:  # all sites were away at once: that stops a run, cleanly
        killer.begin(fed)
        found = fed.finish()
    require(found.well, f"the run ended as {found}")
    killer.look(fed)
    came = killer.came
    came.epsilon, came.granted = finished(fed, kills), fed.plan.epsilon
    came.revived, came.rounds = came.revived + fed.revived, came.rounds + fed.released


def finished(fed: Federation, kills: Counter[str]) -> float:
    """A run may end while sites are away: another calls them once more. Then all must hold."""
    for _ in range(3):
        last = [line for line in fed.journal if line["event"] == "finished"]
        if last and last[-1]["done"] == fed.plan.sites:
            break
        fed.submit()
        require(fed.finish().well, "a run for sites that were absent failed")
    return check_all(fed, kills)


def killed(folder: Path, name: str, kills: range, seed: int) -> Killed:
    """Do these kills of a victim's, by their numbers, in a study of their own or several."""
    victim = VICTIMS[name]
    killer = Killer(folder, len(kills), random.Random(f"{seed}/{name}/{kills[0]}"), kills[0])
    plan = replace(victim.plan, rounds=2 + len(kills))
    (kill_parties if victim.hub is None else kill_hub)(killer, victim, plan)
    return killer.came


def row(fault: str, parts: list[Killed]) -> Row:
    """The line of the table for all kills of a victim."""
    came = Killed(
        [kill for part in parts for kill in part.kills],
        sum(part.studies for part in parts),
        sum(part.runs for part in parts),
        sum(part.revived for part in parts),
        max(part.epsilon for part in parts),
        parts[0].granted,
        sum(part.rounds for part in parts),
    )
    done = ", ".join(_counted(kill.how for kill in came.kills))
    moments = "; ".join(_counted(kill.moment for kill in came.kills))
    between = [kill for kill in came.kills if kill.moment == BETWEEN]
    unasked = sum(kill.answered == 0 for kill in between)
    exact = f" ({unasked} of {len(between)} before any member had answered)" if between else ""
    studies = "the study ended" if came.studies == 1 else f"{came.studies} studies ended"
    runs = "one run" if came.runs == 1 else f"{came.runs} runs, each from where the ledger ends"
    again = f"; a SuperNode was refused, and started again, {_often(came.revived)}"
    happened = f"{studies}, in {runs}{again if came.revived else ''}"
    done = f"`kill -9`: {done}; {moments}{exact}"
    return Row(fault, done, happened, came.epsilon, came.granted, came.rounds)


def _counted(words: Iterator[str]) -> list[str]:
    counts = Counter(words)
    return [f"{word} {_often(n)}" for word, n in sorted(counts.items())]


def _often(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def each_killed(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """Everything dies in turn, in a study by the method `sottovoce`."""
    killer = Killer(folder, 3 * max(1, kills // 10), random_)
    lost: Counter[str] = Counter()
    with killer.study(SOTTOVOCE) as fed:
        killer.begin(fed)
        while killer.left > 0:
            time.sleep(killer.random.uniform(0.0, PAUSE))
            turn = killer.left % 3
            if turn == 0:
                fed.revive()
                killer.strike_site(fed, lost)
                continue
            killer.strike_hub(fed, HUB if turn == 2 else MACHINE, "at a random moment")
            killer.begin(fed)
        ended(killer, fed, lost)
    return [row("All die in turn, method `sottovoce`", [killer.came])]
