from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app as command_line
from sottovoce.errors import InvalidInput, StorageError
from sottovoce.flower.pages.app import changes, make_app
from sottovoce.flower.pages.guard import COOKIE, HEADERS, Guard, allowed_host, user_key
from sottovoce.flower.pages.serve import serve_pages
from sottovoce.flower.pages.watcher import Watcher

KEY = "a-key-that-nobody-guesses"
MINE = {"host": "127.0.0.1:8600", "cookie": f"{COOKIE}={KEY}"}


def made(folder: Path, host: str = "127.0.0.1") -> Guard:
    closing = threading.Event()
    closing.set()  # streams end at once
    return make_app(folder, host, KEY, closing)


def asked(
    app: Guard, path: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[int, dict[str, str], str]:
    """The app's answer, by hand."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    where, _, query = path.partition("?")
    pairs = (MINE if headers is None else headers).items()
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
        "method": method, "path": where, "raw_path": where.encode(), "root_path": "",
        "scheme": "http", "query_string": query.encode(),
        "headers": [(k.encode(), v.encode()) for k, v in pairs],
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    start = sent[0]
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], found, b"".join(m.get("body", b"") for m in sent[1:]).decode()


def test_a_page_comes_with_a_policy_that_lets_nothing_leave_the_machine(tmp_path: Path) -> None:
    status, headers, body = asked(made(tmp_path), "/")
    assert status == 200
    assert "Nothing has begun here yet" in body
    allowed = headers["content-security-policy"]
    assert "default-src 'none'" in allowed
    assert "connect-src 'self'" in allowed
    assert "frame-ancestors 'none'" in allowed
    assert "unsafe" not in allowed
    assert not re.search(r"https?://", body)
    for name, value in HEADERS.items():
        assert headers[name.lower()] == value


@pytest.mark.parametrize("path", ["/", "/events", "/party/x", "/party/x/events", "/none"])
@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_get_is_answered(tmp_path: Path, path: str, method: str) -> None:
    status, headers, _ = asked(made(tmp_path), path, method=method)
    assert status == 405
    assert headers["allow"] == "GET"


@pytest.mark.parametrize("path", ["/", "/events", "/party/x"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8600", "127.0.0.1.evil.example", "", "localhost.evil:1"]
)
def test_a_name_that_others_can_give_a_meaning_to_is_refused(
    tmp_path: Path, path: str, host: str
) -> None:
    assert asked(made(tmp_path), path, {**MINE, "host": host})[0] == 421
    without = {key: value for key, value in MINE.items() if key != "host"}
    assert asked(made(tmp_path), path, without)[0] == 421


def test_names_of_this_machine_and_bare_addresses_are_right() -> None:
    for header in (
        "127.0.0.1",
        "127.0.0.1:8600",
        "localhost:1",
        "[::1]:8600",
        "[::1]",
        "10.0.0.7:1",
    ):
        assert allowed_host(header, "127.0.0.1"), header
    here = socket.gethostname()
    assert not allowed_host(f"{here}.evil", "0.0.0.0")  # noqa: S104 - it is what is asked about
    assert allowed_host(f"{here}:80", "0.0.0.0")  # noqa: S104
    assert allowed_host("hub.example:80", "hub.example")
    assert not allowed_host("hub.example:80", "127.0.0.1")


def test_without_the_key_nothing_is_shown_and_with_it_a_cookie_is_given(tmp_path: Path) -> None:
    app, host = made(tmp_path), {"host": "127.0.0.1"}
    for headers in (host, {**host, "cookie": f"{COOKIE}=x"}, {**host, "cookie": ";;=\x00"}):
        status, _, body = asked(app, "/", headers)
        assert status == 403
        assert "Nothing has begun" not in body
        assert KEY not in body
    assert asked(app, "/events", host)[0] == 403
    assert asked(app, "/?key=x", MINE)[0] == 403
    assert asked(app, "/?key=\u00e4", MINE)[0] == 403
    status, headers, _ = asked(app, f"/party/site-1?key={KEY}", host)
    assert (status, headers["location"]) == (303, "/party/site-1")
    assert "HttpOnly" in headers["set-cookie"]
    assert "samesite=lax" in headers["set-cookie"].lower()
    assert headers["referrer-policy"] == "no-referrer"


def test_what_is_asked_for_stays_on_this_server_and_is_only_text(tmp_path: Path) -> None:
    status, headers, _ = asked(made(tmp_path), f"//evil.example/?key={KEY}", {"host": "127.0.0.1"})
    assert not headers.get("location", "/x").startswith("//")
    assert status in (303, 404)
    status, _, body = asked(made(tmp_path), "/party/<script>alert(1)<%2Fscript>")
    assert "<script>alert" not in body


def test_the_stream_has_the_whole_page_first_and_beats_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.flower.pages.app.LOOK", 0.01)
    monkeypatch.setattr("sottovoce.flower.pages.app.BEAT", 0.05)
    closing = threading.Event()

    async def heard() -> list[str]:
        found = []
        async for event in changes(Watcher(tmp_path), None, closing):
            found.append(event)
            if len(found) == 4:
                closing.set()
        return found

    retry, shown, *beats = asyncio.run(heard())
    assert retry == "retry: 1000\n\n"
    content = json.loads(shown.split("data: ")[1])
    assert set(content) == {"title", "said", "main", "links"}
    assert "Nothing has begun" in content["main"]
    assert shown.count("\n") == 3  # however many lines the page has
    assert [beat.split("\n")[0] for beat in beats] == ["event: beat"] * 2


def test_the_stream_is_an_event_stream(tmp_path: Path) -> None:
    status, headers, body = asked(made(tmp_path), "/events")
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert body.startswith("retry: ")


def test_a_users_key_stays_the_same_and_is_the_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    key = user_key()
    path = tmp_path / "sottovoce" / "watch.key"
    assert user_key() == key == path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o644)  # others may have read it
    changed = user_key()
    assert changed != key
    assert path.stat().st_mode & 0o077 == 0
    path.write_text("short")
    assert len(user_key()) >= 32
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert user_key() != user_key()  # it cannot be kept


def test_what_cannot_be_served_is_said_in_one_line(tmp_path: Path) -> None:
    def tell(address: str, reachable: bool) -> None:
        raise AssertionError(address)

    with pytest.raises(InvalidInput, match="must be a folder"):
        serve_pages(tmp_path / "none", "127.0.0.1", 0, tell)
    with pytest.raises(InvalidInput, match="port must be in"):
        serve_pages(tmp_path, "127.0.0.1", 70000, tell)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StorageError, match=f"127.0.0.1:{port} cannot be listened on: .*in use"):
            serve_pages(tmp_path, "127.0.0.1", port, tell)
    with pytest.raises(StorageError, match="cannot be listened on"):
        serve_pages(tmp_path, "203.0.113.7", 0, tell)


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it prints."""
    command = [sys.executable, "-m", "sottovoce.cli", "watch", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_the_command_prints_an_address_serves_it_and_stops_at_once_when_interrupted(
    watching: tuple[subprocess.Popen[str], str],
) -> None:
    process, address = watching
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?key=[\w-]{32}", address)
    jar = urllib.request.HTTPCookieProcessor()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)
    with opener.open(address, timeout=60) as answer:
        assert answer.url.endswith("/")  # the key is no longer in the address
        assert "server" not in {name.lower() for name in answer.headers}
        assert b"Nothing has begun" in answer.read()
    plain = address.partition("?")[0]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(plain, timeout=60)
    stream = opener.open(plain + "events", timeout=60)
    assert stream.readline() == b"retry: 1000\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    stream.close()
    assert process.stderr is not None
    assert process.stderr.read().splitlines() == [
        "Watching until interrupted. Open:", "stopped watching; the study goes on",
    ]  # fmt: skip


def test_whoever_lets_others_in_is_warned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, bool]] = []
    monkeypatch.setattr("sottovoce.flower.pages.serve._Server.run", lambda self, sockets: None)
    for host in ("127.0.0.1", "localhost", "0.0.0.0"):  # noqa: S104
        serve_pages(tmp_path, host, 0, lambda address, reachable: told.append((address, reachable)))
    assert [reachable for _, reachable in told] == [False, False, True]
    result = CliRunner().invoke(
        command_line,
        ["watch", str(tmp_path), "--host", "0.0.0.0", "--port", "0"],  # noqa: S104
    )
    assert "warning: other machines can reach this page" in " ".join(result.stderr.split())
