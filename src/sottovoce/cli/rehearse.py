"""`sottovoce rehearse`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.new import Project
from sottovoce.cli.serve import Insecure
from sottovoce.cli.show import ERR, OUT, Json, by_others, interruptible, number, print_json


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
    """Deploy a project on this machine: real processes, keys and noise, loopback only.

    It is entered in no purse: what it says stays on this machine.
    """
    from sottovoce.flower.deploy.processes import stoppable
    from sottovoce.flower.deploy.rehearsal import rehearse as perform

    with interruptible("interrupted; all processes are stopped"), stoppable():
        found = perform(project, sites, insecure=insecure, rounds=rounds, keep=keep, tell=_tell)
    if as_json:
        print_json(asdict(found))
        return
    OUT.print(
        f"Rehearsed with {sites} sites in {found.seconds:.0f} s; releases: {found.releases}. The "
        f"ledger says ε = {number(found.epsilon['pld'])} (pld) of {found.granted:g} granted, by "
        f"looser accountants {by_others(found.epsilon, 'pld')}; δ = {found.delta:g}, "
        f"{found.adjacency} adjacency.",
        soft_wrap=True,
    )


def _tell(line: str) -> None:
    ERR.print(line, markup=False, soft_wrap=True)
