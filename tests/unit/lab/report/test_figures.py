from __future__ import annotations

import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sottovoce.errors import InvalidInput, MissingExtra, StorageError
from sottovoce.lab.experiments.results import FigureResult
from sottovoce.lab.report.figures import draw_figure, drawn_points
from sottovoce.lab.report.labels import along, place_labels
from sottovoce.lab.report.page import make_page
from sottovoce.lab.report.plot import plot_of
from sottovoce.pages.styles import styles_for
from sottovoce.pages.trace import Trace

ROOT = Path(__file__).resolve().parents[4]
MADE_UP = runpy.run_path(str(ROOT / "tests" / "made_up_figures.py"))
FIGURES: dict[str, FigureResult] = {
    figure["name"]: MADE_UP["read"](figure) for figure in MADE_UP["figures"]()
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_figure_is_drawn_twice_with_equal_bytes(tmp_path: Path, name: str) -> None:
    paths = draw_figure(FIGURES[name], tmp_path)
    assert [path.name for path in paths] == [f"{name}.png", f"{name}.svg", f"{name}.pdf"]
    first = [path.read_bytes() for path in paths]
    assert (first[0][:4], first[2][:4]) == (b"\x89PNG", b"%PDF")
    ElementTree.fromstring(first[1])  # noqa: S314  it is ours
    draw_figure(FIGURES[name], tmp_path)
    assert [path.read_bytes() for path in paths] == first
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_the_drawing_holds_every_label_and_every_colour(tmp_path: Path) -> None:
    figure = FIGURES["landmine-noise"]
    svg = draw_figure(figure, tmp_path)[1].read_text()
    for words in ("FTS-DE, q = 0.35, z = 1.6", "Control: the same run", "protects nobody", "AUC"):
        assert words in svg  # Matplotlib writes texts as paths, and says in a comment which
    for style in styles_for([curve.role for curve in figure.curves]):
        assert style.colour in svg


def test_a_tradeoff_is_drawn_with_its_points_its_levels_and_both_accountants(
    tmp_path: Path,
) -> None:
    svg = draw_figure(FIGURES["landmine-tradeoff"], tmp_path)[1].read_text()
    for words in ("q = 0.35", "FTS-DE", "noise only", "ε by moments", "ε by pld"):
        assert words in svg
    assert "landmine, table of 2,400 trained models an agent, interpolated, 10 runs" in svg
    assert "bars and bands ± 1 standard error" in svg
    for style in styles_for(["method", "method", "reference", "control"]):
        assert style.colour in svg


def test_every_point_of_a_tradeoff_has_its_name_beside_it_on_paper() -> None:
    figure = FIGURES["landmine-tradeoff"]
    drawn = drawn_points(plot_of(figure))
    names = sorted(text.get_text() for text in drawn.axes[0].texts)
    assert names == sorted(curve.label for curve in figure.curves if curve.series)


def test_the_legend_on_paper_has_the_rows_of_the_one_on_the_page() -> None:
    figure = FIGURES["landmine-tradeoff"]
    (legend,) = drawn_points(plot_of(figure)).legends
    on_page = make_page([figure]).partition('<ul class="legend">')[2].partition("</ul>")[0]
    rows = re.findall(r'<span class="label">(.*?)</span>', on_page)
    assert [text.get_text() for text in legend.get_texts()] == rows
    assert len(rows) == 8


def test_how_the_values_came_about_is_on_the_note_of_every_kind(tmp_path: Path) -> None:
    svg = draw_figure(FIGURES["benefit-of-de"], tmp_path)[1].read_text()
    assert "synthetic, live, 5 runs, bands ± 1 standard error." in svg


def test_a_tradeoff_of_one_point_without_error_or_pld_is_still_drawn(tmp_path: Path) -> None:
    figure = FIGURES["landmine-tradeoff"]
    for moments in (0.0, 3.0):
        alone = Trace((60,), (0.2,), None)
        point = replace(figure.curves[3], regret=alone, epsilon={"moments": moments})
        assert len(draw_figure(replace(figure, curves=(point,)), tmp_path)) == 3


def test_points_stand_at_their_epsilon_in_order_and_levels_have_a_line_each() -> None:
    picture = plot_of(FIGURES["landmine-tradeoff"])
    solid, dashed = picture.series[0].lines()
    assert [at for at, _ in solid] == [2.16, 3.05, 5.14, 7.12, 15.17]
    assert [at for at, _ in dashed] == [1.13, 1.74, 3.23, 4.61, 10.38]
    assert [level.key.label for level in picture.levels] == ["TS", "FTS", "FTS-DE", "noise only"]
    assert len({(one.style.name, one.style.dashes) for one in picture.curve_keys}) == 6
    assert len({level.key.style.dashes for level in picture.levels}) == 4
    assert len({series.shape for series in picture.series}) == 2
    assert picture.x.low == 0
    assert picture.x.high > 15.17
    assert 0.22 < picture.y.low < 0.2314 - 0.0005 < 0.2376 + 0.0005 < picture.y.high
    assert picture.series[0].points[3].words == (
        "z = 1.6 (q = 0.35): 1 − AUC 0.23270 ± 0.00050 at ε = 7.12 by moments, 4.61 by pld"
    )


def test_names_of_points_cover_neither_each_other_nor_a_mark_nor_the_edge() -> None:
    names = [("one", (50.0, 50.0)), ("two", (52.0, 52.0)), ("edge", (99.0, 50.0))]
    marks = [(x - 3, y - 3, x + 3, y + 3) for _, (x, y) in names]
    places = place_labels(names, 10.0, 5.0, (0.0, 0.0, 100.0, 100.0), marks, [])
    boxes = list(marks)
    for (name, _), place in zip(names, places, strict=True):
        assert place is not None
        x, y, half = place[0], place[1], 2.5 * len(name)
        assert 0 <= x - half < x + half <= 100
        boxes.append((x - half, y - 5, x + half, y + 5))
    for k, a in enumerate(boxes[3:], 3):
        assert not any(
            a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for b in boxes[:k]
        )


def test_a_name_without_room_is_left_out_and_one_with_a_choice_keeps_off_the_lines() -> None:
    names = [("a name", (50.0, 50.0))]
    assert place_labels(names, 10.0, 5.0, (40.0, 40.0, 60.0, 60.0), [], []) == [None]
    above = along([(0.0, 39.0), (100.0, 39.0)], 5.0)
    assert len(above) == 21
    (place,) = place_labels(names, 10.0, 5.0, (0.0, 0.0, 100.0, 100.0), [], above)
    assert place is not None
    assert place[1] > 50


def test_dollars_and_underscores_in_a_label_are_only_text(tmp_path: Path) -> None:
    figure, nonsense = FIGURES["terms-of-the-bound"], r"$\nonsense{$"
    curves = tuple(replace(curve, label=r"_$\frac{1$") for curve in figure.curves)
    figure = replace(figure, curves=curves, title=nonsense, x_label=nonsense, y_label=nonsense)
    assert r"_$\frac{1$" in draw_figure(figure, tmp_path)[1].read_text()


def test_a_figure_is_not_drawn_outside_its_folder_nor_without_matplotlib_nor_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = FIGURES["benefit-of-de"]
    with pytest.raises(InvalidInput, match="name must be lower-case"):
        draw_figure(replace(good, name="../up"), tmp_path)
    with pytest.raises(StorageError, match="there is no folder"):
        draw_figure(good, tmp_path / "missing")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sottovoce\[figures\]'"):
        draw_figure(good, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_tradeoff_over_renyi_accounting_has_one_line_a_series(tmp_path: Path) -> None:
    figure = replace(FIGURES["landmine-tradeoff"], accountant="rdp")
    plot = plot_of(figure)
    assert [key.label for key in plot.legend if "ε by" in key.label] == ["ε by Rényi accounting"]
    for series in plot.series:
        assert [point.pld for point in series.points] == [None] * len(series.points)
        spent = {(c.epsilon or {}).get("rdp") for c in figure.curves if c.series}
        assert {point.spent for point in series.points} <= spent
    assert "ε by pld" not in draw_figure(figure, tmp_path)[1].read_text()
