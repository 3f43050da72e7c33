"""Deploys federations on loopback, does harm to them, and checks that no harm was done.

    python -m tests.endtoend.faults FOLDER [--kills N] [--seed S] [--only NAME]... [--write FILE]

Every scenario is a study of real processes with TLS, node keys and real noise. At its end all of
`invariants` must hold, or the script fails. What happened is kept in FOLDER, one file a scenario;
--write makes the page of all that are there.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

from tests.endtoend import harm, killing
from tests.endtoend.outcomes import Row, keep, page, say

from sottovoce.flower.deploy.processes import stoppable

SCENARIOS: dict[str, Callable[[Path, int, random.Random], list[Row]]] = {
    "site": killing.sites_killed,
    "coordinator": killing.coordinator_killed,
    "superlink": killing.link_killed,
    "sottovoce": killing.each_killed,
    "sums": killing.sums_killed,
    "client": harm.client_dies,
    "slow": harm.site_too_slow,
    "evil": harm.site_is_evil,
    "strangers": harm.strangers,
    "disk": harm.disk_full,
    "backup": harm.backup_restored,
}


def main() -> None:
    """Run the scenarios that were asked for."""
    parser = argparse.ArgumentParser(description="Do harm to federations on loopback.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", action="append", choices=[*SCENARIOS, "none"], default=[])
    parser.add_argument("--write", type=Path, help="the page to make")
    args = parser.parse_args()
    base = args.folder.absolute()
    with stoppable():  # an interrupt leaves no process behind
        run(base, [name for name in args.only or SCENARIOS if name != "none"], args)
    if args.write is not None:
        order = [name for name in SCENARIOS if (base / f"{name}.json").exists()]
        args.write.write_text(page(base, order), encoding="utf-8")


def run(base: Path, names: list[str], args: argparse.Namespace) -> None:
    """Run these scenarios."""
    for name in names:
        (base / name).mkdir(parents=True)
        began = time.monotonic()
        say(f"-- {name}")
        rows = SCENARIOS[name](base / name, args.kills, random.Random(args.seed))
        seconds = time.monotonic() - began
        keep(base / f"{name}.json", rows, seconds, args.kills)
        say(f"-- {name}: all holds after {seconds:.0f} s")


if __name__ == "__main__":
    main()
