"""Serving live pages until interrupted."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from sottovoce.errors import MissingExtra, StorageError, check
from sottovoce.flower.pages.guard import is_loopback, user_key

try:
    import uvicorn

    from sottovoce.flower.pages.app import make_app
except ImportError as error:
    raise MissingExtra("a live page", "watch") from error

GRACE = 3  # seconds for streams to end


class _Server(uvicorn.Server):
    """One that tells its streams when it is to end."""

    def __init__(self, config: uvicorn.Config, closing: threading.Event) -> None:
        super().__init__(config)
        self._closing = closing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End streams, then itself."""
        self._closing.set()
        super().handle_exit(sig, frame)


def serve_pages(folder: Path, host: str, port: int, tell: Callable[[str, bool], None]) -> None:
    """Serve the pages of a folder; `tell` has their address, and whether others can reach it."""
    check(folder.is_dir(), "what is watched must be a folder", folder=str(folder))
    check(0 <= port < 65536, "port must be in [0, 65535]", port=port)
    closing, key = threading.Event(), user_key()
    with _listening(host, port) as listener:
        config = uvicorn.Config(
            make_app(folder, host, key, closing),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
        bound = listener.getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        tell(f"http://{name}:{bound}/?key={key}", not is_loopback(host))
        _Server(config, closing).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    """A socket that nobody else has."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        number = error.errno or 0  # negative: a name that nobody knows
        # the words of Python's own error are longer than what they say
        why = os.strerror(number) if number > 0 else error.strerror or str(error)
        raise StorageError(
            f"{host}:{port} cannot be listened on: {why}; try another --port"
        ) from error
