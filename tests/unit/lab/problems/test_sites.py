"""Learners tuned by sites: how data are dealt, what is trained, and the tables of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.problems import problem_named, sitetable
from sottovoce.lab.problems.learners import LearnerProblem
from sottovoce.lab.problems.sites import CLASSES, LARGEST, SMALLEST, dealt
from sottovoce.lab.problems.sitetable import SiteObjectives, SiteTable, Smooth, load_site_table
from sottovoce.lab.problems.suite import TUNED
from sottovoce.space import Category, Float, Space


def learner(name: str) -> LearnerProblem:
    problem = problem_named(name)
    assert isinstance(problem, LearnerProblem)
    return problem


@pytest.mark.parametrize("data", CLASSES)
def test_sites_have_data_of_their_own_sizes_and_labels(data: str) -> None:
    sites = dealt(data, 12)
    sizes = [len(site.train_y) for site in sites]
    assert all(SMALLEST <= size <= LARGEST + 2 for size in sizes)
    assert len(set(sizes)) > 3
    if CLASSES[data]:
        shares = [np.bincount(s.train_y, minlength=CLASSES[data]) / len(s.train_y) for s in sites]
        assert np.std(shares, axis=0).max() > 0.1
        assert all(len(np.unique(site.train_y)) >= 2 for site in sites)
    else:
        assert np.std([site.train_y.mean() for site in sites]) > 0.1
    for site in sites:
        rows = {row.tobytes() for row in site.train_x}
        assert not rows & {row.tobytes() for row in site.valid_x} or data == "digits"
        assert np.all(np.isfinite(site.train_x))


def test_more_sites_change_nothing_for_the_first() -> None:
    few, many = dealt("wine", 3), dealt("wine", 5)
    assert all(np.array_equal(a.train_x, b.train_x) for a, b in zip(few, many[:3], strict=True))


def test_unknown_data_are_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="unknown data 'wines'; did you mean 'wine'"):
        dealt("wines", 3)


@pytest.mark.parametrize("name", [*TUNED["design"], "forest", "sgd", "mlp"])
def test_a_learner_is_trained_to_a_score_that_its_parameters_decide(name: str) -> None:
    problem = learner(name)
    site = dealt(problem.data, 3)[1]
    u = np.random.default_rng(0).random((8, problem.space.dims))
    params = [problem.space.decode(point) for point in np.asarray(problem.space.snap(u))]
    scores = [problem.trained(dict(each), site) for each in params]
    assert all(0 <= score <= 1 for score in scores)
    assert np.ptp(scores) > 0.01
    assert scores[0] == problem.trained(dict(params[0]), site)


def test_a_learner_of_numbers_takes_no_classes_and_the_other_way_round() -> None:
    with pytest.raises(InvalidInput, match="elasticnet: data must have a number to learn"):
        problem_named("elasticnet:data=wine")
    with pytest.raises(InvalidInput, match="svm: data must have classes to learn"):
        problem_named("svm:data=diabetes")
    problem_named("boosting:data=wine")


def small_table(noise: float = 1e-8) -> SiteTable:
    """Two sites that share a hill and differ in height, in a space with a choice."""
    space = Space([Float("x", 0.0, 1.0), Category("c", ("a", "b"))])
    u = np.random.default_rng(3).random((60, space.dims))
    points = np.asarray(space.snap(u))
    hill = 0.5 - (points[:, 0] - 0.4) ** 2 - 0.1 * points[:, 1]
    values = np.stack([hill, hill + 0.2 * points[:, 0]])
    smooth = Smooth((0.5, 1.0, 1.0), 0.05, noise)
    return SiteTable(points, values, points[:4], values[:, :4], smooth, smooth, space)


def test_a_table_goes_through_what_was_trained_where_there_is_no_noise() -> None:
    table = small_table()
    assert np.allclose(table.smooth(table.points).T, table.values, atol=1e-4)
    each = table.smooth_each(np.asarray([1, 0]), np.stack([table.points] * 2))
    assert np.allclose(each, table.values[::-1], atol=1e-4)


def test_a_table_says_between_points_what_is_smooth_there() -> None:
    table = small_table()
    x = np.linspace(0.1, 0.9, 7)
    points = np.stack([x, np.zeros(7), np.ones(7)], axis=1)
    assert np.allclose(table.smooth(points)[:, 0], 0.5 - (x - 0.4) ** 2, atol=2e-3)


def test_no_value_exceeds_the_optimum_and_it_is_nearly_where_it_is_known_to_be() -> None:
    table = small_table()
    assert table.optimum == pytest.approx([0.5, 0.5 + 0.2 * 0.5 - 0.01], abs=3e-3)
    objectives = SiteObjectives(table, np.asarray([0, 1]))
    u = np.asarray(table.space.snap(np.random.default_rng(0).random((2, 3000, 3))))
    assert np.all(objectives.values(u) <= objectives.optimum[:, None])


def test_the_noise_of_an_observation_is_what_is_not_smooth() -> None:
    assert SiteObjectives(small_table(4e-4), np.asarray([0])).noise == pytest.approx(0.02)


def test_a_table_is_the_same_after_being_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitetable, "folder", lambda: tmp_path)
    load_site_table.cache_clear()
    table = small_table()
    table.save(tmp_path / "small.npz")
    again = load_site_table("small")
    assert np.allclose(again.values, table.values, atol=1 / 65535)
    assert (again.space, again.common, again.own) == (table.space, table.common, table.own)
    with pytest.raises(StorageError, match="there is no table 'other'; make it: python"):
        load_site_table("other")
    (tmp_path / "bad.npz").write_bytes(b"no")
    with pytest.raises(StorageError, match="is damaged"):
        load_site_table("bad")
    load_site_table.cache_clear()


@pytest.mark.parametrize("name", ["elasticnet", "svm:data=wine"])
def test_a_table_is_near_to_models_trained_anew(name: str) -> None:
    problem = learner(name)
    table = load_site_table(problem.table)
    every = dealt(problem.data, problem.sites)
    for n in (0, 7):
        for point, kept in zip(table.held_points[:4], table.held_values[n], strict=False):
            live = problem.trained(problem.space.decode(point), every[n])
            assert live == pytest.approx(kept, abs=2e-5)
    error = table.smooth(table.held_points).T - table.held_values
    spread = table.held_values.std(axis=1).mean()
    assert np.sqrt(np.mean(error**2)) < 0.6 * spread


@pytest.mark.parametrize("name", [*TUNED["design"], *TUNED["test"]])
def test_every_tuned_problem_of_the_suite_has_its_table(name: str) -> None:
    problem = learner(name)
    table = load_site_table(problem.table)
    assert (len(table.values), table.space) == (problem.sites, problem.space)


def test_agents_are_sites_in_any_order_and_no_more_than_there_are() -> None:
    problem = learner("elasticnet")
    draws = [problem.draw(5, np.random.default_rng(seed)).sites.tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    with pytest.raises(InvalidInput, match="agents must be from 1 to 100"):
        problem.draw(101, np.random.default_rng(0))
