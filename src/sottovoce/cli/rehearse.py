"""`sottovoce rehearse`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.new import Project
from sottovoce.cli.serve import Insecure
from sottovoce.cli.show import ERR, OUT, Json, number, print_json


def rehearse(
    project: Project = Path(),
    sites: Annotated[int, typer.Option(help="How many sites to run here.")] = 5,
    rounds: Annotated[
        int | None, typer.Option(help="T, if not that of study.toml: fewer are quicker.")
    ] = None,
    insecure: Insecure = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder `rehearsal`.")] = False,
    as_json: Json = False,
) -> None:
    """Deploy a project on this machine: real processes, keys and noise, loopback only."""
    from sottovoce.flower.deploy.processes import stoppable
    from sottovoce.flower.deploy.rehearsal import rehearse as perform

    try:
        with stoppable():
            found = perform(project, sites, insecure=insecure, rounds=rounds, keep=keep, tell=_tell)
    except KeyboardInterrupt:
        ERR.print("interrupted; all processes are stopped")
        raise typer.Exit(130) from None
    if as_json:
        print_json(asdict(found))
        return
    others = ", ".join(
        f"{number(value)} ({name})"
        for name, value in found.epsilon.items()
        if name not in ("pld", "gdp")
    )
    OUT.print(
        f"Rehearsed with {sites} sites in {found.seconds:.0f} s; releases: {found.releases}. The "
        f"ledger says ε = {number(found.epsilon['pld'])} (pld) of {found.granted:g} granted, by "
        f"looser accountants {others}; δ = {found.delta:g}, {found.adjacency} adjacency.",
        soft_wrap=True,
    )


def _tell(line: str) -> None:
    ERR.print(line, markup=False, soft_wrap=True)
