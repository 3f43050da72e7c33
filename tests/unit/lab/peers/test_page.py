"""docs/beyond.md made from kept runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.peers import page, sections
from sottovoce.lab.peers.page import BEGIN, END, TOPICS, update_page
from sottovoce.lab.peers.readings import counted, curves_in, reading, readings
from sottovoce.lab.peers.sections import ALONE, FEDERATIONS, SECTIONS, Alone, Part, tasks_of
from sottovoce.lab.peers.solo import SoloResult, SoloTask
from sottovoce.lab.peers.together import Curve, Federation, TogetherTask

LEVELS = {  # regret after the last trial: ours is better on the first problem, worse on the second
    "ridge": {"sottovoce": 0.1, "gp": 0.3, "sottovoce/control": 0.3, "solo/gpsampler": 0.2},
    "cliff": {"sottovoce": 0.4, "gp": 0.3, "sottovoce/control": 0.3, "solo/gpsampler": 0.5},
}
SIZE = Federation(100, 30, 1.0)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sections of a few runs; next to none of the others."""
    entries = ("sottovoce", "sottovoce/control", "gp", "solo/gpsampler", "dp-hype")
    empty = {name: (Part(SIZE, (), (), 1),) for name in FEDERATIONS}
    main = {"main": (Part(SIZE, ("ridge", "cliff"), entries, 3),)}
    for module in (sections, page):
        monkeypatch.setattr(module, "FEDERATIONS", {**empty, **main})
        alone = {**ALONE, "alone": Alone(("ridge",), ("sottovoce", "gpsampler"), 3, 60)}
        monkeypatch.setattr(module, "ALONE", alone)


def falling(last: float, run: int, length: int = 30) -> list[float | None]:
    return [last + 0.5 * (1 - k / (length - 1)) + 0.001 * run for k in range(length)]


def keep(folder: Path, *, runs: int = 3) -> None:
    for task in tasks_of("main", folder):
        assert isinstance(task, TogetherTask)
        if task.run < runs and task.entry != "dp-hype":
            wiggle = 0.0005 * (len(task.entry) % 3 - 1) * (task.run - 1)
            last = LEVELS[task.problem][task.entry] + wiggle
            write(task.path, asdict(Curve(falling(last, task.run), 1.0)))


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def document(folder: Path) -> Path:
    path = folder / "page.md"
    path.write_text(f"# Title\n\nAbove.\n\n{BEGIN}\nold\n{END}\n\nBelow.\n")
    return path


@pytest.mark.usefixtures("small")
def test_a_page_has_verdicts_tables_and_what_is_missing(tmp_path: Path) -> None:
    keep(tmp_path)
    text = update_page(tmp_path, document(tmp_path)).read_text()
    assert text.startswith("# Title\n\nAbove.\n")
    assert text.endswith("Below.\n")
    assert "\nold\n" not in text
    flat = " ".join(text.split())
    assert "better than the best solo search on 1 of 2 problems, worse on 1 (`cliff`)" in flat
    assert "more than 3 % above it on 1" in flat
    assert "better than noise alone on 1 of 2, worse on 1." in flat
    assert "**100 sites, ε = 1: going alone is about as good.**" in flat
    assert "| `ridge` | GPSampler | 0.1010 | 0.3010 | 0.3010 | 0.2010 |" in text
    assert "- `main`: 24 of 30 runs." in text
    assert "- `alone`: 0 of 6 runs." in text
    assert update_page(tmp_path, tmp_path / "page.md").read_text() == text


@pytest.mark.usefixtures("small")
def test_topics_that_are_not_made_anew_stay_as_they_are(tmp_path: Path) -> None:
    keep(tmp_path)
    text = update_page(tmp_path, document(tmp_path)).read_text()
    runs, page = tmp_path / "none", tmp_path / "page.md"
    others = [name for name in TOPICS if name != "main"]
    assert update_page(runs, page, others).read_text() == text
    without = update_page(runs, page, ["main"]).read_text()
    assert "100 sites" not in without
    assert "- `main`: 0 of 30 runs." in without
    with pytest.raises(InvalidInput, match=r"unknown topic 'man'.*main"):
        update_page(runs, page, ["man"])
    assert page.read_text() == without


@pytest.mark.usefixtures("small")
def test_what_was_not_run_to_the_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    keep(tmp_path, runs=2)
    (one, _) = readings(tmp_path, sections.FEDERATIONS["main"])
    assert one.runs == 2
    for task in tasks_of("main", tmp_path):
        if task.run == 1:
            task.path.unlink(missing_ok=True)
    assert readings(tmp_path, sections.FEDERATIONS["main"]) == []  # one run has no interval


@pytest.mark.usefixtures("small")
def test_searches_alone_are_told_when_all_seeds_are_there(tmp_path: Path) -> None:
    for task in tasks_of("alone", tmp_path):
        assert isinstance(task, SoloTask)
        last = 0.1 if task.search == "sottovoce" else 0.2
        result = SoloResult(falling(last, task.run, 60), [0.01 if last < 0.2 else 0.04] * 60)
        write(task.path, asdict(result))
    text = update_page(tmp_path, document(tmp_path)).read_text()
    assert "mean rank 1.00 against 2.00, 1.00 against 2.00, 1.00 against 2.00" in text
    assert "after 60 1 better and none worse" in text
    assert "4.0 times as fast" in text
    task.path.unlink()
    assert "times as fast" not in update_page(tmp_path, tmp_path / "page.md").read_text()


def test_a_page_without_marks_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Title\n")
    with pytest.raises(StorageError, match="must have the marks"):
        update_page(tmp_path, path)
    assert path.read_text() == "# Title\n"
    with pytest.raises(StorageError, match="cannot be read"):
        update_page(tmp_path, tmp_path / "none.md")


def test_the_shipped_page_has_the_marks() -> None:
    text = (Path(__file__).resolve().parents[4] / "docs" / "beyond.md").read_text()
    assert text.count(BEGIN) == text.count(END) == 1


def test_sections_are_of_test_problems_and_solo_searches_are_run_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"unknown section 'man'.*main"):
        tasks_of("man", tmp_path)
    ten, main = (
        {t.path for t in tasks_of(name, tmp_path) if getattr(t, "entry", "") == "solo/gpsampler"}
        for name in ("ten", "main")
    )
    assert {path.parts[-3] for path in ten - main} == {"mlp"}  # which has no 100 sites
    for name in SECTIONS:
        tasks = tasks_of(name, tmp_path)
        assert len({task.path for task in tasks}) == len(tasks) > 0


def test_a_reading_counts_from_the_paired_runs() -> None:
    runs = np.asarray([falling(0.1, run) for run in range(4)], dtype=float)
    curves = {"sottovoce": runs, "gp": runs[:3] + 0.05, "sottovoce/control": runs + 0.01}
    one = reading("ridge", curves)
    assert one is not None
    assert one.over_solo.mean == pytest.approx(0.05)
    assert one.excess == pytest.approx(-0.05 / 0.151, rel=1e-2)
    assert one.needs == pytest.approx(28)
    counts = counted([one])
    assert (counts.better, counts.worse, counts.heard, counts.told) == (1, (), 1, 1)
    assert counts.joins
    assert reading("ridge", {"gp": runs}) is None
    assert curves_in(Path("nowhere"), FEDERATIONS["main"], "ridge") == {}
