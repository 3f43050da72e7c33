"""Live pages and result pages in a real Chromium."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from optuna.trial import Trial
from tests.endtoend.browser import BEYOND, NEEDS_CHROMIUM, SIZES, Browser
from tests.unit.flower.pages.made_up import coordinator, whole_site
from tests.unit.flower.pages.staged import Staged

from sottovoce.flower.pages.result import write_page

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

PAPER = "getComputedStyle(document.body).backgroundColor"
STATE = "document.querySelector('#state').dataset.state"
# Of all text, whatever stands out from its ground by less than 4.5 to 1
FAINT = """
(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const bright = (colour) => {
    const [r, g, b] = parts(colour).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll("body *")].filter((element) => {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length || element.closest(".unseen, .skip, caption"))
      return false;
    if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName)) return false;
    const look = getComputedStyle(element), svg = element.closest("svg");
    const [a, b] = [bright(svg ? look.fill : look.color), bright(ground(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
  }).map((element) => element.outerHTML.slice(0, 100));
})()
"""
# What a screen reader is told: names of parts, levels of headings, heads of tables
NAMELESS = """
[...document.querySelectorAll("svg, nav, table, [role=region]")].filter((element) =>
  element.getAttribute("aria-hidden") !== "true" && !element.getAttribute("aria-label")
  && !element.querySelector("caption")).map((element) => element.outerHTML.slice(0, 100))
"""
HEADINGS = "[...document.querySelectorAll('h1, h2, h3')].map((head) => +head.tagName[1])"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def served(folder: Path, port: int, state: Path) -> Iterator[str]:
    """`sottovoce watch` as a user starts it; gives the address that it prints."""
    command = [sys.executable, "-m", "sottovoce.cli", "watch", str(folder), "--port", str(port)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith(f"http://127.0.0.1:{port}/"), address
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()


class Live:
    """A study of three sites under way, and its pages."""

    def __init__(self, folder: Path) -> None:
        def moody(trial: Trial) -> float:
            width = trial.suggest_float("width", 0.2, 5.0)
            if trial.number == 2:
                raise ValueError("a column of the table is missing: <b>age</b> " + "x" * 90)
            penalty = trial.suggest_float("penalty", 1e-4, 100.0, log=True)
            return float(penalty**0.1) + width

        self.staged, self.state = Staged(folder), folder / "state"
        self.staged.sites[1] = self.staged.site(1, moody)
        self.port = free_port()
        self.hub = self.staged.coordinator()
        self.staged.step(self.hub)
        self.hub.failed(902, "Flower's error 1")
        self.hub.open()
        self.staged.ask(self.hub, 0)

    def served(self) -> Iterator[str]:
        with served(self.staged.project, self.port, self.state) as address:
            yield address


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    found = Live(tmp_path_factory.mktemp("live"))
    yield found
    found.hub.stop()


@pytest.fixture
def address(live: Live) -> Iterator[str]:
    yield from live.served()


def check_page(browser: Browser, width: int, theme: str) -> None:
    """What must hold of every page at every width in every theme."""
    assert browser.complaints() == []
    across, window = browser.run(SIZES)
    assert window == width
    assert across <= width
    beyond = [found for found in browser.run(BEYOND) if "skip" not in found]
    assert beyond == []
    assert (browser.run(PAPER) == "rgb(253, 253, 251)") == (theme == "light")
    assert browser.run(FAINT) == []
    assert browser.run(NAMELESS) == []
    levels = browser.run(HEADINGS)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert set(levels[1:]) <= {2}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["", "party/site-1", "party/site-2", "party/nobody"])
def test_a_live_page_is_whole_and_asks_nobody_but_its_own_server(
    browser: Browser, address: str, name: str, width: int, theme: str
) -> None:
    where, _, key = address.partition("?")
    browser.show(f"{where}{name}?{key}", width, theme)
    browser.wait_for(f"{STATE} === 'live'")
    check_page(browser, width, theme)
    assert all(url.startswith((where, "data:")) for url in browser.requests())
    assert browser.run("location.search") == ""  # the key is gone from the address
    assert browser.run("document.cookie") == ""  # and no script can read it
    if name == "party/site-2":
        assert browser.run("document.querySelectorAll('main b').length") == 1  # the best, no more


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["site", "coordinator"])
def test_a_result_page_is_whole_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, kind: str, width: int, theme: str
) -> None:
    page = write_page(whole_site() if kind == "site" else coordinator(), tmp_path)
    browser.show(page, width, theme)
    check_page(browser, width, theme)
    assert browser.requests()[0] == page.as_uri()
    assert all(url.startswith("data:") for url in browser.requests()[1:])


def test_a_result_fits_on_paper_and_is_printed_in_ink_even_by_night(
    browser: Browser, tmp_path: Path
) -> None:
    browser.show(write_page(whole_site(), tmp_path), 718, "dark")  # A4 between its margins
    night = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=night)
    across, window = browser.run(SIZES)
    assert across <= window
    assert browser.run(PAPER) == "rgb(253, 253, 251)"


def test_a_page_follows_the_study_and_comes_back_after_its_server_was_restarted(
    browser: Browser, tmp_path: Path
) -> None:
    live = Live(tmp_path)
    lead = "document.querySelector('.lead').textContent"
    with served(live.staged.project, live.port, live.state) as address:
        browser.show(address, 1280, "light")
        browser.wait_for(f"{STATE} === 'live'")
        assert "1 of 3 sites have answered" in browser.run(lead)
        live.staged.ask(live.hub, 1)
        browser.wait_for(f"{lead}.includes('2 of 3 sites have answered')")
        said = browser.run("document.querySelector('#said[role=status]').textContent")
        assert "2 of 3 sites have answered" in said  # to whoever listens
        # what the reader was at stays
        browser.run("document.querySelectorAll('.box')[1].focus()")
        live.staged.ask(live.hub, 2)
        browser.wait_for(f"{lead}.includes('3 of 3 sites have answered')")
        name = "document.activeElement.getAttribute('aria-label')"
        assert browser.run(name) == "Releases"
    browser.wait_for(f"{STATE} === 'lost'")
    assert "Nobody serves this page" in browser.run("document.querySelector('#state').textContent")
    assert "3 of 3 sites have answered" in browser.run(lead)  # what it showed stays
    live.hub.close()
    live.hub.stop()
    with served(live.staged.project, live.port, live.state):
        browser.wait_for(f"{STATE} === 'live'", seconds=40)
        browser.wait_for(f"{lead}.includes('2 of 2 releases are made')")


def test_the_page_can_be_gone_through_with_the_keyboard(browser: Browser, address: str) -> None:
    browser.show(address, 1280, "light")
    browser.wait_for(f"{STATE} === 'live'")
    seen = []
    for _ in range(8):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                         windowsVirtualKeyCode=9)  # fmt: skip
        seen.append(browser.run("document.activeElement.textContent.trim().slice(0, 20)"))
        assert browser.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert seen[0] == "Skip to the page"
    assert [each for each in seen if re.fullmatch(r"the coordinator|site-\d", each)] == [
        "the coordinator", "site-1", "site-2", "site-3",
    ]  # fmt: skip
    browser.run(
        "[...document.querySelectorAll('nav a')].find(a => a.textContent === 'site-2').click()"
    )
    browser.wait_for("document.querySelector('h1')?.textContent.startsWith('site-2')")
    assert browser.run("document.querySelector('[aria-current]').textContent") == "site-2"


def test_another_site_of_the_web_cannot_read_the_page(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    browser.show(address, 1280, "light")  # so that the browser has the cookie
    other = tmp_path / "evil.html"
    other.write_text(
        f"<!DOCTYPE html><html><body><script>"
        f"fetch('{address}', {{credentials: 'include'}}).then(r => r.text())"
        ".then(t => { window.got = t; }, () => { window.got = 'refused'; })</script></body></html>"
    )
    browser.show(other, 1280, "light")
    assert browser.wait_for("window.got") == "refused"
