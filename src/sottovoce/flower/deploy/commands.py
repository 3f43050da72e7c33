"""Flower's own commands for a deployment, as argument lists, and the environment they run in."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from sottovoce.errors import MissingExtra, check
from sottovoce.files import write_text
from sottovoce.flower.deploy import executor
from sottovoce.flower.deploy.keys import CERTIFICATE, CERTIFICATE_KEY, SEAL

HOME = ".flwr"  # Flower's own files, in a party's folder
STATE = "coordinator"  # the coordinator's own files, in its folder
DATABASE = "superlink.db"
CONNECTION = "federation"  # the link's name in Flower's configuration
HOST, PORT = "127.0.0.1", 8000
EXECUTOR = "executor.secret"  # a file; between a site's SuperNode and what runs its tasks
NODE_PORT = 9094  # Flower's default for what a node and its apps talk over


@dataclass(frozen=True)
class Link:
    """Where the coordinator's SuperLink is, and how to know that it is the right one."""

    host: str = HOST
    port: int = PORT
    root: Path | None = None  # the authority's certificate; None: without encryption

    def __post_init__(self) -> None:
        ok = self.host != "" and not any(c.isspace() or c in "/@" for c in self.host)
        check(ok, "host must be a DNS name or an IP address", host=self.host)
        check(1 <= self.port <= 65535, "port must be in [1, 65535]", port=self.port)
        if self.root is None:
            rule = "an insecure link is for rehearsals on one machine: its address must be loopback"
            check(is_loopback(self.host), rule, host=self.host)
        else:
            _check_file("the authority's certificate", self.root)

    @property
    def address(self) -> str:
        """host:port, as Flower takes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, address: str, root: Path | None) -> Link:
        """From host:port."""
        host, colon, port = address.rpartition(":")
        ok = bool(host and colon) and port.isdecimal() and len(port) <= 5
        check(ok, "an address must be host:port", address=address)
        return cls(host.removeprefix("[").removesuffix("]"), int(port), root)


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from the machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def superlink(project: Path, link: Link, keys: Path | None) -> list[str]:
    """What the coordinator runs: with TLS and node keys, unless the link is insecure."""
    command = [tool("flower-superlink"), "--host", link.host, "--port", str(link.port)]
    if link.root is None or keys is None:
        check(
            link.root is None and keys is None, "an insecure link has no keys, another needs them"
        )
        command += ["--insecure"]
    else:
        certificate, key = keys / CERTIFICATE, keys / CERTIFICATE_KEY
        _check_file("the coordinator's certificate", certificate)
        _check_file("the coordinator's private key", key)
        command += ["--ssl-certfile", _full(certificate), "--ssl-keyfile", _full(key)]
        command += ["--ssl-ca-certfile", _full(link.root), "--enable-supernode-auth"]
    command += ["--database", _full(database(project)), "--disable-runtime-dependency-installation"]
    return command


def database(project: Path) -> Path:
    """Where the coordinator's SuperLink keeps what it knows."""
    return project / STATE / DATABASE


def supernode(
    project: Path, link: Link, key: Path | None, port: int = NODE_PORT, workers: int = 1
) -> list[str]:
    """What a site runs: a SuperNode, and what answers its messages without the app of a run.

    workers: trials that it runs side by side.
    """
    check(1 <= port <= 65535, "port must be in [1, 65535]", port=port)
    check(workers >= 1, "workers must be at least 1", workers=workers)
    command = [tool("flower-supernode"), "--superlink", link.address]
    if link.root is None or key is None:
        check(link.root is None and key is None, "an insecure link has no key, another needs one")
        command += ["--insecure"]
    else:
        _check_file("the site's private key", key)
        command += ["--root-certificates", _full(link.root)]
        command += ["--auth-supernode-private-key", _full(key)]
    own = {"project": project}
    if key is not None and key.with_suffix(SEAL).is_file():
        own["seal"] = key.with_suffix(SEAL)
    pairs = _pairs(**own) if workers == 1 else f"{_pairs(**own)} workers={workers}"
    command += ["--host", HOST, "--port", str(port), "--node-config", pairs]
    return executor.command(f"{HOST}:{port}", (project / HOME / EXECUTOR).absolute(), command)


def register(public_key: Path) -> list[str]:
    """Let a site's key in."""
    _check_file("a site's public key", public_key)
    key = _full(public_key)
    return [tool("flwr"), "supernode", "register", key, CONNECTION, "--format", "json"]


def run(project: Path) -> list[str]:
    """Submit the study."""
    command = [tool("flwr"), "run", _full(project), CONNECTION, "--format", "json"]
    return [*command, "--run-config", _pairs(project=project)]


def nodes() -> list[str]:
    """List the nodes."""
    return [tool("flwr"), "supernode", "list", CONNECTION, "--format", "json"]


def runs(run_id: str | None = None) -> list[str]:
    """Say how a run is, or all of the last ones."""
    which = [] if run_id is None else ["--run-id", run_id]
    return [tool("flwr"), "list", CONNECTION, *which, "--format", "json"]


def log(run_id: str) -> list[str]:
    """Show what a run prints, until it ends."""
    return [tool("flwr"), "log", run_id, CONNECTION, "--stream"]


def write_connection(home: Path, link: Link) -> None:
    """Tell Flower's commands where the link is."""
    home.mkdir(parents=True, exist_ok=True)
    trust = "insecure = true"
    if link.root is not None:
        trust = f"root-certificates = {json.dumps(_full(link.root))}"
    lines = [
        "[superlink]",
        'default = "local"',
        "",
        "[superlink.local]",
        'address = ":local:"',
        "",
        f"[superlink.{CONNECTION}]",
        f'address = "{link.address}"',
        trust,
    ]
    write_text(home / "config.toml", "\n".join(lines) + "\n")


COLOURING = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


def environment(project: Path) -> dict[str, str]:
    """What Flower's processes find around them: nothing is reported to anybody."""
    programs = str(Path(sys.executable).parent)
    # as a notebook sets them, they would put bold and colours into Flower's JSON
    plain = {name: value for name, value in os.environ.items() if name not in COLOURING}
    return {
        **plain,
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "FLWR_HOME": _full(project / HOME),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "NO_COLOR": "1",
    }


def tool(name: str) -> str:
    """Where a program of Flower's is: beside this Python, or on the path."""
    sibling = Path(sys.executable).with_name(name)
    found = str(sibling) if sibling.is_file() else shutil.which(name)
    if found is None:
        raise MissingExtra(f"running {name}", "flower")
    return found


def _full(path: Path) -> str:
    return str(path.absolute())


def _pairs(**paths: Path) -> str:
    """Settings as Flower parses them: key="value", which must hold no quote of its own."""
    for path in paths.values():
        ok = not any(c in "\"'\\" or not c.isprintable() for c in _full(path))
        check(ok, "the path of a project must hold no quote or backslash", path=_full(path))
    return " ".join(f'{key}="{_full(path)}"' for key, path in paths.items())


def _check_file(what: str, path: Path) -> None:
    check(path.is_file(), f"{what} must be a file", path=str(path))
