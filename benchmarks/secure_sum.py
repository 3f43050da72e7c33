"""What a sum that nobody can open alone costs each party, and an attack on it.

    python benchmarks/secure_sum.py [--numbers M] [--trials B] [--only cost|audit] [--draw FILE]

cost: processor seconds and bytes of one release for a site, a member and the coordinator, for all
sites as members (N = 10, 100), a committee of 100 (N = 1,000) and three aggregators (N = 10,000).
A site's and a member's are measured; of the coordinator's, one speaker's check is, times N. With
--draw more sizes are measured, and their growth is drawn (Matplotlib).

audit: five sites, of which two pool what they know with the coordinator. They take their own noise
off the sum and look for a third site's vector. Every number of the vector is a trial of its own,
through the whole protocol: noise from the system, shares, sealing, members, interpolation. The
lower bound on ε that they reach must stay below the claim; with four in league it need not.
"""

from __future__ import annotations

import argparse
import hashlib
import runpy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.noise import SystemEntropy
from sottovoce.privacy.release import Mechanism
from sottovoce.secure_sum import field
from sottovoce.secure_sum.grid import Grid, grid_for, rounded, spoken
from sottovoce.secure_sum.keys import Identity
from sottovoce.secure_sum.protocol import (
    Answer,
    Terms,
    answered,
    check_answer,
    check_speech,
    speech,
)
from sottovoce.secure_sum.sharing import joined
from sottovoce.secure_sum.terms import committee_of, default_unreliable

STUDY = "00" * 32
SIZES = ((10, 0), (100, 0), (1_000, 0), (10_000, 3))  # sites, aggregators
MORE = ((30, 0), (300, 0), (3_000, 0), (100, 3), (300, 3), (1_000, 3), (3_000, 3))
NOISE = 4.0
Found = TypeVar("Found")


@dataclass(frozen=True)
class Cost:
    """Of one release."""

    agents: int
    members: int
    site: float  # seconds
    member: float
    coordinator: float
    site_up: int  # bytes
    member_down: int

    @property
    def coordinator_moved(self) -> int:
        """Bytes that the coordinator takes from all sites, and as many that it hands to members."""
        return self.agents * self.site_up


def timed(work: Callable[[], Found]) -> tuple[float, Found]:
    """Seconds of this process's own, so that other work on the machine does not count."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def cost(agents: int, aggregators: int, numbers: int) -> Cost:
    """What each party does in one release of so many sites."""
    grid = grid_for(agents, default_unreliable(agents), NOISE, numbers)
    committee = committee_of(agents, STUDY, aggregators)
    one, other = Identity.generate(), Identity.generate()
    # the cost of a key does not depend on whose it is: all but one member share theirs
    keys = [other.public] * (agents + aggregators)
    keys[committee.members[0]] = one.public
    terms = Terms(STUDY, grid, committee, tuple(keys))
    weights, mechanism = np.full((1, agents), 1 / agents), Mechanism(5.0, 1.0, NOISE)
    vector, source = np.random.default_rng(0).standard_normal(numbers), SystemEntropy()
    speaker = committee.members[-1] if not aggregators else 0

    def speak() -> tuple[bytes, ...]:
        steps = rounded(vector, speaker, weights, mechanism, grid)
        return speech(terms, 0, speaker, spoken(steps, grid, source), other)

    timed(speak)  # imports, tables
    site, packets = timed(speak)
    checking, _ = timed(lambda: check_speech(terms, 0, speaker, packets))
    mine = _packets_to_first(terms, one, other)
    member, answer = timed(lambda: answered(terms, 0, committee.members[0], mine, one))
    opening = _opening(terms, sorted(mine), answer)
    return Cost(
        agents,
        len(committee.members),
        site,
        member,
        checking * agents + opening,
        sum(map(len, packets)),
        sum(map(len, mine.values())),
    )


def _packets_to_first(terms: Terms, one: Identity, other: Identity) -> dict[int, bytes]:
    """A packet of every site to the first member, and to nobody else."""
    first = terms.committee.members[0]
    found = {}
    for agent in range(terms.grid.agents):
        context = f"sottovoce/packet/v1/{terms.study}/0/{agent}/{first}".encode()
        sealed = one.public.seal(field.to_bytes(field.uniform((terms.grid.numbers,))), context)
        signer = one if agent == first else other
        content = context + b"/" + hashlib.sha256(sealed).digest()
        found[agent] = signer.sign(content) + sealed
    return found


def _opening(terms: Terms, speakers: list[int], answer: Answer) -> float:
    """Checking all answers, and interpolating; the shares are made up, and lie on a line."""
    members = len(terms.committee.members)
    checking, _ = timed(lambda: check_answer(terms, 0, speakers, answer))
    row = field.uniform((terms.grid.numbers,))
    shares = dict.fromkeys(range(members), row)
    interpolating, _ = timed(lambda: joined(shares, terms.committee.threshold))
    return checking * members + interpolating


def attacked(
    trials: int, in_league: int, *, noise: float = 1.0, delta: float = 1e-5
) -> tuple[float, float]:
    """The ε claimed for k = 2 of 5 sites, and the least that so many in league prove it to be."""
    audit = runpy.run_path(str(Path(__file__).with_name("audit.py")))
    grid = grid_for(5, 2, noise, 1)
    seen = [_left_over(grid, trials, in_league, present) for present in (False, True)]
    bound = audit["attack"]([seen[0]], [seen[1]], delta)
    return epsilon([grid.event("audit")], delta), float(bound)


def _left_over(grid: Grid, trials: int, in_league: int, present: bool) -> NDArray[np.float64]:
    """The sum without what those in league know they said, number by number, in clips."""
    who = [Identity.generate() for _ in range(5)]
    wide = Grid(grid.agents, grid.unreliable, grid.noise, trials, grid.bits)  # a trial a number
    terms = Terms(STUDY, wide, committee_of(5, STUDY), tuple(each.public for each in who))
    source = SystemEntropy()
    said = []
    for agent in range(5):
        steps = np.full(trials, grid.limit if present and agent == 0 else 0, dtype=np.int64)
        said.append(source.add_discrete_gaussian(steps, grid.share))
    packets = [speech(terms, 0, agent, said[agent], who[agent]) for agent in range(5)]
    answers = [
        answered(terms, 0, member, {n: packets[n][member] for n in range(5)}, who[member])
        for member in range(5)
    ]
    # every trial alone may be plausible where all of them together are not: hence not `opened`
    shares = {a.member: check_answer(terms, 0, range(5), a) for a in answers}
    total = field.decode(joined(shares, terms.committee.threshold))
    known = np.sum([said[agent] for agent in range(5 - in_league, 5)], axis=0)
    return np.asarray((total - known) / grid.limit, dtype=np.float64)


def draw(costs: list[Cost], numbers: int, path: Path) -> None:
    """Time and bytes of each party over the number of sites, by who sums."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10.5, 4.3), layout="constrained")
    parties = {
        "a site": ("#1b6ca8", "site", "site_up"),
        "a member": ("#c8553d", "member", "member_down"),
        "the coordinator": ("#3c7a4b", "coordinator", "coordinator_moved"),
    }
    styles = {
        "a committee of at most 100": ("-", "o", False),
        "three aggregators": ("--", "s", True),
    }
    for party, (colour, *columns) in parties.items():
        for who, (line, marker, three) in styles.items():
            some = sorted((c for c in costs if (c.members == 3) is three), key=lambda c: c.agents)
            for panel, column, unit in zip(panels, columns, (1.0, 1e6), strict=True):
                y = [getattr(c, column) / unit for c in some]
                x = [c.agents for c in some]
                panel.plot(x, y, line, marker=marker, ms=4, color=colour, label=f"{party}, {who}")
    for panel, label in zip(panels, ("processor seconds", "megabytes moved"), strict=True):
        panel.set(xscale="log", yscale="log", xlabel="sites", ylabel=label)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"One release that nobody can open alone: vectors of {numbers} numbers")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> int:
    parser = argparse.ArgumentParser(description="Cost of, and an attack on, sums in shares.")
    parser.add_argument("--numbers", type=int, default=256, help="M, of a vector")
    parser.add_argument("--trials", type=int, default=200_000, help="of the attack")
    parser.add_argument("--only", choices=("cost", "audit"))
    parser.add_argument("--draw", type=Path, help="a figure of the cost, such as growth.png")
    options = parser.parse_args()
    wrong = 0
    if options.only != "audit":
        parties = "a site, s | a member, s | coordinator, s"
        print(f"| N | members | {parties} | site up | member down | coordinator moves |")
        print("|--:|--:|--:|--:|--:|--:|--:|--:|")
        costs = []
        for agents, aggregators in (*SIZES, *(MORE if options.draw else ())):
            c = cost(agents, aggregators, options.numbers)
            costs.append(c)
            moved = (c.site_up, c.member_down, c.coordinator_moved)
            sizes = " | ".join(f"{size / 1e3:,.0f} kB" for size in moved)
            times = f"{c.site:.3f} | {c.member:.3f} | {c.coordinator:.2f}"
            print(f"| {agents:,} | {c.members} | {times} | {sizes} |", flush=True)
        if options.draw is not None:
            draw(costs, options.numbers, options.draw)
    if options.only != "cost":
        for in_league in (0, 2, 3, 4):
            claim, bound = attacked(options.trials, in_league)
            verdict = "holds" if bound <= claim else "more in league than claimed: exceeded"
            wrong += (bound > claim) and in_league <= 2
            figures = f"claimed ε = {claim:.2f}, measured ε ≥ {bound:.2f}"
            print(f"{in_league} in league: {figures}  {verdict}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
