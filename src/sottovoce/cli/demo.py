"""`sottovoce demo`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sottovoce.cli.show import OUT, Json, guarantee, number, print_json, progress


def demo(
    runs: Annotated[int, typer.Option(help="Runs to average over.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("sottovoce-demo.png"),
    as_json: Json = False,
) -> None:
    """40 agents tune six parameters: together in private, alone, and hearing noise alone."""
    from sottovoce.lab.experiments.demo import MILESTONES, by_trials, demo_curves, run_curve
    from sottovoce.lab.report.figures import check_figure, draw_convergence

    check_figure(out)
    began = time.perf_counter()
    curves = demo_curves(runs, seed)
    with progress(sum(c.config.runs * c.config.study().rounds for c in curves)) as advance:
        summaries = [run_curve(c, advance(c.label, c.config.resolved_delta())) for c in curves]
    private = summaries[0]
    measured = f"{runs} runs, bands ± 1 standard error" if runs > 1 else "1 run"
    note = f"N = {private.agents}, {measured}. {guarantee(private)}"
    traces = [by_trials(c, s) for c, s in zip(curves, summaries, strict=True)]
    lines = [(c.label, trace) for c, trace in zip(curves, traces, strict=True)]
    words = "Six parameters of all kinds, tuned at 40 sites"
    draw_convergence(lines, out, words, note, x_label="trials in all, the initial ones included")
    seconds = time.perf_counter() - began
    if as_json:
        methods = [summary.to_dict() for summary in summaries]
        print_json({"methods": methods, "figure": str(out), "seconds": seconds})
        return
    give = " ± its standard error over runs" if runs > 1 else ""
    table = Table(title=f"Mean regret after so many trials in all{give}")
    for column in ("method", "ε", *map(str, MILESTONES)):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for summary, trace in zip(summaries, traces, strict=True):
        at = [trace.t.index(t) for t in MILESTONES]
        errors = trace.stderr
        cells = [
            f"{trace.mean[k]:.4f}" + ("" if errors is None else f" ±{errors[k]:.3f}") for k in at
        ]
        spent = "–" if summary.epsilon == 0 else number(summary.epsilon)
        table.add_row(summary.method, spent, *cells)
    OUT.print(table)
    OUT.print(
        "sottovoce: together, in private. gp: each alone. sottovoce-control: broadcasts of pure "
        "noise. dp-fts-de: the paper's method, with its own noise and 10 initial trials."
    )
    OUT.print(guarantee(private))
    OUT.print(f"Figure: {out}. {seconds:.0f} seconds.")
