"""A federation of real processes on loopback, for tests: TLS, node keys, real noise.

Everything that runs can be killed and started again, and what the parties wrote can be read: the
coordinator's ledger and journal, the sites' Optuna storages, and what each objective noted by
itself, in a file of its own, before it returned.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sottovoce.errors import SottovoceError
from sottovoce.flower.coordinator.journal import NAME, read_journal
from sottovoce.flower.deploy import commands, superlink
from sottovoce.flower.deploy.keys import PRIVATE, make_keys
from sottovoce.flower.deploy.processes import Processes
from sottovoce.flower.deploy.project import copy_project, make_project
from sottovoce.flower.deploy.rehearsal import Stage, enrol, free_port, prepared
from sottovoce.flower.studyfile import read_study
from sottovoce.privacy.ledger import LedgerView, read_ledger
from sottovoce.privacy.notes import Notes, read_notes

LINK, COORDINATOR = "flower-superlink", "flwr-serverapp"  # in the command lines of processes
NODE, CLIENT = "flower-supernode", "sottovoce.flower.site.task"
PATIENCE = 1200.0  # seconds: longer than a coordinator waits for sites, and a step for its trials
LOOK = 0.3
READING = 60.0  # seconds in which a ledger at rest, or at work, can be read
FIRST_PORT = "SOTTOVOCE_TEST_PORTS"  # in the environment
PORTS = 60  # of one federation, where several run side by side
AGAIN = 10.0  # seconds before a site that was refused tries again

STUDY = """\
[study]
agents = {sites}
rounds = {rounds}
epsilon = {epsilon}
delta = 1e-5
method = "{method}"
direction = "minimize"
feature_seed = 7
trial_limit = {trial_limit}
{settings}

[[space.parameters]]
type = "float"
name = "x"
low = 0.0
high = 1.0
"""
SMALL = "features = 8\nparticipation = 1.0"  # for dp-fts-de
SUMS = f'{SMALL}\ntrust = "nobody"'

OBJECTIVE = '''\
"""Notes by itself what it does; how long it takes is in the file `seconds`, if there is one."""

import json
import os
import time
from pathlib import Path

HERE = Path(__file__).parent


def note(**facts):
    line = json.dumps(facts) + "\\n"
    file = os.open(HERE / "noted.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, line.encode())
    os.close(file)


def seconds(trial):
    try:
        slow = json.loads((HERE / "seconds").read_text())
    except FileNotFoundError:
        return 0.0
    return slow.get(str(trial.user_attrs.get("round")), slow.get("all", 0.0))


def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    note(event="began", trial=trial.number, x=x)
    time.sleep(seconds(trial))
    value = (x - 0.3) ** 2
    note(event="ended", trial=trial.number, x=x, value=value)
    return value
'''


@dataclass(frozen=True)
class Plan:
    """What a study is to be like."""

    rounds: int = 4
    sites: int = 3
    epsilon: float = 20.0
    method: str = "dp-fts-de"
    settings: str = SMALL
    trial_limit: float = 60.0
    aggregators: int = 0

    def text(self) -> str:
        """Its study.toml."""
        facts = vars(self)
        if self.aggregators:
            facts = {**facts, "settings": f"{self.settings}\naggregators = {self.aggregators}"}
        return STUDY.format(**facts)


class Federation:
    """A deployment under `folder`; leaving the `with` block ends every process of it."""

    def __init__(self, folder: Path, plan: Plan = Plan()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        project = folder / "study"
        make_project(project)
        (project / "study.toml").write_text(plan.text())
        (project / "objective.py").write_text(OBJECTIVE)
        self.plan = plan
        stage = prepared(project, plan.sites)
        self.stage: Stage = replace(stage, link=replace(stage.link, port=own_port()))
        self.hub = self.stage.coordinator
        self.state = self.hub / commands.STATE
        self.database = self.hub / "superlink.db"  # not where a test may fill the disk
        self.runs: list[str] = []
        self.revived = 0
        self.environments: defaultdict[str, dict[str, str]] = defaultdict(dict)  # by party
        self._parties: dict[str, Processes] = {}
        self._started: dict[str, float] = {}  # when, by party

    def __enter__(self) -> Self:
        try:
            self.state.mkdir(exist_ok=True)
            self.start_link()
            enrol(self.stage)
            enrolled = read_study(self.hub / "study.toml")  # all keys are constants of the study
            self.stage = replace(self.stage, study=enrolled)
            for name in self.stage.parties:
                self.start_site(name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for party in reversed(self._parties.values()):
            party.stop()

    @property
    def keys(self) -> Path:
        """Where all keys are."""
        found = self.stage.keys
        if found is None:
            raise SottovoceError("a federation of tests has keys")
        return found

    def folder(self, name: str) -> Path:
        """A site's copy of the project."""
        return self.stage.folder / name

    def start_link(self) -> None:
        """Start the SuperLink, again if it was there before, and wait until it answers."""
        commands.write_connection(self.hub / commands.HOME, self.stage.link)
        command = commands.superlink(self.hub, self.stage.link, self.keys)
        command[command.index("--database") + 1] = str(self.database)
        self._start("superlink", command, self.hub)
        self.wait(lambda: superlink.is_up(self.stage.link), "the SuperLink answers")

    def start_site(
        self,
        name: str,
        *,
        key: Path | None = None,
        root: Path | None = None,
    ) -> None:
        """Start a site's SuperNode, again if it was there before."""
        link = self.stage.link
        if root is not None:
            link = commands.Link(link.host, link.port, root)
        key = key or self.keys / f"{name}{PRIVATE}"
        folder = self.folder(name)
        command = commands.supernode(folder, link, key, own_port())
        self._start(name, command, folder)

    def revive(self) -> None:
        """Start sites again whose SuperNode has ended, as whatever watches over it would.

        For a minute after a kill Flower takes the node to be there, and refuses it.
        """
        for name in self.stage.parties:
            ended = name in self._parties and self._parties[name].ended()
            if ended and time.monotonic() > self._started[name] + AGAIN:
                self.clear_party(name)
                self.start_site(name)
                self.revived += 1

    def connected(self, name: str) -> bool:
        """Whether a site's SuperNode, as it was started last, has been let in."""
        last = self.printed(name).rpartition("Starting Flower SuperNode")[2]
        return "SuperNode ID" in last and bool(self.alive(self.folder(name), NODE))

    def add_folder(self, name: str) -> Path:
        """A copy of the project for one more party."""
        copy_project(self.hub, self.folder(name))
        (self.folder(name) / "objective.py").write_text(OBJECTIVE)
        return self.folder(name)

    def add_key(self, name: str) -> Path:
        """A key pair that nobody knows yet; the private one."""
        make_keys(self.keys, [name], server=False)
        return self.keys / f"{name}{PRIVATE}"

    def _start(self, name: str, command: list[str], cwd: Path) -> None:
        self._started[name] = time.monotonic()
        party = self._parties.setdefault(name, Processes(patience=0.0))
        env = {**commands.environment(cwd), "PYTHONUNBUFFERED": "1", **self.environments[name]}
        party.start(name, command, env=env, cwd=cwd, log=self.stage.log(name))

    def submit(self) -> str:
        """Start a run."""
        self.runs.append(superlink.submit(self.hub, self.stage.link))
        return self.runs[-1]

    def outcome(self) -> superlink.Outcome:
        """How the last run is."""
        return superlink.outcome(self.hub, self.runs[-1])

    def finish(self, limit: float = PATIENCE) -> superlink.Outcome:
        """Wait until the last run is over."""
        end = time.monotonic() + limit
        while True:
            if not self.coordinating():  # else asking Flower would only cost time
                found = self.outcome()
                if found.over:
                    return found
            if time.monotonic() > end:
                raise SottovoceError(f"the run is not over after {limit:g} s: {self.outcome()}")
            self.revive()
            time.sleep(LOOK)

    def coordinating(self) -> bool:
        """Whether the process of a coordinator is there."""
        return bool(self.alive(self.hub, COORDINATOR))

    def wait(self, condition: Callable[[], bool], what: str, limit: float = PATIENCE) -> None:
        """Wait until it holds."""
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end:
                raise SottovoceError(f"waited {limit:g} s in vain until {what}")
            self.revive()
            time.sleep(LOOK)

    def alive(self, folder: Path, word: str = "") -> list[int]:
        """Processes that were started for a party, whose command line holds the word."""
        home, found = f"FLWR_HOME={folder / commands.HOME}".encode(), []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it just ended
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if word in words and home in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def kill_party(self, name: str, word: str = "") -> int:
        """kill -9 what a party runs, or what of it has the word in its command; how many."""
        folder = self.hub if name == "superlink" else self.folder(name)
        pids = self.alive(folder, word)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(pids)

    def clear_party(self, name: str) -> None:
        """End what a killed process left behind, as whoever watches over it would."""
        self._parties[name].stop()

    def counted(self, event: str) -> int:
        """How often something is in the coordinator's journal."""
        return sum(line.get("event") == event for line in self.journal)

    @property
    def journal(self) -> list[dict[str, Any]]:
        """The coordinator's journal."""
        return read_journal(self.state / NAME)

    def answers(self, number: int) -> int:
        """How many parties have on disk what they answered as members in a round."""
        count = 0
        for name in self.stage.parties:
            with suppress(sqlite3.Error):  # killed in the midst of a write
                stored = self.storage(name)
                count += stored is not None and f"answered-{number}" in stored.attrs
        return count

    @property
    def ledger(self) -> LedgerView:
        """The coordinator's ledger, verified; of a killed coordinator as it will be reopened.

        One that is at work, or dies just now, may hold it in the midst of a commit.
        """
        end = time.monotonic() + READING
        while True:
            working = self.coordinating()
            try:
                return read_ledger(self.state / "ledger.db")
            except SottovoceError:
                if not working and (self.state / "ledger.db-journal").exists():
                    break
                if not working or time.monotonic() > end:
                    raise
            time.sleep(LOOK)
        # killed within a commit: whoever opens it to write takes that back first
        with tempfile.TemporaryDirectory() as copy:
            for path in self.state.glob("ledger.db*"):
                shutil.copy2(path, copy)
            with closing(sqlite3.connect(Path(copy) / "ledger.db")) as db:
                db.execute("SELECT count(*) FROM sqlite_schema")
            return read_ledger(Path(copy) / "ledger.db")

    @property
    def notes(self) -> Notes:
        """What the ledger notes beside its releases; of one at rest."""
        with closing(sqlite3.connect(f"file:{self.state / 'ledger.db'}?mode=ro", uri=True)) as db:
            (first,) = db.execute("SELECT digest FROM entries WHERE seq = 0").fetchone()
            return read_notes(db, first)

    @property
    def released(self) -> int:
        """How many rounds the ledger holds; none where there is no ledger yet."""
        try:
            return len(self.ledger.entries)
        except SottovoceError:
            if (self.state / "ledger.db.head").exists():
                raise
            return 0

    def noted(self, name: str) -> list[dict[str, Any]]:
        """What a site's objective noted by itself."""
        path = self.folder(name) / "noted.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def storage(self, name: str) -> Storage | None:
        """What a site stored; None where it stored nothing."""
        path = self.folder(name) / "site" / "study.db"
        return Storage.read(path) if path.exists() else None

    def printed(self, name: str) -> str:
        """What a party's processes printed."""
        return self.stage.log(name).read_text(errors="replace")


_turn = itertools.count()  # ports are given in turn: who was given one listens on it later


def own_port() -> int:
    """A port for a process of this federation's.

    Where several run side by side each has a range of its own, below those that the system gives
    away by itself: a port that is free now may be another's before it is listened on.
    """
    first = int(os.environ.get(FIRST_PORT, "0"))
    if not first:
        return free_port()
    for _ in range(PORTS):
        port = first + next(_turn) % PORTS
        with suppress(OSError), socket.socket() as probe:
            probe.bind((commands.HOST, port))
            return port
    raise SottovoceError(f"no port is free from {first} on")


@dataclass(frozen=True)
class Storage:
    """A site's Optuna storage, read with nothing but SQLite."""

    attrs: dict[str, Any]  # of the study
    trials: list[tuple[str, dict[str, Any], float | None]]  # state, attributes, value

    @classmethod
    def read(cls, path: Path) -> Storage:
        """All of it, as of one moment."""
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            attrs = {
                key: json.loads(value)
                for key, value in db.execute("SELECT key, value_json FROM study_user_attributes")
            }
            trials = []
            for number, state in db.execute("SELECT trial_id, state FROM trials ORDER BY number"):
                noted = db.execute(
                    "SELECT key, value_json FROM trial_user_attributes WHERE trial_id = ?",
                    (number,),
                )
                values = db.execute("SELECT value FROM trial_values WHERE trial_id = ?", (number,))
                found = values.fetchone()
                facts = {key: json.loads(value) for key, value in noted}
                trials.append((str(state), facts, found[0] if found else None))
        return cls(attrs, trials)
