"""What can be known to be wrong before a process is started: each costs seconds, and one line.

Nothing here writes to a site's folder, asks a coordinator for anything but an answer, or spends.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sottovoce.errors import InvalidInput, MissingExtra, TrialError, check
from sottovoce.flower.deploy.commands import Link
from sottovoce.flower.deploy.keys import CERTIFICATE, CERTIFICATE_KEY
from sottovoce.flower.deploy.processes import MARK, end_marked
from sottovoce.flower.deploy.tryout import ANSWER
from sottovoce.flower.studyfile import StudyFile

TRYOUT = "sottovoce.flower.deploy.tryout"
IMPORT = 120.0  # seconds for the objective to be imported, beside its trial
SKIP = "--no-trial skips this"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Tried:
    """What the trial came to; its value is shown to whoever asked, and kept nowhere."""

    value: float | None  # None: it was pruned
    seconds: float
    unasked: tuple[str, ...]  # declared, but not asked for in this trial

    def __str__(self) -> str:
        what = "was pruned" if self.value is None else f"gave {self.value:.4g}"
        return f"one trial {what} in {self.seconds:.1f} s; it counts nowhere"


def check_objective(project: Path, file: StudyFile, tell: Tell = lambda line: None) -> Tried:
    """Import the objective, compare it with the space and run one trial, in another process."""
    limit = file.trial_limit if file.cadence is None else file.cadence
    found = tried(project, file, IMPORT + limit)
    name = "trial_limit" if file.cadence is None else "cadence"
    if found.seconds > limit:
        raise TrialError(
            f"a trial took {found.seconds:.1f} s, study.toml grants {limit:g} ({name}): all "
            f"parties must agree on more; {SKIP}"
        )
    if found.unasked:
        tell(
            f"warning: study.toml declares {', '.join(found.unasked)}, which the objective did not "
            f"ask for in its trial; unless it sometimes does, run `sottovoce space --write`"
        )
    tell(str(found))
    return found


def tried(project: Path, file: StudyFile, limit: float) -> Tried:
    """One trial in a process of its own, which is ended with all that it started."""
    mark = os.urandom(16).hex()
    with tempfile.TemporaryDirectory(prefix="sottovoce-") as folder:
        answer, said = Path(folder) / "answer.json", Path(folder) / "said.txt"
        command = [sys.executable, "-P", "-m", TRYOUT, str(project.absolute())]
        env = {**os.environ, ANSWER: str(answer), MARK: mark}
        text = json.dumps(file.study.space.to_dict()) + "\n"
        try:
            with said.open("wb") as out:
                done = subprocess.run(  # noqa: S603
                    command,
                    input=text.encode(),
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    cwd=project,
                    env=env,
                    timeout=limit,
                )
        except subprocess.TimeoutExpired as error:
            raise TrialError(
                f"a trial did not end within {limit:g} s, more than study.toml grants it; {SKIP}"
            ) from error
        finally:
            end_marked(mark)
        if not answer.is_file():
            raise TrialError(f"the process of a trial died: {_death(done.returncode, said)}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in found:
        raise InvalidInput(f"{found['error']} (in one trial before the start; {SKIP})")
    return Tried(found["value"], found["seconds"], tuple(found["unasked"]))


def _death(status: int, said: Path) -> str:
    lines = [line.strip() for line in said.read_text(errors="replace").splitlines()]
    last = next((line for line in reversed(lines) if line), "it said nothing")
    if status < 0:
        return f"{signal.Signals(-status).name}; {last}"
    return f"exit status {status}; {last}"


def check_port(host: str, port: int, option: str = "--port") -> None:
    """Refuse a port of this machine that somebody listens on, or that may not be taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be taken ({error})"
            raise InvalidInput(f"port {port} of {host} {why}: give another by {option}") from error


def check_certificate(path: Path, what: str, host: str | None = None) -> None:
    """Refuse a file that is no certificate, or one that is not good today."""
    try:
        from cryptography import x509
    except ImportError as error:
        raise MissingExtra("looking at certificates", "flower") from error

    check(path.is_file(), f"{what} must be a file; `sottovoce keys keys` makes one", path=str(path))
    try:
        found = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{what} must be a certificate in PEM, {path} is not") from error
    now = datetime.now(UTC)
    if not found.not_valid_before_utc <= now <= found.not_valid_after_utc:
        raise InvalidInput(
            f"{what}, {path}, was good from {found.not_valid_before_utc:%Y-%m-%d} to "
            f"{found.not_valid_after_utc:%Y-%m-%d}: make a new one"
        )


def check_server_keys(folder: Path, root: Path) -> None:
    """Refuse a coordinator's keys that do not belong together, or are out of date."""
    check_certificate(root, "the authority's certificate")
    check_certificate(folder / CERTIFICATE, "the coordinator's certificate")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / CERTIFICATE, folder / CERTIFICATE_KEY)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(
            f"{CERTIFICATE_KEY} must be the private key of {CERTIFICATE} in {folder}: {error}"
        ) from error


def check_reachable(link: Link, timeout: float = 5.0) -> bool:
    """Whether somebody answers at the link; one with a certificate that is not good is refused."""
    try:
        with socket.create_connection((link.host, link.port), timeout) as plain:
            if link.root is not None:
                trust = ssl.create_default_context(cafile=link.root)
                trust.wrap_socket(plain, server_hostname=link.host).close()
    except ssl.SSLCertVerificationError as error:
        raise InvalidInput(
            f"the coordinator at {link.address} has no certificate for that name by "
            f"{link.root} ({error.verify_message}): is it the right ca.crt, and --host in "
            f"`sottovoce keys`?"
        ) from error
    except ssl.SSLError as error:
        raise InvalidInput(
            f"whoever answers at {link.address} speaks no TLS ({error.reason}): is the port right?"
        ) from error
    except OSError:
        return False
    return True
