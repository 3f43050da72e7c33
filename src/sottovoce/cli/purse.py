"""`sottovoce purse`: one budget for all studies on the same data."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sottovoce.cli.show import OUT, Json, number, print_json
from sottovoce.errors import LedgerError
from sottovoce.files import locked, private, private_folder

if TYPE_CHECKING:
    from sottovoce.flower.studyfile import StudyFile

purse = typer.Typer(
    help="One budget for all studies on the same data.", no_args_is_help=True, add_completion=False
)

At = Annotated[Path | None, typer.Argument(help="The purse's file; default: the user's own purse.")]
Project = Annotated[Path, typer.Argument(help="The site's copy of the project.")]
In = Annotated[
    Path | None, typer.Option("--purse", help="The purse's file; default: the user's own purse.")
]
Cap = Annotated[float, typer.Option(help="The most that all studies together may spend.")]
Delta = Annotated[float, typer.Option(help="δ of both.")]
Record = Annotated[
    float | None,
    typer.Option("--replace-one", help="The same of one record replaced by another; none if left."),
]

NONE = (
    "This study is in no purse: nothing here adds what it spends to what other studies on the same "
    "data spend (`sottovoce purse new` makes one)."
)


def default_purse() -> Path:
    """The user's own purse, where the desktop's rules put data."""
    data = os.environ.get("XDG_DATA_HOME", "")
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "sottovoce" / "purse.db"


@purse.command()
@private()
def new(
    epsilon: Cap,
    at: At = None,
    delta: Delta = 1e-5,
    replace_one: Record = None,
    data: Annotated[str, typer.Option(help="What data it is for, in words.")] = "",
    as_json: Json = False,
) -> None:
    """Make a purse. `join` enters every study in the user's own one, or in the one it is given."""
    from sottovoce.privacy.purse import Limits
    from sottovoce.privacy.pursefile import Purse

    limits, path = Limits(epsilon, delta, replace_one), at or default_purse()
    if at is None:
        private_folder(path.parent)
    _shown(Purse.new(path, limits, data).path, as_json)


@purse.command()
@private()
def show(
    at: At = None,
    holds: Annotated[
        str | None, typer.Option(help="A digest written down before: it must be in the purse.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What a purse holds: every study, what it may still say, ε of all of them together."""
    from sottovoce.privacy.pursefile import Purse

    path = at or default_purse()
    if holds is not None and not Purse(path).holds(holds.strip().lower()):
        raise LedgerError(f"purse {path} was set back, or is another: no entry has that digest")
    _shown(path, as_json)


@purse.command()
@private()
def enter(project: Project = Path(), at: In = None, as_json: Json = False) -> None:
    """Set aside all that a project's study may spend; `join` does it too."""
    file, folder = _site(project)
    _shown(entered(file, folder, project, at or default_purse()), as_json)


@purse.command()
@private()
def close(project: Project = Path(), as_json: Json = False) -> None:
    """Take no further part in a project's study, and give back what was not said in it."""
    from sottovoce.flower.site.paying import end, kept_in

    file, folder = _site(project)
    end(file, folder)
    kept = kept_in(folder)
    _shown(default_purse() if kept is None else kept.path, as_json)


@purse.command()
@private()
def moved(at: At = None, as_json: Json = False) -> None:
    """Say that a purse was moved here, and that no copy of it is used anywhere else."""
    from sottovoce.privacy.pursefile import Purse

    path = at or default_purse()
    Purse(path).move()
    _shown(path, as_json)


@purse.command()
@private()
def cap(
    at: At = None,
    epsilon: Annotated[float | None, typer.Option(help="For all that a site says.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ of both.")] = None,
    replace_one: Annotated[
        float | None, typer.Option("--replace-one", help="For one record replaced by another.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change what a purse allows, on record: what is given, the rest stays as it is."""
    from sottovoce.privacy.pursefile import Purse

    path = at or default_purse()
    given = {"epsilon": epsilon, "delta": delta, "replace_one": replace_one}
    limits = Purse(path).look()[0].limits
    known = {name: value for name, value in given.items() if value is not None}
    Purse(path).limit(replace(limits, **known))
    _shown(path, as_json)


def joined(file: StudyFile, project: Path, named: Path | None, without: bool) -> str:
    """Enter the study that a site is about to take part in, and say so in a line.

    In the purse it is in, or the one named, or the user's own; with none of them, in none.
    """
    from sottovoce.flower.site.leaving import HOME
    from sottovoce.flower.site.paying import kept_in

    kept = kept_in(project / HOME)
    path = named or (default_purse() if kept is None else kept.path)
    if kept is not None and without:
        raise LedgerError(f"this study is in purse {kept.path}: it cannot go on without it")
    if kept is None and (without or (named is None and not path.is_file())):
        return NONE
    found = found_in(entered(file, project / HOME, project, path))
    spent, limits = found["spent"], found["limits"]
    return (
        f"This study is in purse {path}, which now holds ε = {number(spent['epsilon'])} of "
        f"{limits['epsilon']:g} for a site, {number(spent['replace_one'])} for a record, at "
        f"δ = {limits['delta']:g}."
    )


def entered(file: StudyFile, folder: Path, project: Path, path: Path) -> Path:
    """Enter a project's study in a purse, with its site's folder held."""
    from sottovoce.flower.site.paying import PATIENCE
    from sottovoce.flower.site.paying import enter as enter_study

    if file.study.sums is not None:
        _ = file.terms  # the keys of all are part of what names the study
    private_folder(folder)
    with locked(folder / "lock", PATIENCE) as held:
        if not held:
            raise LedgerError(
                f"the site in {folder} is at work: try again when its trial has ended"
            )
        enter_study(file.study, folder, project.absolute().name, path)
    return path


def _site(project: Path) -> tuple[StudyFile, Path]:
    from sottovoce.flower.deploy.project import STUDY, check_project
    from sottovoce.flower.site.leaving import HOME
    from sottovoce.flower.studyfile import read_study

    check_project(project)
    return read_study(project / STUDY), project / HOME


def found_in(path: Path) -> dict[str, Any]:
    """What a purse holds, as plain data."""
    from sottovoce.privacy.pursefile import Purse

    book, mark = Purse(path).look()
    studies = []
    for stake in book.stakes.values():
        alone = book.limits.spent({stake.event: stake.kept} if stake.kept else {})
        studies.append(
            {
                "study": stake.study,
                "name": stake.name,
                "releases": stake.releases,
                "said": len(stake.said),
                "counted": stake.kept,
                "open": stake.open,
                **asdict(alone),
            }
        )
    return {
        "path": str(path.absolute()),
        "data": book.data,
        "limits": asdict(book.limits),
        "spent": asdict(book.limits.spent(book.events)),
        "room": book.room,
        "studies": studies,
        **asdict(mark),
    }


def _shown(path: Path, as_json: bool) -> None:
    found = found_in(path)
    if as_json:
        print_json(found)
        return
    words = f"Purse {found['path']}"
    OUT.print(Text(f"{words}: {found['data']}" if found["data"] else words), soft_wrap=True)
    if found["studies"]:
        OUT.print(_table(found))
    for sentence in sentences(found):
        OUT.print(Text(sentence), soft_wrap=True)


def _table(found: dict[str, Any]) -> Table:
    table = Table(title=f"Studies, each with its ε at δ = {found['limits']['delta']:g}")
    table.add_column("study", no_wrap=True)
    for column in ("releases", "said", "counted", "a site", "a record"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for each in found["studies"]:
        state = "open" if each["open"] else "closed"
        counts = (str(each[key]) for key in ("releases", "said", "counted"))
        spent = number(each["epsilon"]), number(each["replace_one"])
        table.add_row(Text(f"{each['name']} {each['study'][:12]}"), *counts, *spent, state)
    return table


def sentences(found: dict[str, Any]) -> list[str]:
    """What a purse promises, what is left of it, and what to write down."""
    limits, spent = found["limits"], found["spent"]
    record = limits["replace_one"]
    bound = "no limit is set" if record is None else f"{record:g} is allowed"
    said = [
        f"All studies together: ε = {number(spent['epsilon'])} of {limits['epsilon']:g} allowed, "
        f"for all that a site says, against its absence (zero-out); "
        f"ε = {number(spent['replace_one'])} for one record, against another in its place "
        f"(replace-one), {bound}; δ = {limits['delta']:g}, pld.",
    ]
    if found["room"] is not None:
        said.append(
            f"Room for a further study of ε = {_down(found['room'])} at δ = {limits['delta']:g}, "
            f"if it samples nobody."
        )
    said.append(f"Entries: {found['entries']}; newest digest: {found['digest']}")
    return said


def _down(value: float) -> str:
    """Two decimals, never more than there is room for."""
    return f"{int(value * 100) / 100:.2f}"
