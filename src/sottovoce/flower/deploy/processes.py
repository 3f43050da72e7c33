"""Processes that are started together and stopped together, with all that they started.

Flower starts helpers of its own, some in a session of their own, which outlive a killed parent
when interrupts are ignored. So every process carries a mark in its environment, which those that
it starts inherit, and which finds them again (where there is /proc).
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, Self

from sottovoce.errors import StorageError

Handler = Callable[[int, FrameType | None], None]

MARK = "SOTTOVOCE_PROCESSES"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 10.0
LOOK = 0.5  # seconds
INTERRUPTED = 130  # exit status, as shells have it


class Processes:
    """A group of processes; leaving the `with` block ends them all.

    patience: seconds that they are given to end when asked to, before being killed.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self.mark = secrets.token_hex(16)  # what it starts carries this
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start one, in a session of its own; what it prints goes to `log`, or where ours goes."""
        try:
            out = None if log is None else log.open("ab")
            try:
                process = subprocess.Popen(  # noqa: S603
                    command,
                    env={**env, MARK: self.mark},
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=None if out is None else subprocess.STDOUT,
                    start_new_session=True,
                )
            finally:
                if out is not None:
                    out.close()
        except OSError as error:
            raise StorageError(f"{name} could not be started: {error}") from error
        self._started[name] = process
        return process

    def ended(self) -> dict[str, int]:
        """Those that are over, with their exit status."""
        found = {name: process.poll() for name, process in self._started.items()}
        return {name: status for name, status in found.items() if status is not None}

    def stop(self) -> None:
        """End all: ask, wait, kill; then whatever they left behind."""
        for process in reversed(self._started.values()):
            if process.poll() is None:
                _signal(process.pid, signal.SIGTERM)
        end = time.monotonic() + self._patience
        while time.monotonic() < end and self._alive():
            time.sleep(0.05)
        for process in self._started.values():
            if process.poll() is None:  # else its number may be another's by now
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        end_marked(self.mark)
        self._started.clear()

    def _alive(self) -> bool:
        return len(self.ended()) < len(self._started) or bool(marked(self.mark))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with deaf():  # a second interrupt must not leave half of them behind
            self.stop()


def run_until_ended(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    patience: float = PATIENCE,
    over: Callable[[], bool] = lambda: False,
    log: Path | None = None,
) -> int:
    """Run one in the foreground; an interrupt ends it and all that it started. Its exit status.

    over: looked at now and then; once it holds, the process is ended too, with status 0.
    log: where what it prints goes, if not where ours does.
    """
    with stoppable(), Processes(patience) as processes:
        try:
            process = processes.start(Path(command[0]).name, command, env=env, cwd=cwd, log=log)
            while not over():
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(LOOK)
            return 0
        except KeyboardInterrupt:
            return INTERRUPTED


def end_marked(mark: str) -> None:
    """Kill all processes that carry the mark."""
    for _ in range(100):  # one that is killed may just have started another
        left = marked(mark)
        if not left:
            break
        for pid in left:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.05)


def marked(mark: str) -> list[int]:
    """Living processes that carry the mark; none where the system does not tell."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is another user's, or just ended
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


@contextmanager
def stoppable() -> Iterator[None]:
    """Let signals that end a program raise KeyboardInterrupt, so that it can clean up.

    A shell that starts a program in the background has it ignore interrupts. Those it starts
    would inherit that, and Flower's could not end each other.
    """

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    with _handling(interrupt):
        yield


@contextmanager
def deaf() -> Iterator[None]:
    """Take no notice of those signals for a moment."""

    def nothing(number: int, frame: FrameType | None) -> None:
        return

    with _handling(nothing):
        yield


@contextmanager
def _handling(handler: Handler) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not ours to handle
        return
    before = {number: signal.signal(number, handler) for number in ENDING}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
