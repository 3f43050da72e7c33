"""A real Chromium, driven over its DevTools pipe: no library, no open port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
]
# Chromium listens on descriptor 3 and speaks on 4
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(fd), fcntl.F_DUPFD_CLOEXEC, 10) for fd in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install -y chromium"
)
SIZES = "[document.scrollingElement.scrollWidth, innerWidth]"
# Whatever reaches beyond the right edge without a box of its own that scrolls
BEYOND = """
[...document.querySelectorAll("body *")].filter(element =>
  element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".box")
  ).map(element => element.outerHTML.slice(0, 100))
"""


class Browser:
    """One page of a fresh Chromium; keeps every event that it reports."""

    def __init__(self, profile: Path) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        ends = (theirs_in, theirs_out)
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, ends), str(CHROMIUM), *FLAGS,
             f"--user-data-dir={profile}"],
            pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in ends:
            os.close(end)
        self._unread = b""
        self._sent = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._to)
            os.close(self._from)

    def _receive(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            assert ready, "Chromium does not answer"
            piece = os.read(self._from, 1 << 16)
            assert piece, "Chromium has gone"
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        return dict(json.loads(message))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60
        while True:
            answer = self._receive(until)
            if answer.get("id") == self._sent:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def show(self, page: Path | str, width: int, theme: str) -> None:
        """Open a page, a file or an address, at a width in a theme; wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.call("Emulation.setEmulatedMedia", media="screen", features=[feature])
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        until = time.monotonic() + 60
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive(until))
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, script: str, seconds: float = 20.0) -> Any:
        """The value of an expression once it is true."""
        until = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < until, f"not within {seconds} s: {script}"
            time.sleep(0.1)
        return found

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A screenshot of the page, or of what is in the window."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[dict[str, Any]]:
        """What the page threw, logged as an error, or had refused."""
        bad = ("error", "warning", "assert")
        return [
            event
            for event in self.events
            if event["method"] == "Runtime.exceptionThrown"
            or event["params"].get("entry", {}).get("level") in bad
            or event["params"].get("type") in bad
        ]

    def requests(self) -> list[str]:
        """Every address the page asked for, itself included."""
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]
