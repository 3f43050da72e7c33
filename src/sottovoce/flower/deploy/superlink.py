"""What a coordinator asks of its SuperLink, through Flower's own commands."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import ssl
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.errors import InvalidInput, SottovoceError, StorageError, check
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.deploy import commands
from sottovoce.flower.deploy.commands import Link
from sottovoce.flower.deploy.keys import PUBLIC, sealing_keys
from sottovoce.flower.deploy.processes import MARK, end_marked
from sottovoce.flower.sites import NAME, read_keys, read_parties, write_sites
from sottovoce.flower.studyfile import STUDY, read_study

ANSWER = 60.0  # seconds for a command of Flower's
LOOK = 2.0  # seconds between two looks at a run whose log ended before it


class Outcome(NamedTuple):
    """How a run is."""

    status: str  # such as "running" or "finished:completed"
    details: str

    @property
    def over(self) -> bool:
        """Whether it will not go on."""
        return self.status.startswith("finished")

    @property
    def well(self) -> bool:
        """Whether it ended as it should."""
        return self.status == "finished:completed"

    @property
    def failed(self) -> bool:
        """Whether it broke off by itself."""
        return self.status == "finished:failed"


def is_up(link: Link, timeout: float = 1.0) -> bool:
    """Whether the SuperLink answers, with a certificate that is good."""
    try:
        if link.root is None:
            connection = http.client.HTTPConnection(link.host, link.port, timeout=timeout)
        else:
            trust = ssl.create_default_context(cafile=link.root)
            connection = http.client.HTTPSConnection(
                link.host, link.port, timeout=timeout, context=trust
            )
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return False


def register_sites(
    project: Path, link: Link, keys: Sequence[Path], *, aggregators: bool = False
) -> dict[str, str]:
    """Let the sites' keys in and write sites.toml; those that are in it are left as they are.

    Each is written as soon as Flower has it: run it again after a failure.
    aggregators: they are of parties that do nothing but sum.
    """
    names = [key.stem if key.suffix == PUBLIC else "" for key in keys]
    check(bool(names), "the sites' public keys must be given", keys=[str(key) for key in keys])
    for name, key in zip(names, keys, strict=True):
        ok = re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None
        rule = f"a site's public key must be in a file NAME{PUBLIC}, of letters, digits, - and _"
        check(ok, rule, key=str(key))
    check(
        len(set(names)) == len(names), "the keys of two sites must not have one name", names=names
    )
    path = project / NAME
    sites, summing = read_parties(path) if path.exists() else ({}, {})
    known = read_keys(path) if path.exists() else {}
    study = read_study(project / STUDY, enrolled=False).study
    given = _sealing(study, dict(zip(names, keys, strict=True)), known)
    listed, others = (summing, sites) if aggregators else (sites, summing)
    _check_room(study, {*listed, *names}, aggregators)
    both = [name for name in names if name in others]
    check(not both, "a party is a site or an aggregator, never both", both=both)
    connect(project, link)
    for name, key in zip(names, keys, strict=True):
        if name not in {**sites, **summing}:
            listed[name] = _registered(project, key, {**sites, **summing})
            known |= {name: given[name]} if name in given else {}
            write_sites(path, sites, known, summing)
    return listed


def _check_room(study: FederatedStudy, listed: set[str], aggregators: bool) -> None:
    """Refuse aggregators that the study has no need of: their numbers are part of it."""
    wanted = 0 if study.sums is None else study.sums.aggregators
    if aggregators:
        rule = f"study.toml says aggregators = {wanted}, so no more can be listed"
        check(len(listed) <= wanted, rule, listed=len(listed))


def _sealing(
    study: FederatedStudy, keys: Mapping[str, Path], known: Mapping[str, str]
) -> dict[str, str]:
    """What the sites are to be sealed to; where nobody is trusted, of all of them."""
    if study.sums is None:
        return {}
    found = {name: sealing_keys(key) for name, key in keys.items()}
    missing = [name for name, text in found.items() if text is None]
    rule = f"where nobody is trusted a {PUBLIC} must have sealing keys: `sottovoce keys` makes such"
    check(not missing, rule, missing=missing)
    changed = [name for name, text in found.items() if known.get(name, text) != text]
    rule = f"keys in {NAME} are constants of the study: a site with others is another"
    check(not changed, rule, changed=changed)
    return {name: text for name, text in found.items() if text is not None}


def _registered(project: Path, key: Path, sites: Mapping[str, str]) -> str:
    try:
        return str(_asked(project, commands.register(key))["node-id"])
    except SottovoceError as error:
        if "already in use" not in str(error):
            raise
        strangers = sorted(set(node_status(project)) - set(sites.values()))
        raise InvalidInput(
            f"the key {key} is registered, but {NAME} does not say as which node; it is one of "
            f"{', '.join(strangers)}: write it there, or unregister it and try again"
        ) from error


def connect(project: Path, link: Link) -> None:
    """Have Flower's commands ask this link."""
    commands.write_connection(project / commands.HOME, link)


def node_status(project: Path) -> dict[str, str]:
    """Node id -> status, such as "online"."""
    nodes = _asked(project, commands.nodes())["nodes"]
    return {str(node["node-id"]): str(node["status"]) for node in nodes}


def submit(project: Path, link: Link) -> str:
    """Start a run of the study; gives its number."""
    connect(project, link)
    return str(_asked(project, commands.run(project))["run-id"])


def unfinished(project: Path) -> str | None:
    """The run that goes on already, if there is one: a second would find the ledger held."""
    for run in _asked(project, commands.runs())["runs"]:  # the newest first
        if not _outcome(run).over:
            return str(run["run-id"])
    return None


def outcome(project: Path, run_id: str) -> Outcome:
    """How a run is now."""
    (run,) = _asked(project, commands.runs(run_id))["runs"]
    return _outcome(run)


def _outcome(run: Mapping[str, Any]) -> Outcome:
    return Outcome(str(run["status"]), str(run["status-details"]))


def follow(project: Path, run_id: str) -> Outcome:
    """Show what a run prints until it is over."""
    while True:
        command, env = commands.log(run_id), commands.environment(project)
        shown = subprocess.Popen(command, env=env, cwd=project)  # noqa: S603
        try:
            shown.wait()
        except BaseException:  # nobody watches it any more
            shown.kill()
            shown.wait()
            raise
        found = outcome(project, run_id)
        if found.over:
            return found
        time.sleep(LOOK)


def _asked(project: Path, command: list[str]) -> dict[str, Any]:
    """The answer of one of Flower's commands; its failures become ours."""
    mark = secrets.token_hex(16)
    try:
        done = subprocess.run(  # noqa: S603
            command,
            env={**commands.environment(project), MARK: mark},
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StorageError(f"Flower did not answer: {error}") from error
    except KeyboardInterrupt:
        end_marked(mark)  # it outlives an interrupt that comes while it is being started
        raise
    try:
        # a warning may stand before it
        answer = json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError:
        answer = {"error-message": done.stdout + done.stderr}
    # a failed command may still say 0 to the shell
    if not isinstance(answer, dict) or answer.get("success") is not True:
        words = " ".join(str(answer.get("error-message", answer)).split())
        raise SottovoceError(f"Flower refused `{Path(command[0]).name} {command[1]}`: {words}")
    return answer
