"""The documentation as a site: built strictly, offline, and it asks for nothing outside."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.endtoend.browser import NEEDS_CHROMIUM, SIZES, Browser

ROOT = Path(__file__).resolve().parents[2]
BUILDER = importlib.util.find_spec("mkdocs") and importlib.util.find_spec("mkdocstrings_handlers")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BUILDER, reason="no MkDocs here: pip install 'sottovoce[docs]'"),
]


def built(project: Path, out: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(out)]
    return subprocess.run(words, cwd=project, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = built(ROOT, out)
    assert done.returncode == 0, done.stderr
    return out


def test_the_site_has_every_public_name_with_its_parameters_and_example(site: Path) -> None:
    import sottovoce

    text = (site / "reference.html").read_text()
    for name in sottovoce.__all__:
        if name != "__version__":
            ways = (f'id="sottovoce.{name}"', f"<code>{name}</code>", f'id="{name.lower()}"')
            assert any(way in text for way in ways), name
    assert 'id="sottovoce.Agent.ask"' in text  # of a class above it
    agent = text.partition('id="sottovoce.Agent"')[2].partition('id="sottovoce.Broadcast"')[0]
    assert "the federation’s public constants" in agent.replace("'", "’")
    assert "Examples:" in agent
    method = text.partition('id="sottovoce.Method"')[2]
    assert "first trials of an agent" in method  # out of a field's metadata


def test_graphs_are_drawn_and_ask_for_no_script(site: Path) -> None:
    text = (site / "architecture.html").read_text()
    assert "mermaid" not in text
    assert 'aria-label="' in text.partition("<svg viewBox")[2]
    assert "cli uses flower" in text


@pytest.mark.parametrize("broken", ["[a](nowhere.md)", "[a](privacy.md#nowhere)"])
def test_a_link_that_leads_nowhere_stops_the_build(broken: str, tmp_path: Path) -> None:
    for name in ("docs", "tools", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    page = tmp_path / "docs" / "faq.md"
    page.write_text(f"{page.read_text()}\n{broken}\n")
    done = built(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere" in done.stdout + done.stderr


@NEEDS_CHROMIUM
def test_no_page_asks_the_network_for_anything_and_all_fit_their_screen(
    site: Path, tmp_path: Path
) -> None:
    browser = Browser(tmp_path)
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    assert len(pages) > 20
    try:
        for page in pages:
            for width, theme in ((390, "dark"), (1280, "light")):
                browser.show(page, width, theme)
                asked = browser.requests()
                assert asked[0].startswith("file:"), page
                assert [u for u in asked if not u.startswith(("file:", "data:"))] == [], page
                wide, room = browser.run(SIZES)
                assert wide <= room, (page, width)
    finally:
        browser.close()
