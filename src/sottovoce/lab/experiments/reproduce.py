"""Runs figures: every missing run of every curve, once, then verdicts, files and pictures.

Curves that several figures share are kept, and run, once. Interrupted work resumes.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sottovoce import __version__
from sottovoce.errors import StorageError
from sottovoce.files import write_text
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.figure import BY_FUNCTION, Claim, Curve, Figure
from sottovoce.lab.experiments.results import CurveResult, FigureResult, Summary
from sottovoce.lab.experiments.runner import summarise, versions
from sottovoce.lab.experiments.store import RunResult, Store
from sottovoce.lab.experiments.tasks import Advance, Task, run_tasks
from sottovoce.lab.experiments.theory import bound_result, measured_result
from sottovoce.lab.experiments.verdicts import better_than, judge
from sottovoce.lab.problems import Problem, problem_named
from sottovoce.lab.problems.real import RealProblem

_Summaries = dict[tuple[Path, int, float, str | None], Summary]  # by folder, runs, δ, accounting

_OBJECTIVES = {
    "table": "interpolated in a table of trained models",
    "live": "live: every model is trained",
}


def store_for(config: RunConfig, out: Path) -> Store:
    """Where a curve's runs are kept: the same place for every figure that has it."""
    study = config.study()
    key = f"{study.fingerprint}/{config.problem}/{config.seed}/{config.device}"
    key += "" if config.starts == 1 else f"/{config.starts}"
    name = f"{study.method.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    folder, seed, device = out / "curves" / name, config.seed, config.device
    return Store(folder, study, config.problem, seed, device, config.starts)


def missing_tasks(figures: Iterable[Figure], out: Path) -> list[Task]:
    """The runs that the figures need and the folder does not hold."""
    tasks: dict[Path, Task] = {}
    for figure in figures:
        for curve in figure.curves:
            store = store_for(curve.config, out)
            problem = problem_named(curve.config.problem)
            for run in store.missing(curve.config.runs):
                tasks.setdefault(store.path(run), Task(store, problem, run))
    return list(tasks.values())


def reproduce(
    figures: list[Figure],
    out: Path,
    jobs: int = 1,
    advance: Advance | None = None,
    cluster: str | None = None,
) -> list[FigureResult]:
    """Run what is missing, judge the claims, and write OUT/figures/NAME.json for each figure."""
    _check_folder(out)
    tasks = missing_tasks(figures, out)
    _mark_folder(out)
    run_tasks(tasks, jobs, advance, cluster)
    summaries: _Summaries = {}
    found = []
    for figure in figures:
        stores = {curve.label: store_for(curve.config, out) for curve in figure.curves}
        for result in assembled(figure, stores, summaries):
            path = out / "figures" / f"{result.name}.json"
            write_text(path, json.dumps(result.to_dict(), allow_nan=False))
            found.append(result)
    return found


def assembled(figure: Figure, stores: Mapping[str, Store], known: _Summaries) -> list[FigureResult]:
    """A figure as it is written: curves, claims, and everything needed to run it again.

    stores: where the runs of each curve are, by its label.
    """
    results: dict[str, list[RunResult]] = {}
    summaries: dict[str, Summary] = {}
    for curve in figure.curves:
        store = stores[curve.label]
        results[curve.label] = [store.read(run) for run in range(curve.config.runs)]
        # the same runs may be asked for at another δ, hence with another ε
        key = store.folder, curve.config.runs, curve.config.resolved_delta(), curve.accounted
        if key not in known:
            known[key] = summarise(curve.config, results[curve.label], curve.accounted)
        summaries[curve.label] = known[key]
    frame = _unjudged(figure, summaries)
    if figure.vary:
        frame = replace(frame, kind="terms", x_label="factor on the constant")
        return [bound_result(frame, figure, summaries), measured_result(frame, figure, results)]
    claims = (*figure.claims, *_against_controls(figure))
    starts = figure.curves[0].config.starts if figure.functions else 1
    judged = tuple(judge(claim, results, summaries, starts) for claim in claims)
    return [replace(frame, claims=judged)]


def _unjudged(figure: Figure, summaries: Mapping[str, Summary]) -> FigureResult:
    """Everything of a figure but what follows for its claims."""
    config = figure.curves[0].config
    problem = problem_named(config.problem)
    measure, study = problem.setting.measure, config.study()
    x_label = "queries after the initial points"
    if figure.kind == "tradeoff":
        x_label = f"privacy loss ε after {study.rounds} rounds, δ = {config.resolved_delta():.3g}"
        if len({curve.config.resolved_delta() for curve in figure.curves}) > 1:
            x_label += " unless said"
    return FigureResult(
        name=figure.name,
        title=figure.title,
        paper=figure.paper,
        group=figure.group,
        kind=figure.kind,
        about=figure.about,
        problem=config.problem,
        objective=_OBJECTIVES[problem.objective] if isinstance(problem, RealProblem) else None,
        measure=measure,
        runs=config.runs,
        seconds=sum(summary.seconds for summary in summaries.values()),
        settings=_common_settings(figure),
        x_label=x_label,
        y_label=f"{measure}, mean over agents",
        curves=tuple(_curve_result(curve, summaries[curve.label]) for curve in figure.curves),
        claims=(),
        command=_command(figure, config, problem),
        versions=versions(),
        like=figure.like,
        variant=figure.variant,
        accountant=figure.accountant,
    )


def _command(figure: Figure, config: RunConfig, problem: Problem) -> str:
    """What makes the figure again."""
    name = figure.origin or figure.name.removesuffix(BY_FUNCTION)
    command = f"sottovoce reproduce {shlex.quote(name)}"
    command += f" --functions {figure.functions}" if figure.functions else ""
    runs = config.starts if figure.functions else config.runs
    command += f" --runs {runs} --seed {config.seed}"
    if config.device is not None:
        command += f" --device {config.device}"
    live = isinstance(problem, RealProblem) and problem.objective == "live"
    return f"{command} --objective live" if live else command


def _against_controls(figure: Figure) -> list[Claim]:
    """For every private curve: is it better than its noise-only control?"""
    controls = [curve for curve in figure.curves if curve.role == "control"]
    paper = "" if figure.group == "own" else "not reported"
    claims = []
    for curve in figure.curves:
        method = curve.config.resolved_method()
        if not method.private or curve.role != "method" or curve.accounted is not None:
            continue
        measures = ("final", "mean") if figure.kind == "tradeoff" else ("mean",)
        for control in controls:
            if _searches(control.config) == _searches(curve.config):
                claims += [better_than(curve.label, control.label, paper, m) for m in measures]
    return claims


def _searches(config: RunConfig) -> tuple[Any, ...]:
    """What a curve must share with its control, so that they differ by the message alone.

    Of those that follow, neither z nor q, S, or the weights: where noise is largest does not
    depend on its scale.
    """
    study, method = config.study(), config.resolved_method()
    basis = (method.features, method.lengthscale, method.basis, method.regions)
    parts = (method.initial_design, method.shared_model, method.acquisition)
    search = (*parts, method.trust_gate, method.solo)
    # who learns from all releases weighs them by the noise they are known to have
    heard = (study.release_noise, method.releases) if method.shared.cumulative else ()
    return (config.problem, study.agents, *basis, *search, *heard)


def _common_settings(figure: Figure) -> dict[str, Any]:
    """What all curves share."""
    tables = [curve.config.to_dict() for curve in figure.curves]
    return {
        key: value
        for key, value in tables[0].items()
        if value is not None and all(table.get(key) == value for table in tables)
    }


def _curve_result(curve: Curve, summary: Summary) -> CurveResult:
    ratios = [ratio for ratio in summary.signal_to_noise if ratio is not None]
    return CurveResult(
        label=curve.label,
        role=curve.role,
        series=curve.series,
        method=summary.method,
        parameters={
            **{name: curve.config.to_dict()[name] for name in curve.given},
            **({} if curve.accounted is None else {"accounted": curve.accounted}),
        },
        epsilon=summary.epsilon_by_accountant,
        delta=summary.delta,
        adjacency=summary.adjacency,
        clipped_fraction=summary.clipped_fraction,
        signal_to_noise=sum(ratios) / len(ratios) if ratios else None,
        regret=summary.regret,
    )


def _check_folder(out: Path) -> None:
    """A folder of results must be ours, and of this version."""
    marker = out / "results.json"
    try:
        if out.exists() and not out.is_dir():
            raise NotADirectoryError("it is not a folder")
        found = json.loads(marker.read_text()) if marker.exists() else {"version": __version__}
    except (OSError, ValueError) as error:
        raise StorageError(f"{out} cannot be used for results: {error}") from error
    if not isinstance(found, dict):
        raise StorageError(f"{out} cannot be used for results: its {marker.name} is damaged")
    if found.get("version") != __version__:
        raise StorageError(
            f"{out} was made by version {found.get('version')}, this is {__version__}; "
            "use another folder, or delete it to run everything again"
        )


def _mark_folder(out: Path) -> None:
    """Made once all that could be refused was not."""
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{out} cannot be used for results: {error}") from error
    write_text(out / "results.json", json.dumps({"version": __version__}))
