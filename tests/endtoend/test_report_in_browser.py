"""The report in a real Chromium."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.endtoend.browser import BEYOND, NEEDS_CHROMIUM, SIZES, Browser

from sottovoce.lab.report.page import write_report

MADE_UP = runpy.run_path(str(Path(__file__).parents[1] / "made_up_figures.py"))
pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    MADE_UP["write"](folder)
    return write_report(folder)


# Of each figure: its name, and of each line how wide and high it is drawn, and in which colour
LINES = """
[...document.querySelectorAll("section.figure")].map(section => [section.id,
  [...section.querySelector("figure > svg.chart").querySelectorAll("polyline.line")].map(line => {
    const box = line.getBoundingClientRect(), look = getComputedStyle(line);
    return [box.width, box.height, look.visibility === "visible" ? look.stroke : "none"];
  })])
"""
PAPER = "getComputedStyle(document.body).backgroundColor"
# Names of points, as they are drawn, that cover each other or a tick's number
CROWDED = """
(chart => {
  const texts = [...chart.querySelectorAll("text")].filter(text => text.getClientRects().length);
  const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([name, a], k) => boxes.slice(k + 1).filter(([, b]) => a.left < b.right &&
    b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(([other]) => [name, other]));
})(document.querySelector("#landmine-tradeoff svg.chart"))
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_whole_at_every_width_in_every_theme(
    browser: Browser, report: Path, width: int, theme: str
) -> None:
    browser.show(report, width, theme)
    browser.run("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert browser.complaints() == []
    assert browser.requests()[0] == report.as_uri()
    assert all(url.startswith("data:") for url in browser.requests()[1:])
    across, window = browser.run(SIZES)
    assert window == width
    assert across <= width
    assert browser.run(BEYOND) == []
    paper = browser.run(PAPER)
    assert (paper == "rgb(253, 253, 251)") == (theme == "light")  # so the style sheet applies
    drawn = dict(browser.run(LINES))
    points = drawn.pop("landmine-tradeoff")
    assert len(points) == 4  # two series by two accountants
    assert {name: len(lines) for name, lines in drawn.items()} == {
        figure["name"]: len(figure["curves"])
        for figure in MADE_UP["figures"]()
        if figure["kind"] != "tradeoff"
    }
    assert browser.run(CROWDED) == []
    for line in (line for lines in drawn.values() for line in lines):
        assert line[0] > 0.7 * min(width, 900)
        assert line[1] > 20
        assert line[2] not in ("none", paper)


def test_the_page_fits_on_paper_and_is_printed_in_ink_even_by_night(
    browser: Browser, report: Path
) -> None:
    browser.show(report, 718, "dark")  # the width of A4 between its margins
    night = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=night)
    across, window = browser.run(SIZES)
    assert across <= window
    assert browser.run(PAPER) == "rgb(253, 253, 251)"
    assert browser.run("getComputedStyle(document.querySelector('.copy')).display") == "none"


def test_the_legend_tells_the_values_under_the_pointer_and_then_the_last_ones_again(
    browser: Browser, report: Path
) -> None:
    browser.show(report, 1280, "light")
    legend = "document.querySelector('#benefit-of-de figcaption').innerText"
    at_the_end = browser.run(legend)
    chart = "document.querySelector('#benefit-of-de svg.chart')"
    browser.run(f"{chart}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = browser.run(f"(b => [b.x, b.y, b.width, b.height])({chart}.getBoundingClientRect())")
    x, y = box[0] + box[2] * (86 + 656 / 4) / 760, box[1] + box[3] / 2  # a quarter along
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    under = browser.run(legend)
    first = MADE_UP["figures"]()[0]["curves"][0]["regret"]["mean"][10]
    assert under.startswith("Values at x = 10\n")
    assert f"{first:.4f}" in under
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert browser.run(legend) == at_the_end
    assert browser.complaints() == []


def test_a_point_is_told_in_words_under_the_pointer_and_with_the_focus(
    browser: Browser, report: Path
) -> None:
    browser.show(report, 1280, "light")
    told = "document.querySelector('#landmine-tradeoff .at').innerText"
    before = browser.run(told)
    assert "point at one" in before
    points = "[...document.querySelectorAll('#landmine-tradeoff .point')]"
    point = f"{points}.find(point => point.textContent.includes('z = 1.6'))"
    words = "z = 1.6 (q = 0.35): 1 − AUC 0.23270 ± 0.00050 at ε = 7.12 by moments, 4.61 by pld"
    browser.run(f"{point}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    for mark in (".filled", ".hollow"):
        where = f"{point}.querySelector('{mark}').getBoundingClientRect()"
        x, y = browser.run(f"(b => [b.x + b.width / 2 + 2, b.y + b.height / 2 - 2])({where})")
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        assert browser.run(told) == words
        assert browser.run("document.querySelectorAll('#landmine-tradeoff .told').length") == 1
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
        assert browser.run(told) == before
    browser.run(f"{point}.focus()")
    assert browser.run(told) == words
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                     windowsVirtualKeyCode=9)  # fmt: skip
    assert browser.run(told).startswith("z = 1 (q = 0.35): ")
    browser.run("document.activeElement.blur()")
    assert browser.run(told) == before
    assert browser.complaints() == []


def test_a_command_can_be_copied(browser: Browser, report: Path) -> None:
    browser.show(report, 1280, "light")
    browser.run("document.querySelector('#benefit-of-de .copy').click()")
    wait = "new Promise(done => setTimeout(done, 300))"
    browser.run(wait)
    said = browser.run("document.querySelector('#benefit-of-de .copy').textContent")
    assert said in ("Copied", "Selected")
    if said == "Selected":  # a browser that lets no page write to the clipboard
        assert browser.run("getSelection().toString()") == MADE_UP["figures"]()[0]["command"]


def test_a_script_that_got_into_the_page_all_the_same_would_not_run(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.html"
    planted = "<script>window.ran = 1</script><img src='http://127.0.0.1:9/x.png'></main>"
    broken.write_text(report.read_text("utf-8").replace("</main>", planted), "utf-8")
    browser.show(broken, 1280, "light")
    assert browser.run("window.ran === undefined")
    assert any("Content Security Policy" in json.dumps(c) for c in browser.complaints())


def test_these_tests_would_see_an_error_a_request_and_an_overflow(
    browser: Browser, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><html><body><p style='width: 2000px'>wide</p>"
        "<img src='http://127.0.0.1:9/x.png'><script>throw new Error('seen')</script></body></html>"
    )
    browser.show(bad, 1280, "light")
    assert any("seen" in json.dumps(complaint) for complaint in browser.complaints())
    assert "http://127.0.0.1:9/x.png" in browser.requests()
    across, window = browser.run(SIZES)
    assert across > window
    assert browser.run(BEYOND) != []
