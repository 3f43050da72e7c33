"""The command line: reads options, calls the library, prints.

Results go to standard output, the rest to standard error; with --json exactly one JSON object
to standard output.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from sottovoce import __version__
from sottovoce.cli.budget import budget
from sottovoce.cli.check import check
from sottovoce.cli.data import data
from sottovoce.cli.demo import demo
from sottovoce.cli.importing import import_
from sottovoce.cli.join import join
from sottovoce.cli.keys import keys
from sottovoce.cli.new import new, space
from sottovoce.cli.plan import plan
from sottovoce.cli.purse import purse
from sottovoce.cli.rehearse import rehearse
from sottovoce.cli.reproduce import report, reproduce
from sottovoce.cli.result import result
from sottovoce.cli.run import run
from sottovoce.cli.serve import register, serve, start
from sottovoce.cli.settings import TellsDefaults
from sottovoce.cli.show import ERR
from sottovoce.cli.statement import statement
from sottovoce.cli.status import status
from sottovoce.cli.table import table
from sottovoce.cli.watch import watch
from sottovoce.errors import SottovoceError

app = typer.Typer(
    help="Tune hyperparameters together without showing data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    suggest_commands=False,  # Click suggests by itself
)
for command in (demo, budget, plan, run, reproduce, report, data, check):
    app.command(cls=TellsDefaults if command is run else None)(command)
_STEPS = (new, space, rehearse, statement, keys, serve, register, start, join, watch, status)
for step in (*_STEPS, result):
    app.command(rich_help_panel="A federation of real parties")(step)
app.command("import", rich_help_panel="A federation of real parties")(import_)
app.add_typer(table, name="table")
app.add_typer(purse, name="purse", rich_help_panel="A federation of real parties")


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


def main() -> None:
    """Run the command line; errors of ours become one line and exit status 2."""
    try:
        app()
    except SottovoceError as error:
        ERR.print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
        sys.exit(2)
