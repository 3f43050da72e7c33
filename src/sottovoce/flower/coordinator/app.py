"""The coordinator as a Flower ServerApp: calls the sites, step by step, and collects replies.

What came of it is in the coordinator's folder: the ledger, and the journal.
"""

from __future__ import annotations

import hmac
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp
from flwr.superlink.grid import InMemoryGrid

from sottovoce.errors import ProtocolError, SimulationOnly, check
from sottovoce.federation.server import Server
from sottovoce.files import private
from sottovoce.flower.coordinator.coordinator import Coordinator, alone
from sottovoce.flower.coordinator.journal import NAME
from sottovoce.flower.coordinator.secure import SecureCoordinator, SumExchange
from sottovoce.flower.sites import NAME as SITES
from sottovoce.flower.sites import numbered_aggregators, numbered_sites, simulated_roster
from sottovoce.flower.studyfile import Step, StudyFile, read_study
from sottovoce.privacy.events import adjacency
from sottovoce.simulation import Draws

POLL = 0.5  # seconds between two looks for replies
AT_ONCE = 100  # calls under way in a simulation, whose engine looks at all of them for each node
AGAIN = 5.0  # seconds before a site that was busy, or whose call failed, is called again
JOIN = 600.0  # seconds for the sites to be connected, at the start

Exchange: TypeAlias = Coordinator | SumExchange  # what sites, or members, are called for

app = ServerApp()


@dataclass(frozen=True)
class Settings:
    """What a run's configuration says to the coordinator."""

    project: Path  # where study.toml is, and sites.toml in a deployment
    folder: Path | None  # simulation: where the ledger is to be
    seed: int | None  # simulation: of all that is drawn
    join: float

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """From the run-config; what is wrong with it is named."""
        for key in ("project", "folder"):
            word = config.get(key, "")
            check(isinstance(word, str), f"{key} must be a path", **{key: word})
        project, folder = config.get("project", ""), config.get("folder", "")
        rule = "project must be the full path of the study's folder, on the coordinator's machine"
        check(Path(project).is_absolute(), rule, project=project)
        check(Path(project).is_dir(), "project must be a folder that exists", project=project)
        rule = "folder must be a full path"
        check(not folder or Path(folder).is_absolute(), rule, folder=folder)
        seed, join = config.get("seed", -1), config.get("join-limit", JOIN)
        whole = isinstance(seed, int) and not isinstance(seed, bool) and seed >= -1
        check(whole, "seed must be a whole number of at least 0, or -1 for none", seed=seed)
        known = isinstance(join, int | float) and not isinstance(join, bool) and join >= 0
        check(known and math.isfinite(join), "join-limit must be a number of seconds", join=join)
        return cls(
            Path(project), Path(folder) if folder else None, None if seed < 0 else seed, float(join)
        )


@app.main()
@private()
def main(grid: Grid, context: Context) -> None:
    """Run a study from where its ledger ends."""
    settings = Settings.read(context.run_config)
    file = read_study(settings.project / "study.toml")
    with coordinating(grid, settings, file) as coordinator:
        seeded = "" if settings.seed is None else " A simulation: its seeded noise protects nobody."
        if coordinator.next_step() is not None:
            _join(grid, coordinator, settings.join)
        while coordinator.next_step() is not None:
            step = coordinator.open()
            collect(grid, coordinator, step)
            second = coordinator.settle()
            if second is not None:
                collect(grid, second, step)
            coordinator.close()
            print(progress(coordinator, step), flush=True)
            if step.round >= file.study.rounds:
                break  # sites that were absent can be called once more by running again
        print(summary(coordinator) + seeded, flush=True)


@contextmanager
def coordinating(grid: Grid, settings: Settings, file: StudyFile) -> Iterator[Coordinator]:
    """The coordinator of a run, alone with its ledger."""
    path, study = settings.project / SITES, file.study
    # Only the simulation engine hands over a grid in its own memory. Anything else is taken to be
    # a deployment, where sites are those that are listed, and nothing is seeded.
    simulated = isinstance(grid, InMemoryGrid)
    if settings.seed is not None and (not simulated or path.exists()):
        raise SimulationOnly(
            f"a seed is for Flower's simulation, in a project without {path.name}: the noise of "
            f"a deployment must not be repeatable, got seed={settings.seed}"
        )
    if simulated:
        rule = "a simulation needs a folder for its ledger: the run-config key 'folder'"
        check(settings.folder is not None, rule)
        folder = settings.folder or settings.project
    else:
        rule = f"a deployment needs {path}: which Flower node is which site"
        check(path.exists(), rule)
        folder = settings.project / "coordinator"
        sites = numbered_sites(path, study.agents)
        if study.sums is not None:
            _ = file.terms  # that all sites' keys are there
    with alone(folder), ExitStack() as kept:
        server = _server(settings, file, folder / "ledger.db")
        kept.callback(server.close)
        if simulated:
            sites = _ranked(grid, study.agents, settings.join)
        coordinator: Coordinator
        if study.sums is None:
            coordinator = Coordinator(file, server, sites, folder / NAME, settings.seed)
        else:
            rule = "aggregators are for a deployment: a simulation has the sites alone"
            check(not (simulated and study.sums.aggregators), rule)
            summing = {} if simulated else numbered_aggregators(path, study.agents)
            if simulated:
                file = replace(file, roster=simulated_roster(study.agents))
            journal, seed = folder / NAME, settings.seed
            coordinator = SecureCoordinator(file, server, sites, journal, seed, summing)
        kept.callback(coordinator.stop)
        yield coordinator


def _server(settings: Settings, file: StudyFile, ledger: Path) -> Server:
    if settings.seed is None:
        return Server(file.study, ledger, file.budget)
    seed = Draws(settings.seed, 0).seed_for("server")
    return Server.simulation(file.study, seed, ledger, file.budget)


def _ranked(grid: Grid, agents: int, limit: float) -> dict[int, int]:
    """The simulated nodes: as many as the study has agents, numbered in their order."""
    _until(lambda: len(set(grid.get_node_ids())) >= agents, limit)
    time.sleep(POLL)  # more may be on their way
    nodes = sorted(set(grid.get_node_ids()))
    rule = f"the study has {agents} agents, so the simulation needs {agents} nodes"
    check(len(nodes) == agents, rule, nodes=len(nodes))
    return {node: rank for rank, node in enumerate(nodes)}


def _join(grid: Grid, coordinator: Coordinator, limit: float) -> None:
    """Wait for the sites, and for those who sum; go on with the sites there, but not with none."""
    expected, seen = coordinator.expected, -1
    sites = expected & set(coordinator.sites)

    def joined() -> bool:
        nonlocal seen
        there = len(expected & set(grid.get_node_ids()))
        if there != seen and there < len(expected):
            print(_waiting(there, len(expected), limit), flush=True)
        seen = there
        return there == len(expected)

    _until(joined, limit)
    there = len(sites & set(grid.get_node_ids()))
    if not there:
        raise ProtocolError(
            f"none of the {len(sites)} sites is connected after {limit:g} seconds: nothing was "
            f"asked, nothing was spent; start the sites and run again"
        )
    print(f"{there} of {len(sites)} sites are connected", flush=True)


def _waiting(there: int, sites: int, limit: float) -> str:
    return (
        f"{there} of {sites} sites are connected; waiting for the others, {limit:g} seconds at most"
    )


def _until(reached: Callable[[], bool], limit: float) -> None:
    end = time.monotonic() + limit
    while not reached() and time.monotonic() < end:
        time.sleep(POLL)


class _Look:
    """A look for the reply to a call, on the side.

    Once a reply is announced Flower waits until its sender has uploaded it all, for hours if need
    be. A site that dies in between, or means ill, must not keep the others waiting.
    """

    def __init__(self, grid: Grid, message: str) -> None:
        self._grid, self._message = grid, message
        self._found: list[Message] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._pull, daemon=True)
        self._thread.start()
        self._thread.join(POLL)

    def _pull(self) -> None:
        try:
            # one by one: a reply that cannot even be unpacked spoils no other
            self._found = list(self._grid.pull_messages([self._message]))
        except Exception as error:
            self._error = error

    @property
    def over(self) -> bool:
        """Whether it is known if there is a reply."""
        return not self._thread.is_alive()

    def found(self) -> list[Message]:
        """The reply, if there is one."""
        if self._error is not None:
            raise self._error
        return self._found


@dataclass
class _Asked:
    """A call that is on its way."""

    message: str  # Flower's id
    token: str
    activation: str  # of the node, when it was called: another one since means that it restarted
    look: _Look | None = None  # one that is not over


def collect(grid: Grid, coordinator: Exchange, step: Step) -> None:
    """Call all sites that are, or come to be, connected, until all answered or time is up.

    With a cadence always until time is up: when a step ends shall not tell who took how long.
    """
    end = time.monotonic() + coordinator.limit(step)
    asked: dict[int, _Asked] = {}
    earliest: dict[int, float] = {}  # when a site may be called again
    while coordinator.waiting and time.monotonic() < end:
        nodes = {node.node_id: node.last_activated_at for node in grid.get_nodes()}
        for node, sent in list(asked.items()):
            if nodes.get(node, sent.activation) != sent.activation:
                del asked[node]  # it restarted since, and what it was asked is gone
        due = [
            node
            for node in sorted(coordinator.waiting & nodes.keys() - asked.keys())
            if earliest.get(node, 0.0) <= time.monotonic()
        ]
        if isinstance(grid, InMemoryGrid):
            due = due[: max(AT_ONCE - len(asked), 0)]
        left = max(end - time.monotonic(), 1.0)
        asked |= _pushed(grid, coordinator, {node: nodes[node] for node in due}, left)
        for node, sent in list(asked.items()):
            if _answered(grid, coordinator, node, sent):
                del asked[node]
                earliest[node] = time.monotonic() + AGAIN
        if coordinator.waiting:
            time.sleep(POLL)
    if not isinstance(coordinator, Coordinator) or isinstance(grid, InMemoryGrid):
        return  # members add up at once: there is no training whose time could be told
    if coordinator.file.cadence is not None and not coordinator.in_vain:
        time.sleep(max(0.0, end - time.monotonic()))


def _pushed(
    grid: Grid, coordinator: Exchange, nodes: Mapping[int, str], left: float
) -> dict[int, _Asked]:
    """Call these nodes at once. A call is void when its step is over: a site that comes back
    later shall not work off old ones."""
    if not nodes:
        return {}
    tokens = {node: secrets.token_hex(16) for node in nodes}
    messages = [
        Message(
            coordinator.call(node).to_records(),
            node,
            coordinator.kind,
            ttl=left,
            group_id=tokens[node],
        )
        for node in nodes
    ]
    taken = set(grid.push_messages(messages))
    ids = {message.metadata.dst_node_id: message.metadata.message_id for message in messages}
    return {
        node: _Asked(ids[node], tokens[node], activation)
        for node, activation in nodes.items()
        if ids[node] in taken
    }


def _answered(grid: Grid, coordinator: Exchange, node: int, sent: _Asked) -> bool:
    """Look for the reply to a call, and hand it on; whether there was one.

    Flower vouches for who fetched a call, but leaves the sender that a reply names unchecked. So
    each call has a token of its own, which comes back in the reply, and nobody else has seen.
    """
    look = sent.look or _Look(grid, sent.message)
    over = look.over
    sent.look = None if over else look
    if not over:
        return False
    try:
        replies = look.found()
    except Exception as error:
        coordinator.failed(node, f"its reply cannot be unpacked: {type(error).__name__}")
        return True
    for reply in replies:
        if reply.has_error():  # its words may hold anything, also data: the code is enough
            coordinator.failed(node, f"Flower's error {reply.error.code}")
        elif not hmac.compare_digest(reply.metadata.group_id.encode(), sent.token.encode()):
            coordinator.failed(node, "its reply does not bring back the token of its call")
        else:
            coordinator.take(node, reply.content)
    return bool(replies)


def progress(coordinator: Coordinator, step: Step) -> str:
    """What became of the step that was closed last."""
    agents, counts = coordinator.file.study.agents, coordinator.counts
    if step.round >= coordinator.file.study.rounds:
        return f"{counts['done']} of {agents} sites have done all their trials"
    return f"round {step.round} is released: {counts['spoke']} of {agents} sites spoke"


def summary(coordinator: Coordinator) -> str:
    """What a study has spent, with everything that must stand beside it."""
    budget, events = coordinator.file.budget, coordinator.server.events
    return (
        f"The study is over: {len(events)} rounds were released; ε = {budget.spent(events):.4g} of "
        f"{budget.epsilon:.4g} granted ({budget.accountant}, δ = {budget.delta:.3g}, "
        f"{adjacency(events)} adjacency)."
    )
