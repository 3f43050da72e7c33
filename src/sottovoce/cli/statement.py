"""`sottovoce statement`, and what `sottovoce budget STUDY` says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sottovoce.cli.show import ERR, OUT, Json, print_json
from sottovoce.errors import InvalidInput

NAME = "statement"


def statement(
    study: Annotated[
        Path, typer.Argument(help="A study.toml, or a project's folder.", show_default=False)
    ] = Path(),
    out: Annotated[
        Path | None, typer.Option(help="Where to write it; default: beside study.toml.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the page that a data protection officer signs or refuses, as HTML and Markdown."""
    from sottovoce.files import write_text
    from sottovoce.flower.statement.page import as_html, as_markdown, statement_of
    from sottovoce.flower.statement.promise import promise_of, study_in

    file, path = study_in(study)
    folder = path.parent if out is None else out
    if not folder.is_dir():
        raise InvalidInput(f"{folder} must be a folder")
    promise = promise_of(file)
    found = statement_of(promise, path)
    texts = {".html": as_html(found), ".md": as_markdown(found)}
    for ending, text in texts.items():
        write_text(folder / f"{NAME}{ending}", text)
    written = [str(folder / f"{NAME}{ending}") for ending in texts]
    if as_json:
        print_json({**promised(study), "files": written})
        return
    for name in written:
        OUT.print(Text(name), soft_wrap=True)
    if promise.draft:
        ERR.print("A draft: the sites' keys are not listed yet, and are part of the study.")


def promised(study: Path) -> dict[str, Any]:
    """What a study promises, and what stricter would cost, as plain data."""
    from sottovoce.flower.statement.promise import promise_of, stricter, study_in

    file, path = study_in(study)
    promise = promise_of(file)
    league = promise.league
    return {
        "study": file.study.fingerprint,
        "trust": "coordinator" if league is None else "nobody",
        "agents": file.study.agents,
        "releases": promise.releases,
        "delta": file.delta,
        "noise": promise.noise,
        "site": promise.site._asdict(),
        "record": promise.record._asdict(),
        "collude": None
        if league is None
        else {
            "unreliable": league.unreliable,
            "members": league.members,
            "threshold": league.threshold,
            "twice": league.twice,
            "fewest": league.fewest,
            "aggregators": league.aggregators,
            "site": league.opened[0]._asdict(),
            "record": league.opened[1]._asdict(),
            "left_out": None
            if league.left_out is None
            else {
                "absent": league.absent,
                "site": league.left_out[0]._asdict(),
                "record": league.left_out[1]._asdict(),
            },
        },
        "stricter": [row._asdict() for row in stricter(path)],
    }


def print_promise(study: Path) -> None:
    """The same in sentences."""
    from sottovoce.flower.statement.promise import promise_of, stricter, study_in
    from sottovoce.flower.statement.words import price, sentences

    file, path = study_in(study)
    for sentence in sentences(promise_of(file)):
        OUT.print(Text(sentence), soft_wrap=True)
    rows = price(stricter(path))
    table = Table(title="What a stricter ε costs")
    for head in rows.heads:
        table.add_column(head, justify="right")
    for row in rows.rows:
        table.add_row(*row)
    OUT.print(table)
    OUT.print(
        "Revealed: how much of what the sites' functions have in common the releases are to tell, "
        "by the study's own model; below a quarter it hardly helps anybody.",
        soft_wrap=True,
    )
