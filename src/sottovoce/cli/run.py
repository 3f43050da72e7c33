"""`sottovoce run`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from sottovoce.cli.data import have_data
from sottovoce.cli.settings import takes_settings
from sottovoce.cli.show import (
    CLUSTER,
    ERR,
    OUT,
    Json,
    guarantee,
    interruptible,
    print_json,
    progress,
)

if TYPE_CHECKING:
    from sottovoce.lab.experiments.results import Summary


@takes_settings
def run(
    config: Annotated[Path | None, typer.Argument(help="A TOML file of these options.")] = None,
    problem: Annotated[str | None, typer.Option(help="The problem.")] = None,
    method: Annotated[str | None, typer.Option(help="The method.")] = None,
    objective: Annotated[
        str | None, typer.Option(help="Of a real problem: table, or live to train every model.")
    ] = None,
    settings: Annotated[
        str | None, typer.Option(help="The paper's constants: synthetic or real-world.")
    ] = None,
    agents: Annotated[int | None, typer.Option(help="N, how many agents.")] = None,
    rounds: Annotated[int | None, typer.Option(help="T, queries of each after its first.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="ε, in place of z: the least noise that keeps within it.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="δ; default N^-1.1.")] = None,
    runs: Annotated[int | None, typer.Option(help="Runs to average over.")] = None,
    starts: Annotated[
        int | None, typer.Option(help="So many runs in a row share their objectives.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the simulation.")] = None,
    device: Annotated[str | None, typer.Option(help="A device of PyTorch's, such as cuda.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    cluster: Annotated[str | None, typer.Option(help=CLUSTER)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder; default: results/PROBLEM-METHOD.")
    ] = None,
    as_json: Json = False,
    **changes: Any,
) -> None:
    """Simulate a method on a problem and save the results; run again to resume."""
    from sottovoce.lab.experiments.config import RunConfig, config_from_toml, with_objective
    from sottovoce.lab.experiments.runner import run_and_save

    base = RunConfig() if config is None else config_from_toml(config)
    own = {"problem": problem, "method": method, "settings": settings, "device": device}
    size = {"agents": agents, "rounds": rounds, "runs": runs, "starts": starts, "seed": seed}
    chosen = base.changed(**own, **size, epsilon=epsilon, delta=delta, **changes)
    if objective is not None:
        chosen = with_objective(chosen, objective)
    have_data([chosen.problem])
    folder = Path("results") / _folder(chosen.problem, chosen.method) if out is None else out
    words = f"interrupted; finished runs are in {folder}, the same command resumes"
    with interruptible(words), progress(chosen.runs * chosen.study().rounds) as advance:
        callback = advance(chosen.method, chosen.resolved_delta())
        summary = run_and_save(chosen, folder, callback, jobs, cluster)
    if as_json:
        print_json(summary.to_dict())
        return
    _show(chosen.problem, summary, folder)


def _show(problem: str, summary: Summary, folder: Path) -> None:
    """The summary in words."""
    from sottovoce.lab.problems import problem_named

    regret, measure = summary.regret, problem_named(problem).setting.measure
    OUT.print(f"{summary.method} on {problem}: {measure}, mean over agents")
    table = Table()
    give = regret.stderr  # a single run has none
    for column in ("t", "mean", *([] if give is None else ["± standard error"])):
        table.add_column(column, justify="right")
    for t in sorted({0, 5, 10, 20, 40, 60, summary.rounds} & set(regret.t)):
        error = [] if give is None else [f"{give[t]:.4f}"]
        table.add_row(str(t), f"{regret.mean[t]:.4f}", *error)
    OUT.print(table)
    if summary.failed_trials:
        ERR.print(f"{summary.failed_trials} trials failed; their agents learnt nothing there.")
    if summary.clipped_fraction is not None:
        OUT.print(f"Vectors clipped: {summary.clipped_fraction:.2%}.")
    OUT.print(guarantee(summary))
    OUT.print(f"Results: {folder}. {summary.seconds:.1f} seconds of computing.")
    OUT.print(f"A page of this and other runs: sottovoce report {shlex.quote(str(folder))} ...")


def _folder(problem: str, method: str) -> str:
    """A name that any file system takes."""
    return re.sub(r"[^A-Za-z0-9_.=-]+", "-", f"{problem}-{method}")
