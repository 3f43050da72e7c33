"""Runs figures: every missing run of every curve, once, then verdicts, files and pictures.

Curves that several figures share are kept, and run, once. Interrupted work resumes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sottovoce import __version__
from sottovoce.errors import StorageError
from sottovoce.experiments.config import RunConfig
from sottovoce.experiments.figure import Claim, Curve, Figure
from sottovoce.experiments.runner import summarise, versions
from sottovoce.experiments.store import RunResult, Store
from sottovoce.experiments.tasks import Advance, Task, run_tasks
from sottovoce.experiments.theory import bound_content, measured_content
from sottovoce.experiments.verdicts import better_than, judge
from sottovoce.files import write_text
from sottovoce.problems import problem_named


def store_for(config: RunConfig, out: Path) -> Store:
    """Where a curve's runs are kept: the same place for every figure that has it."""
    study = config.study()
    key = f"{study.fingerprint}/{config.problem}/{config.seed}/{config.device}".encode()
    name = f"{study.method.name}-{hashlib.sha256(key).hexdigest()[:12]}"
    return Store(out / "curves" / name, study, config.problem, config.seed, config.device)


def missing_tasks(figures: Iterable[Figure], out: Path) -> list[Task]:
    """The runs that the figures need and the folder does not hold."""
    tasks: dict[Path, Task] = {}
    for figure in figures:
        for curve in figure.curves:
            store = store_for(curve.config, out)
            store.prepare()
            problem = problem_named(curve.config.problem)
            for run in range(curve.config.runs):
                if not store.holds(run):
                    tasks.setdefault(store.path(run), Task(store, problem, run))
    return list(tasks.values())


def reproduce(
    figures: list[Figure], out: Path, jobs: int = 1, advance: Advance | None = None
) -> list[dict[str, Any]]:
    """Run what is missing, judge the claims, and write OUT/figures/NAME.json for each figure."""
    _check_folder(out)
    run_tasks(missing_tasks(figures, out), jobs, advance)
    summaries: dict[Path, dict[str, Any]] = {}
    contents = []
    for figure in figures:
        for content in assembled(figure, out, summaries):
            path = out / "figures" / f"{content['name']}.json"
            write_text(path, json.dumps(content, allow_nan=False))
            contents.append(content)
    return contents


def assembled(figure: Figure, out: Path, known: dict[Path, dict[str, Any]]) -> list[dict[str, Any]]:
    """A figure as it is written: curves, findings, and everything needed to run it again."""
    results: dict[str, list[RunResult]] = {}
    summaries: dict[str, dict[str, Any]] = {}
    for curve in figure.curves:
        store = store_for(curve.config, out)
        results[curve.label] = [store.read(run) for run in range(curve.config.runs)]
        if store.folder not in known:
            known[store.folder] = summarise(curve.config, results[curve.label])
        summaries[curve.label] = known[store.folder]
    content = _frame(figure, summaries)
    if figure.vary:
        content |= {"kind": "terms", "x_label": "factor on the constant"}
        return [
            bound_content(content, figure, summaries),
            measured_content(content, figure, results),
        ]
    findings = [judge(claim, results, summaries) for claim in figure.claims]
    findings += [judge(claim, results, summaries) for claim in _against_controls(figure)]
    return [{**content, "claims": [asdict(finding) for finding in findings]}]


def _frame(figure: Figure, summaries: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Everything of a figure's file but its findings."""
    config = figure.curves[0].config
    return {
        "schema": 1,
        "version": __version__,
        "name": figure.name,
        "title": figure.title,
        "paper": figure.paper,
        "kind": "convergence",
        "about": figure.about,
        "problem": config.problem,
        "objective": None,
        "runs": config.runs,
        "seconds": sum(summary["seconds"] for summary in summaries.values()),
        "settings": _common_settings(figure),
        "x_label": "queries after the initial points",
        "y_label": "simple regret, mean over agents",
        "curves": [_drawn(curve, summaries[curve.label]) for curve in figure.curves],
        "claims": [],
        "command": f"sottovoce reproduce {figure.name} --runs {config.runs} --seed {config.seed}",
        "versions": versions(),
    }


def _against_controls(figure: Figure) -> list[Claim]:
    """For every private curve: is it better than its noise-only control?"""
    controls = [curve for curve in figure.curves if curve.role == "control"]
    claims = []
    for curve in figure.curves:
        method = curve.config.resolved_method()
        if not method.private or curve.role != "method":
            continue
        for control in controls:
            twin = control.config.resolved_method()
            if (twin.regions, twin.local_start) == (method.regions, method.local_start):
                claims.append(better_than(curve.label, control.label, "not reported"))
    return claims


def _common_settings(figure: Figure) -> dict[str, Any]:
    """What all curves share."""
    tables = [curve.config.to_dict() for curve in figure.curves]
    return {
        key: value
        for key, value in tables[0].items()
        if value is not None and all(table[key] == value for table in tables)
    }


def _drawn(curve: Curve, summary: dict[str, Any]) -> dict[str, Any]:
    ratios = [ratio for ratio in summary["signal_to_noise"] if ratio is not None]
    return {
        "label": curve.label,
        "role": curve.role,
        "method": summary["method"],
        "parameters": {name: getattr(curve.config, name) for name in curve.given},
        "epsilon": summary["epsilon_by_accountant"],
        "delta": summary["delta"],
        "adjacency": summary["adjacency"],
        "clipped_fraction": summary["clipped_fraction"],
        "signal_to_noise": sum(ratios) / len(ratios) if ratios else None,
        "regret": summary["regret"],
    }


def _check_folder(out: Path) -> None:
    """A folder of results must be ours, and of this version."""
    marker = out / "results.json"
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        found = json.loads(marker.read_text()) if marker.exists() else None
    except (OSError, ValueError) as error:
        raise StorageError(f"{out} cannot be used for results: {error}") from error
    if found is None:
        write_text(marker, json.dumps({"version": __version__}))
    elif found.get("version") != __version__:
        raise StorageError(
            f"{out} was made by version {found.get('version')}, this is {__version__}; "
            "use another folder, or delete it to run everything again"
        )
