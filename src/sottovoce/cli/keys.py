"""`sottovoce keys`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.show import ERR, OUT, Json, print_json


def keys(
    folder: Annotated[Path, typer.Argument(help="Where to put them.")],
    sites: Annotated[
        list[str] | None,
        typer.Option(help="Names of sites, one an option, or how many; each gets a key pair."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="DNS names or IP addresses of the coordinator, one an option."),
    ] = None,
    server: Annotated[
        bool, typer.Option(help="Also a test authority and the coordinator's certificate.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Make keys: a test authority, the coordinator's certificate, key pairs of sites."""
    from sottovoce.flower.deploy.keys import make_keys

    made = make_keys(folder, sites or [], host or [], server=server)
    if as_json:
        print_json({"files": [str(path) for path in made]})
        return
    for path in made:
        OUT.print(str(path), soft_wrap=True)
    if server:
        ERR.print(
            "The authority is a test authority: whoever has ca.key can pass for the coordinator. A "
            "consortium puts in its own authority's ca.crt, server.crt and server.key instead.",
            style="yellow",
        )
    ERR.print("A site makes its own key pair (--sites NAME --no-server) and sends only the .pub.")
