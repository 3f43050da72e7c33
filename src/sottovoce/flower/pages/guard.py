"""Who may look at a live page: this machine's browser, and of its users the one who watches.

Loopback alone keeps neither a web page elsewhere out, which can make a name of its own mean
127.0.0.1, nor the other users of the machine. So the name that was asked for must be this
machine's, and whoever asks must bring a key: at first in the address that the command printed,
then as a cookie. The key stays the same for a user, so that a page goes on after a restart.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sottovoce.files import private_folder

COOKIE = "sottovoce-watch"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Lets through what may be answered, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, host: str, key: str) -> None:
        self._app, self._host, self._key = app, host, key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            return  # nothing else is spoken here

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self._refused(scope)
        await (self._app if refused is None else refused)(scope, receive, sent)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] != "GET":
            return PlainTextResponse("only GET", 405, headers={"Allow": "GET"})
        if not allowed_host(headers.get("host", ""), self._host):
            return PlainTextResponse("not the name of this machine", 421)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if "key" in query:
            if not self._fits(query["key"][0]):
                return _no_key()
            # two slashes would lead elsewhere
            answer = RedirectResponse("/" + scope["path"].lstrip("/\\"), 303)
            answer.set_cookie(COOKIE, self._key, httponly=True, samesite="lax")
            return answer
        return None if self._fits(_cookie(headers)) else _no_key()

    def _fits(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._key.encode())


def _no_key() -> Response:
    words = "Open the address that `sottovoce watch` printed: it has the key to this page."
    return PlainTextResponse(words, 403)


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def allowed_host(header: str, host: str) -> bool:
    """Whether a Host header names this machine.

    An address is always right: names are what others can give a meaning to.
    """
    name = header.rsplit(":", 1)[0] if not header.endswith("]") else header
    name = name.strip("[]").lower()
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    ours = {"localhost", host.lower()}
    if not is_loopback(host):
        ours |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return name in ours


def user_key() -> str:
    """The user's key, made at the first time; a new one each time where it cannot be kept."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(home) / "sottovoce" / "watch.key"
    fresh = secrets.token_urlsafe(24)
    with suppress(OSError, ValueError):
        if path.stat().st_mode & 0o077 == 0 and path.stat().st_uid == os.getuid():
            kept = path.read_text("ascii").strip()
            if len(kept) >= len(fresh):
                return kept
    with suppress(Exception):
        private_folder(path.parent)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(fresh)
    return fresh
