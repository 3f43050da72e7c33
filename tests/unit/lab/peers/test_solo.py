"""Searching alone, and comparing searches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.peers.comparison import (
    at,
    filled,
    mean_ranks,
    paired,
    trials_needed,
)
from sottovoce.lab.peers.searches import search_named
from sottovoce.lab.peers.solo import SoloTask, one_agent, regrets, searched
from sottovoce.lab.peers.work import do_all
from sottovoce.lab.problems import problem_named


class Scripted:
    """Asks for given points, and keeps what it is told."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self._rows, self.told = rows, list[float | None]()

    def ask(self) -> dict[str, object]:
        return self._rows[len(self.told)]

    def tell(self, value: float | None) -> None:
        self.told.append(value)


def test_regret_is_of_the_best_truth_so_far_and_a_failed_trial_is_told_as_one() -> None:
    problem = problem_named("failing:shift=0")
    agent = one_agent(problem, 0, 0, 4)
    points = [[0.9, 0.9, 0.4], [0.3, 0.5, 0.4], [0.6, 0.5, 0.4], [0.1, 0.5, 0.4]]
    script = Scripted([agent.space.decode(np.asarray(point)) for point in points])
    result = searched(agent, script)
    first, second, third, fourth = result.regret
    assert first is None
    assert script.told[0] is None
    assert second is not None
    assert second > 0.1
    assert third == fourth == pytest.approx(0.0, abs=1e-12)
    assert script.told[2] == pytest.approx(agent.optimum + agent.noise[2])


@pytest.mark.parametrize("search", ["sottovoce", "tpe", "random"])
def test_a_search_runs_in_a_mixed_space_with_failures_and_resumes(
    search: str, tmp_path: Path
) -> None:
    tasks = [SoloTask(tmp_path, "memory", search, run, trials=12) for run in range(2)]
    do_all(tasks)
    found, before = regrets(tasks), [task.path.read_text() for task in tasks]
    assert found.shape == (2, 12)
    assert np.all(np.diff(found[~np.isnan(found).any(axis=1)], axis=1) <= 0)
    do_all(tasks)
    assert [task.path.read_text() for task in tasks] == before
    tasks[0].path.write_text("{")
    with pytest.raises(StorageError, match="delete it"):
        tasks[0].result()


def test_all_searches_of_a_run_meet_the_same_objective_and_noise() -> None:
    problem, point = problem_named("bowl"), np.full(9, 0.5)
    one, other, another = (one_agent(problem, 0, run, 5) for run in (0, 0, 1))
    assert one.truth(point) == other.truth(point) != another.truth(point)
    assert np.array_equal(one.noise, other.noise)
    assert not np.array_equal(one.noise, another.noise)


def test_an_unknown_search_is_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="unknown search 'tpee'; did you mean 'tpe'"):
        search_named("tpee", problem_named("bowl").setting.space, 0)


def test_a_paired_interval_takes_out_what_both_have_in_common() -> None:
    common = np.random.default_rng(0).random(20)
    judged = paired(common, common + 0.01 + 1e-4 * np.arange(20))
    assert judged.word == "better"
    assert judged.mean == pytest.approx(0.01 + 1e-4 * 9.5)
    assert 0 < judged.reach < 0.001
    assert paired(common, common[::-1]).word == "–"
    assert paired(common[:1], common[:1] + 1).reach == np.inf


def test_ranks_are_over_problems_and_ties_share_theirs() -> None:
    ranks = mean_ranks([{"a": 1.0, "b": 2.0, "c": 2.0}, {"a": 3.0, "b": 2.0, "c": 1.0}])
    assert ranks == {"a": 2.0, "b": 2.25, "c": 1.75}


def test_trials_needed_are_counted_from_the_first() -> None:
    curve = np.asarray([0.5, 0.2, 0.2, 0.1])
    assert [trials_needed(curve, y) for y in (0.5, 0.2, 0.15, 0.05)] == [1, 2, 4, np.inf]
    assert at(curve, (2, 4, 8)) == {2: 0.2, 4: 0.1}


def test_a_run_without_a_value_has_the_largest_regret() -> None:
    found = filled({"a": np.asarray([[np.nan, 0.3]]), "b": np.asarray([[0.7, 0.1]])})
    assert found["a"].tolist() == [[0.7, 0.3]]
