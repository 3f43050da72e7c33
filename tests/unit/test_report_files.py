from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sottovoce.errors import StorageError
from sottovoce.files import write_whole
from sottovoce.report import read_figures, write_report

ROOT = Path(__file__).resolve().parents[2]
MADE_UP = runpy.run_path(str(ROOT / "tests" / "made_up_figures.py"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    MADE_UP["write"](tmp_path)
    return tmp_path


def test_a_folder_without_figures_is_told_which_command_makes_them(tmp_path: Path) -> None:
    for there in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StorageError, match="sottovoce reproduce"):
            write_report(there)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.json.part").write_text("{")
    with pytest.raises(StorageError, match="no figures to report"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "damaged or half-written"),
        (b'{"schema": 1, "name": "benef', "damaged or half-written"),
        (b"\xff\xfe\x00", "damaged or half-written"),
        (b"[" * 100_000, "damaged or half-written"),
        (b"[]", "the file must be an object, got list"),
        (b"{}", "the file lacks 'schema'"),
        (b'{"schema": 2, "name": "x"}', "is of schema 2, this reads schema 1"),
        (b'{"schema": 1, "version": "9.9"}', "was made by sottovoce 9.9, this is"),
    ],
)
def test_a_file_that_is_no_figure_is_named_with_what_to_do(
    folder: Path, content: bytes, why: str
) -> None:
    (folder / "figures" / "benefit-of-de.json").write_bytes(content)
    (folder / "report.html").write_text("the old one")
    with pytest.raises(StorageError, match=r"benefit-of-de\.json.*") as caught:
        write_report(folder)
    assert why in str(caught.value)
    assert "make it again with: sottovoce reproduce" in str(caught.value)
    assert (folder / "report.html").read_text() == "the old one"
    assert not list(folder.glob("*.part"))


def changes() -> list[tuple[str, Callable[[Any], object], str]]:
    return [
        ("title", lambda f: f.pop("title"), "the file lacks 'title'"),
        ("runs", lambda f: f.update(runs=0), "'runs' of the file must be a whole number"),
        ("seconds", lambda f: f.update(seconds=True), "must be a finite number, got 'True'"),
        ("name", lambda f: f.update(name="../up"), "'name' of the file must be lower-case"),
        ("none", lambda f: f.update(curves=[]), "'curves' of the file must be a list, not empty"),
        ("role", lambda f: f["curves"][1].update(role="king"), "'role' of curve 2 must be one of"),
        ("curve", lambda f: f["curves"].append(3), "curve 6 must be an object, got int"),
        ("line", lambda f: f["curves"][0]["regret"].pop("t"), "curve 1 lacks 't'"),
        ("nan", lambda f: f["curves"][0]["regret"]["mean"].append(float("nan")), "finite"),
        ("huge", lambda f: f["curves"][0]["regret"]["mean"].append(10**400), "finite"),
        ("long", lambda f: f["curves"][0]["regret"]["mean"].append(1.0), "must have one length"),
        ("eps", lambda f: f["curves"][1]["epsilon"].update(pld="x"), "ε by 'pld' of curve 2"),
        ("word", lambda f: f["claims"][1].update(verdict="maybe"), "'verdict' of claim 2"),
        ("claim", lambda f: f["claims"][0].pop("paper"), "claim 1 lacks 'paper'"),
        ("versions", lambda f: f.update(versions={"numpy": 2}), "must be an object of texts"),
    ]


@pytest.mark.parametrize(
    ("change", "why"), [c[1:] for c in changes()], ids=[c[0] for c in changes()]
)
def test_a_missing_or_senseless_value_is_named(
    folder: Path, change: Callable[[Any], object], why: str
) -> None:
    path = folder / "figures" / "benefit-of-de.json"
    figure = json.loads(path.read_text())
    change(figure)
    path.write_text(json.dumps(figure))
    with pytest.raises(StorageError) as caught:
        read_figures(folder)
    assert str(path) in str(caught.value)
    assert why in str(caught.value)


def test_a_figure_under_the_name_of_another_is_refused(folder: Path) -> None:
    figures = folder / "figures"
    (figures / "hostile.json").rename(figures / "friendly.json")
    with pytest.raises(StorageError, match=r"friendly\.json holds the figure 'hostile'"):
        read_figures(folder)


def test_a_figure_that_cannot_be_opened_is_named(folder: Path) -> None:
    (folder / "figures" / "folder.json").mkdir()
    with pytest.raises(StorageError, match=r"folder\.json cannot be read"):
        read_figures(folder)


def test_a_page_that_cannot_be_put_in_place_leaves_nothing_behind(folder: Path) -> None:
    (folder / "report.html").mkdir()
    with pytest.raises(StorageError, match=r"report\.html could not be written"):
        write_report(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["figures", "report.html"]


def test_a_writer_that_stops_halfway_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "page"
    path.write_text("old")

    def half(part: Path) -> None:
        part.write_text("ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, half)
    assert [p.name for p in tmp_path.iterdir()] == ["page"]
    assert path.read_text() == "old"
