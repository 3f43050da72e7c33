"""`sottovoce join`: a site's command."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.purse import joined
from sottovoce.cli.rehearse import Trial, tell
from sottovoce.cli.result import kept_results, show
from sottovoce.cli.serve import Insecure
from sottovoce.cli.show import ERR
from sottovoce.files import private, private_folder

if TYPE_CHECKING:
    from sottovoce.flower.deploy.commands import Link
    from sottovoce.flower.deploy.following import Following
    from sottovoce.flower.studyfile import StudyFile

PATIENCE, PAUSE = 90.0, 10.0  # a coordinator takes up to a minute to notice that a node died
LOG = "join.log"  # what Flower prints, in the site's folder


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
    trial: Trial = True,
    stay: Annotated[
        bool, typer.Option("--stay", help="Stay connected when all trials are run.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Trials to run side by side, in threads.")] = 1,
    purse: Annotated[
        Path | None, typer.Option(help="The purse to enter the study in; default: the user's own.")
    ] = None,
    no_purse: Annotated[
        bool, typer.Option("--no-purse", help="Enter the study in no purse.")
    ] = False,
) -> None:
    """Take part as a site: run a SuperNode that connects to the coordinator, until all is done.

    If all trials fail the site leaves the study: then this ends, with status 2 and the error.
    """
    from sottovoce.errors import check
    from sottovoce.flower.deploy import commands
    from sottovoce.flower.deploy.following import Following
    from sottovoce.flower.deploy.keys import CA
    from sottovoce.flower.deploy.processes import INTERRUPTED
    from sottovoce.flower.deploy.project import STUDY, check_project
    from sottovoce.flower.deploy.roster import sums_only
    from sottovoce.flower.site import leaving
    from sottovoce.flower.studyfile import read_study

    check_project(project)
    file = read_study(project / STUDY)
    check(insecure or key is not None, "a site needs its private key: --key")
    link = commands.Link.parse(address, None if insecure else root or project / "keys" / CA)
    command = commands.supernode(project, link, key, port, workers)
    home, log = project / leaving.HOME, project / leaving.HOME / LOG
    _preflight(project, file, link, key, port, trial)
    for name in (leaving.HOME, commands.HOME):
        private_folder(project / name)
    leaving.forget(home)
    following = Following(file, home, log, tell, stay=stay)
    if following.through and not stay:
        show(kept_results(home))
        tell("This site has run all its trials; --stay keeps it connected all the same.")
        return
    if not sums_only(file, key):
        tell(joined(file, project, purse, no_purse))
    status = _run(command, project, following, log)
    if following.through:
        show(kept_results(home))
    elif status == INTERRUPTED:
        tell("Interrupted. Nothing is lost: `sottovoce join` goes on, `sottovoce result` shows.")
    raise typer.Exit(status)


def _run(command: list[str], project: Path, following: Following, log: Path) -> int:
    """Run the SuperNode until it ends, and again while the coordinator does not let it in."""
    from sottovoce.errors import TrialError
    from sottovoce.flower.deploy.commands import environment
    from sottovoce.flower.deploy.processes import INTERRUPTED, run_until_ended
    from sottovoce.flower.site import leaving

    tell(f"What Flower prints goes to {log.absolute()}.")
    env, end = environment(project), time.monotonic() + PATIENCE
    while True:
        status = run_until_ended(command, env, project, over=following.over, log=log)
        why = leaving.why(project / leaving.HOME)
        if why is not None:
            raise TrialError(why)
        if status in (0, INTERRUPTED) or time.monotonic() > end:
            return status
        ERR.print("The coordinator did not let this site in: it takes an earlier one to be alive")
        ERR.print("still, or the key is not registered, or nobody answers at that address.")
        ERR.print(f"Trying again in {PAUSE:g} seconds.")
        time.sleep(PAUSE)


def _preflight(
    project: Path, file: StudyFile, link: Link, key: Path | None, port: int, trial: bool
) -> None:
    """What is wrong is said before a process is started."""
    from sottovoce.flower.deploy import preflight
    from sottovoce.flower.deploy.commands import HOST
    from sottovoce.flower.deploy.roster import enrolled, sums_only
    from sottovoce.flower.result.recorded import recorded
    from sottovoce.flower.site.leaving import HOME

    if file.study.sums is not None:
        ERR.print(enrolled(file, key), soft_wrap=True)
    tries = trial and not sums_only(file, key)
    preflight.check_port(HOST, port)
    if link.root is not None:
        preflight.check_certificate(link.root, "the authority's certificate")
    if not preflight.check_reachable(link):
        tell(f"Nobody answers at {link.address} yet; this site keeps trying.")
    if tries and not any(each.value is not None for each in recorded(project / HOME).trials):
        preflight.check_objective(project, file, tell)
