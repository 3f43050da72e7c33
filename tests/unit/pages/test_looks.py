from __future__ import annotations

import re

import pytest

from sottovoce.pages.html import document, looks, own_text, policy, table
from sottovoce.pages.scale import Axis, log_axis, x_axis, y_axis
from sottovoce.pages.styles import COLOURS, styles_for
from sottovoce.pages.text import duration, interval, number, numbers, with_error
from sottovoce.pages.trace import Trace


def line(mean: list[float], error: float = 0.0) -> Trace:
    return Trace(tuple(range(len(mean))), tuple(mean), (error,) * len(mean))


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
    assert interval(None) == "–"
    assert interval((-0.00121, 0.0034)) == "[−0.0012, 0.0034]"
    assert interval([15.17, 15.17]) == "[15.17, 15.17]"
    assert interval([-120.0, 340.0]) == "[−120, 340]"
    assert number(-1.5e-7) == "−1.5e-07"
    assert [duration(s) for s in (0.24, 75, 312, 5821, 9000)] == [
        "0.2 s", "75 s", "5 min", "97 min", "2 h 30 min",
    ]  # fmt: skip


def brightness(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_and_lines_stand_out_from_the_paper_by_day_and_by_night() -> None:
    css = own_text("sottovoce.pages", "page.css")
    themes = [dict(re.findall(r"--(\w+): (#\w{6});", block)) for block in css.split("@media")[:2]]
    assert [len(theme) for theme in themes] == [9, 9]
    for k, theme in enumerate(themes):
        for name in ("ink", "soft", "link", "good", "unsure", "bad"):
            for ground in ("paper", "tint"):
                assert contrast(theme[name], theme[ground]) >= 4.5, (k, name, ground)
        for name, pair in COLOURS.items():
            assert contrast(pair[k], theme["paper"]) >= 3.0, (k, name)


def test_a_page_allows_its_own_style_and_script_and_nothing_else() -> None:
    page = document("Title", "<main></main>", "p{}", "let a = 1;")
    (allowed,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert allowed == policy("p{}", "let a = 1;")
    assert "default-src 'none'" in allowed
    assert "connect-src 'none'" in allowed
    assert "unsafe" not in allowed
    assert "script-src" not in policy("p{}")
    assert "http" not in looks()


def test_a_table_that_stacks_keeps_its_roles_and_its_heads_beside_every_cell() -> None:
    made = table("Sites", [("", "Site"), ("num", "Trials")], [[("", "a"), ("num", "3")]], "stacks")
    assert '<td role="cell" class="num" data-label="Trials">3</td>' in made
    assert '<th scope="row" role="rowheader">a</th>' in made
    assert "<caption>Sites</caption>" in made
