"""`sottovoce serve`, `sottovoce register` and `sottovoce start`: the coordinator's commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.new import Project
from sottovoce.cli.show import ERR, OUT, Json, interruptible, print_json
from sottovoce.files import locked, private, private_folder

if TYPE_CHECKING:
    from sottovoce.flower.deploy.commands import Link
    from sottovoce.flower.deploy.superlink import Outcome

Keys = Annotated[
    Path | None, typer.Option("--keys", help="Folder of the keys; default: keys in the project.")
]
Host = Annotated[str, typer.Option(help="Address that the SuperLink listens on.")]
Port = Annotated[int, typer.Option(help="Port that the SuperLink listens on.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="No TLS, no node keys: only on loopback, for a try.")
]

LOCK = "serve.lock"  # held by whoever serves the project


@private()
def serve(
    project: Project = Path(),
    keys: Keys = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    exposed: Annotated[
        bool, typer.Option("--exposed", help="Listen beyond this machine, without a proxy.")
    ] = False,
    insecure: Insecure = False,
) -> None:
    """Run the coordinator's SuperLink, which sites connect to, until it is interrupted."""
    from sottovoce.errors import InvalidInput, check
    from sottovoce.flower.deploy import commands, preflight, superlink
    from sottovoce.flower.deploy.linkstore import forget_messages
    from sottovoce.flower.deploy.processes import deaf, run_until_ended
    from sottovoce.flower.deploy.project import check_project

    check_project(project)
    link, folder = _link(project, keys, host, port, insecure)
    rule = (
        "whoever reaches a SuperLink can submit and stop runs: host must be loopback, behind a "
        "proxy that lets only /v1/fleet/ through (see docs/deploy.md), or --exposed be given"
    )
    check(exposed or commands.is_loopback(host), rule, host=host)
    command = commands.superlink(project, link, folder)
    if folder is not None and link.root is not None:
        preflight.check_server_keys(folder, link.root)
    if superlink.is_up(link):
        raise InvalidInput(f"a SuperLink serves at {link.address} already; --port takes another")
    preflight.check_port(host, port)
    for name in (commands.STATE, commands.HOME):
        private_folder(project / name)
    with locked(project / commands.STATE / LOCK) as alone:
        rule = f"another `sottovoce serve` runs in {project.absolute()}: stop it first"
        check(alone, rule)
        ERR.print(f"The SuperLink's address is {link.address}; interrupt it to stop. Next, in")
        ERR.print("another terminal: `sottovoce register`, and when sites have joined `start`.")
        status = run_until_ended(command, commands.environment(project), project)
        with deaf():
            if not superlink.is_up(link):  # another may serve there, which is why ours ended
                forget_messages(commands.database(project), running=False)
    raise typer.Exit(status)


@private()
def register(
    public_keys: Annotated[
        list[Path], typer.Argument(help="Public keys of sites, in the order of their numbers.")
    ],
    project: Annotated[Path, typer.Option(help="A folder that `sottovoce new` made.")] = Path(),
    keys: Keys = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    aggregators: Annotated[
        bool, typer.Option("--aggregators", help="They are of parties that do nothing but sum.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Let sites in by their public keys, and write sites.toml; sites already in it are kept."""
    from sottovoce.flower.deploy.project import STUDY, check_project
    from sottovoce.flower.deploy.superlink import register_sites
    from sottovoce.flower.sites import NAME, read_parties, read_roster
    from sottovoce.flower.studyfile import read_study

    check_project(project)
    study = read_study(project / STUDY, enrolled=False).study
    agents = study.agents
    link, _ = _link(project, keys, host, port, insecure=False)
    sites = register_sites(project, link, public_keys, aggregators=aggregators)
    if as_json:
        print_json({"sites": sites})
        return
    kind = "aggregators" if aggregators else "sites"
    OUT.print(f"{project / NAME} lists {len(sites)} {kind}: {', '.join(sites)}", soft_wrap=True)
    listed, summing = map(len, read_parties(project / NAME))
    wanted = 0 if study.sums is None else study.sums.aggregators
    if (listed, summing) != (agents, wanted):
        more = f" and {wanted} aggregators; {listed} and {summing} are listed" if wanted else ""
        ERR.print(
            f"warning: study.toml says {agents} agents{more}; a run needs as many sites",
            style="yellow",
        )
    elif study.sums is not None:
        digest = read_roster(project / NAME).digest
        party = "party" if wanted else "site"
        OUT.print(f"Every {party} needs {NAME} beside its study.toml; its keys: {digest}")


@private()
def start(
    project: Project = Path(),
    keys: Keys = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    follow: Annotated[bool, typer.Option(help="Show what the run prints until it is over.")] = True,
    insecure: Insecure = False,
) -> None:
    """Start the study, or go on with it where its ledger ends; one that goes on is followed."""
    from sottovoce.errors import InvalidInput
    from sottovoce.flower.deploy import commands, superlink
    from sottovoce.flower.deploy.linkstore import forget_messages
    from sottovoce.flower.deploy.processes import stoppable
    from sottovoce.flower.deploy.project import STUDY, check_project
    from sottovoce.flower.sites import NAME, numbered_sites
    from sottovoce.flower.studyfile import read_study

    check_project(project)
    numbered_sites(project / NAME, read_study(project / STUDY).study.agents)
    link, _ = _link(project, keys, host, port, insecure)
    if not superlink.is_up(link, timeout=5.0):
        at = (
            ""
            if (host, port) == (commands.HOST, commands.PORT)
            else f" --host {host} --port {port}"
        )
        raise InvalidInput(
            f"no SuperLink with a certificate that is good answers at {link.address}: run "
            f"`sottovoce serve{at}` first, in another terminal"
        )
    superlink.connect(project, link)
    words = "a run that was started goes on; `sottovoce start` watches it again"
    with interruptible(words), stoppable():
        found = _started(project, link, follow)
    if found is not None:
        forget_messages(commands.database(project), running=True)
        raise typer.Exit(0 if found.well else 1)


def _started(project: Path, link: Link, follow: bool) -> Outcome | None:
    """How the run ended that goes on, or a new one; None if nobody waits for that."""
    from sottovoce.flower.deploy import superlink

    run_id = earlier = superlink.unfinished(project)
    if run_id is None:
        run_id = superlink.submit(project, link)
    ERR.print(f"run {run_id} {'goes on already' if earlier else 'has started'}")
    if not follow:
        print(run_id)
        return None
    found = superlink.follow(project, run_id)
    if not found.well:
        words = f"run {run_id} ended as {found.status}: {found.details}"
        ERR.print(words, style="red", markup=False, soft_wrap=True)
    if earlier and found.failed:  # such as one whose process was killed
        return _started(project, link, follow)
    return found


def _link(
    project: Path, keys: Path | None, host: str, port: int, insecure: bool
) -> tuple[Link, Path | None]:
    from sottovoce.flower.deploy.commands import Link
    from sottovoce.flower.deploy.keys import CA

    folder = None if insecure else keys or project / "keys"
    return Link(host, port, None if folder is None else folder / CA), folder
