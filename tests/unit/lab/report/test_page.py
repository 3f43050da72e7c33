from __future__ import annotations

import re
import runpy
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from sottovoce import __version__
from sottovoce.lab.experiments.results import FigureResult
from sottovoce.lab.report.page import make_page, write_report

ROOT = Path(__file__).resolve().parents[4]
MADE_UP = runpy.run_path(str(ROOT / "tests" / "made_up_figures.py"))
FIGURES: list[FigureResult] = [MADE_UP["read"](made) for made in MADE_UP["figures"]()]
HOSTILE: str = MADE_UP["HOSTILE"]
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """The elements of a page, and whether they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[int] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append([])
        if tag not in VOID:
            self.open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self.open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for k in self.open:
            self.texts[k].append(data)

    def all(self, tag: str, **wanted: str) -> list[tuple[dict[str, str | None], str]]:
        """The elements of a tag whose attributes hold these words, with their texts."""
        return [
            (attributes, "".join(text))
            for (name, attributes), text in zip(self.elements, self.texts, strict=True)
            if name == tag
            and all(word in (attributes.get(k) or "").split() for k, word in wanted.items())
        ]


@pytest.fixture(scope="module")
def source() -> str:
    return make_page(FIGURES)


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def section(name: str) -> Page:
    (figure,) = (figure for figure in FIGURES if figure.name == name)
    return Page(make_page([figure]))


def test_the_page_is_written_whole_and_is_the_same_each_time(tmp_path: Path, source: str) -> None:
    MADE_UP["write"](tmp_path)
    path = write_report(tmp_path)
    first = path.read_bytes()
    assert path == tmp_path / "report.html"
    assert write_report(tmp_path).read_bytes() == first == source.encode()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["figures", "report.html"]


def test_every_element_that_opens_closes_and_every_id_is_the_only_one(page: Page) -> None:
    assert page.open == []  # handle_endtag has checked the order
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) == 2 * len(FIGURES) + 2


def test_figures_stand_in_the_order_of_the_paper_whatever_their_files_are_called(
    tmp_path: Path,
) -> None:
    MADE_UP["write"](tmp_path)
    written = Page(write_report(tmp_path).read_text("utf-8"))
    names = [attributes["id"] for attributes, _ in written.all("section", **{"class": "figure"})]
    assert names == [figure.name for figure in FIGURES]
    assert names != sorted(name or "" for name in names)


def test_the_head_counts_the_verdicts_and_adds_up_the_time(page: Page) -> None:
    (tally,) = page.all("ul", **{"class": "tally"})
    assert re.findall(r"(\d+) (\S) ([a-z ]+?)(?=\d|$)", tally[1]) == [
        ("8", "✓", "hold"),
        ("2", "≈", "within noise"),
        ("1", "✗", "does not hold"),
    ]
    words = page.all("header")[0][1]
    assert "6 figures,\n11 claims, 118 min of computing." in words
    assert f"sottovoce {__version__}" in words
    assert "numpy 2.2.0 and 2.3.1" in words


def test_the_page_begins_with_the_figures_in_small_and_what_they_found(page: Page) -> None:
    order = [attributes.get("id") for attributes, _ in page.all("section")]
    assert (order[0], order[-1]) == ("contents", "claims")
    ids = {attributes.get("id") for _, attributes in page.elements}
    shown = [(attributes.get("href") or "")[1:] for attributes, _ in page.all("use")]
    assert shown == [f"{figure.name}-ink" for figure in FIGURES]
    assert set(shown) < ids
    told = [text for _, text in page.all("p", **{"class": "found"})]
    assert "Lowest at the end: FTS-DE, P = 4, 0.00983 ± 0.00069." in told[0]
    assert "Of 3 claims: 2 hold, 1 within noise." in told[0]


def test_a_page_of_ones_own_figures_is_not_headed_as_the_papers() -> None:
    claims = tuple(replace(claim, paper="") for claim in FIGURES[1].claims)
    mine = replace(FIGURES[1], paper="", group="own", claims=claims)
    text = make_page([mine])
    assert f"<title>Sottovoce: {mine.title}</title>" in text
    for words in ("paper’s figures", "The paper says", "NeurIPS", "of the paper"):
        assert words not in text
    expected = replace(mine, claims=tuple(replace(c, paper="9.91") for c in claims))
    assert "Expected" in make_page([expected])
    assert "paper’s figures" in make_page([mine, FIGURES[0]])


def test_an_open_verdict_says_what_would_settle_it() -> None:
    claim = replace(FIGURES[0].claims[0], verdict="within noise", interval=(-1.0, 1.0), needs=1234)
    text = make_page([replace(FIGURES[0], claims=(claim,))])
    assert "about 1,234 runs would settle it" in text


def test_a_single_run_shows_no_error_anywhere() -> None:
    figure = FIGURES[1]
    curves = tuple(replace(c, regret=replace(c.regret, stderr=None)) for c in figure.curves)
    claims = tuple(replace(c, stderr=0.0, interval=None, text="a") for c in figure.claims)
    once = replace(figure, curves=curves, claims=claims, runs=1)
    text = make_page([once]).replace("Bands, bars and ± are one standard error over runs.", "")
    assert "±" not in text.partition("</style>")[2]


def test_every_claim_is_in_the_summary_with_its_verdict_and_a_link_that_leads_somewhere(
    page: Page,
) -> None:
    text = page.all("section", id="claims")[0][1]
    for figure in FIGURES:
        for claim in figure.claims:
            assert claim.claim in text
    links = [a.get("href") or "" for a, _ in page.all("a")]
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {f"#{figure.name}" for figure in FIGURES} < set(links)
    assert all(link[0] == "#" and link[1:] in ids for link in links)


def test_a_verdict_is_told_by_a_sign_and_by_words(page: Page) -> None:
    told = {text for _, text in page.all("span", **{"class": "verdict"})}
    assert told == {"✓ holds", "≈ within noise", "✗ does not hold"}


def test_a_claim_shows_what_was_measured_in_words_and_the_number_that_was_judged() -> None:
    shown = section("benefit-of-de").all("td")
    texts = [(attributes.get("data-label"), text) for attributes, text in shown]
    for words, judged in (
        ("FTS: 0.0150, TS: 0.0197", "0.0047 ± 0.0011"),
        ("0.0133 → 0.0122", "0.00070 ± 0.00050"),
    ):
        k = texts.index(("Estimate ± s.e.", judged))
        assert texts[k - 1] == ("Measured", words)


def test_a_curve_of_which_nothing_is_sent_has_no_epsilon_to_show() -> None:
    nothing = dict.fromkeys(("moments", "rdp", "pld", "gdp"), 0.0)
    *curves, last = FIGURES[1].curves
    figure = replace(FIGURES[1], curves=(*curves, replace(last, epsilon=nothing)))
    (table,) = Page(make_page([figure])).all("table", **{"class": "curves"})
    rows = table[1].strip().split("\n")[-3:]
    assert ["nothing sent" in row for row in rows] == [True, False, True]
    assert ["9.91" in row.partition("±")[2] for row in rows] == [False, True, False]


def test_every_curve_has_a_line_of_its_own_in_the_chart_and_a_place_in_the_legend() -> None:
    shown = section("landmine-noise")
    curves = next(f for f in FIGURES if f.name == "landmine-noise").curves
    lines = [a for a, _ in shown.all("polyline", **{"class": "line"})]
    looks = {(a["class"], a.get("stroke-dasharray")) for a in lines}
    assert len(lines) == len(looks) == len(curves) == 8
    assert all(len((a["points"] or "").split()) == 61 for a in lines)
    assert len(shown.all("polygon", **{"class": "band"})) == 8
    legend = shown.all("ul", **{"class": "legend"})[0][1]
    assert all(curve.label in legend for curve in curves)
    for role in ("reference", "control"):
        assert len([a for a in lines if role in (a["class"] or "").split()]) == 1


def test_better_regret_stands_lower_in_the_chart_and_later_ones_to_the_right() -> None:
    shown = section("synthetic-private")
    ends = {}
    for attributes, _ in shown.all("polyline", **{"class": "line"})[:3]:
        points = [tuple(map(float, p.split(","))) for p in (attributes["points"] or "").split()]
        assert [x for x, _ in points] == sorted(x for x, _ in points)
        ends[(attributes["class"] or "").split()[1]] = points[-1][1]
    assert ends["c0"] > ends["reference"] > ends["control"]  # y grows downwards


def test_few_points_are_marked_and_a_curve_without_errors_has_no_band() -> None:
    shown = section("terms-of-the-bound")
    assert len(shown.all("circle", **{"class": "dot"})) == 2 * 6 * 2  # on both scales
    assert shown.all("polygon", **{"class": "band"}) == []
    assert "ε" not in shown.all("section", **{"class": "figure"})[0][1]


def test_a_tradeoff_shows_a_mark_for_each_accountant_and_a_level_for_what_has_no_series() -> None:
    shown = section("landmine-tradeoff")
    points = shown.all("g", **{"class": "point"})
    assert len(points) == 10
    assert all(attributes["tabindex"] == "0" for attributes, _ in points)
    words = {text for _, text in points}
    assert "q = 0.2 (z = 1): 1 − AUC 0.23360 ± 0.00050 at ε = 7.69 by moments, 4.99 by pld" in words
    (chart,) = (a for a, _ in shown.all("svg", **{"class": "points"}))
    assert "FTS, 0.2346" in (chart["aria-label"] or "")
    lines = [a for a, _ in shown.all("polyline", **{"class": "line"})]
    assert sorted(bool(a.get("stroke-dasharray")) for a in lines) == [False, False, True, True]
    assert len(shown.all("line", **{"class": "level"})) == 4
    assert len(shown.all("rect", **{"class": "band"})) == 4
    assert len(shown.all("path", **{"class": "error"})) == 20
    legend = shown.all("ul", **{"class": "legend"})[0][1]
    for name in ("q = 0.35", "z = 1", "TS", "noise only", "ε by moments", "ε by pld"):
        assert name in legend
    assert "log" not in shown.all("figure")[0][1]


def test_the_names_of_points_are_there_for_wide_and_narrow_screens() -> None:
    shown = section("landmine-tradeoff")
    wide = [text for _, text in shown.all("text", **{"class": "wide"})]
    assert {"z = 1.6", "q = 0.25"} < set(wide)
    assert len(wide) == 10
    assert 5 <= len(shown.all("text", **{"class": "narrow"})) <= 10


def test_the_tables_of_a_tradeoff_say_which_point_is_meant_and_how_it_came_to_be() -> None:
    shown = section("landmine-tradeoff")
    curves = shown.all("table", **{"class": "curves"})[0][1]
    assert "z = 1.6 (q = 0.35)" in curves
    assert "Last 1 − AUC ± s.e." in curves
    numbers = shown.all("table", **{"class": "numbers"})[0][1]
    assert "q = 0.25 (z = 1)" in numbers
    assert "privacy loss" not in numbers  # its rows are rounds, not ε
    assert len([a for a, _ in shown.all("tr") if "data-x" in a]) == 61


def test_what_y_is_goes_by_its_own_name() -> None:
    heads = {
        name: section(name).all("table", **{"class": "curves"})[0][1]
        for name in ("benefit-of-de", "terms-of-the-bound")
    }
    assert "Last simple regret ± s.e." in heads["benefit-of-de"]
    assert "Last value" in heads["terms-of-the-bound"]
    assert "±" not in heads["terms-of-the-bound"]  # it has no errors


def test_how_the_values_came_about_is_in_the_caption() -> None:
    words = "Objective: table of 2,400 trained models an agent, interpolated."
    assert words in section("landmine-tradeoff").all("figcaption")[0][1]
    assert "Objective" not in section("landmine-noise").all("figcaption")[0][1]


def test_an_interval_stands_beside_its_estimate_where_any_claim_has_one() -> None:
    cells = [(a.get("data-label"), text) for a, text in section("landmine-tradeoff").all("td")]
    between = [text for label, text in cells if label == "95 % interval"]
    assert between[:3] == ["[0.0042, 0.0066]", "[−0.0012, 0.0010]", "–"]
    k = cells.index(("95 % interval", "[0.0042, 0.0066]"))
    assert cells[k - 1] == ("Estimate ± s.e.", "0.00540 ± 0.00050")
    assert "95 % interval" not in [text for _, text in section("benefit-of-de").all("th")]


def test_many_figures_are_listed_under_the_names_of_their_groups_and_the_page_stays_small() -> None:
    groups = [("synthetic", "real/landmine", None)[k // 4 % 3] for k in range(30)]
    many = [
        replace(MADE_UP["read"](MADE_UP["tradeoff"](f"figure-{k}", f"Fig. {k}")), group=group)
        for k, group in enumerate(groups)
    ]
    text = make_page(many)
    (contents,) = Page(text).all("section", id="contents")
    assert len(Page(text).all("ul", **{"class": "contents"})) == 3
    places = [contents[1].index(name) for name in ("synthetic", "real/landmine", "others")]
    assert places == sorted(places)
    assert contents[1].count("Fig. ") == 30
    assert len(text.encode()) < 3e6
    assert "synthetic" not in Page(make_page(many[:12])).all("section", id="contents")[0][1]


def test_nothing_hostile_in_a_tradeoff_becomes_markup() -> None:
    figure = MADE_UP["read"](MADE_UP["tradeoff"]())
    texts = dict.fromkeys(("objective", "measure", "group", "x_label", "y_label"), HOSTILE)
    curves = tuple(replace(c, label=HOSTILE, series=c.series and HOSTILE) for c in figure.curves)
    hostile = replace(figure, **texts, curves=curves)
    text = make_page([replace(hostile, name=f"f{k}") for k in range(13)])
    assert HOSTILE not in text
    assert text.count("<script") == 1
    assert Page(text).open == []


def test_privacy_is_given_by_every_accountant_with_what_must_stand_beside_it() -> None:
    shown = section("landmine-noise")
    table = shown.all("table", **{"class": "curves"})[0][1]
    for words in ("moments", "rdp", "pld", "gdpapproximation", "δ", "0.0029", "zero-out"):
        assert words in table
    for words in ("15.17", "∞, not private", "nothing sent", "2.1 %", "0.133"):
        assert words in table
    text = shown.all("section", **{"class": "figure"})[0][1]
    assert "approximation, never a bound" in text
    assert "seeded noise protects nobody" in text


def test_the_rest_of_a_figure_is_there_to_check_and_rerun_it() -> None:
    shown = section("benefit-of-de")
    (command,) = shown.all("pre")
    assert command[1] == "sottovoce reproduce benefit-of-de --runs 5"
    settings = shown.all("dl")[0][1]
    assert "agents200" in settings
    assert "replacing repeatsyes" in settings
    rows = [a for a, _ in shown.all("tr") if "data-x" in a]
    assert len(rows) == 41


def test_nothing_from_a_file_becomes_markup(source: str, page: Page) -> None:
    assert HOSTILE not in source
    assert source.count("<script") == 1
    assert page.all("img") == []
    assert not any(name.startswith("on") for _, found in page.elements for name in found)
    text = page.all("section", id="hostile")[0][1]
    # title, place, about, problem, objective, both axes, curve, method, parameter, claim, ...
    assert text.count(HOSTILE) > 20


def test_the_page_asks_the_network_for_nothing_and_lets_only_its_own_script_run(
    source: str, page: Page
) -> None:
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:"))
        assert "style" not in attributes  # the policy would refuse it
    assert not re.search(r"url\(|@import|https?:", "".join(t for _, t in page.all("style")))
    (policy,) = (a["content"] for a, _ in page.all("meta") if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_the_page_can_be_read_without_seeing_it(page: Page) -> None:
    assert page.elements[0] == ("html", {"lang": "en"})
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    for attributes, _ in page.all("svg"):
        assert attributes.get("aria-hidden") == "true" or attributes.get("aria-label")
    assert all(attributes.get("scope") in ("col", "row") for attributes, _ in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    charts = page.all("svg", **{"class": "chart"})
    assert "FTS-DE, P = 4, from 0.2" in (charts[0][0]["aria-label"] or "")


def test_a_lone_surrogate_does_not_stop_the_page(tmp_path: Path) -> None:
    MADE_UP["write"](tmp_path)
    path = tmp_path / "figures" / "hostile.json"
    path.write_text(path.read_text().replace("Beyond the paper", r"\ud800"))
    assert b"?" in write_report(tmp_path).read_bytes()
