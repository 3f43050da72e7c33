"""`sottovoce table check` and `sottovoce table make`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from sottovoce.cli.data import have_data
from sottovoce.cli.show import OUT, Json, counting, interruptible, print_json
from sottovoce.errors import InvalidInput, check

table = typer.Typer(
    help="Tables of scores that stand in for training the models of real problems.",
    no_args_is_help=True,
)

_MEASURES = {
    "mean": "mean |error|",
    "rms": "root mean square error",
    "most": "95 % of |error| below",
    "best": "mean |error|, best tenth",
    "bias": "mean error",
    "spread": "standard deviation of scores",
    "rank": "rank correlation",
    "lost": "lost by trusting it",
    "noise": "deviation between trainings",
    "drawn": "the same, as the table draws",
}


@table.command("check")
def check_tables(
    names: Annotated[
        list[str] | None, typer.Argument(help="Problems; default: all that have a table.")
    ] = None,
    as_json: Json = False,
) -> None:
    """How far a table's interpolated scores are from those of models trained at other points."""
    from sottovoce.lab.problems.table import known_tables, load_table, made_by

    if names:
        problems = [_problem(name) for name in names]
        tables = [load_table(problem.table, problem.usual.name) for problem in problems]
    else:
        tables = [load_table(name) for name in known_tables()]
    if not tables:
        raise InvalidInput(f"there are no tables; make one: {made_by('NAME')}")
    _show([_described(each) for each in tables], as_json)


@table.command("make")
def make(
    name: Annotated[str, typer.Argument(help="A real problem, such as landmine.")],
    device: Annotated[str | None, typer.Option(help="A device of PyTorch's, such as cuda.")] = None,
    points: Annotated[
        int | None, typer.Option(help="Inside the cube; those on its boundary come on top.")
    ] = None,
    held_out: Annotated[int, typer.Option(help="Points for the test alone.")] = 256,
    trainings: Annotated[
        int | None, typer.Option(help="Of each model, where training has chance in it.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one a core.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file; default: where runs look for it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a problem's models at many points and keep their scores; run again to resume."""
    from sottovoce.device import device_named
    from sottovoce.lab.problems.maketable import make_table
    from sottovoce.lab.problems.table import own_tables

    problem = _problem(name)
    if out is None:
        own_tables().mkdir(parents=True, exist_ok=True)
    path = own_tables() / f"{problem.table}.npz" if out is None else out
    check(path.parent.is_dir(), "out must be in a folder that exists", out=str(path))
    check(path.suffix == ".npz", "out must end in .npz", out=str(path))
    chosen = device_named(device)
    have_data([replace(problem, objective="live").name])
    words = "interrupted; what was trained is kept, the same command resumes"
    with interruptible(words), counting("models") as advance:
        made = make_table(
            problem,
            chosen,
            points=points,
            held_out=held_out,
            trainings=trainings,
            jobs=jobs,
            advance=advance,
        )
    made.save(path)
    _show([_described(made) | {"file": str(path)}], as_json)
    if not as_json:
        OUT.print(f"Table: {path}")


def _problem(name: str) -> Any:
    """The real problem of that name."""
    from sottovoce.lab.problems import problem_named
    from sottovoce.lab.problems.real import RealProblem

    problem = problem_named(name)
    check(isinstance(problem, RealProblem), "a table must be of a real problem", problem=name)
    return problem


def _described(made: Any) -> dict[str, Any]:
    from sottovoce.lab.problems.table import held_out_error

    return {
        "problem": made.about["problem"],
        "agents": made.agents,
        "points": len(made.points),
        "held_out": len(made.held_points),
        "error": asdict(held_out_error(made)),
        "about": made.about,
    }


def _show(tables: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"tables": tables})
        return
    shown = Table(title="Interpolated scores against models trained at points held out")
    shown.add_column("")
    for each in tables:
        shown.add_column(each["problem"], justify="right")
    for key in ("agents", "points", "held_out"):
        shown.add_row(key.replace("_", " "), *(f"{each[key]}" for each in tables))
    for key, label in _MEASURES.items():
        shown.add_row(label, *(f"{each['error'][key]:.4f}" for each in tables))
    OUT.print(shown)
    for each in tables:
        about = each["about"]
        made = ", ".join(f"{name} {number}" for name, number in about.get("versions", {}).items())
        OUT.print(
            f"{each['problem']}: trainer {about.get('trainer')}, on {about.get('device')}, {made}; "
            f"again: {about.get('command')}",
            soft_wrap=True,
        )
