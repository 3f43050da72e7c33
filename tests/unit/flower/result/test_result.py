"""Results: what a site is told of its own study, and the coordinator of everybody's."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import Trial, create_trial
from tests.endtoend.parties import FILES, Parties

from sottovoce.errors import InvalidInput, StorageError, StudyMismatch
from sottovoce.federation.methods import GP
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.result import (
    Alone,
    CoordinatorResult,
    SiteResult,
    read_result,
    write_result,
)
from sottovoce.flower.result.alone import OwnModel
from sottovoce.flower.result.coordinator import coordinator_result
from sottovoce.flower.result.data import to_json
from sottovoce.flower.result.found import parties_in
from sottovoce.flower.result.recorded import recorded
from sottovoce.flower.result.site import best_so_far, site_result
from sottovoce.flower.site.importing import import_trials
from sottovoce.flower.site.memory import Memory
from sottovoce.privacy.ledger import read_ledger
from sottovoce.space import Category, Float, Space

FILE = FILES["sottovoce"]


def told(folder: Path) -> SiteResult:
    return site_result(FILE, folder, study="tests", site="site-0")


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Parties:
    """A whole study of three sites, of which one fails in every fifth trial."""

    def moody(trial: Trial) -> float:
        if trial.number % 5 == 1:
            raise RuntimeError("patient\n12345")
        return float((trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2)

    found = Parties(tmp_path_factory.mktemp("study"), FILE)
    found.sites[1] = found.site(1, moody)
    found.run()
    return found


def test_a_site_is_told_its_best_its_curve_and_what_was_spent(parties: Parties) -> None:
    result = told(parties.folder.parent / "site-0")
    values = [trial.value for trial in result.trials if trial.value is not None]
    assert result.best is not None
    assert result.best.value == min(values)
    assert result.trials[result.best.number - 1].params == result.best.params
    assert result.over
    assert (result.planned, result.failed, result.agent) == (len(values), 0, 0)
    assert result.best_so_far == tuple(np.minimum.accumulate(values))
    assert [trial.number for trial in result.trials] == [*range(1, result.planned + 1)]
    assert all(
        trial.ended is not None and trial.ended.endswith("+00:00") for trial in result.trials
    )
    ledger = read_ledger(parties.folder / "ledger.db")
    spent = FILE.budget.spent([entry.release.event for entry in ledger.entries])
    assert result.epsilon == pytest.approx(spent)
    assert result.releases == len(ledger.entries)
    assert 0 < result.epsilon < result.replace_one
    assert result.importance == {"x": 1.0}


def test_a_failed_trial_has_no_value_and_says_how_in_one_line(parties: Parties) -> None:
    result = told(parties.folder.parent / "site-1")
    failed = [trial for trial in result.trials if trial.value is None]
    assert len(failed) == result.failed == 2
    assert {trial.error for trial in failed} == {"RuntimeError: patient 12345"}


def test_the_curve_of_going_alone_begins_with_the_sites_own_trials(parties: Parties) -> None:
    result = told(parties.folder.parent / "site-0")
    alone = result.alone
    assert alone is not None
    n = result.initial
    assert alone.mean[:n] == pytest.approx(result.best_so_far[:n])
    assert len(alone.mean) == len(result.trials)
    lows, means, highs = (np.asarray(each) for each in (alone.low, alone.mean, alone.high))
    assert np.all((lows <= means) & (lows <= highs))
    assert lows[-1] < highs[-1]
    assert np.all(np.diff(means) <= 0)


def test_a_result_comes_back_from_its_file_and_only_its_user_can_read_it(
    parties: Parties, tmp_path: Path
) -> None:
    result = told(parties.folder.parent / "site-1")
    path = write_result(result, tmp_path)
    assert read_result(path, SiteResult) == result
    assert path.stat().st_mode & 0o077 == 0
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 9'))
    with pytest.raises(StorageError, match="is of schema 9, this is schema 1"):
        read_result(path, SiteResult)
    path.write_text("{")
    with pytest.raises(StorageError, match="is no SiteResult"):
        read_result(path, SiteResult)
    with pytest.raises(StorageError, match="cannot be read"):
        read_result(tmp_path / "none.json", SiteResult)


def test_looking_at_a_site_changes_nothing_and_needs_no_lock(parties: Parties) -> None:
    folder = parties.folder.parent / "site-0"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with (folder / "lock").open():
        result = told(folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert told(folder) == result  # and says the same again


def test_a_site_that_was_never_called_has_an_empty_result(tmp_path: Path) -> None:
    result = told(tmp_path)
    assert (result.best, result.trials, result.epsilon, result.agent) == (None, (), 0.0, None)
    assert result.importance_by.startswith("not told")
    assert list(tmp_path.iterdir()) == []


def test_a_round_that_a_site_spoke_in_counts_though_it_never_heard_of_it(tmp_path: Path) -> None:
    parties = Parties(tmp_path, FILE)
    coordinator = parties.coordinator()
    coordinator.open()
    parties.ask(coordinator, 0)
    coordinator.stop()
    found = recorded(tmp_path / "site-0")
    assert (found.heard, found.spoke) == (-1, 0)
    result = told(tmp_path / "site-0")
    assert result.releases == 1
    assert result.epsilon > 0
    assert not result.over


def test_a_folder_of_another_study_is_refused(parties: Parties) -> None:
    other = replace(FILE, study=replace(FILE.study, feature_seed=5))
    with pytest.raises(StudyMismatch, match="belongs to study"):
        site_result(other, parties.folder.parent / "site-0", study="tests", site="site-0")


def test_a_damaged_memory_is_named(tmp_path: Path) -> None:
    (tmp_path / "study.db").write_text("nothing of the kind")
    with pytest.raises(StorageError, match="cannot be read as a site's memory"):
        told(tmp_path)


def test_a_journal_is_read_as_a_database_is(tmp_path: Path) -> None:
    with Memory(tmp_path, "journal", FILE.study, "minimize") as memory:
        memory.claim(2)
    assert recorded(tmp_path).agent == 2


def test_the_coordinator_is_told_who_took_part_and_nothing_that_was_said(parties: Parties) -> None:
    result = coordinator_result(parties.folder, study="tests")
    assert result.over
    assert (result.done, result.agents, result.stopped) == (3, 3, None)
    assert [each.spoke for each in result.rounds] == [3] * result.releases_planned
    site = told(parties.folder.parent / "site-0")
    assert result.epsilon == pytest.approx(site.epsilon)
    assert result.releases == site.releases
    text = json.dumps(to_json(result))
    assert "value" not in text
    assert "params" not in text
    assert write_result(result, parties.folder).is_file()
    assert read_result(parties.folder / "result.json", CoordinatorResult) == result


def test_parties_are_found_in_a_simulations_folder(parties: Parties, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no result yet"):
        parties_in(tmp_path)
    stage = tmp_path / "simulation"
    shutil.copytree(parties.folder, stage)
    for n in (0, 1, 2):
        shutil.copytree(parties.folder.parent / f"site-{n}", stage / f"site-{n}")
    (tmp_path / "study.toml").touch()
    found = parties_in(tmp_path)
    assert [party.name for party in found] == ["site-0", "site-1", "site-2", "the coordinator"]
    assert [party.name for party in parties_in(stage)] == [party.name for party in found]


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Parties:
    """A whole study in which site 0 has brought eight trials along, one better than any after."""
    folder = tmp_path_factory.mktemp("brought")
    storage = f"sqlite:///{folder / 'old.db'}"
    old = optuna.create_study(storage=storage)
    for x in (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        where: dict[str, BaseDistribution] = {"x": FloatDistribution(0.0, 1.0)}
        value = (x - 0.3) ** 2
        old.add_trial(create_trial(params={"x": x}, distributions=where, value=value))
    found = Parties(folder, FILE, lambda trial: 0.01 + (trial.suggest_float("x", 0, 1) - 0.3) ** 2)
    import_trials(FILE, folder / "site-0", storage)
    found.run()
    return found


def test_trials_from_before_the_study_are_told_apart_and_count_for_the_best(
    brought: Parties, tmp_path: Path
) -> None:
    result = told(brought.folder.parent / "site-0")
    assert [each.value for each in result.earlier][:3] == pytest.approx([0.09, 0.0, 0.04])
    assert [each.number for each in result.earlier] == [*range(8)]
    assert len(result.trials) == result.planned
    assert result.failed == 0
    assert result.best is not None
    assert (result.best.value, result.best.number, result.best.earlier) == (0.0, 1, True)
    assert result.best_so_far == (0.0,) * result.planned
    assert result.alone is not None
    assert result.alone.mean[: result.initial] == (0.0,) * result.initial
    assert len(result.alone.mean) == len(result.trials)
    assert result.beside_alone == "about"
    path = write_result(result, tmp_path)
    assert read_result(path, SiteResult) == result


def test_nobody_else_learns_of_trials_from_before_the_study(brought: Parties) -> None:
    assert told(brought.folder.parent / "site-1").earlier == ()
    result = json.dumps(to_json(coordinator_result(brought.folder, study="tests")))
    assert "earlier" not in result
    for path in brought.folder.iterdir():
        assert b"imported" not in path.read_bytes()


def test_what_alone_could_have_expected_is_bounded_where_the_best_values_lie_close() -> None:
    space = Space([Float(name, 0.0, 1.0) for name in "abcd"])
    study = FederatedStudy(space, GP, agents=1, rounds=1)
    points = np.random.default_rng(0).random((16, 4))
    values = np.minimum(1.0, 2.6 - np.sum((points - 0.5) ** 2, axis=1) * 4)  # a plateau
    assert np.sum(values == 1.0) > 4
    model = OwnModel.fitted(study, points, values)
    assert model is not None
    alone = model.alone(4, 16, 1.0)
    assert alone is not None
    assert alone.high[-1] == pytest.approx(1.0)
    open_ended = OwnModel.fitted(study, points, points.sum(axis=1))
    assert open_ended is not None
    alone = open_ended.alone(4, 16, 1.0)
    assert alone is not None
    assert alone.high[-1] is not None
    assert alone.high[-1] > np.max(points.sum(axis=1)) + 0.05


@pytest.mark.parametrize(
    ("best", "verdict"), [(0.4, "better"), (0.5, "about"), (0.6, "about"), (0.7, "worse")]
)
def test_a_best_within_the_band_is_about_what_alone_would_have_given(
    parties: Parties, best: float, verdict: str
) -> None:
    result = told(parties.folder.parent / "site-0")
    assert result.best is not None
    found = replace(
        result,
        best=replace(result.best, value=best),
        alone=Alone((0.55,), (0.5,), (0.6,), 24, "somehow"),
    )
    assert found.beside_alone == verdict
    opposite = {"better": "worse", "worse": "better"}.get(verdict, verdict)
    assert replace(found, direction="maximize").beside_alone == opposite
    assert replace(found, alone=None).beside_alone is None


def test_what_matters_is_found_among_parameters_that_do_not() -> None:
    space = Space([Float("idle", 0.0, 1.0), Float("x", 0.0, 1.0), Category("kind", ("a", "b"))])
    study = FederatedStudy(space, GP, agents=1, rounds=1)
    points = np.asarray(space.snap(np.random.default_rng(0).random((30, space.dims))))
    values = np.sin(4 * points[:, 1]) + 0.3 * points[:, 2]
    model = OwnModel.fitted(study, points, values)
    assert model is not None
    shares = model.importance()
    assert shares is not None
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["x"] > shares["kind"] > shares["idle"]
    assert shares["idle"] < 0.03


@pytest.mark.parametrize("values", [[0.1] * 8, [0.1, 0.2]], ids=["all the same", "too few"])
def test_values_that_tell_nothing_are_not_modelled(values: list[float]) -> None:
    study = FederatedStudy(Space([Float("x", 0.0, 1.0)]), GP, agents=1, rounds=1)
    points = np.linspace(0, 1, len(values))[:, None]
    assert OwnModel.fitted(study, points, np.asarray(values)) is None


def test_the_best_so_far_passes_over_failures() -> None:
    assert best_so_far([None, 2.0, None, 3.0, 1.0], 1.0) == (None, 2.0, 2.0, 3.0, 3.0)
    assert best_so_far([None, 2.0, 3.0, 1.0], -1.0) == (None, 2.0, 2.0, 1.0)
    assert best_so_far([], -1.0) == ()
    assert best_so_far([None, 2.0, 0.5], -1.0, 1.0) == (1.0, 1.0, 0.5)
