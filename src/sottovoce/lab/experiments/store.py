"""Where runs are kept: a folder an experiment, a manifest that says which, one file a run.

What is there is never computed again, so interrupted work resumes where it stopped, and more
runs can be added to those there are. Files are written whole or not at all.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce import __version__
from sottovoce.arrays import FloatArray
from sottovoce.device import device_named
from sottovoce.errors import StorageError
from sottovoce.federation.study import FederatedStudy
from sottovoce.files import write_text, write_whole


@dataclass(frozen=True)
class RunResult:
    """What is kept of one run."""

    regret: FloatArray  # (N, T + 1), simple regret after 0..T queries
    points: FloatArray  # (N, N_init + T, D)
    observed: FloatArray  # (N, N_init + T)
    clipped: FloatArray  # share of vectors clipped, by release
    signal_to_noise: FloatArray  # by release
    seconds: FloatArray  # ()


@dataclass(frozen=True)
class Store:
    """The folder of one experiment: a study on a problem from a seed."""

    folder: Path
    study: FederatedStudy
    problem: str
    seed: int
    device: str | None = None  # whose draws differ from NumPy's
    starts: int = 1  # so many runs in a row share their objectives

    @property
    def manifest(self) -> dict[str, Any]:
        """Everything that decides the results; the number of runs does not."""
        return {
            "version": __version__,
            "problem": self.problem,
            "seed": self.seed,
            "device": self.device,
            **({} if self.starts == 1 else {"starts": self.starts}),
            "study": self.study.to_dict(),
        }

    def missing(self, runs: int) -> list[int]:
        """The first `runs` but for those that are there; the folder is made ready for them."""
        missing = [run for run in range(runs) if not self.holds(run)]
        if missing:
            device_named(self.device)  # refused before anything is written
        self.prepare()
        return missing

    def prepare(self) -> None:
        """Make the folder and its manifest, or see that the one there is this experiment's."""
        path = self.folder / "manifest.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            found = json.loads(path.read_text()) if path.exists() else None
        except (OSError, ValueError) as error:
            raise StorageError(f"{self.folder} cannot be used for results: {error}") from error
        if found is not None:
            self._compare(found)
            return
        if any(self.folder.glob("run-*.npz")):
            raise StorageError(f"{self.folder} holds runs but no manifest.json; use another folder")
        write_text(path, json.dumps(self.manifest, indent=2))

    def _compare(self, found: Any) -> None:
        theirs, ours = _flat(found), _flat(self.manifest)
        for key in sorted(set(theirs) | set(ours)):
            if theirs.get(key) != ours.get(key):
                raise StorageError(
                    f"{self.folder} holds another run: {key} is {theirs.get(key)!r} there and "
                    f"{ours.get(key)!r} here; use another folder"
                )

    def path(self, run: int) -> Path:
        """The file of a run."""
        return self.folder / f"run-{run:04d}.npz"

    def holds(self, run: int) -> bool:
        """Whether the run is there."""
        return self.path(run).exists()

    def write(self, run: int, result: RunResult) -> None:
        """Keep a run."""
        write_whole(self.path(run), lambda part: np.savez(part, **vars(result)))

    def read(self, run: int) -> RunResult:
        """A run that is there."""
        path = self.path(run)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                result = RunResult(**{name: arrays[name] for name in arrays.files})
        except (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile) as error:
            raise StorageError(f"{path} is damaged ({error}); delete it to run it again") from error
        if result.regret.shape != (self.study.agents, self.study.rounds + 1):
            raise StorageError(f"{path} is of another run; delete it to run it again")
        return result


def _flat(data: Any, prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, by their last names (with the path where names recur)."""
    if not isinstance(data, Mapping):
        return {prefix.rstrip("."): data}
    flat: dict[str, Any] = {}
    for key, value in data.items():
        inner = "" if prefix == "study." else prefix
        flat |= _flat(value, f"{inner}{key}.")
    return flat
