"""`sottovoce result`, on folders as real sites and coordinators leave them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import create_trial
from tests.terminal import exit_status
from tests.unit.flower.pages.elements import words
from tests.unit.flower.pages.staged import AGENTS, Staged, ridge

from sottovoce.errors import ProtocolError
from sottovoce.flower.site.importing import import_trials
from sottovoce.optuna.spaces import distributions_of

WANTED = {"best", "trials", "failed", "epsilon"}  # of every site's JSON


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """A whole study of three sites, of which the second has brought six trials along."""
    staged = Staged(tmp_path_factory.mktemp("staged"))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{staged.project.parent / 'old.db'}"
    old, space = optuna.create_study(storage=storage), distributions_of(staged.file.study.space)
    for k in range(6):
        params = {"penalty": 10.0 - k, "width": 4.0}
        old.add_trial(create_trial(params=params, distributions=space, value=20.0 - k))
    import_trials(staged.file, staged.home(1), storage)
    staged.run()
    return staged


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """`sottovoce result WORDS` that ends well: what it prints, lines joined, and its errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*typed: object) -> tuple[str, str]:
        assert exit_status(monkeypatch, "result", *map(str, typed)) == 0
        return capsys.readouterr()

    return run


def values(staged: Staged, n: int) -> list[float]:
    """What the site's own objective gave, from its own storage."""
    storage = f"sqlite:///{staged.home(n) / 'study.db'}"
    trials = optuna.load_study(study_name="sottovoce", storage=storage).trials
    return [each.value for each in trials if each.value is not None and "round" in each.user_attrs]


def test_a_site_reads_its_best_what_alone_would_have_given_what_mattered_and_what_was_spent(
    staged: Staged, result: Any
) -> None:
    out, err = result(staged.stage / "site-1")
    lines = out.splitlines()
    count = staged.file.study.method.initial + staged.file.study.rounds
    assert lines[0] == f"this site in ridge: {count} trials."
    assert lines[1].startswith(f"Best: {min(values(staged, 0)):.4g} at penalty ")
    assert "alone would have been expected to give: " in lines[2]
    assert "in four of five cases" in lines[2]
    assert lines[3].startswith("What mattered: ")
    assert lines[4].startswith("Spent: ε = ")
    assert len(lines) == 5
    home = staged.home(0)
    assert f"Kept in {home / 'result.json'}" in err
    assert json.loads((home / "result.json").read_text())["best"]["value"] == min(values(staged, 0))
    assert (home / "result.html").is_file()


def test_a_sites_json_has_its_best_its_trials_its_failures_and_its_epsilon(
    staged: Staged, result: Any
) -> None:
    out, err = result(staged.stage / "site-1", "--json")
    found = json.loads(out)
    assert err == ""
    assert found.keys() >= WANTED
    assert found["best"]["value"] == min(values(staged, 0))
    assert found["best"]["params"].keys() == {"penalty", "width"}
    assert [each["value"] for each in found["trials"]] == values(staged, 0)
    assert (found["failed"], found["earlier"]) == (0, [])
    assert 0 < found["epsilon"] <= found["granted"]
    folder, _ = result(staged.home(0), "--json")
    assert json.loads(folder) == found


def test_what_a_site_brought_along_is_counted_apart(staged: Staged, result: Any) -> None:
    out, _ = result(staged.stage / "site-2")
    assert " trials, and 6 from before the study." in out.splitlines()[0]
    found = json.loads(result(staged.stage / "site-2", "--json")[0])
    assert [each["value"] for each in found["earlier"]] == [20, 19, 18, 17, 16, 15]
    assert len(found["trials"]) == found["planned"]
    assert "6 trials from before the study" in (staged.home(1) / "result.html").read_text()


def test_all_sites_of_a_rehearsal_stand_in_one_table_and_the_coordinator_below(
    staged: Staged, result: Any
) -> None:
    out, err = result(staged.project)
    rows = [line for line in out.splitlines() if line.startswith("│ site-")]
    assert [row.split("│")[1].strip() for row in rows] == ["site-1", "site-2", "site-3"]
    for n, row in enumerate(rows):
        assert row.split("│")[2].strip() == f"{min(values(staged, n)):.4g}"
        assert row.split("│")[6].strip() == ("6" if n == 1 else "0")
    assert "ridge: the study is over; 3 of 3 sites ran all trials." in out
    assert "Took part, of 3 sites, by release: 3, 3" in out
    assert "with a page result.html, in the folder of each" in err
    for n in range(AGENTS):
        assert (staged.home(n) / "result.json").stat().st_mode & 0o077 == 0


def test_the_json_of_a_rehearsal_has_all_sites_and_the_coordinator(
    staged: Staged, result: Any
) -> None:
    found = json.loads(result(staged.project, "--json")[0])
    assert found.keys() == {"sites", "coordinator"}
    assert [each["site"] for each in found["sites"]] == ["site-1", "site-2", "site-3"]
    for n, each in enumerate(found["sites"]):
        assert each.keys() >= WANTED
        assert each["best"]["value"] == min(values(staged, n))
    assert found["coordinator"]["epsilon"] == found["sites"][0]["epsilon"]


def test_a_coordinator_is_told_nothing_that_a_site_has_tried_or_found(
    staged: Staged, result: Any
) -> None:
    hub = staged.stage / "hub"
    out, _ = result(hub)
    assert "the study is over; 3 of 3 sites ran all trials" in out
    text = result(hub, "--json")[0]
    found = json.loads(text)
    assert found["epsilon"] > 0
    assert found["trials"] == staged.file.study.method.initial + staged.file.study.rounds
    assert "best" not in found
    page = words((hub / "coordinator" / "result.html").read_text())
    theirs = {value for n in range(AGENTS) for value in values(staged, n)}
    for said in (out, text, page):
        assert "penalty" not in said
        assert "from before" not in said
        numbers = set(re.findall(r"[\d.]+", said))
        shown = {f"{value:.4g}" for value in theirs} | set(map(repr, theirs))
        assert not {each for each in shown if len(each) > 4} & numbers  # short ones may be any


def test_a_simulation_is_told_as_a_rehearsal_is(
    staged: Staged, result: Any, tmp_path: Path
) -> None:
    project = tmp_path / "ridge"
    shutil.copytree(staged.stage / "hub", project)
    shutil.move(project / "coordinator", project / "simulation")
    for n in range(AGENTS):
        shutil.copytree(staged.home(n), project / "simulation" / f"site-{n}")
    found = json.loads(result(project, "--json")[0])
    assert [each["site"] for each in found["sites"]] == ["site-0", "site-1", "site-2"]
    assert all(each.keys() >= WANTED for each in found["sites"])
    one = json.loads(result(project / "simulation" / "site-1", "--json")[0])
    assert one == {**found["sites"][1], "site": one["site"]}


def test_a_run_of_the_simulator_is_told_by_its_regret(
    monkeypatch: pytest.MonkeyPatch, result: Any, tmp_path: Path
) -> None:
    words = ("--problem", "branin", "--method", "ts", "--agents", "3", "--rounds", "2")
    assert exit_status(monkeypatch, "run", *words, "--runs", "1", "--out", str(tmp_path / "r")) == 0
    assert "ts, mean over agents and runs: simple regret " in result(tmp_path / "r")[0]
    assert json.loads(result(tmp_path / "r", "--json")[0])["method"] == "ts"
    (tmp_path / "r" / "summary.json").unlink()
    assert exit_status(monkeypatch, "result", str(tmp_path / "r")) == 2


def test_a_site_that_has_found_nothing_says_so(result: Any, tmp_path: Path) -> None:
    staged = Staged(tmp_path, lambda trial: ridge(trial) / 0)
    with pytest.raises(ProtocolError, match="it left the study"):
        staged.run(1)
    out, _ = result(staged.stage / "site-1")
    assert "No trial gave a value yet." in out
    assert "This site left the study in round 0" in out
    found = json.loads(result(staged.stage / "site-1", "--json")[0])
    assert (found["best"], found["epsilon"]) == (None, 0.0)


def emptied(folder: Path) -> str:
    return "holds no result yet: it must be a project"


def missing(folder: Path) -> str:
    folder.rmdir()
    return "must be a folder that is there"


def a_file(folder: Path) -> str:
    folder.rmdir()
    folder.write_text("nothing")
    return "must be a folder that is there"


def of_another_study(folder: Path) -> str:
    (folder / "study.toml").write_text("nonsense")
    (folder / "site").mkdir()
    (folder / "site" / "study.db").write_text("nonsense")
    return "study.toml"


def damaged(folder: Path) -> str:
    (folder / "manifest.json").write_text("{}")
    return "holds a simulation without a summary"


@pytest.mark.parametrize("wrong", [emptied, missing, a_file, of_another_study, damaged])
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_a_folder_without_a_result_is_one_line_and_status_2(
    wrong: Any,
    more: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    said = wrong(folder)
    before = sorted(tmp_path.rglob("*"))
    assert exit_status(monkeypatch, "result", str(folder), *more) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err
    assert sorted(tmp_path.rglob("*")) == before
