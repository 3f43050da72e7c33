"""`sottovoce join`: a site's command."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.purse import joined
from sottovoce.cli.serve import Insecure
from sottovoce.cli.show import ERR
from sottovoce.files import private, private_folder

PATIENCE, PAUSE = 90.0, 10.0  # a coordinator takes up to a minute to notice that a node died


@private()
def join(
    address: Annotated[str, typer.Argument(help="The coordinator, as host:port.")],
    key: Annotated[Path | None, typer.Option(help="The site's private key.")] = None,
    root: Annotated[
        Path | None,
        typer.Option(help="The authority's certificate; default: keys/ca.crt in the project."),
    ] = None,
    project: Annotated[Path, typer.Option(help="The site's copy of the project.")] = Path(),
    port: Annotated[
        int, typer.Option(help="A port of this machine for the site's own processes.")
    ] = 9094,
    insecure: Insecure = False,
    workers: Annotated[int, typer.Option(help="Trials to run side by side, in threads.")] = 1,
    purse: Annotated[
        Path | None, typer.Option(help="The purse to enter the study in; default: the user's own.")
    ] = None,
    no_purse: Annotated[
        bool, typer.Option("--no-purse", help="Enter the study in no purse.")
    ] = False,
) -> None:
    """Take part as a site: run a SuperNode that connects to the coordinator, until interrupted.

    If all trials fail the site leaves the study: then this ends, with status 2 and the error.
    """
    from sottovoce.errors import TrialError, check
    from sottovoce.flower.deploy import commands
    from sottovoce.flower.deploy.keys import CA
    from sottovoce.flower.deploy.processes import INTERRUPTED, run_until_ended
    from sottovoce.flower.deploy.project import STUDY, check_project
    from sottovoce.flower.deploy.roster import enrolled, sums_only
    from sottovoce.flower.site import leaving
    from sottovoce.flower.studyfile import read_study

    check_project(project)
    # what is wrong with it is better said now than to the coordinator
    file = read_study(project / STUDY)
    check(insecure or key is not None, "a site needs its private key: --key")
    trust = None if insecure else root or project / "keys" / CA
    link = commands.Link.parse(address, trust)
    command = commands.supernode(project, link, key, port, workers)
    if file.study.sums is not None:
        ERR.print(enrolled(file, key), soft_wrap=True)
    for name in ("site", commands.HOME):
        private_folder(project / name)
    if not sums_only(file, key):
        ERR.print(joined(file, project, purse, no_purse), markup=False, soft_wrap=True)
    home, env = project / leaving.HOME, commands.environment(project)
    leaving.forget(home)
    end = time.monotonic() + PATIENCE
    while True:
        status = run_until_ended(command, env, project, over=lambda: leaving.settled(home))
        why = leaving.why(home)
        if why is not None:
            raise TrialError(why)
        if status in (0, INTERRUPTED) or time.monotonic() > end:
            raise typer.Exit(status)
        ERR.print("The coordinator did not let this site in: it takes an earlier one to be alive")
        ERR.print("still, or the key is not registered, or nobody answers at that address.")
        ERR.print(f"Trying again in {PAUSE:g} seconds.")
        time.sleep(PAUSE)
