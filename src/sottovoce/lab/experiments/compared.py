"""Folders of `run` as figures: those of one problem side by side, judged by the runs they share."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.experiments.config import RunConfig, config_from
from sottovoce.lab.experiments.figure import Claim, Curve, Figure
from sottovoce.lab.experiments.reproduce import assembled
from sottovoce.lab.experiments.results import FigureResult, Role
from sottovoce.lab.experiments.store import Store
from sottovoce.lab.experiments.verdicts import better_than

_MANIFEST, _SUMMARY = "manifest.json", "summary.json"
_PLACES = ("runs", "device")  # what does not set curves of a figure apart


@dataclass(frozen=True)
class Ran:
    """A folder that `run` has filled."""

    folder: Path
    config: RunConfig

    @property
    def store(self) -> Store:
        """Where its runs are."""
        config = self.config
        seed, device, starts = config.seed, config.device, config.starts
        return Store(self.folder, config.study(), config.problem, seed, device, starts)

    @property
    def role(self) -> Role:
        """What a figure takes it for."""
        method = self.config.resolved_method()
        if method.noise_only:
            return "control"
        return "reference" if method.shared_model == "none" else "method"

    @property
    def command(self) -> str:
        """What makes it again."""
        words = ["sottovoce", "run"]
        for name, value in self.config.to_dict().items():
            if isinstance(value, bool):
                words.append(f"--{'' if value else 'no-'}{name.replace('_', '-')}")
            elif value is not None:
                words += [f"--{name.replace('_', '-')}", str(value)]
        return shlex.join([*words, "--out", str(self.folder)])


def holds_runs(folder: Path) -> bool:
    """Whether `run` has been at work there."""
    return (folder / _MANIFEST).exists()


def read_run(folder: Path) -> Ran:
    """The folder's config, and that its runs are of it."""
    path = folder / _SUMMARY
    if not path.exists():
        raise StorageError(
            f"{folder} has no {_SUMMARY}: its `sottovoce run` was interrupted, and the same "
            "command ends it; or name the folders to report one by one"
        )
    try:
        content = json.loads(path.read_text("utf-8"))
        config = content["config"]
        if not isinstance(config, dict):
            raise TypeError("its config is no object")
        found = Ran(folder, config_from(config, str(path)))
    except (OSError, ValueError, TypeError, KeyError, InvalidInput) as error:
        raise StorageError(f"{path} is damaged ({error}); run the same command again") from error
    found.store.prepare()
    return found


def compared(runs: Iterable[Ran]) -> list[FigureResult]:
    """A figure for each problem, size and seed, of all the runs there are of it."""
    groups: dict[tuple[Any, ...], list[Ran]] = {}
    for run in runs:
        config = run.config
        key = (config.problem, *config.size(), config.seed, config.starts)
        groups.setdefault(key, []).append(run)
    return [_figure(group, k) for k, group in enumerate(groups.values(), 1)]


def _figure(group: Sequence[Ran], number: int) -> FigureResult:
    """One figure, over the runs that all have."""
    first, least = group[0].config, min(run.config.runs for run in group)
    labels = _labels(group)
    curves = tuple(
        Curve(label, replace(run.config, runs=least), run.role, given=tuple(run.config.changes))
        for label, run in zip(labels, group, strict=True)
    )
    agents, rounds = first.size()
    more = [label for label, run in zip(labels, group, strict=True) if run.config.runs > least]
    about = "Runs that meet the same objectives and initial points in each, side by side."
    if more:
        about += f" Shown are the {least} that all have; there are more of {', '.join(more)}."
    word = re.sub(r"[^a-z0-9]+", "-", first.problem.lower()).strip("-")[:40]
    title = f"{first.problem}: {agents} agents, {rounds} rounds"
    title += f", seed {first.seed}" if first.seed else ""
    figure = Figure(f"runs-{number}-{word}", title, "", about, curves, _claims(curves))
    stores = {label: run.store for label, run in zip(labels, group, strict=True)}
    (found,) = assembled(figure, stores, {})
    return replace(found, command="\n".join(run.command for run in group))


def _labels(group: Sequence[Ran]) -> list[str]:
    """What each is called: its method, with what sets it apart from others, or its folder."""
    names = [run.config.method for run in group]
    tables = [run.config.to_dict() for run in group]
    found = []
    for run, name, table in zip(group, names, tables, strict=True):
        alike = [t for t, other in zip(tables, names, strict=True) if other == name]
        apart = _apart(table, alike)
        found.append(f"{name}, {apart}" if apart else name)
        if len(alike) > 1 and not apart:
            found[-1] = f"{name} ({run.folder.name})"
    twice = len(set(found)) < len(found)
    return [f"{run.folder}" for run in group] if twice else found


def _apart(table: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> str:
    """The parameters in which it differs from the others of its method."""
    keys = [key for key in dict.fromkeys(k for t in alike for k in t) if key not in _PLACES]
    differ = [key for key in keys if len({repr(other.get(key)) for other in alike}) > 1]
    said = ((key, table.get(key)) for key in differ)
    return ", ".join(f"{key} = {value}" for key, value in said if value is not None)


def _claims(curves: Sequence[Curve]) -> tuple[Claim, ...]:
    """Whether each method beats going alone, and the first of them the others."""
    methods = [curve.label for curve in curves if curve.role == "method"]
    alone = [curve.label for curve in curves if curve.role == "reference"]
    pairs = [(method, other) for method in methods for other in alone]
    pairs += [(methods[0], other) for other in methods[1:]]
    return tuple(better_than(one, other, "") for one, other in pairs)
