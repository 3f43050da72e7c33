"""Deploys federations on loopback, does harm to them, and checks that no harm was done.

    python -m tests.endtoend.faults FOLDER [--jobs J] [--kills N] [--only NAME]... [--write FILE]

Every job is a study, or a few, of real processes with TLS, node keys and real noise. At the end of
each all of `invariants` must hold, or the job has failed. What came of a job is kept in FOLDER, in
a file of its own, and is not done again: the same command goes on where it was interrupted, and
tries again what failed. J jobs run side by side, each with ports and folders of its own. --write
makes the page of all that is there, and leaves its lines of other faults; --only none runs nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.endtoend import harm, killing
from tests.endtoend.federation import FIRST_PORT, PORTS
from tests.endtoend.outcomes import Row, keep, kept, page, say

from sottovoce.flower.deploy.processes import Processes, stoppable

ROOT = Path(__file__).resolve().parents[2]
EACH = 4  # kills of one job
LOWEST = 21000  # port; above it 60 for each job that runs beside others
LOOK = 0.5  # seconds
PATIENCE = 60.0  # seconds for a job to take its processes down

HARMS: dict[str, Callable[[Path, int, random.Random], list[Row]]] = {
    "sottovoce": killing.each_killed,  # 3 kills for each 10
    "client": harm.client_dies,
    "slow": harm.site_too_slow,
    "evil": harm.site_is_evil,
    "strangers": harm.strangers,
    "disk": harm.disk_full,
    "backup": harm.backup_restored,
}
GROUPS = {"sums": [name for name in killing.VICTIMS if name.startswith("sums-")]}
SCENARIOS = [*killing.VICTIMS, *HARMS]


@dataclass(frozen=True)
class Job:
    """Something to be done by one process, and where what came of it is kept."""

    name: str  # of the scenario, with the number of its first kill
    scenario: str
    kills: range

    def done(self, base: Path) -> bool:
        """Whether it is done, and all held."""
        return (base / f"{self.name}.json").exists()


def jobs_of(names: list[str], kills: int) -> list[Job]:
    """The jobs of these scenarios."""
    found = []
    for name in names:
        if name in HARMS:
            found.append(Job(name, name, range(kills)))
            continue
        for first in range(0, kills, EACH):
            share = range(first, min(first + EACH, kills))
            found.append(Job(f"{name}-{first:02}", name, share))
    return found


def main() -> int:
    """Run the scenarios that were asked for."""
    parser = argparse.ArgumentParser(description="Do harm to federations on loopback.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--kills", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    choices = [*SCENARIOS, *GROUPS, "none"]
    parser.add_argument("--only", action="append", choices=choices, default=[])
    parser.add_argument("--job", help="this one alone, in this process")
    parser.add_argument("--write", type=Path, help="the page to make")
    args = parser.parse_args()
    base = args.folder.absolute()
    asked = [name for word in args.only or SCENARIOS for name in GROUPS.get(word, [word])]
    jobs = jobs_of([name for name in asked if name != "none"], args.kills)
    base.mkdir(parents=True, exist_ok=True)
    with stoppable():  # an interrupt leaves no process behind
        if args.job is not None:
            (job,) = [job for job in jobs if job.name == args.job]
            return perform(base, job, args.seed)
        failed = side_by_side(base, jobs, args)
    if args.write is not None:
        before = args.write.read_text(encoding="utf-8") if args.write.exists() else ""
        args.write.write_text(page_of(base, before), encoding="utf-8")
    for name in failed:
        say(f"-- {name} FAILED: {base / name}.log")
    return 1 if failed else 0


def perform(base: Path, job: Job, seed: int) -> int:
    """Do one job from its beginning, and keep what came of it."""
    folder, began = base / job.name, time.monotonic()
    if folder.exists():
        shutil.rmtree(folder)  # of one that was cut off, or failed
    folder.mkdir()
    say(f"-- {job.name}")
    try:
        if job.scenario in HARMS:
            rows = HARMS[job.scenario](folder, len(job.kills), random.Random(seed))
            came: object = rows
        else:
            came = killing.killed(folder, job.scenario, job.kills, seed)
    except Exception:
        say(f"-- {job.name} failed after {time.monotonic() - began:.0f} s")
        traceback.print_exc()
        return 1
    seconds = time.monotonic() - began
    keep(base / f"{job.name}.json", job.scenario, came, seconds, len(job.kills))
    shutil.rmtree(folder)
    say(f"-- {job.name}: all holds after {seconds:.0f} s")
    return 0


def side_by_side(base: Path, jobs: list[Job], args: argparse.Namespace) -> list[str]:
    """Do what is not done yet, each in a process of its own; gives what failed."""
    waiting, failed = [job for job in jobs if not job.done(base)], []
    slots: dict[int, Job | None] = dict.fromkeys(range(args.jobs))
    say(f"{len(waiting)} of {len(jobs)} jobs to do, {args.jobs} at a time")
    with Processes(PATIENCE) as processes:
        while waiting or any(slots.values()):
            over = processes.ended()
            for slot, job in slots.items():
                if job is not None and job.name in over:
                    say(f"{job.name}: {'failed' if over[job.name] else 'all holds'}")
                    failed += [job.name] if over[job.name] else []
                    slots[slot] = job = None
                if job is None and waiting:
                    slots[slot] = waiting.pop(0)
                    _start(processes, base, slots[slot], slot, args)
            time.sleep(LOOK)
    return failed


def _start(
    processes: Processes, base: Path, job: Job | None, slot: int, args: argparse.Namespace
) -> None:
    if job is None:
        return
    words = ["--job", job.name, "--kills", str(args.kills), "--seed", str(args.seed)]
    command = [sys.executable, "-m", "tests.endtoend.faults", str(base), *words]
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
    env = {**os.environ, **threads, FIRST_PORT: str(LOWEST + PORTS * slot)}
    processes.start(job.name, command, env=env, cwd=ROOT, log=base / f"{job.name}.log")


def page_of(base: Path, before: str = "") -> str:
    """The page of all that a folder holds, and of the other faults that it told of before."""
    found, rows = kept(base), []
    for name in SCENARIOS:
        jobs = found.get(name, [])
        if name in HARMS:
            rows += [Row(**row) for job in jobs for row in job["rows"]]
        elif jobs:
            parts = [killing.Killed.from_dict(job["came"]) for job in jobs]
            rows.append(killing.row(killing.VICTIMS[name].fault, parts))
    counts = [
        sum(job["kills"] for job in jobs) for name, jobs in found.items() if name not in HARMS
    ]
    seconds = sum(job["seconds"] for jobs in found.values() for job in jobs)
    killed = [victim.fault for victim in killing.VICTIMS.values()]
    return page(rows, min(counts, default=0), seconds, before, killed)


if __name__ == "__main__":
    sys.exit(main())
