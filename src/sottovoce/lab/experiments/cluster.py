"""Runs on the machines of a Ray cluster.

Results come back to the process that asked for them, which alone writes them to their stores: the
machines need no common disk, and what is finished is there whatever happens to the rest. A run that
is lost with its machine is computed again elsewhere. Runs depend on nothing but their seeds, so
results are those of one machine, up to its floating-point arithmetic.

Every machine must have the same version of this project; a problem or a method from a file of one's
own must lie at the same place everywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce import __version__, plugins
from sottovoce.errors import InvalidInput, MissingExtra, TrialError

if TYPE_CHECKING:
    from sottovoce.lab.experiments.store import RunResult
    from sottovoce.lab.experiments.tasks import Task

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
RETRIES = 3  # of a run whose machine is lost


def on_cluster(tasks: list[Task], address: str) -> Iterator[str]:
    """Compute the tasks there, as many at a time as there are cores, and keep each result here."""
    with _connected(address) as ray:
        one_thread = {"env_vars": dict.fromkeys(THREADS, "1")}
        remote = ray.remote(num_cpus=1, max_retries=RETRIES, runtime_env=one_thread)(computed)
        known = plugins.all_loaded()
        waiting = {remote.remote(task, __version__, known): task for task in tasks}
        try:
            while waiting:
                finished, _ = ray.wait(list(waiting), num_returns=1)
                for reference in finished:
                    task = waiting.pop(reference)
                    yield task.kept(_fetched(ray, reference))
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)


def computed(task: Task, version: str, known: list[Path | plugins.Offer]) -> RunResult:
    """One run, on whichever machine this is."""
    if version != __version__:
        raise InvalidInput(f"every machine must have sottovoce {version}, one has {__version__}")
    plugins.load_all(known)
    return task.compute()


def _fetched(ray: Any, reference: Any) -> RunResult:
    """A result, or our own error as it was raised there."""
    try:
        result: RunResult = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        raise TrialError(f"a run was lost on the cluster: {error}") from error
    return result


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster that is there already; none is started."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("a cluster", "rehearsal") from error
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        rule = "cluster must be the address of a Ray cluster that this machine is part of"
        raise InvalidInput(f"{rule}, as HOST:PORT, got {address!r}: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
