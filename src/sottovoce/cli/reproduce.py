"""`sottovoce reproduce` and `sottovoce report`."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from sottovoce.cli.data import have_data
from sottovoce.cli.show import CLUSTER, OUT, Json, counting, interruptible, print_json
from sottovoce.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.lab.experiments.figure import Figure
    from sottovoce.lab.experiments.results import FigureResult

_STYLES = {"holds": "green", "does not hold": "red", "within noise": "yellow"}


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(help="Names, a group, all, or a TOML file of your own.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs to average over; default: the figure's own number.")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help="Of real problems: table, or live to train every model.")
    ] = None,
    functions: Annotated[
        int | None,
        typer.Option(help="Draw so many functions, --runs starts each; for what share it holds."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    device: Annotated[str | None, typer.Option(help="A device of PyTorch's, such as cuda.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one a core.")] = None,
    cluster: Annotated[str | None, typer.Option(help=CLUSTER)] = None,
    out: Annotated[Path, typer.Option(help="Folder for results and figures.")] = Path("results"),
    only_list: Annotated[bool, typer.Option("--list", help="List the figures and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Run the paper's figures again and judge its claims; run again to resume."""
    from sottovoce.lab.experiments.figure import chosen_figures, known_figures
    from sottovoce.lab.experiments.reproduce import reproduce as run_figures
    from sottovoce.lab.report.figures import check_figure, draw_figure

    if only_list:
        _list(list(known_figures().values()), as_json)
        return
    if not figures:
        raise InvalidInput("name a figure, a group or all; --list shows them")
    check_figure(Path("figure.png"))  # said before the work
    chosen = [figure.with_runs(runs, seed) for figure in chosen_figures(figures)]
    chosen = [_changed(figure, functions, objective, device) for figure in chosen]
    have_data({curve.config.problem for figure in chosen for curve in figure.curves})
    # a live objective keeps all cores busy by itself
    jobs = jobs or (1 if objective == "live" else os.cpu_count() or 1)
    began = time.perf_counter()
    words = f"interrupted; finished runs are in {out}, the same command resumes"
    with interruptible(words), counting("runs") as advance:
        results = run_figures(chosen, out, jobs, advance, cluster)
    for result in results:
        draw_figure(result, out / "figures")
    seconds = time.perf_counter() - began
    if as_json:
        print_json({"seconds": seconds, "figures": [_plain(result) for result in results]})
        return
    for result in results:
        _show(result)
    verdicts = Counter(claim.verdict for result in results for claim in result.claims)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    OUT.print(f"{sum(verdicts.values())} claims: {counts}. {seconds:.0f} seconds.")
    OUT.print(f"Figures: {out / 'figures'}. A page of them all: sottovoce report {out}")


def _plain(result: FigureResult) -> dict[str, Any]:
    keys = ("claim", "paper", "measured", "stderr", "interval", "verdict", "needs", "hint")
    claims = [{key: getattr(claim, key) for key in keys} for claim in result.claims]
    return {"name": result.name, "claims": claims}


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders made by reproduce or run, or that hold folders of run."),
    ],
    page: Annotated[
        Path | None, typer.Option(help="The page; default: report.html in the first folder.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also draw each figure into this folder: PNG, SVG, PDF.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also put the verdicts into this document.")
    ] = None,
    keep: Annotated[
        bool, typer.Option(help="In it, keep verdicts of figures that the folders do not hold.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make one self-contained HTML page of all figures, and of runs side by side."""
    from sottovoce.lab.report.figures import check_figure, draw_figures
    from sottovoce.lab.report.files import read_figures
    from sottovoce.lab.report.markdown import update_markdown
    from sottovoce.lab.report.page import write_page

    found = read_figures(*folders)
    if figures is not None:
        check_figure(Path("figure.pdf"))  # said before anything is written
    path = write_page(found, folders[0] / "report.html" if page is None else page)
    drawn = [] if figures is None else draw_figures(found, figures)
    if markdown is not None:
        update_markdown(found, markdown, keep=keep)
    if as_json:
        print_json({"page": str(path), "figures": [str(each) for each in drawn]})
        return
    OUT.print(f"Page: {path}")
    if figures is not None:
        OUT.print(f"Figures: {figures}, {len(drawn)} files.")


def _changed(
    figure: Figure, functions: int | None, objective: str | None, device: str | None
) -> Figure:
    """The figure in the ways that were asked for."""
    figure = figure if functions is None else figure.by_function(functions)
    figure = figure if objective is None else figure.with_objective(objective)
    return figure if device is None else figure.on_device(device)


def _list(figures: list[Figure], as_json: bool) -> None:
    if as_json:
        names = [{"name": f.name, "title": f.title, "paper": f.paper} for f in figures]
        print_json({"figures": names})
        return
    table = Table(Column("name", no_wrap=True), "what", box=None, pad_edge=False)
    for figure in figures:
        place = ", ".join(filter(None, (figure.paper, figure.group)))
        table.add_row(figure.name, f"{figure.title} [dim]({escape(place)})[/]")
    OUT.print(table)


def _show(result: FigureResult) -> None:
    said = any(claim.paper for claim in result.claims)
    source = ("expected" if result.own else "paper",) if said else ()
    table = Table(title=escape(result.heading), title_justify="left")
    for column in ("claim", *source, "measured", "verdict"):
        table.add_column(column)
    for claim in result.claims:
        verdict = f"[{_STYLES[claim.verdict]}]{claim.verdict}[/]"
        paper = (escape(claim.paper),) if said else ()
        table.add_row(escape(claim.claim), *paper, escape(claim.text), verdict)
    OUT.print(table)
    hints = Counter(claim.hint for claim in result.claims if claim.hint)
    for hint, count in hints.items():
        alike = f" ({count} claims)" if count > 1 else ""
        OUT.print(f"[yellow]within noise[/]{alike}: {hint}.")
