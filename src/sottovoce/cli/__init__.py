"""The command line: reads options, calls the library, prints. Results on standard output, the rest
on standard error; with --json exactly one JSON object on standard output."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from sottovoce import __version__
from sottovoce.errors import SottovoceError

app = typer.Typer(
    help="Tune hyperparameters together without showing data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def main() -> None:
    """Run the command line; errors of ours become one line and exit status 2."""
    try:
        app()
    except SottovoceError as error:
        _err.print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sottovoce {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tune hyperparameters together without showing data."""


@app.command()
def demo(
    runs: Annotated[int, typer.Option(help="Runs to average over.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("sottovoce-demo.png"),
    as_json: Json = False,
) -> None:
    """200 agents on the paper's synthetic problem: alone, together in private, and a control."""
    from sottovoce.experiments.demo import MILESTONES, demo_curves, run_curve
    from sottovoce.report import check_figure, draw_convergence

    check_figure(out)
    began = time.perf_counter()
    curves = demo_curves(runs, seed)
    with _progress(sum(c.config.runs * c.config.rounds for c in curves)) as advance:
        summaries = [run_curve(c, advance(c.label, c.config.resolved_delta())) for c in curves]
    private = summaries[1]
    note = f"N = {private['agents']}, {runs} runs, bands ± 1 standard error. {_guarantee(private)}"
    lines = [(c.label, s["regret"]) for c, s in zip(curves, summaries, strict=True)]
    draw_convergence(lines, out, "The paper's synthetic problem", note)
    seconds = time.perf_counter() - began
    if as_json:
        _print_json({"methods": summaries, "figure": str(out), "seconds": seconds})
        return
    table = Table(title="Mean simple regret after t queries ± its standard error over runs")
    for column in ("method", *(f"t = {t}" for t in MILESTONES)):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for summary in summaries:
        regret = summary["regret"]
        cells = [f"{regret['mean'][t]:.4f} ±{regret['stderr'][t]:.3f}" for t in MILESTONES]
        table.add_row(summary["method"], *cells)
    _out.print(table)
    _out.print(
        "ts: each alone. dp-fts-de: together, in private. control: broadcasts of pure noise."
    )
    _out.print(_guarantee(private))
    _out.print(f"Figure: {out}. {seconds:.0f} seconds.")


@app.command()
def budget(
    agents: Annotated[int, typer.Option(help="N, the number of agents.")],
    rounds: Annotated[int, typer.Option(help="T, the number of rounds that speak.")],
    participation: Annotated[float, typer.Option(help="q, each agent's chance to be in a round.")],
    noise: Annotated[float | None, typer.Option(help="z, to find ε for.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="ε, to find z for.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ; default N^-1.1, the paper's.")] = None,
    accountant: Annotated[str, typer.Option(help="moments, rdp, pld, gdp or all.")] = "all",
    sampling: Annotated[str, typer.Option(help="poisson or fixed.")] = "poisson",
    as_json: Json = False,
) -> None:
    """What a study costs in privacy: ε for a noise, or the noise for an ε."""
    from sottovoce.experiments.budgeting import Plan, answer, costs_of_stricter_delta

    plan = Plan(agents, rounds, participation, delta, sampling)
    result = answer(plan, noise=noise, epsilon=epsilon, accountant=accountant)
    if as_json:
        _print_json(result)
    else:
        table = Table(title=f"Privacy of {rounds} rounds, {agents} agents, q = {participation:g}")
        table.add_column("accountant")
        table.add_column(f"ε at δ = {result['delta']:.3g}", justify="right")
        table.add_column("what it is")
        for name, value in result["epsilon"].items():
            table.add_row(name, _number(value), _ACCOUNTANT_NOTES[name])
        _out.print(table)
        _out.print(f"Noise multiplier z = {result['noise']:g}, {sampling} sampling.")
        _out.print(f"Adjacency: {_ADJACENCY_NOTES[result['adjacency']]}")
    if delta is None:
        _warn_of_delta(result["delta"], *costs_of_stricter_delta(plan, result))


@app.command()
def run(
    config: Annotated[Path | None, typer.Argument(help="A TOML file of these options.")] = None,
    problem: Annotated[str | None, typer.Option(help="The problem.")] = None,
    method: Annotated[str | None, typer.Option(help="The method.")] = None,
    agents: Annotated[int | None, typer.Option(help="N.")] = None,
    rounds: Annotated[int | None, typer.Option(help="T.")] = None,
    regions: Annotated[int | None, typer.Option(help="P.")] = None,
    clip: Annotated[float | None, typer.Option(help="S.")] = None,
    participation: Annotated[float | None, typer.Option(help="q.")] = None,
    noise: Annotated[float | None, typer.Option(help="z.")] = None,
    sampling: Annotated[str | None, typer.Option(help="poisson or fixed.")] = None,
    sensitivity: Annotated[str | None, typer.Option(help="paper or tight.")] = None,
    features: Annotated[int | None, typer.Option(help="M.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ; default N^-1.1.")] = None,
    runs: Annotated[int | None, typer.Option(help="Runs to average over.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the simulation.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    as_json: Json = False,
) -> None:
    """Simulate a method on a problem and save the results; run again to resume."""
    from sottovoce.experiments import RunConfig, config_from_toml, run_and_save

    base = RunConfig() if config is None else config_from_toml(config)
    given = dict(locals())
    names = [name for name in base.to_dict() if given.get(name) is not None]
    chosen = replace(base, **{name: given[name] for name in names})
    folder = Path("results") / f"{chosen.problem}-{chosen.method}" if out is None else out
    try:
        with _progress(chosen.runs * chosen.rounds) as advance:
            watcher = advance(chosen.method, chosen.resolved_delta())
            summary = run_and_save(chosen, folder, watcher)
    except KeyboardInterrupt:
        _err.print(f"interrupted; finished runs are in {folder}, the same command resumes")
        raise typer.Exit(130) from None
    if as_json:
        _print_json(summary)
        return
    regret = summary["regret"]
    table = Table(title=f"{chosen.method} on {chosen.problem}: mean simple regret")
    for column in ("t", "mean", "± standard error"):
        table.add_column(column, justify="right")
    for t in sorted({0, 5, 10, 20, 40, 60, chosen.rounds} & set(regret["t"])):
        table.add_row(str(t), f"{regret['mean'][t]:.4f}", f"{regret['stderr'][t]:.4f}")
    _out.print(table)
    if summary["clipped_fraction"] is not None:
        _out.print(f"Vectors clipped: {summary['clipped_fraction']:.2%}.")
    _out.print(_guarantee(summary))
    _out.print(f"Results: {folder}. {summary['seconds']:.1f} seconds of computing.")


_PUBLIC = "the number of agents, regions, weights, S, q and z are public."
_ADJACENCY_NOTES = {
    "zero-out": f"zero-out. One agent's vectors become zero in every round; {_PUBLIC}",
    "replace-one": (
        f"replace-one, which includes zero-out. One agent's vectors become any others; {_PUBLIC}"
    ),
}
_ACCOUNTANT_NOTES = {
    "moments": "bound; the paper's",
    "rdp": "bound",
    "pld": "bound; the tightest here",
    "gdp": "approximation, not a bound",
}


def _warn_of_delta(delta: float, accountant: str, costs: dict[float, float]) -> None:
    """Say what the paper's δ means, and what a stricter one would cost, where there is one."""
    if costs:
        listed = ", ".join(f"ε = {_number(e)} at δ = {d:g}" for d, e in costs.items())
        _err.print(
            f"warning: δ = N^-1.1 = {delta:.2g}, the paper's, is weak: the promise may fail with "
            f"that probability. The same noise costs {listed} ({accountant}).",
            style="yellow",
        )


def _guarantee(summary: dict[str, Any]) -> str:
    """ε with everything that must stand beside it."""
    epsilon = summary["epsilon"]
    if epsilon is None:
        return "No privacy: vectors are sent unprotected."
    if epsilon == 0:
        return "Nothing of any agent is sent: ε = 0."
    by_others = ", ".join(
        f"{_number(value)} ({name})"
        for name, value in summary["epsilon_by_accountant"].items()
        if name not in (summary["accountant"], "gdp")
    )
    return (
        f"ε = {epsilon:.2f} ({summary['accountant']}), {by_others}; δ = {summary['delta']:.3g}, "
        f"{summary['adjacency']} adjacency. A simulation: its seeded noise protects nobody."
    )


def _number(value: float | None) -> str:
    return "∞" if value is None or math.isinf(value) else f"{value:.2f}"


def _print_json(content: dict[str, Any]) -> None:
    print(json.dumps(content, allow_nan=False))


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A bar on standard error; yields a maker of watchers that show ε as it is spent."""
    from sottovoce.privacy.accountant import epsilon

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[spent]}"),
    )
    quiet = not _err.is_terminal  # a log needs no bar
    with Progress(*columns, console=_err, transient=True, disable=quiet) as progress:
        task = progress.add_task("", total=total, spent="")

        def watcher(label: str, delta: float) -> Any:
            def watch(run_number: int, t: int, events: list[Any]) -> None:
                by = (
                    "rdp"
                    if any(getattr(e, "sampling", "") == "fixed" for e in events)
                    else "moments"
                )
                spent = f"ε = {_number(epsilon(events, delta, by))}"
                description = f"{label}, run {run_number + 1}"
                progress.update(task, advance=1, description=description, spent=spent)

            return watch

        yield watcher


if __name__ == "__main__":
    main()
