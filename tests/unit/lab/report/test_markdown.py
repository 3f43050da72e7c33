from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from sottovoce.errors import StorageError
from sottovoce.lab.report.files import read_figures
from sottovoce.lab.report.keeping import kept_sections
from sottovoce.lab.report.markdown import BEGIN_CLAIMS, END_CLAIMS, update_markdown

MADE_UP = runpy.run_path(str(Path(__file__).resolve().parents[3] / "made_up_figures.py"))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    MADE_UP["write"](folder)
    return folder


def test_a_document_is_begun_with_a_table_of_every_claim(results: Path, tmp_path: Path) -> None:
    text = update_markdown(read_figures(results), tmp_path / "new.md").read_text()
    assert text.startswith("# Reproduction\n")
    assert (
        "| claim | paper | measured | estimate ± standard error | 95 % interval | verdict |" in text
    )
    assert "| More noise costs utility |" in text
    assert "**holds**" in text


def test_the_interval_of_an_estimate_stands_beside_it_and_a_dash_where_there_is_none(
    results: Path, tmp_path: Path
) -> None:
    text = update_markdown(read_figures(results), tmp_path / "new.md").read_text()
    assert "| -0.0001 ± 0.0005 | [-0.0012, 0.0010] | **within noise** |" in text
    assert "| 15.1700 | – | **holds** |" in text
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    for head, *rows in tables:
        assert {row.count("|") for row in rows} == {head.count("|")}


def test_every_curve_has_its_privacy_and_its_regret_at_a_few_moments(
    results: Path, tmp_path: Path
) -> None:
    path = results / "figures" / "landmine-noise.json"
    figure = json.loads(path.read_text())
    one = figure["curves"][0]
    one.update(label="one", series=None, epsilon={"moments": 9.91, "pld": None, "rdp": 8.0})
    one["regret"] = {"t": list(range(31)), "mean": [1 / (t + 1) for t in range(31)], "stderr": None}
    alone = one | {"label": "alone", "epsilon": {"moments": 0.0, "pld": 0.0}}
    unsaid = one | {"label": "unsaid", "epsilon": None}
    figure["curves"] = [one, alone, unsaid]
    path.write_text(json.dumps(figure))
    text = update_markdown(read_figures(results), tmp_path / "new.md").read_text()
    head = "| curve | ε moments | ε pld | t = 0 | t = 1 | t = 5 | t = 10 | t = 20 | t = 30 |"
    told = "1.0000 | 0.5000 | 0.1667 | 0.0909 | 0.0476 | 0.0323 | 0.1009 |"
    assert f"{head} mean, t = 1..30 |" in text
    for start in ("one | 9.91 | ∞", "alone | – | –", "unsaid | – | –"):
        assert f"| {start} | {told}" in text


def test_the_theorems_terms_are_no_curves_of_regret(results: Path, tmp_path: Path) -> None:
    for path in (results / "figures").glob("*.json"):
        if json.loads(path.read_text())["kind"] != "terms":
            path.unlink()
    text = update_markdown(read_figures(results), tmp_path / "new.md").read_text()
    assert "| claim |" in text
    assert "| curve |" not in text


def test_how_the_values_came_about_is_said(results: Path, tmp_path: Path) -> None:
    text = update_markdown(read_figures(results), tmp_path / "new.md").read_text()
    words = "`landmine` (table of 2,400 trained models an agent, interpolated), 10 runs: "
    assert words in text
    assert "Problem `landmine`, 5 runs: " in text  # of the figure that says nothing of it


def test_what_people_wrote_around_the_table_stays(results: Path, tmp_path: Path) -> None:
    document = tmp_path / "doc.md"
    document.write_text("# Mine\n\nBefore.\n")
    first = update_markdown(read_figures(results), document).read_text()
    assert first.startswith("# Mine\n\nBefore.\n")
    document.write_text(first + "\nAfter.\n")
    second = update_markdown(read_figures(results), document).read_text()
    assert second == first + "\nAfter.\n"
    assert second.count("| More noise costs utility |") == 1


def test_a_bar_in_a_claim_does_not_break_the_table(results: Path, tmp_path: Path) -> None:
    path = next((results / "figures").glob("landmine-noise.json"))
    path.write_text(path.read_text().replace("More noise costs", "More | noise costs"))
    assert (
        r"More \| noise costs"
        in update_markdown(read_figures(results), tmp_path / "new.md").read_text()
    )


def test_a_document_that_cannot_be_read_or_written_is_said(results: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    for path in (tmp_path / "folder.md", tmp_path / "missing" / "doc.md"):
        with pytest.raises(StorageError, match=r"could not be written|cannot be read"):
            update_markdown(read_figures(results), path)


def changed(results: Path, **more: object) -> None:
    path = results / "figures" / "landmine-noise.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))


CLAIMS = [
    {"claim": "a", "paper": "better", "measured": -0.001, "stderr": 0.0005, "text": "-",
     "verdict": "within noise", "interval": [-0.002, 0.0], "line": "both", "cause": "noise"},
    {"claim": "b", "paper": "better", "measured": 0.002, "stderr": 0.0005, "text": "-",
     "verdict": "holds", "interval": [0.001, 0.003], "line": "both", "cause": "unused"},
    {"claim": "c", "paper": "0.80 %", "measured": 0.0123, "stderr": 0.001, "text": "-",
     "verdict": "does not hold", "cause": "the level"},
    {"claim": "d", "paper": "not reported", "measured": 0.5, "stderr": 0.0, "text": "-",
     "verdict": "holds"},
]  # fmt: skip


def test_where_a_document_has_room_each_claim_of_the_paper_has_one_line(
    results: Path, tmp_path: Path
) -> None:
    document = tmp_path / "new.md"
    document.write_text(f"# Mine\n\n{BEGIN_CLAIMS}\nstale\n{END_CLAIMS}\n\nafter\n")
    changed(results, claims=CLAIMS, paper="Fig. 9")
    text = update_markdown(read_figures(results), document).read_text()
    row = "| both (Fig. 9) | better | -0.0010 to +0.0020 | 1 hold, 1 within noise | – | noise |"
    assert row in text
    assert "| c (Fig. 9) | 0.80 % | 1.23% ± 0.10% | does not hold | – | the level |" in text
    assert "| d (Fig. 9) |" not in text
    assert "stale" not in text
    assert text.index("after") < text.index("| claim | paper | measured |")
    assert update_markdown(read_figures(results), document).read_text() == text


def test_a_figure_that_is_another_again_stands_beside_it(results: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.md"
    document.write_text(f"{BEGIN_CLAIMS}\n{END_CLAIMS}\n")
    changed(results, claims=CLAIMS, paper="Fig. 9")
    path = results / "figures" / "landmine-noise.json"
    share = {"of": 9, "holds": 4, "towards": 6, "against": 1}
    again = json.loads(path.read_text()) | {"name": "again", "like": "landmine-noise"}
    again |= {"variant": "centred", "claims": [CLAIMS[2] | {"share": share}]}
    (results / "figures" / "again.json").write_text(json.dumps(again))
    text = update_markdown(read_figures(results), document).read_text()
    beside = "centred: 1.23% ± 0.10%, does not hold; 4/6/1 of 9"
    assert f"| 1.23% ± 0.10% | does not hold | {beside} | the level |" in text


def test_what_a_folder_does_not_hold_is_kept_when_asked(results: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.md"
    document.write_text(f"{BEGIN_CLAIMS}\n{END_CLAIMS}\n")
    changed(results, claims=CLAIMS, paper="Fig. 9")
    whole = update_markdown(read_figures(results), document).read_text()
    for path in (results / "figures").glob("*.json"):
        if path.stem != "landmine-noise":
            path.unlink()
    claims = [CLAIMS[2] | {"measured": 0.5}]
    changed(results, claims=claims)
    kept = update_markdown(read_figures(results), document, keep=True).read_text()
    assert kept.count("###") == whole.count("###")
    assert "| c (Fig. 9) | 0.80 % | 50.00% ± 0.10% |" in kept
    assert "| both (Fig. 9) | better |" in kept
    assert update_markdown(read_figures(results), document, keep=True).read_text() == kept
    assert update_markdown(read_figures(results), document).read_text().count("###") == 1


def test_what_is_kept_is_told_what_a_figure_like_it_measured(results: Path, tmp_path: Path) -> None:
    document = tmp_path / "new.md"
    document.write_text(f"{BEGIN_CLAIMS}\n{END_CLAIMS}\n")
    changed(results, claims=CLAIMS, paper="Fig. 9")
    before = update_markdown(read_figures(results), document).read_text()
    assert "| c (Fig. 9) | 0.80 % | 1.23% ± 0.10% | does not hold | – | the level |" in before
    again = {"name": "again", "like": "landmine-noise", "variant": "centred"}
    changed(results, claims=[CLAIMS[2] | {"measured": 0.5}], **again)
    (results / "figures" / "landmine-noise.json").rename(results / "figures" / "again.json")
    kept = update_markdown(read_figures(results), document, keep=True).read_text()
    beside = "centred: 50.00% ± 0.10%, does not hold"
    row = f"| c (Fig. 9) | 0.80 % | 1.23% ± 0.10% | does not hold | {beside} | the level |"
    assert row in kept
    assert "| 1 hold, 1 within noise | – | noise |" in kept


def test_a_new_section_goes_beside_those_of_its_figure_of_the_paper() -> None:
    old = "### A (Fig. 1)\n\na\n\n### B (Fig. 2)\n\nb\n"
    merged = kept_sections(old, "### C (Fig. 1)\n\nc\n\n### B (Fig. 2)\n\nnew\n\n### D\n\nd\n")
    headings = ["### A (Fig. 1)", "### C (Fig. 1)", "### B (Fig. 2)", "### D"]
    assert [line for line in merged.splitlines() if line.startswith("###")] == headings
    assert "new" in merged
    assert "\nb\n" not in merged
