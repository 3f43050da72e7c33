from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from sottovoce.errors import StorageError
from sottovoce.report import update_markdown

MADE_UP = runpy.run_path(str(Path(__file__).resolve().parents[1] / "made_up_figures.py"))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    MADE_UP["write"](folder)
    return folder


def test_a_document_is_begun_with_a_table_of_every_claim(results: Path, tmp_path: Path) -> None:
    text = update_markdown(results, tmp_path / "new.md").read_text()
    assert text.startswith("# Reproduction\n")
    assert (
        "| claim | paper | measured | estimate ± standard error | 95 % interval | verdict |" in text
    )
    assert "| More noise costs utility |" in text
    assert "**holds**" in text


def test_the_interval_of_an_estimate_stands_beside_it_and_a_dash_where_there_is_none(
    results: Path, tmp_path: Path
) -> None:
    text = update_markdown(results, tmp_path / "new.md").read_text()
    assert "| -0.0001 ± 0.0005 | [-0.0012, 0.0010] | **within noise** |" in text
    assert "| 15.1700 | – | **holds** |" in text
    assert all(row.count("|") == 7 for row in text.splitlines() if row.startswith("| "))


def test_how_the_values_came_about_is_said(results: Path, tmp_path: Path) -> None:
    text = update_markdown(results, tmp_path / "new.md").read_text()
    words = "`landmine` (table of 2,400 trained models an agent, interpolated), 10 runs: "
    assert words in text
    assert "Problem `landmine`, 5 runs: " in text  # of the figure that says nothing of it


def test_what_people_wrote_around_the_table_stays(results: Path, tmp_path: Path) -> None:
    document = tmp_path / "doc.md"
    document.write_text("# Mine\n\nBefore.\n")
    first = update_markdown(results, document).read_text()
    assert first.startswith("# Mine\n\nBefore.\n")
    document.write_text(first + "\nAfter.\n")
    second = update_markdown(results, document).read_text()
    assert second == first + "\nAfter.\n"
    assert second.count("| More noise costs utility |") == 1


def test_a_bar_in_a_claim_does_not_break_the_table(results: Path, tmp_path: Path) -> None:
    path = next((results / "figures").glob("landmine-noise.json"))
    path.write_text(path.read_text().replace("More noise costs", "More | noise costs"))
    assert r"More \| noise costs" in update_markdown(results, tmp_path / "new.md").read_text()


def test_a_document_that_cannot_be_read_or_written_is_said(results: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    for path in (tmp_path / "folder.md", tmp_path / "missing" / "doc.md"):
        with pytest.raises(StorageError, match=r"could not be written|cannot be read"):
            update_markdown(results, path)
