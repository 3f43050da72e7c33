"""Runs a config and keeps its results: a manifest first, one file a run, a summary last.

A folder holds one config. What is there is never computed again, so an interrupted command
resumes where it stopped, and asking for more runs adds to those there are.
"""

from __future__ import annotations

import json
import math
import platform
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sottovoce import __version__
from sottovoce.errors import StorageError
from sottovoce.experiments.config import RunConfig
from sottovoce.privacy.accountant import every_epsilon
from sottovoce.privacy.events import Event, adjacency
from sottovoce.problems import problem_named
from sottovoce.server import planned_event
from sottovoce.simulate import Draws, Outcome, simulate
from sottovoce.study import Study, plain

Watcher = Callable[[int, int, list[Event]], None]  # run, round, what the run has released


@dataclass(frozen=True)
class RunResult:
    """What is kept of one run."""

    regret: NDArray[np.float64]  # (N, T + 1), simple regret after 0..T queries
    points: NDArray[np.float64]  # (N, N_init + T, D)
    observed: NDArray[np.float64]  # (N, N_init + T)
    clipped: NDArray[np.float64]  # share of vectors clipped, by release
    signal_to_noise: NDArray[np.float64]  # by release
    seconds: NDArray[np.float64]  # ()


def planned_events(study: Study) -> list[Event]:
    """Everything the study will release."""
    return [planned_event(study, "plan")] * study.method.speaking.count(study.rounds)


def run_one(config: RunConfig, run: int, watcher: Watcher | None = None) -> RunResult:
    """One run, by its number."""
    began = time.perf_counter()

    def watch(t: int, events: list[Event]) -> None:
        if watcher is not None:
            watcher(run, t, events)

    problem, draws = problem_named(config.problem), Draws(config.seed, run)
    outcome = simulate(config.study(), problem, draws, watch)
    return _kept(outcome, time.perf_counter() - began)


def _kept(outcome: Outcome, seconds: float) -> RunResult:
    return RunResult(
        outcome.simple_regret,
        outcome.points,
        outcome.observed,
        np.asarray([d.clipped for d in outcome.diagnostics]),
        np.asarray([d.signal_to_noise for d in outcome.diagnostics]),
        np.asarray(seconds),
    )


def run_all(
    config: RunConfig, folder: Path | None = None, watcher: Watcher | None = None
) -> list[RunResult]:
    """All runs of a config; with a folder, those it already holds are read from it."""
    if folder is None:
        return [run_one(config, run, watcher) for run in range(config.runs)]
    _prepare(config, folder)
    results = []
    for run in range(config.runs):
        path = folder / f"run-{run:04d}.npz"
        if not path.exists():
            result = run_one(config, run, watcher)
            _write(path, lambda part, kept=result: np.savez(part, **vars(kept)))  # type: ignore[misc]
        results.append(_read(path, config))
    return results


def summarise(config: RunConfig, results: list[RunResult]) -> dict[str, Any]:
    """What the runs show: all parameters, regret, ε, and how the releases went."""
    study, delta = config.study(), config.resolved_delta()
    by_accountant = every_epsilon(planned_events(study), delta)
    accountant = "pld" if "pld" in by_accountant else "rdp"
    means = np.asarray([result.regret.mean(axis=0) for result in results])
    clipped = np.asarray([result.clipped for result in results])
    signal = np.asarray([result.signal_to_noise for result in results])
    return {
        "problem": config.problem,
        "method": config.method,
        "agents": config.agents,
        "rounds": config.rounds,
        "runs": len(results),
        "epsilon": _finite(by_accountant[accountant]),
        "epsilon_by_accountant": {name: _finite(e) for name, e in by_accountant.items()},
        "delta": delta,
        "accountant": accountant,
        "adjacency": adjacency(planned_events(study)),
        "regret": {
            "t": list(range(config.rounds + 1)),
            "mean": means.mean(axis=0).tolist(),
            "stderr": _standard_error(means).tolist(),
        },
        "clipped_fraction": float(clipped.mean()) if clipped.size else None,
        "signal_to_noise": [_finite(s) for s in signal.mean(axis=0)] if signal.size else [],
        "seconds": float(sum(result.seconds for result in results)),
        "study": study.to_dict(),
        "config": plain(config.to_dict()),
        "versions": versions(),
    }


def run_and_save(config: RunConfig, folder: Path, watcher: Watcher | None = None) -> dict[str, Any]:
    """Run, save, and return the summary, which also goes to `summary.json`."""
    summary = summarise(config, run_all(config, folder, watcher))
    text = json.dumps(summary, indent=2, allow_nan=False)
    _write(folder / "summary.json", lambda part: part.write_text(text))
    return summary


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return {
        "sottovoce": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _standard_error(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the mean over runs, axis 0; zero for a single run, which has no spread to show."""
    if len(means) < 2:
        return np.zeros(means.shape[1:])
    return np.asarray(means.std(axis=0, ddof=1) / math.sqrt(len(means)))


def _finite(value: float) -> float | None:
    """JSON has no infinity: an ε without protection, a ratio to no noise, is null."""
    return float(value) if math.isfinite(value) else None


def _prepare(config: RunConfig, folder: Path) -> None:
    """Make the folder and its manifest, or see that the one there is this config's."""
    manifest = folder / "manifest.json"
    # the number of runs may grow; everything else makes it another experiment
    wanted = {key: value for key, value in config.to_dict().items() if key != "runs"}
    wanted = {"version": __version__, **wanted}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = json.loads(manifest.read_text()) if manifest.exists() else None
    except (OSError, ValueError) as error:
        raise StorageError(f"{folder} cannot be used for results: {error}") from error
    if found is not None:
        _compare(found, wanted, folder)
        return
    if any(folder.glob("run-*.npz")):
        raise StorageError(f"{folder} holds runs but no manifest.json; use another folder")
    _write(manifest, lambda part: part.write_text(json.dumps(wanted, indent=2)))


def _compare(found: Any, wanted: Mapping[str, Any], folder: Path) -> None:
    theirs = found if isinstance(found, dict) else {}
    for key in sorted(set(theirs) | set(wanted)):
        if theirs.get(key) != wanted.get(key):
            raise StorageError(
                f"{folder} holds another run: {key} is {theirs.get(key)!r} there and "
                f"{wanted.get(key)!r} here; use another folder"
            )


def _write(path: Path, writer: Callable[[Path], object]) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".part-{path.name}")  # keeps the ending, which np.savez insists on
    try:
        writer(part)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise StorageError(f"{path} could not be written: {error}") from error


def _read(path: Path, config: RunConfig) -> RunResult:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            result = RunResult(**{name: arrays[name] for name in arrays.files})
    except (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path} is damaged ({error}); delete it to run it again") from error
    if result.regret.shape != (config.agents, config.rounds + 1):
        raise StorageError(f"{path} is of another run; delete it to run it again")
    return result
