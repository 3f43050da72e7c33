"""kill -9 at random moments, of every kind of process that a federation has."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

from tests.endtoend.federation import CLIENT, COORDINATOR, LINK, NODE, SUMS, Federation, Plan
from tests.endtoend.invariants import check_all, check_kept, require
from tests.endtoend.outcomes import Row, say

from sottovoce.privacy.ledger import LedgerView

SOTTOVOCE = Plan(rounds=8, method="sottovoce", settings="")
PAUSE = 12.0  # seconds; a round takes about as long
NOBODY = "nothing was released, nothing was spent; run again"
MOMENTS = ("starting", "open", "just released", "released")
BETWEEN = (*MOMENTS, "settled", "settled")  # also exactly between the two exchanges of a sum
SITE = {"all of a site": "", "its SuperNode alone": NODE, "its ClientApp alone": CLIENT}
HUB = {"the coordinator's process": COORDINATOR}
MACHINE = {"the SuperLink alone": LINK, "all of the coordinator's machine": ""}


class Killer:
    """Kills one kind of process again and again, until it has done so often enough."""

    def __init__(self, folder: Path, kills: int, random_: random.Random) -> None:
        self.folder, self.left, self.random = folder, kills, random_
        self.how: Counter[str] = Counter()
        self.studies = 0
        self.runs = 0
        self.seen: LedgerView | None = None
        self.revived = 0  # times that a SuperNode ended by itself
        self.between = 0  # kills exactly between the exchanges of a sum

    def study(self, plan: Plan) -> Federation:
        """A new deployment."""
        self.studies += 1
        self.seen = None
        return Federation(self.folder / f"study-{self.studies}", plan)

    def look(self, fed: Federation) -> None:
        """The ledger must verify, and have lost nothing."""
        if fed.released:
            now = fed.ledger
            check_kept(self.seen, now)
            self.seen = now

    def killed(self, fed: Federation, how: str) -> None:
        """Count a kill."""
        self.left -= 1
        self.how[how] += 1
        say(f"{how} killed, {fed.released} rounds released, {self.left} kills to go")

    def begin(self, fed: Federation, *, open_: bool = True) -> None:
        """Start a run, and wait until its process is there, or has opened a step, or is over."""
        lines = len(fed.journal)
        fed.submit()
        self.runs += 1
        fed.wait(fed.coordinating, "the coordinator has started")
        if open_:
            moved = "the coordinator has opened a step"
            fed.wait(lambda: len(fed.journal) > lines or not fed.coordinating(), moved)

    def await_moment(self, fed: Federation) -> None:
        """Start a run, and wait for a random moment of it, or until it is over."""
        sums = fed.stage.study.study.sums is not None
        moment, before = self.random.choice(BETWEEN if sums else MOMENTS), fed.released
        self.begin(fed, open_=moment != "starting")
        if moment == "settled":
            settled = fed.counted("settled")
            fed.wait(lambda: fed.counted("settled") > settled or not fed.coordinating(), "a set")
            self.between += fed.counted("settled") > settled
            return
        if moment.endswith("released"):
            fed.wait(lambda: fed.released > before or not fed.coordinating(), "a round is released")
        time.sleep(self.random.uniform(0.0, 1.0 if moment == "just released" else PAUSE))

    def strike_site(self, fed: Federation, kills: Counter[str]) -> None:
        """Kill a site, or one of its processes; all but a ClientApp is started again.

        One of those that are there, and not the last: without any, nothing would go on.
        """
        there = [name for name in fed.stage.sites if fed.connected(name)]
        name, how = self.random.choice(fed.stage.sites), self.random.choice(sorted(SITE))
        if name not in there or len(there) < 2:
            return
        if fed.kill_party(name, SITE[how]):  # there may be no ClientApp
            kills[name] += 1
            self.killed(fed, how)
            self.look(fed)
            time.sleep(self.random.uniform(0.0, 3.0))
            if SITE[how] != CLIENT:
                fed.clear_party(name)
                fed.start_site(name)

    def strike_hub(self, fed: Federation, choices: dict[str, str]) -> None:
        """Kill processes of the coordinator's; if it was the link, start it again.

        Flower has to notice by itself that a run is no more.
        """
        how = self.random.choice(sorted(choices))
        fed.kill_party("superlink", choices[how])
        self.killed(fed, how)
        if choices is not HUB:
            time.sleep(self.random.uniform(0.0, 2.0))
            fed.clear_party("superlink")
            fed.start_link()
        self.look(fed)

    def words(self) -> str:
        """What was done, for the table."""
        counts = {how: "once" if n == 1 else f"{n} times" for how, n in sorted(self.how.items())}
        words = ", ".join(f"{how} {count}" for how, count in counts.items())
        exact = f", {self.between} of them just before members are asked" if self.between else ""
        return f"`kill -9` at random moments: {words}{exact}"

    def outcome(self) -> str:
        """What came of it, for the table."""
        studies = "the study ended" if self.studies == 1 else f"{self.studies} studies ended"
        runs = "one run" if self.runs == 1 else f"{self.runs} runs, each from where the ledger ends"
        again = f"; a SuperNode was refused, and started again, {self.revived} times"
        return f"{studies}, in {runs}{again if self.revived else ''}"


def kill_sites(killer: Killer, plan: Plan) -> tuple[float, int]:
    """Kill a site at a random moment and start it again, while a study runs."""
    spent, released = 0.0, 0
    while killer.left > 0:
        kills: Counter[str] = Counter()
        with killer.study(plan) as fed:
            killer.begin(fed)
            while killer.left > 0:
                if not fed.coordinating():
                    if NOBODY in fed.finish().details:  # all sites were away at once
                        killer.begin(fed)
                        continue
                    break
                time.sleep(killer.random.uniform(0.0, PAUSE))
                fed.revive()
                killer.strike_site(fed, kills)
            spent, released = ended(killer, fed, kills), released + fed.released
    return spent, released


def kill_hub(killer: Killer, plan: Plan, choices: dict[str, str]) -> tuple[float, int]:
    """Kill the coordinator's processes at random moments; every time a new run goes on."""
    spent, released = 0.0, 0
    while killer.left > 0:
        with killer.study(plan) as fed:
            while killer.left > 0:
                killer.await_moment(fed)
                if not fed.coordinating():
                    break
                killer.strike_hub(fed, choices)
            else:
                killer.begin(fed)
            spent, released = ended(killer, fed, Counter()), released + fed.released
    return spent, released


def ended(killer: Killer, fed: Federation, kills: Counter[str]) -> float:
    """The last run must end well, with everything in its place; gives the ε spent."""
    found = fed.finish(900)
    while NOBODY in found.details:  # all sites were away at once: that stops a run, cleanly
        killer.begin(fed)
        found = fed.finish(900)
    require(found.well, f"the run ended as {found}")
    killer.look(fed)
    killer.revived += fed.revived
    return finished(fed, kills)


def finished(fed: Federation, kills: Counter[str]) -> float:
    """A run may end while sites are away: another calls them once more. Then all must hold."""
    for _ in range(3):
        last = [line for line in fed.journal if line["event"] == "finished"]
        if last and last[-1]["done"] == fed.plan.sites:
            break
        fed.submit()
        require(fed.finish().well, "a run for sites that were absent failed")
    return check_all(fed, kills)


def sites_killed(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """Sites die."""
    killer = Killer(folder, kills, random_)
    plan = Plan(rounds=2 + kills // 2, trial_limit=10)
    spent, rounds = kill_sites(killer, plan)
    return [Row("A site dies", killer.words(), killer.outcome(), spent, plan.epsilon, rounds)]


def coordinator_killed(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """The coordinator dies."""
    killer = Killer(folder, kills, random_)
    plan = Plan(rounds=2 + kills // 2)
    spent, rounds = kill_hub(killer, plan, HUB)
    fault = "The coordinator dies"
    return [Row(fault, killer.words(), killer.outcome(), spent, plan.epsilon, rounds)]


def link_killed(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """The SuperLink dies."""
    killer = Killer(folder, kills, random_)
    plan = Plan(rounds=2 + kills // 2)
    spent, rounds = kill_hub(killer, plan, MACHINE)
    fault = "The SuperLink dies"
    return [Row(fault, killer.words(), killer.outcome(), spent, plan.epsilon, rounds)]


def sums_killed(folder: Path, kills: int, random_: random.Random) -> list[Row]:
    """Sites, which are members too, the coordinator and the link die where nobody is trusted."""
    plan, rows = Plan(rounds=2 + kills // 2, sites=5, settings=SUMS), []
    struck = {"A site and member": None, "The coordinator": HUB, "The SuperLink": MACHINE}
    for name, choices in struck.items():
        killer = Killer(folder / name.split()[-1], kills, random_)
        if choices is None:
            spent, rounds = kill_sites(killer, plan)
        else:
            spent, rounds = kill_hub(killer, plan, choices)
        fault = f"{name} dies, trust nobody"
        rows.append(Row(fault, killer.words(), killer.outcome(), spent, plan.epsilon, rounds))
    return rows


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
            killer.strike_hub(fed, HUB if turn == 2 else MACHINE)
            killer.begin(fed)
        spent, rounds = ended(killer, fed, lost), fed.released
    fault = "All die in turn, method `sottovoce`"
    return [Row(fault, killer.words(), killer.outcome(), spent, SOTTOVOCE.epsilon, rounds)]
