from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sottovoce.errors import MissingExtra, StorageError
from sottovoce.report import draw_figure
from sottovoce.report.scale import Axis, log_axis, x_axis, y_axis
from sottovoce.report.styles import COLOURS, styles_for
from sottovoce.report.text import duration, number, numbers, with_error

ROOT = Path(__file__).resolve().parents[2]
MADE_UP = runpy.run_path(str(ROOT / "tests" / "made_up_figures.py"))
FIGURES: dict[str, Any] = {figure["name"]: figure for figure in MADE_UP["figures"]()}


def line(mean: list[float], error: float = 0.0) -> dict[str, Any]:
    return {"t": list(range(len(mean))), "mean": mean, "stderr": [error] * len(mean)}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_figure_is_drawn_twice_with_equal_bytes(tmp_path: Path, name: str) -> None:
    paths = draw_figure(FIGURES[name], tmp_path)
    assert [path.name for path in paths] == [f"{name}.png", f"{name}.svg"]
    first = [path.read_bytes() for path in paths]
    assert first[0][:4] == b"\x89PNG"
    ElementTree.fromstring(first[1])  # noqa: S314  it is ours
    draw_figure(FIGURES[name], tmp_path)
    assert [path.read_bytes() for path in paths] == first
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_the_drawing_holds_every_label_and_every_colour(tmp_path: Path) -> None:
    figure = FIGURES["landmine-noise"]
    svg = draw_figure(figure, tmp_path)[1].read_text()
    for words in ("FTS-DE, q = 0.35, z = 1.6", "Control: the same run", "protects nobody", "AUC"):
        assert words in svg  # Matplotlib writes texts as paths, and says in a comment which
    for style in styles_for([curve["role"] for curve in figure["curves"]]):
        assert style.colour in svg


def test_dollars_and_underscores_in_a_label_are_only_text(tmp_path: Path) -> None:
    figure = dict(FIGURES["terms-of-the-bound"])
    figure["curves"] = [{**curve, "label": r"_$\frac{1$"} for curve in figure["curves"]]
    figure["title"] = figure["x_label"] = figure["y_label"] = r"$\nonsense{$"
    assert r"_$\frac{1$" in draw_figure(figure, tmp_path)[1].read_text()


def test_a_figure_is_not_drawn_from_a_wrong_content_nor_without_matplotlib_nor_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = FIGURES["benefit-of-de"]
    with pytest.raises(StorageError, match="'name' of the file"):
        draw_figure({**good, "name": "../up"}, tmp_path)
    with pytest.raises(StorageError, match="there is no folder"):
        draw_figure(good, tmp_path / "missing")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sottovoce\[figures\]'"):
        draw_figure(good, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_two_of_many_curves_look_alike_and_only_methods_have_colours() -> None:
    styles = styles_for(["reference", *["method"] * 20, "control", "reference"])
    assert len({(style.name, style.dashes) for style in styles}) == 23
    assert [s.in_front for s in styles] == [False, *[True] * 20, False, False]
    assert len({light for light, _ in COLOURS.values()}) == len(COLOURS)


def test_an_axis_begins_at_zero_unless_all_stays_far_away_from_it() -> None:
    assert y_axis([line([0.2, 0.05, 0.01])]).low == 0
    assert y_axis([line([0.01, 0.005], 0.02)]).low == 0  # the band dips below, regret does not
    assert 0.2 < y_axis([line([0.31, 0.24], 0.005)]).low < 0.235
    assert y_axis([line([-1.0, 2.0])]).low < -1
    assert x_axis([line([1.0, 1.0]), line([1.0] * 5)]) == Axis(0, 4)


def test_an_axis_of_one_value_is_still_an_axis() -> None:
    for mean in ([0.0], [3.0, 3.0], [-2.0]):
        for axis in (x_axis([line(mean)]), y_axis([line(mean)])):
            assert axis.low < axis.high
            assert axis.ticks(6)


def test_ticks_are_round_numbers_inside_the_axis() -> None:
    assert Axis(0, 40).ticks(8) == [0, 5, 10, 15, 20, 25, 30, 35, 40]
    assert numbers(Axis(0, 0.21).ticks(6)) == ["0.00", "0.05", "0.10", "0.15", "0.20"]
    assert numbers(Axis(-3, 3).ticks(6)) == ["−3", "−2", "−1", "0", "1", "2", "3"]
    assert [number(t) for t in Axis(0.009, 0.3, log=True).ticks(6)] == [
        "0.01", "0.02", "0.05", "0.1", "0.2",
    ]  # fmt: skip
    assert len(Axis(1e-9, 1, log=True).ticks(6)) <= 10


def test_a_logarithmic_axis_is_offered_only_where_it_shows_more() -> None:
    assert log_axis([line([0.3, 0.24])]) is None
    assert log_axis([line([0.3, 0.0])]) is None
    axis = log_axis([line([0.3, 0.01])])
    assert axis is not None
    assert axis.place((axis.low * axis.high) ** 0.5) == pytest.approx(0.5)
    assert axis.place(0.01) < 0.1 < 0.9 < axis.place(0.3)
    assert axis.place(-1.0) == 0  # a band below zero ends at the edge


def test_numbers_have_the_digits_that_mean_something() -> None:
    assert with_error(0.0122, 0.00052) == "0.01220 ± 0.00052"
    assert with_error(-0.0003, 0.0005) == "−0.00030 ± 0.00050"
    assert with_error(12.3456, None) == "12.35"
    assert with_error(1.0, 0.0) == "1 ± 0"
    assert number(-1.5e-7) == "−1.5e-07"
    assert [duration(s) for s in (0.24, 75, 312, 5821, 9000)] == [
        "0.2 s", "75 s", "5 min", "97 min", "2 h 30 min",
    ]  # fmt: skip
