"""A whole deployment on one machine: real processes, TLS, node keys and noise, only loopback."""

from __future__ import annotations

import re
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sottovoce.errors import InvalidInput, SottovoceError, StorageError, TrialError, check
from sottovoce.files import locked, private, write_text
from sottovoce.flower.coordinator.journal import NAME, read_journal
from sottovoce.flower.deploy import commands, superlink
from sottovoce.flower.deploy.commands import Link
from sottovoce.flower.deploy.keys import CA, PRIVATE, PUBLIC, make_keys, site_names
from sottovoce.flower.deploy.linkstore import forget_messages
from sottovoce.flower.deploy.preflight import check_objective
from sottovoce.flower.deploy.processes import Processes, end_marked
from sottovoce.flower.deploy.project import check_project, copy_project, study_with
from sottovoce.flower.site import leaving
from sottovoce.flower.sites import NAME as SITES
from sottovoce.flower.sites import write_sites
from sottovoce.flower.studyfile import StudyFile
from sottovoce.privacy.accountant import every_epsilon
from sottovoce.privacy.events import adjacency
from sottovoce.privacy.ledger import read_ledger

FOLDER, HUB, KEYS = "rehearsal", "hub", "keys"
MARKER = ".sottovoce-rehearsal"  # says that the folder may be removed, and whose processes are
STARTING = 60.0  # seconds for the SuperLink to answer
LOOK = 0.5
MOST = 5  # sites, unless more are asked for
_PARTY = re.compile(r"(site|sum)-\d+")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Rehearsed:
    """What a rehearsal came to."""

    releases: int
    epsilon: dict[str, float]  # by accountant
    granted: float
    delta: float
    adjacency: str
    seconds: float
    folder: str  # of all parties, a project each
    ledger: str
    logs: str  # folder of what each process printed


@dataclass(frozen=True)
class Stage:
    """Where a rehearsal takes place."""

    folder: Path
    sites: tuple[str, ...]
    link: Link
    study: StudyFile
    aggregators: tuple[str, ...] = ()

    @property
    def parties(self) -> tuple[str, ...]:
        """All who run a SuperNode."""
        return (*self.sites, *self.aggregators)

    @property
    def coordinator(self) -> Path:
        """The coordinator's copy of the project."""
        return self.folder / HUB

    @property
    def keys(self) -> Path | None:
        """The keys of all; none without encryption."""
        return None if self.link.root is None else self.folder / KEYS

    def log(self, name: str) -> Path:
        """What a process prints."""
        return self.folder / "logs" / f"{name}.log"


@private()
def rehearse(
    project: Path,
    sites: int | None = None,
    *,
    insecure: bool = False,
    rounds: int | None = None,
    trial: bool = True,
    tell: Tell = lambda line: None,
) -> Rehearsed:
    """Deploy a project on this machine, run its study, and stop everything again.

    What was written stays in the folder `rehearsal`, also if it failed; the next one replaces it.
    sites: how many; None: as many as the study has, up to five. trial: try the objective first.
    """
    began = time.monotonic()
    check_project(project)
    with locked(project) as alone:
        # a second rehearsal would take the first one's folder away
        if not alone:
            raise InvalidInput(f"a rehearsal of {project.absolute()} is running")
        chosen = _looked_over(project.absolute(), sites, insecure=insecure, rounds=rounds)
        if trial:
            check_objective(project, chosen.study, tell)
        stage = prepared(project.absolute(), chosen.sites, insecure=insecure, rounds=rounds)
        try:
            with Processes() as processes:
                write_text(stage.folder / MARKER, processes.mark)
                _perform(stage, processes, tell)
        except BaseException:
            tell(f"kept, as something went wrong: logs in {stage.folder / 'logs'}, the ledger, if")
            tell(f"there is one yet, in {stage.coordinator / commands.STATE}")
            raise
        finally:
            forget_messages(commands.database(stage.coordinator), running=False)
    return _result(stage, time.monotonic() - began)


def _result(stage: Stage, seconds: float) -> Rehearsed:
    ledger = stage.coordinator / commands.STATE / "ledger.db"
    events = [entry.release.event for entry in read_ledger(ledger).entries]
    return Rehearsed(
        len(events),
        every_epsilon(events, stage.study.delta),
        stage.study.epsilon,
        stage.study.delta,
        adjacency(events),
        seconds,
        str(stage.folder),
        str(ledger),
        str(stage.folder / "logs"),
    )


class _Chosen(NamedTuple):
    """What is to be rehearsed."""

    sites: int
    settings: dict[str, int]
    study: StudyFile


def _looked_over(
    project: Path, sites: int | None, *, insecure: bool, rounds: int | None
) -> _Chosen:
    """What is wrong is said before anything is made, or taken away."""
    commands.tool("flower-superlink")
    agents = study_with(project).study.agents
    count = min(MOST, agents) if sites is None else sites
    rule = f"study.toml has {agents} agents: sites must be in [1, {agents}]"
    check(1 <= count <= agents, rule, sites=count)
    settings = {"agents": count} if rounds is None else {"agents": count, "rounds": rounds}
    study = study_with(project, **settings)
    rule = "without node keys nobody is who he says: --insecure is for trust = 'coordinator'"
    check(not insecure or study.study.sums is None, rule)
    _check_replaceable(project / FOLDER)
    return _Chosen(count, settings, study)


def _check_replaceable(folder: Path) -> None:
    """Refuse to take away what no rehearsal made."""
    if not folder.exists() and not folder.is_symlink():
        return
    rule = f"{folder} must be what a rehearsal left, or not be there"
    check((folder / MARKER).is_file() and not folder.is_symlink(), rule)
    made = {HUB, KEYS, "logs", MARKER}
    strange = sorted(
        path.name
        for path in folder.iterdir()
        if path.name not in made and not _PARTY.fullmatch(path.name)
    )
    rule = f"{folder} would be replaced, and no rehearsal made all that is in it: move it away"
    check(not strange, rule, found=strange)


def prepared(
    project: Path, sites: int, *, insecure: bool = False, rounds: int | None = None
) -> Stage:
    """A copy of the project for each party, and their keys; an earlier rehearsal is replaced."""
    check_project(project)
    _, settings, study = _looked_over(project, sites, insecure=insecure, rounds=rounds)
    folder, names = project / FOLDER, site_names([str(sites)])
    sums = study.study.sums
    summing = [f"sum-{k}" for k in range(1, 1 + (0 if sums is None else sums.aggregators))]
    try:
        if folder.exists():
            mark = (folder / MARKER).read_text(encoding="utf-8")
            if mark:
                end_marked(mark)  # of a rehearsal that was killed
            shutil.rmtree(folder)
        (folder / "logs").mkdir(parents=True)
        (folder / MARKER).touch()
    except OSError as error:
        raise StorageError(f"{folder} could not be made: {error}") from error
    copy_project(project, folder / HUB, **settings)
    for name in (*names, *summing):
        copy_project(project, folder / name, **settings)
    if not insecure:
        make_keys(folder / KEYS, [*names, *summing])
    root = None if insecure else folder / KEYS / CA
    link = Link(port=free_port(), root=root)
    return Stage(folder, tuple(names), link, study, tuple(summing))


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((commands.HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _perform(stage: Stage, processes: Processes, tell: Tell) -> None:
    _start_link(stage, processes)
    tell(f"the coordinator's SuperLink is up on {stage.link.address}")
    if stage.keys is None:
        _start_sites(stage, processes)
        _write_connected(stage)
    else:
        enrol(stage)
        summing = f" and {len(stage.aggregators)} aggregators" if stage.aggregators else ""
        tell(f"the keys of {len(stage.sites)} sites{summing} are registered")
        _start_sites(stage, processes)
    run_id = superlink.submit(stage.coordinator, stage.link)
    tell(f"run {run_id} has started")
    _watch(stage, processes, run_id, tell)
    _check_left(stage)
    found = superlink.outcome(stage.coordinator, run_id)
    if not found.well:
        raise SottovoceError(f"the run ended as {found.status}: {found.details}")


def enrol(stage: Stage) -> None:
    """Register all parties, and where nobody is trusted give each the list of all keys, as each
    would bring it there on a way it trusts."""
    for names, summing in ((stage.sites, False), (stage.aggregators, True)):
        public = [stage.folder / KEYS / f"{name}{PUBLIC}" for name in names]
        if public:
            superlink.register_sites(stage.coordinator, stage.link, public, aggregators=summing)
    if stage.study.study.sums is not None:
        for name in stage.parties:
            shutil.copy2(stage.coordinator / SITES, stage.folder / name / SITES)


def _check_left(stage: Stage) -> None:
    """Fail with the error of the sites that left, which is why whatever else failed."""
    found = {name: leaving.why(stage.folder / name / leaving.HOME) for name in stage.sites}
    left = {name: why for name, why in found.items() if why is not None}
    if left:
        name, why = next(iter(left.items()))
        raise TrialError(f"{len(left)} of {len(found)} sites left the study. {name}: {why}")


def _start_link(stage: Stage, processes: Processes) -> None:
    hub = stage.coordinator
    (hub / commands.STATE).mkdir()
    commands.write_connection(hub / commands.HOME, stage.link)
    process = processes.start(
        "superlink",
        commands.superlink(hub, stage.link, stage.keys),
        env=commands.environment(hub),
        cwd=hub,
        log=stage.log("superlink"),
    )
    end = time.monotonic() + STARTING
    while not superlink.is_up(stage.link):
        if process.poll() is not None or time.monotonic() > end:
            raise SottovoceError("the SuperLink did not start")
        time.sleep(LOOK / 5)


def _start_sites(stage: Stage, processes: Processes) -> None:
    for name in stage.parties:
        folder = stage.folder / name
        key = None if stage.keys is None else stage.keys / f"{name}{PRIVATE}"
        processes.start(
            name,
            commands.supernode(folder, stage.link, key, free_port()),
            env=commands.environment(folder),
            cwd=folder,
            log=stage.log(name),
        )


def _write_connected(stage: Stage) -> None:
    """Without node keys a site is whichever node connects: list those that are there."""
    end = time.monotonic() + STARTING
    while True:
        nodes = superlink.node_status(stage.coordinator)
        online = [node for node, status in nodes.items() if status == "online"]
        if len(online) == len(stage.sites):
            break
        if time.monotonic() > end:
            raise SottovoceError(f"{len(online)} of {len(stage.sites)} sites have connected")
        time.sleep(LOOK)
    sites = dict(zip(stage.sites, online, strict=True))
    write_sites(stage.coordinator / SITES, sites)


def _watch(stage: Stage, processes: Processes, run_id: str, tell: Tell) -> None:
    """Tell what the journal says until the run is over."""
    log = commands.log(run_id)
    env = commands.environment(stage.coordinator)
    shown = processes.start("log", log, env=env, cwd=stage.coordinator, log=stage.log("run"))
    told = 0
    while True:
        over = shown.poll() is not None
        gone = ", ".join(sorted(processes.ended().keys() - {"log"}))
        lines = read_journal(stage.coordinator / commands.STATE / NAME)
        for line in lines[told:]:
            if line.get("event") != "answered":  # a line a site and round is for a page to watch
                tell(_sentence(line))
        told = len(lines)
        if gone:
            raise SottovoceError(f"a process ended before the run did: {gone}")
        if over:
            return
        time.sleep(LOOK)


def _sentence(line: dict[str, object]) -> str:
    """A line of the journal for a person."""
    facts = ", ".join(
        f"{key} {value}" for key, value in line.items() if key not in ("time", "event", "round")
    )
    words = f"round {line.get('round')} {line.get('event')}"
    return f"{words}: {facts}" if facts else words
