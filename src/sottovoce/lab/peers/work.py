"""Many tasks, one after the other or in several processes."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from sottovoce.errors import check


def do_all(tasks: Sequence[Callable[[], str]], jobs: int = 1) -> None:
    """Do them all, and say so on the error stream; what is done stays done if it is interrupted."""
    check(jobs >= 1, "jobs must be at least 1", jobs=jobs)
    if jobs == 1 or len(tasks) < 2:
        for k, task in enumerate(tasks, start=1):
            _say(k, len(tasks), task())
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            for k, future in enumerate(as_completed(futures), start=1):
                _say(k, len(tasks), future.result())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _say(done: int, total: int, what: str) -> None:
    print(f"\r{done}/{total} {what:<60}", end="" if done < total else "\n", file=sys.stderr)
