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
        ("between", lambda f: f["claims"][0].update(interval=[1.0]), "'interval' of claim 1"),
        ("turned", lambda f: f["claims"][0].update(interval=[2, 1]), "the lower first or null"),
        ("endless", lambda f: f["claims"][0].update(interval=[0, float("inf")]), "two finite"),
        ("measure", lambda f: f.update(measure=None), "'measure' of the file must be text"),
        ("group", lambda f: f.update(group=3), "'group' of the file must be text or null"),
        ("series", lambda f: f["curves"][0].update(series=1), "'series' of curve 1 must be text"),
        ("pointless", lambda f: f.update(kind="tradeoff"), "must have a curve with a 'series'"),
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


@pytest.mark.parametrize("spent", [None, {}, {"moments": None}, {"moments": -1.0}])
def test_a_point_without_an_epsilon_to_stand_at_is_named(folder: Path, spent: Any) -> None:
    path = folder / "figures" / "landmine-tradeoff.json"
    figure = json.loads(path.read_text())
    figure["curves"][3]["epsilon"] = spent
    path.write_text(json.dumps(figure))
    with pytest.raises(StorageError, match="ε of curve 4, which has a series, must be a number"):
        read_figures(folder)


def test_what_may_be_left_out_or_null_is_not_missed(folder: Path) -> None:
    path = folder / "figures" / "landmine-tradeoff.json"
    figure = json.loads(path.read_text())
    del figure["measure"], figure["group"], figure["curves"][2]["series"]
    figure["curves"][3]["epsilon"]["pld"] = None
    del figure["curves"][4]["epsilon"]["pld"], figure["claims"][0]["interval"]
    path.write_text(json.dumps(figure))
    assert figure in read_figures(folder)
    write_report(folder)


def test_figures_are_sorted_as_the_paper_numbers_them(tmp_path: Path) -> None:
    papers = ["Fig. 2d", "Fig. 3a", "Fig. 3b", "Figs. 3c", "Fig. 4 (appendix)"]
    papers += ["Fig. 7b (appendix)", "Fig. 9 (appendix)", "Fig. 12a (appendix)", "Beyond"]
    (tmp_path / "figures").mkdir()
    for k, paper in enumerate(papers):
        figure = {**MADE_UP["figures"]()[0], "name": f"f{9 - k}", "paper": paper}
        (tmp_path / "figures" / f"f{9 - k}.json").write_text(json.dumps(figure))
    assert [figure["paper"] for figure in read_figures(tmp_path)] == papers


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
