"""A site's SuperNode, and beside it what answers its messages: the installed package, nothing else.

Flower's own executor runs the app that a run brings. So the SuperNode is started without one
(`--isolation process`), and this process takes its tasks instead, each to a process of its own
(`sottovoce.flower.site.task`). Were this one missing, nothing would run.

    python -m sottovoce.flower.deploy.executor ADDRESS SECRET flower-supernode [OPTIONS]
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sottovoce.files import private, write_text
from sottovoce.flower.deploy.processes import INTERRUPTED, PATIENCE, deaf, stoppable

if TYPE_CHECKING:
    from flwr.supercore.runtime import RuntimeHttpClient

LOOK = 1.0  # seconds between two looks for a task, as Flower's executor has them
TASK = "sottovoce.flower.site.task"


def command(address: str, secret: Path, node: Sequence[str]) -> list[str]:
    """The command that runs a SuperNode with this beside it. -P: no module comes from the folder
    it is started in."""
    options = ["--isolation", "process", "--superexec-auth-secret-file", str(secret)]
    own = [sys.executable, "-P", "-m", "sottovoce.flower.deploy.executor", address, str(secret)]
    return [*own, *node, *options]


def main() -> int:
    """Run both until the SuperNode ends; its exit status."""
    address, secret, *node = sys.argv[1:]
    with stoppable():
        key = _new_secret(Path(secret))
        process = subprocess.Popen(node, stdin=subprocess.DEVNULL)  # noqa: S603
        tasks: list[subprocess.Popen[bytes]] = []
        try:
            return _serve(address, key, process, tasks)
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            with deaf():
                _end([*tasks, process])


def _new_secret(path: Path) -> bytes:
    """What other users of the machine, who reach the same port, do not have."""
    word = secrets.token_hex(32)
    with private():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, word)
    return word.encode()


def _serve(
    address: str,
    key: bytes,
    node: subprocess.Popen[bytes],
    tasks: list[subprocess.Popen[bytes]],
) -> int:
    client: RuntimeHttpClient | None = None
    while (status := node.poll()) is None:
        client = client or _client(address, key)
        tasks[:] = [task for task in tasks if task.poll() is None]
        found = _acquired(client)
        if found is not None:
            tasks.append(_started(address, *found))
        with suppress(subprocess.TimeoutExpired):
            node.wait(LOOK)
    return status


def _client(address: str, key: bytes) -> RuntimeHttpClient:
    from flwr.supercore.interceptors import (  # takes a second, while the SuperNode starts
        RuntimeVersionHttpInterceptor,
        SuperExecAuthHttpInterceptor,
    )
    from flwr.supercore.runtime import RuntimeHttpClient

    version = RuntimeVersionHttpInterceptor(component_name="SuperExec")
    methods = frozenset({"/flwr.proto.Runtime/AcquireTask"})
    auth = SuperExecAuthHttpInterceptor(master_secret=key, protected_methods=methods)
    return RuntimeHttpClient.from_server_address(
        address, insecure=True, root_certificates=None, interceptors=[version, auth]
    )


def _acquired(client: RuntimeHttpClient) -> tuple[str, str] | None:
    """A task's kind and token, if one is waiting. Of any kind: one that nobody took, and refused,
    would keep the SuperNode waiting for ever."""
    import httpx
    from flwr.proto.runtime_pb2 import AcquireTaskRequest
    from flwr.supercore.constant import TaskType

    try:
        found = client.AcquireTask(AcquireTaskRequest(supported_task_types=[*TaskType]))
    except httpx.HTTPError:
        return None  # it is not up yet, or no longer
    return (found.task.type, found.token) if found.token else None


def _started(address: str, kind: str, token: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-P", "-m", TASK, address, kind]
    task = subprocess.Popen(words, stdin=subprocess.PIPE)  # noqa: S603
    if task.stdin is not None:
        with suppress(BrokenPipeError), task.stdin as pipe:
            pipe.write(f"{token}\n".encode())
    return task


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask all to end, so that the SuperNode takes its leave, and kill what does not."""
    for each in processes:
        if each.poll() is None:
            each.terminate()
    end = time.monotonic() + PATIENCE
    for each in processes:
        try:
            each.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            each.kill()
            each.wait()


if __name__ == "__main__":
    sys.exit(main())
