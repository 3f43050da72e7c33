"""Runs a config, keeps its results, and sums them up."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy

from sottovoce import __version__
from sottovoce.arrays import FloatArray
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.study import FederatedStudy, plain
from sottovoce.files import write_text
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.results import Summary
from sottovoce.lab.experiments.store import RunResult, Store
from sottovoce.lab.experiments.tasks import RunCallback, Task, run_study, run_tasks
from sottovoce.lab.problems import problem_named
from sottovoce.pages.trace import Trace
from sottovoce.privacy.accountant import every_epsilon
from sottovoce.privacy.events import Event, adjacency


def planned_events(study: FederatedStudy) -> list[Event]:
    """Everything the study will release."""
    return [planned_event(study, "plan")] * study.method.releases.count(study.rounds)


def run_one(config: RunConfig, run: int, callback: RunCallback | None = None) -> RunResult:
    """One run of a config, by its number."""
    problem = problem_named(config.problem)
    study, device = config.study(), config.device
    return run_study(study, problem, config.seed, run, callback, device, config.starts)


def run_all(
    config: RunConfig,
    folder: Path | None = None,
    callback: RunCallback | None = None,
    jobs: int = 1,
    cluster: str | None = None,
) -> list[RunResult]:
    """All runs of a config; with a folder, those it already holds are read from it.

    Several jobs, or a cluster, need the folder, where the results are left.
    """
    if folder is None:
        return [run_one(config, run, callback) for run in range(config.runs)]
    study, name = config.study(), config.problem
    store = Store(folder, study, name, config.seed, config.device, config.starts)
    missing = store.missing(config.runs)
    if jobs == 1 and cluster is None:
        for run in missing:
            store.write(run, run_one(config, run, callback))
    else:
        problem, events = problem_named(config.problem), planned_events(store.study)

        def advance(done: int, total: int, said: str) -> None:
            if callback is not None:
                for t in range(1, store.study.rounds + 1):
                    callback(done - 1, t, events)

        run_tasks([Task(store, problem, run) for run in missing], jobs, advance, cluster)
    return [store.read(run) for run in range(config.runs)]


def summarise(config: RunConfig, results: list[RunResult], accounted: str | None = None) -> Summary:
    """What the runs show: all parameters, regret, ε, and how the releases went.

    accounted: the ε that another kind of sampling would have had, which bounds nothing here.
    """
    study, delta = config.study(), config.resolved_delta()
    spent = planned_events(study if accounted is None else _sampled(config, accounted).study())
    by_accountant = every_epsilon(spent, delta)
    accountant = "pld" if "pld" in by_accountant else "rdp"
    means = np.asarray([result.regret.mean(axis=0) for result in results])
    clipped = np.asarray([result.clipped for result in results])
    signal = np.asarray([result.signal_to_noise for result in results])
    return Summary(
        problem=config.problem,
        method=config.method,
        agents=study.agents,
        rounds=study.rounds,
        runs=len(results),
        epsilon=_finite(by_accountant[accountant]),
        epsilon_by_accountant={name: _finite(e) for name, e in by_accountant.items()},
        delta=delta,
        accountant=accountant,
        adjacency=adjacency(spent),
        regret=Trace(
            tuple(range(study.rounds + 1)),
            tuple(means.mean(axis=0).tolist()),
            _standard_error(means),
        ),
        clipped_fraction=float(clipped.mean()) if clipped.size else None,
        signal_to_noise=tuple(map(_finite, signal.mean(axis=0))) if signal.size else (),
        failed_trials=int(sum(np.isnan(result.observed).sum() for result in results)),
        seconds=float(sum(result.seconds for result in results)),
        study=study.to_dict(),
        config=plain(config.to_dict()),
        versions=versions(),
    )


def _sampled(config: RunConfig, sampling: str) -> RunConfig:
    return replace(config, changes={**config.changes, "sampling": sampling})


def run_and_save(
    config: RunConfig,
    folder: Path,
    callback: RunCallback | None = None,
    jobs: int = 1,
    cluster: str | None = None,
) -> Summary:
    """Run, save, and return the summary, which also goes to `summary.json`."""
    summary = summarise(config, run_all(config, folder, callback, jobs, cluster))
    text = json.dumps(summary.to_dict(), indent=2, allow_nan=False)
    write_text(folder / "summary.json", text)
    return summary


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return {
        "sottovoce": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _standard_error(means: FloatArray) -> tuple[float, ...] | None:
    """Of the mean over runs, axis 0; None for a single run, which has no spread to show."""
    if len(means) < 2:
        return None
    return tuple((means.std(axis=0, ddof=1) / math.sqrt(len(means))).tolist())


def _finite(value: float) -> float | None:
    """JSON has no infinity: an ε without protection, a ratio to no noise, is null."""
    return float(value) if math.isfinite(value) else None
