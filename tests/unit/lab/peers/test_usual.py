"""How the table of what is usual is made."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.gp.usual import WEIGHTS, even, kinds_of
from sottovoce.lab.peers.together import Federation, study_of
from sottovoce.lab.peers.usual import fitted_weights, table_without
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.suite import problems, split_of

SIZE = Federation(agents=4, trials=8, epsilon=4.0)
FEW = ("branin", "steep", "bowl", "choices")


def test_features_are_alike_if_their_parameters_are_of_a_kind() -> None:
    space = problem_named("bowl").setting.space
    study = study_of("bowl", "sottovoce", SIZE)[0]
    kinds = kinds_of(space, study.effects)
    assert len(kinds) == study.effects.count
    assert set(kinds[:4]) == {(("number", k),) for k in (1, 2, 3, 4)}  # x
    assert set(kinds[4:8]) == {(("log", k),) for k in (1, 2, 3, 4)}  # rate
    assert (("choice", 0), ("log", 1)) in kinds
    before = study.consensus.before
    by_kind: dict[object, set[tuple[float, float]]] = {}
    for kind, pair in zip(kinds, zip(*before, strict=True), strict=True):
        by_kind.setdefault(kind, set()).add(pair)
    assert all(len(pairs) == 1 for pairs in by_kind.values())


def test_a_function_that_is_best_in_the_middle_has_a_negative_second_wave() -> None:
    kinds, weights = fitted_weights("bowl")
    second = [w for kind, w in zip(kinds, weights, strict=True) if kind == (("number", 2),)]
    assert np.mean(second) < 0


def test_a_family_that_is_left_out_teaches_nothing() -> None:
    whole, without = table_without(names=FEW), table_without("bowl", FEW)
    assert whole != without
    assert without == table_without(names=[name for name in FEW if name != "bowl"])


def test_models_weigh_as_much_as_functions_however_many_there_are() -> None:
    kind = (("log", 2),)
    function, model = (table_without(names=[name])[kind] for name in ("bowl", "svm"))
    both = table_without(names=["svm", "bowl", "svm:data=wine"])[kind]
    wine = table_without(names=["svm:data=wine"])[kind]
    for j in (0, 1):
        wanted = 0.5 * function[j] + 0.25 * model[j] + 0.25 * wine[j]
        assert both[j] == pytest.approx(wanted)
    assert both[2] == 2  # families


def test_what_is_usual_is_learnt_from_no_test_problem() -> None:
    assert {split_of(name) for name in problems("design")} == {"design"}


def test_the_table_is_what_its_command_makes() -> None:
    made = table_without()
    assert made.keys() == WEIGHTS.keys()
    for kind, row in made.items():
        np.testing.assert_allclose(WEIGHTS[kind], row, atol=2e-3)
        assert even(kind) or WEIGHTS[kind][0] == 0.0
