"""`sottovoce watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.show import ERR, OUT, interruptible
from sottovoce.errors import MissingExtra


def watch(
    folder: Annotated[
        Path, typer.Argument(help="A project, a party's folder, or that of a rehearsal.")
    ] = Path(),
    port: Annotated[int, typer.Option(help="Where the page is; 0: any that is free.")] = 8600,
    host: Annotated[
        str, typer.Option(help="The address to listen on: another one than this lets others in.")
    ] = "127.0.0.1",
) -> None:
    """A live page of a study, for this machine alone: a site's search, a coordinator's rounds.

    It reads what is on the disk, and disturbs nothing.
    """
    try:
        from sottovoce.flower.pages.serve import serve_pages
    except MissingExtra:
        raise
    except ImportError as error:
        raise MissingExtra("a live page", "watch") from error
    with interruptible("stopped watching; the study goes on"):
        serve_pages(folder, host, port, _tell)


def _tell(address: str, reachable: bool) -> None:
    if reachable:
        ERR.print(
            "warning: other machines can reach this page, and it is not encrypted: whoever has the "
            "address below, or listens on the way, sees what the page shows",
            style="yellow",
            soft_wrap=True,
        )
    ERR.print("Watching until interrupted. Open:")
    OUT.print(address, soft_wrap=True, highlight=False)
