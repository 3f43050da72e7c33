"""docs/beyond.md: run what it tells, section by section, and make it from the results.

Usage: python benchmarks/beyond.py run SECTION [SECTION ...] [--jobs 16] [--device cuda]
       [--batch 2048] [--problems bowl,steep] [--entries gp,sottovoce] [--runs 2] [--out results]
       python benchmarks/beyond.py page [--out results] [--page docs/beyond.md]
       [--topics ways,alone]
       python benchmarks/beyond.py left [--out results]

What the sections are says `sottovoce.lab.peers.sections`. Runs are kept in --out and not computed
again: a command that is given again goes on where it stopped. --runs does the first few of
each, --entries some of what is run side by side. `page` takes whatever is there, and says what is
not; --topics makes anew only a part of the page, where the runs of the rest are not at hand. `page`
also draws docs/growth.png.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from sottovoce.errors import InvalidInput, SottovoceError, suggestion
from sottovoce.lab.peers.page import FIGURE, TOPICS, update_page
from sottovoce.lab.peers.sections import SECTIONS, tasks_of
from sottovoce.lab.peers.solo import SoloTask
from sottovoce.lab.peers.together import TogetherTask
from sottovoce.lab.peers.work import do_all
from sottovoce.lab.problems.suite import names_in


def run(arguments: argparse.Namespace) -> None:
    only = set(arguments.entries.split(",")) if arguments.entries else set()
    for section in arguments.sections:
        some = names_in(arguments.problems) if arguments.problems else None
        tasks = tasks_of(section, arguments.out, arguments.device, some)
        entries = {_entry(task) for task in tasks}
        for name in only - entries:
            raise InvalidInput(f"{section} has no entry {name!r}; {suggestion(name, entries)}")
        left = [
            task
            for task in tasks
            if not task.path.is_file()
            and (arguments.runs is None or task.run < arguments.runs)
            and (not only or _entry(task) in only)
        ]
        if arguments.batch:
            left = [replace(task, batch=arguments.batch) for task in left]
        begun = time.perf_counter()
        do_all(left, arguments.jobs)
        print(f"{section}: {len(left)} runs in {time.perf_counter() - begun:.0f} s", flush=True)


def _entry(task: SoloTask | TogetherTask) -> str:
    return task.search if isinstance(task, SoloTask) else task.entry


def page(arguments: argparse.Namespace) -> None:
    from sottovoce.lab.peers.growth import draw_growth

    topics = arguments.topics.split(",") if arguments.topics else tuple(TOPICS)
    if "growth" in topics:
        try:
            print(draw_growth(arguments.out, arguments.page.parent / FIGURE))
        except InvalidInput as error:  # the page then says that growth was not measured
            print(error)
    print(update_page(arguments.out, arguments.page, topics))


def left(arguments: argparse.Namespace) -> None:
    for section in SECTIONS:
        tasks = tasks_of(section, arguments.out)
        there = sum(task.path.is_file() for task in tasks)
        print(f"{section:<14} {there:>5} of {len(tasks):>5} runs")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make docs/beyond.md.")
    commands = parser.add_subparsers(required=True)
    for name, do in (("run", run), ("page", page), ("left", left)):
        command = commands.add_parser(name)
        command.set_defaults(do=do)
        command.add_argument("--out", type=Path, default=Path("results"))
        if do is run:
            command.add_argument("sections", nargs="+", metavar="SECTION", help=", ".join(SECTIONS))
            command.add_argument("--jobs", type=int, default=1)
            command.add_argument("--runs", type=int, help="only the first few of each")
            command.add_argument("--problems", help="only these, with commas between")
            command.add_argument("--entries", help="only these methods, or searches")
            command.add_argument("--device", help="a device of PyTorch's, in place of NumPy")
            command.add_argument("--batch", type=int, help="agents at a time; bounds the memory")
        if do is page:
            command.add_argument("--page", type=Path, default=Path("docs/beyond.md"))
            words = f"what is made anew, with commas between; the rest stays: {', '.join(TOPICS)}"
            command.add_argument("--topics", help=words)
    arguments = parser.parse_args()
    try:
        arguments.do(arguments)
    except SottovoceError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
