"""`sottovoce rehearse`."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.new import Project
from sottovoce.cli.result import as_table, kept_results, show
from sottovoce.cli.serve import Insecure
from sottovoce.cli.show import ERR, OUT, Json, by_others, interruptible, number, print_json

Trial = Annotated[
    bool, typer.Option("--trial/--no-trial", help="Try the objective once before anything starts.")
]


def rehearse(
    project: Project = Path(),
    sites: Annotated[
        int | None, typer.Option(help="How many sites to run here; default: the study's, up to 5.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="T, if not that of study.toml: fewer are quicker.")
    ] = None,
    insecure: Insecure = False,
    trial: Trial = True,
    keep: Annotated[
        bool, typer.Option("--keep/--remove", help="What becomes of `rehearsal` if all went well.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Deploy a project on this machine: real processes, keys and noise, loopback only.

    It is entered in no purse: what it says stays on this machine.
    """
    from sottovoce.flower.deploy.processes import stoppable
    from sottovoce.flower.deploy.rehearsal import rehearse as perform

    with interruptible("interrupted; all processes are stopped"), stoppable():
        found = perform(project, sites, insecure=insecure, rounds=rounds, trial=trial, tell=tell)
    folder = Path(found.folder)
    kept = kept_results(folder)
    if not keep:
        shutil.rmtree(folder)
    if as_json:
        print_json({**asdict(found), "results": as_table(kept)})
        return
    show(kept)
    OUT.print(
        f"Rehearsed in {found.seconds:.0f} s; releases: {found.releases}. The "
        f"ledger says ε = {number(found.epsilon['pld'])} (pld) of {found.granted:g} granted, by "
        f"looser accountants {by_others(found.epsilon, 'pld')}; δ = {found.delta:g}, "
        f"{found.adjacency} adjacency.",
        soft_wrap=True,
    )
    if keep:
        OUT.print(f"Ledger: {found.ledger}", soft_wrap=True)
        OUT.print(f"Logs: {found.logs}", soft_wrap=True)


def tell(line: str) -> None:
    """A line for whoever waits."""
    style = "yellow" if line.startswith("warning:") else None
    ERR.print(line, markup=False, soft_wrap=True, style=style or "")
