"""Federations and solo searches in the same figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.peers.together import (
    QUIET,
    Federation,
    TogetherTask,
    curves_of,
    mean_regret,
    study_of,
)
from sottovoce.lab.problems import problem_named
from sottovoce.simulation import Draws

SIZE = Federation(agents=4, trials=14, epsilon=4.0)


def test_regret_counts_from_the_first_trial_and_who_has_no_value_has_the_largest() -> None:
    truth = np.asarray([[0.2, 0.6, 0.5], [np.nan, np.nan, 0.9]])
    curve = mean_regret(truth, np.ones(2))
    assert curve == pytest.approx([0.8, (0.4 + 0.8) / 2, (0.4 + 0.1) / 2])


def test_variants_of_a_method_differ_in_noise_and_in_what_they_spend() -> None:
    study, spent = study_of("bowl", "sottovoce", SIZE)
    assert spent is not None
    assert 3.9 < spent <= 4.0
    assert study.method.initial + study.rounds == SIZE.trials
    local, same = study_of("bowl", "sottovoce/local", SIZE)
    quiet, endless = study_of("bowl", "sottovoce/quiet", SIZE)
    control, nothing = study_of("bowl", "sottovoce/control", SIZE)
    for each in (study, local, quiet, control):
        assert each.method.mechanism is not None
    z = study.method.mechanism.noise  # type: ignore[union-attr]
    assert local.method.mechanism.noise == pytest.approx(2 * z)  # type: ignore[union-attr]
    assert quiet.method.mechanism.noise == QUIET  # type: ignore[union-attr]
    assert control.method.noise_only
    assert (same, endless, nothing) == (spent, None, 0.0)
    flat, as_much = study_of("bowl", "sottovoce/flat", SIZE)
    assert (flat.method.mechanism, as_much) == (study.method.mechanism, spent)
    assert not np.any(flat.expected_effects.mean)
    assert np.any(study.expected_effects.mean)
    assert study_of("bowl", "gp/flat", SIZE)[0].method.shared_model == "none"


def test_a_method_that_sends_nothing_spends_nothing_and_has_no_variants() -> None:
    assert study_of("bowl", "ts", SIZE)[1] == 0.0
    with pytest.raises(InvalidInput, match="no noise to change"):
        study_of("bowl", "ts/quiet", SIZE)
    with pytest.raises(InvalidInput, match="ts knows nothing beforehand"):
        study_of("bowl", "ts/flat", SIZE)
    with pytest.raises(InvalidInput, match="a variant must be one of"):
        study_of("bowl", "sottovoce/loud", SIZE)


@pytest.mark.parametrize("entry", ["sottovoce", "dp-hype", "ts", "solo/random"])
def test_an_entry_runs_and_is_not_run_again(entry: str, tmp_path: Path) -> None:
    task = TogetherTask(tmp_path, "failing", entry, SIZE, run=0, alone=2)
    task()
    before, curve = task.path.read_text(), curves_of([task])[0]
    assert curve.shape == (14,)
    known = curve[np.isfinite(curve)]
    assert known.size == (3 if entry == "dp-hype" else 14)
    assert np.all(known >= 0)
    task()
    assert task.path.read_text() == before
    task.path.write_text("[]")
    with pytest.raises(StorageError, match="delete it"):
        task.result()


def test_a_solo_search_meets_an_agent_of_the_same_run() -> None:
    from sottovoce.lab.peers.solo import one_agent

    problem, point = problem_named("bowl"), np.full(9, 0.5)
    objectives = problem.draw(4, Draws(0, 3).stream("objectives"))
    values = objectives.values(np.broadcast_to(point, (4, 1, 9)))[:, 0]
    agents = [one_agent(problem, 0, 3, 5, 4, n) for n in range(4)]
    assert [agent.truth(point) for agent in agents] == values.tolist()
    assert [agent.optimum for agent in agents] == objectives.optimum.tolist()
