"""A process that enters, says and closes studies in a purse until it is killed.

    python spending.py PURSE SENT SEED

What it has really said it appends to SENT, a line each, and only after the purse has it.
"""

from __future__ import annotations

import os
import random
import sys

from sottovoce.errors import BudgetExceeded
from sottovoce.privacy.events import Event, SharedGaussian, SubsampledGaussian
from sottovoce.privacy.pursefile import Purse

EVENTS: tuple[Event, ...] = (
    SubsampledGaussian(9.0, 1.0, 30),
    SubsampledGaussian(14.0, 1.0, 12),
    SharedGaussian(11.0, 20, 4, 256, 40),
)


def main() -> None:
    """Spend."""
    purse, chance = Purse(sys.argv[1]), random.Random(sys.argv[3])
    sent = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    mine: dict[str, tuple[int, int, int]] = {}  # study -> event, releases, said
    print("ready", flush=True)
    while True:
        what = chance.random()
        if what < 0.3 or not mine:
            study, kind = f"{chance.getrandbits(64):016x}", chance.randrange(len(EVENTS))
            releases = chance.randint(1, 5)
            try:
                purse.enter(study, "", EVENTS[kind], releases)
                mine[study] = kind, releases, 0
            except BudgetExceeded:
                os.write(sent, b"refused\n")
            continue
        study = chance.choice(list(mine))
        kind, releases, said = mine[study]
        if what < 0.8 and said < releases:
            purse.say(study, 0, said, "content")
            os.write(sent, f"{study} {said} {kind}\n".encode())
            mine[study] = kind, releases, said + 1
        else:
            purse.close(study)
            del mine[study]


if __name__ == "__main__":
    main()
