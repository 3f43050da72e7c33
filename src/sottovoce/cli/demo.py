"""`sottovoce demo`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sottovoce.cli.show import OUT, Json, guarantee, print_json, progress


def demo(
    runs: Annotated[int, typer.Option(help="Runs to average over.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("sottovoce-demo.png"),
    as_json: Json = False,
) -> None:
    """200 agents on the paper's synthetic problem: alone, together in private, and a control."""
    from sottovoce.lab.experiments.demo import MILESTONES, demo_curves, run_curve
    from sottovoce.lab.report.figures import check_figure, draw_convergence

    check_figure(out)
    began = time.perf_counter()
    curves = demo_curves(runs, seed)
    with progress(sum(c.config.runs * c.config.study().rounds for c in curves)) as advance:
        summaries = [run_curve(c, advance(c.label, c.config.resolved_delta())) for c in curves]
    private = summaries[1]
    measured = f"{runs} runs, bands ± 1 standard error" if runs > 1 else "1 run"
    note = f"N = {private.agents}, {measured}. {guarantee(private)}"
    lines = [(c.label, s.regret) for c, s in zip(curves, summaries, strict=True)]
    draw_convergence(lines, out, "The paper's synthetic problem", note)
    seconds = time.perf_counter() - began
    if as_json:
        methods = [summary.to_dict() for summary in summaries]
        print_json({"methods": methods, "figure": str(out), "seconds": seconds})
        return
    give = " ± its standard error over runs" if runs > 1 else ""
    table = Table(title=f"Mean simple regret after t queries{give}")
    for column in ("method", *(f"t = {t}" for t in MILESTONES)):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for summary in summaries:
        regret = summary.regret
        errors = regret.stderr
        cells = [
            f"{regret.mean[t]:.4f}" + ("" if errors is None else f" ±{errors[t]:.3f}")
            for t in MILESTONES
        ]
        table.add_row(summary.method, *cells)
    OUT.print(table)
    OUT.print("ts: each alone. dp-fts-de: together, in private. control: broadcasts of pure noise.")
    OUT.print(guarantee(private))
    OUT.print(f"Figure: {out}. {seconds:.0f} seconds.")
