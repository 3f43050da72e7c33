"""Making a table: every agent's model trained at every point of the design.

Symbols: N agents, D dimensions, K points of the design, H held out, R trainings.
"""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from sottovoce import __version__
from sottovoce.arrays import FloatArray
from sottovoce.device import Device
from sottovoce.errors import TrialError, check
from sottovoce.lab.problems.design import design, held_out_design, powers_of
from sottovoce.lab.problems.real import RealProblem
from sottovoce.lab.problems.table import Table, made_by, rounded
from sottovoce.lab.problems.trialcache import TrialCache
from sottovoce.lab.problems.trials import Advance, Failure, Trials, cached_as
from sottovoce.lab.problems.workers import Bench, Here, Workers

HELD_OUT = 256
_LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn", "torch": "torch"}


def usual_points(dims: int) -> int:
    """How many points inside the cube a table has unless told otherwise."""
    return 2048 if dims <= 2 else 4096


def make_table(
    problem: RealProblem,
    device: Device,
    *,
    points: int | None = None,
    held_out: int = HELD_OUT,
    trainings: int | None = None,
    jobs: int | None = None,
    advance: Advance | None = None,
) -> Table:
    """Train them all; scores go through the cache of trials, so that a second attempt resumes.

    points: how many inside the cube; those on its boundary come on top. On a device models are
    trained in this process, else in `jobs` worker processes (default: one a core). trainings:
    how often at each point, where training has chance in it.
    """
    often = problem.trainings if trainings is None else trainings
    rule = "trainings must be 2 or more where training has chance in it, else 1"
    check(often > 1 if problem.trainings > 1 else often == 1, rule, trainings=often)
    space = problem.setting.space
    inside = usual_points(space.dims) if points is None else points
    known, held = design(space, inside), held_out_design(space, held_out)
    began, every = time.perf_counter(), np.concatenate([known, held])
    fingerprint, count, found = "", 0, list[FloatArray]()
    for number in range(often):
        one = replace(problem.usual, training=number if often > 1 else None)
        fingerprint, trained, scores = _trained(one, device, every, jobs, advance)
        found.append(scores)
        count += trained
    about = {
        "problem": problem.usual.name,
        "trainer": fingerprint,
        "device": str(device.device),
        "inside": inside,
        "trained": count,
        "seconds": round(time.perf_counter() - began, 1),
        "versions": _versions(),
        "command": _command(problem, device, inside, held_out, often),
    }
    each, held_each = np.split(np.stack(found), [len(known)], axis=2)
    several = (each, held_each) if often > 1 else (None, None)
    means = each.mean(axis=0), held_each.mean(axis=0)
    return Table(known, means[0], held, means[1], powers_of(space), about, *several)


def _trained(
    problem: RealProblem,
    device: Device,
    points: FloatArray,
    jobs: int | None,
    advance: Advance | None,
) -> tuple[str, int, FloatArray]:
    """The trainer's fingerprint, how many models it trained, and all scores: (N, K + H)."""
    trainer = problem.trainer(device)
    bench: Bench = Here(trainer)
    if device.torch is None:
        bench = Workers(problem, trainer.batch, jobs)
    cache = TrialCache(cached_as(problem, trainer))
    trials = Trials(problem.setting.space, cache, bench)
    try:
        agents = np.repeat(np.arange(trainer.agents), len(points))
        scores = trials.scores(agents, np.tile(points, (trainer.agents, 1)), advance)
    finally:
        trials.close()
    _check_complete(problem, trials.failures, scores.size)
    values = rounded(scores.reshape(trainer.agents, len(points)))
    return trainer.fingerprint, trials.trained, values


def _command(
    problem: RealProblem, device: Device, inside: int, held_out: int, trainings: int
) -> str:
    option = "" if device.torch is None else f" --device {device.device}"
    option += f" --trainings {trainings}" if trainings > 1 else ""
    return f"{made_by(problem.usual.name)} --points {inside} --held-out {held_out}{option}"


def _check_complete(problem: RealProblem, failures: list[Failure], count: int) -> None:
    """A table has no holes."""
    if failures:
        first = failures[0]
        raise TrialError(
            f"{problem.name}: {len(failures)} of {count} models could not be trained, so there is "
            f"no table; the first: agent {first.agent}, {first.parameters}: {first.reason}"
        )


def _versions() -> dict[str, str]:
    """Of what took part."""
    loaded = {name: version(name) for module, name in _LIBRARIES.items() if module in sys.modules}
    return {"sottovoce": __version__, "python": platform.python_version(), **loaded}
