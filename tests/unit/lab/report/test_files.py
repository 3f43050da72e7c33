from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sottovoce.errors import StorageError
from sottovoce.files import write_whole
from sottovoce.lab.report.files import read_figures
from sottovoce.lab.report.page import write_report

ROOT = Path(__file__).resolve().parents[4]
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
    with pytest.raises(StorageError, match="nothing to report"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "damaged or half-written"),
        (b'{"schema": 1, "name": "benef', "damaged or half-written"),
        (b"\xff\xfe\x00", "damaged or half-written"),
        (b"[" * 100_000, "damaged or half-written"),
        (b"[]", "it must be an object, got list"),
        (b"{}", "schema must be 1, got schema=None"),
        (b'{"schema": 2, "name": "x"}', "schema must be 1, got schema=2"),
        (b'{"schema": 1, "version": "9.9"}', "got version='9.9'"),
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
        (
            "schema",
            lambda f: f.pop("schema"),
            "schema must be 1, got schema=None; finished runs are",
        ),
        ("title", lambda f: f.pop("title"), "the file lacks 'title'"),
        ("runs", lambda f: f.update(runs=0), "runs must be above 0, got runs=0"),
        (
            "seconds",
            lambda f: f.update(seconds=True),
            "seconds must be a finite number, got 'True'",
        ),
        (
            "name",
            lambda f: f.update(name="../up"),
            "name must be lower-case letters, digits and hyphens, got name='../up'",
        ),
        ("none", lambda f: f.update(curves=[]), "a figure must have curves"),
        ("role", lambda f: f["curves"][1].update(role="king"), "curves[1].role must be one of"),
        (
            "empty",
            lambda f: f["curves"][0].update(regret={"t": [], "mean": [], "stderr": None}),
            "one length above 0, got lengths=[0, 0]",
        ),
        ("nothing", lambda f: f["curves"][1].pop("epsilon"), "curves[1] lacks 'epsilon'"),
        ("curve", lambda f: f["curves"].append(3), "curves[5] must be an object, got '3'"),
        ("line", lambda f: f["curves"][0]["regret"].pop("t"), "curves[0].regret lacks 't'"),
        (
            "nan",
            lambda f: f["curves"][0]["regret"]["mean"].append(float("nan")),
            "mean[41] must be a finite",
        ),
        (
            "huge",
            lambda f: f["curves"][0]["regret"]["mean"].append(10**400),
            "mean[41] must be a finite",
        ),
        (
            "long",
            lambda f: f["curves"][0]["regret"]["mean"].append(1.0),
            "curves[0].regret: t, mean and stderr must have one length",
        ),
        (
            "eps",
            lambda f: f["curves"][1]["epsilon"].update(pld="x"),
            "curves[1].epsilon.pld must be a finite number",
        ),
        (
            "word",
            lambda f: f["claims"][1].update(verdict="maybe"),
            "claims[1].verdict must be one of",
        ),
        ("claim", lambda f: f["claims"][0].pop("paper"), "claims[0] lacks 'paper'"),
        (
            "between",
            lambda f: f["claims"][0].update(interval=[1.0]),
            "claims[0].interval must be 2 numbers",
        ),
        ("turned", lambda f: f["claims"][0].update(interval=[2, 1]), "lower end first"),
        (
            "endless",
            lambda f: f["claims"][0].update(interval=[0, float("inf")]),
            "interval[1] must be a finite",
        ),
        ("measure", lambda f: f.update(measure=None), "measure must be text, got 'None'"),
        ("group", lambda f: f.update(group=3), "group must be text, got '3'"),
        ("series", lambda f: f["curves"][0].update(series=1), "curves[0].series must be text"),
        ("pointless", lambda f: f.update(kind="tradeoff"), "must have a curve with a series"),
        ("versions", lambda f: f.update(versions={"numpy": 2}), "versions.numpy must be text"),
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
    with pytest.raises(StorageError, match="has a series, so its ε must be a number"):
        read_figures(folder)


def test_what_may_be_left_out_or_null_is_not_missed(folder: Path) -> None:
    path = folder / "figures" / "landmine-tradeoff.json"
    figure = json.loads(path.read_text())
    del figure["measure"], figure["group"], figure["curves"][2]["series"]
    figure["curves"][3]["epsilon"]["pld"] = None
    del figure["curves"][4]["epsilon"]["pld"], figure["claims"][0]["interval"]
    path.write_text(json.dumps(figure))
    assert MADE_UP["read"](figure) in read_figures(folder)
    write_report(folder)


def test_what_is_read_is_written_again_and_only_what_may_be_left_out_is_filled_in() -> None:
    for content in MADE_UP["figures"]():
        again = {"like": None, "variant": "", "accountant": "moments"}
        whole = {"group": None, "measure": "simple regret", **again, **content}
        whole["curves"] = [{"series": None, **curve} for curve in content["curves"]]
        told = {"interval": None, "share": None, "line": "", "cause": "", "needs": None}
        whole["claims"] = [{**told, **claim} for claim in content["claims"]]
        assert json.loads(json.dumps(MADE_UP["read"](content).to_dict())) == whole


def test_figures_are_sorted_as_the_paper_numbers_them(tmp_path: Path) -> None:
    papers = ["Fig. 2d", "Fig. 3a", "Fig. 3b", "Figs. 3c", "Fig. 4 (appendix)"]
    papers += ["Fig. 7b (appendix)", "Fig. 9 (appendix)", "Fig. 12a (appendix)", "Beyond"]
    (tmp_path / "figures").mkdir()
    for k, paper in enumerate(papers):
        figure = {**MADE_UP["figures"]()[0], "name": f"f{9 - k}", "paper": paper}
        (tmp_path / "figures" / f"f{9 - k}.json").write_text(json.dumps(figure))
    assert [figure.paper for figure in read_figures(tmp_path)] == papers


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
