"""A site in Flower: where its folder is, and one handler that lets it answer a call."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, cast

import optuna
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from sottovoce import __version__
from sottovoce.errors import InvalidInput, SottovoceError, StorageError, check
from sottovoce.files import private, write_text
from sottovoce.flower.site.leaving import HOME
from sottovoce.flower.site.log import log_error
from sottovoce.flower.site.site import Site, refusal
from sottovoce.flower.site.summing import Member, sum_refusal
from sottovoce.flower.site.trying import Objective
from sottovoce.flower.sites import NAME as SITES
from sottovoce.flower.sites import read_identity, simulated_identity, simulated_roster
from sottovoce.flower.studyfile import STUDY, StudyFile, read_study
from sottovoce.flower.sumwire import SumCall, SumReply
from sottovoce.flower.wire import Call, Reply
from sottovoce.secure_sum.keys import Identity

PARTITION = "partition-id"  # in the node-config of a simulated node

app = ClientApp()


class Home(NamedTuple):
    """Where a site lives."""

    project: Path  # study.toml and objective.py
    folder: Path  # what it remembers
    simulation: bool


@app.train()
def step(message: Message, context: Context) -> Message:
    """Do what the coordinator asks, or say why not."""
    return Message(_answered(message, context).to_records(), reply_to=message)


@private()
def _answered(message: Message, context: Context) -> Reply:
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would print what was tried
    began = time.monotonic()
    call = Call(study="", round=-1, agent=-1, constants={})
    home = None
    try:
        call = Call.from_records(message.content)
        home = home_of(context, call.agent)
        file = study_of(home)
        site = Site(
            file,
            objective_of(home.project),
            home.folder,
            simulation=home.simulation,
            storage=_storage(context),
            identity=identity_of(context, home, file, call.agent),
            workers=_workers(context),
        )
        answer = site.answer(call)
        if not home.simulation:
            time.sleep(max(0.0, began + padding(file, answer) - time.monotonic()))
        return answer
    except Exception as error:
        if home is not None:
            log_error(home.folder, error)
        return refusal(call, error)


def padding(file: StudyFile, answer: Reply) -> float:
    """How many seconds an answer must take at least: with a cadence as many as all others'.

    Flower tells every site how long the apps of all sites together have run, so that it is not
    enough if the coordinator waits.
    """
    steps = [step for step in file.steps if step.round == answer.round]
    return file.seconds(steps[0]) if steps and file.cadence and answer.answer != "busy" else 0.0


@app.query()
def add_up(message: Message, context: Context) -> Message:
    """Answer as a member of the committee, or say why not."""
    return Message(_summed(message, context).to_records(), reply_to=message)


@private()
def _summed(message: Message, context: Context) -> SumReply:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    call = SumCall(study="", round=-1, agent=-1, speakers=(), packets=())
    home = None
    try:
        call = SumCall.from_records(message.content)
        home = home_of(context, call.agent)
        file = study_of(home)
        identity = identity_of(context, home, file, call.agent)
        return Member(file, home.folder, identity, storage=_storage(context)).answer(call)
    except Exception as error:
        if home is not None:
            log_error(home.folder, error)
        return sum_refusal(call, error)


def _storage(context: Context) -> str:
    """The node's alone to say: another memory is a blank one, in which nothing was said yet.

    A simulation has journals: as safe from kills, and opened in a tenth of the time.
    """
    usual = "journal" if _simulated(context) else "sqlite"
    return str(context.node_config.get("storage", usual))


def _workers(context: Context) -> int:
    """How many trials run side by side: the node's alone to say as well."""
    return context.node_config.get("workers", 1)  # type: ignore[return-value]  # checked by Site


def identity_of(context: Context, home: Home, file: StudyFile, agent: int) -> Identity | None:
    """The site's keys, where the coordinator is not trusted: its operator says where they are."""
    if file.study.sums is None:
        return None
    if home.simulation:
        return simulated_identity(agent)
    path = str(context.node_config.get("seal", ""))
    return read_identity(_folder("seal", path)) if path else None


def home_of(context: Context, agent: int) -> Home:
    """Where the site lives: its operator says so, or in a simulation the run."""
    own = str(context.node_config.get("project", ""))
    if own:
        return Home(_folder("project", own), Path(own) / HOME, simulation=False)
    if not _simulated(context):
        raise InvalidInput(
            "a site needs a folder of its own: start its SuperNode with "
            "--node-config 'project=\"/path/of/the/project\"'"
        )
    project = _folder("project", str(context.run_config.get("project", "")))
    folder = _folder("folder", str(context.run_config.get("folder", "")))
    return Home(project, folder / f"site-{agent}", simulation=True)


def _simulated(context: Context) -> bool:
    """Whether this is a worker of Flower's simulation engine.

    A real node's operator may set a partition as well, so that alone proves nothing.
    """
    ray = sys.modules.get("ray")
    return PARTITION in context.node_config and ray is not None and bool(ray.is_initialized())


def _folder(key: str, text: str) -> Path:
    check(Path(text).is_absolute(), f"{key} must be the absolute path of a folder", **{key: text})
    return Path(text)


def study_of(home: Home) -> StudyFile:
    """The study in the site's study.toml.

    The noise that keeps its ε takes seconds to find, so what was found for the same file by the
    same version is kept. That grants nothing: the noise is a public constant, which every call
    compares with the coordinator's, and it is the coordinator's budget that stops a release.
    """
    path, folder = home.project / STUDY, home.folder.parent if home.simulation else home.folder
    kept = folder / "noise.json"  # in a simulation all sites have the same file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"study.toml cannot be read ({type(error).__name__})") from error
    key = f"{hashlib.sha256(content).hexdigest()} {__version__}"
    noise = _noise(kept, key)
    file = _as_read(path, key, _content(home.project / SITES), noise)
    if home.simulation and file.study.sums is not None:
        file = replace(file, roster=simulated_roster(file.study.agents))
    mechanism = file.study.method.mechanism
    if mechanism is not None and noise is None:
        with suppress(OSError, StorageError):  # the next call would look for it again
            folder.mkdir(parents=True, exist_ok=True)
            write_text(kept, json.dumps({"key": key, "noise": mechanism.noise}))
    return file


@lru_cache(maxsize=1)
def _as_read(path: Path, key: str, sites: bytes | None, noise: float | None) -> StudyFile:
    """The study, read once in a process for the same contents, with all that follows from it."""
    return read_study(path, noise)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _noise(kept: Path, key: str) -> float | None:
    """The noise found before for this key; a file that cannot be read says nothing."""
    try:
        content = json.loads(kept.read_text(encoding="utf-8"))
        return float(content["noise"]) if content["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def objective_of(project: Path) -> Objective:
    """The function `objective` of the project's objective.py, as the file is now."""
    path = project / "objective.py"
    check(path.is_file(), "a site's project needs an objective.py")
    spec = importlib.util.spec_from_file_location("objective", path)
    if spec is None or spec.loader is None:
        raise InvalidInput("objective.py cannot be imported")
    module = importlib.util.module_from_spec(spec)
    if str(project) not in sys.path:
        sys.path.insert(0, str(project))  # for what lies beside it
    sys.modules["objective"] = module  # where worker processes of the objective's look for it
    try:
        spec.loader.exec_module(module)
    except SottovoceError as error:  # raised by the site's own code: its words may hold data
        kind = type(error).__name__
        raise InvalidInput(f"objective.py cannot be imported ({kind})") from error
    objective = getattr(module, "objective", None)
    check(callable(objective), "objective.py must define a function objective(trial)")
    return cast(Objective, objective)
