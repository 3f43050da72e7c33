from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.experiments.compared import compared, read_run
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.runner import run_and_save
from sottovoce.lab.report.files import read_figures

SMALL = RunConfig(agents=6, rounds=3, runs=3, changes={"features": 8})
PRIVATE = {**SMALL.changes, "noise": 1.0, "participation": 0.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run_and_save(replace(SMALL, method="ts", changes={}), folder / "alone")
    run_and_save(replace(SMALL, changes=PRIVATE), folder / "first")
    run_and_save(replace(SMALL, changes={**PRIVATE, "noise": 2.0}, runs=2), folder / "second")
    run_and_save(replace(SMALL, method="control", changes=PRIVATE), folder / "noise")
    run_and_save(replace(SMALL, problem="branin", runs=1), folder / "branin")
    return folder


def test_runs_of_one_problem_share_a_figure_over_the_runs_that_all_have(folder: Path) -> None:
    synthetic, other = read_figures(folder)
    assert (other.problem, other.runs, other.own) == ("branin", 1, True)
    labels = [curve.label for curve in synthetic.curves]
    assert labels == ["ts", "dp-fts-de, noise = 1", "control", "dp-fts-de, noise = 2"]
    assert [curve.role for curve in synthetic.curves] == [
        *("reference", "method", "control", "method")
    ]
    assert synthetic.runs == 2
    assert "there are more of ts, dp-fts-de, noise = 1, control." in synthetic.about


def test_what_they_claim_is_judged_by_the_runs(folder: Path) -> None:
    claims = {claim.claim: claim for claim in read_figures(folder)[0].claims}
    assert set(claims) == {
        "dp-fts-de, noise = 1 is better than ts",
        "dp-fts-de, noise = 2 is better than ts",
        "dp-fts-de, noise = 1 is better than dp-fts-de, noise = 2",
        "dp-fts-de, noise = 1 is better than control",
        "dp-fts-de, noise = 2 is better than control",
    }
    assert all(claim.paper == "" for claim in claims.values())


def test_folders_can_be_named_one_by_one_and_twice_is_once(folder: Path) -> None:
    (found,) = read_figures(folder / "first", folder / "alone", folder / "first")
    assert [curve.label for curve in found.curves] == ["dp-fts-de", "ts"]
    curve = found.curves[0]
    assert (curve.epsilon or {})["pld"]
    assert curve.adjacency == "zero-out"


def test_its_commands_make_a_figure_of_runs_again(folder: Path) -> None:
    first = read_run(folder / "first")
    assert first.command.startswith("sottovoce run --problem synthetic --method dp-fts-de")
    assert "--noise 1 " in first.command
    assert compared([first, read_run(folder / "alone")])[0].command.count("\n") == 1


def test_an_interrupted_run_is_said_to_be_one(folder: Path, tmp_path: Path) -> None:
    run_and_save(replace(SMALL, runs=1), tmp_path / "half")
    (tmp_path / "half" / "summary.json").unlink()
    for there in (tmp_path, tmp_path / "half"):
        with pytest.raises(StorageError, match="was interrupted"):
            read_figures(there)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"config": 3}', '{"config": {"runs": 0}}'])
def test_a_summary_that_is_damaged_is_named(content: str, tmp_path: Path) -> None:
    run_and_save(replace(SMALL, runs=1), tmp_path)
    (tmp_path / "summary.json").write_text(content)
    with pytest.raises(StorageError, match=r"summary.json is damaged"):
        read_figures(tmp_path)


def test_a_summary_beside_runs_of_another_config_is_refused(tmp_path: Path) -> None:
    run_and_save(replace(SMALL, runs=1), tmp_path)
    path = tmp_path / "summary.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "config": {**content["config"], "agents": 7}}))
    with pytest.raises(StorageError, match="agents is 6 there and 7 here"):
        read_figures(tmp_path)


def test_figures_of_one_name_in_two_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    figure = read_figures(folder)[0]
    for name in "ab":
        (tmp_path / name / "figures").mkdir(parents=True)
        text = json.dumps(figure.to_dict())
        (tmp_path / name / "figures" / f"{figure.name}.json").write_text(text)
    with pytest.raises(InvalidInput, match="figures of one name"):
        read_figures(tmp_path / "a", tmp_path / "b")
