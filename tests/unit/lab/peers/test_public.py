"""What other families' public data teach."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.peers import public
from sottovoce.lab.peers.public import fitted_weights, kinds_of, public_model, public_state
from sottovoce.lab.peers.together import Federation, study_of
from sottovoce.lab.problems import problem_named

SIZE = Federation(agents=4, trials=8, epsilon=4.0)


@pytest.fixture(autouse=True)
def few_families(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(public, "problems", lambda split: ("branin", "steep", "bowl", "choices"))
    public.known_weights.cache_clear()
    yield
    public.known_weights.cache_clear()


def test_nothing_is_sent_and_nothing_spent() -> None:
    study, spent = study_of("ridge", "sottovoce/public", SIZE)
    assert spent == 0.0
    assert not study.method.shared.exchanges
    assert study.method.mechanism is None


def test_features_are_alike_if_their_parameters_are_of_a_kind() -> None:
    space = problem_named("bowl").setting.space
    study = study_of("bowl", "sottovoce/public", SIZE)[0]
    kinds = kinds_of(space, study.effects)
    assert len(kinds) == study.effects.count
    assert set(kinds[:4]) == {(("number", k),) for k in (1, 2, 3, 4)}  # x
    assert set(kinds[4:8]) == {(("log", k),) for k in (1, 2, 3, 4)}  # rate
    assert (("choice", 0), ("log", 1)) in kinds
    state = public_state(study, "bowl")
    by_kind: dict[object, set[float]] = {}
    for kind, mean in zip(kinds, state.mean.tolist(), strict=True):
        by_kind.setdefault(kind, set()).add(mean)
        if any(name == "choice" for name, _ in kind):
            assert mean == 0.0
    assert all(len(means) == 1 for means in by_kind.values())
    assert np.all(np.diag(state.covariance) > 0)


def test_a_function_that_is_best_in_the_middle_has_a_negative_second_wave() -> None:
    kinds, weights = fitted_weights("bowl")
    second = [w for kind, w in zip(kinds, weights, strict=True) if kind == (("number", 2),)]
    assert np.mean(second) < 0


def test_the_family_that_is_searched_is_left_out() -> None:
    study: FederatedStudy = study_of("bowl", "sottovoce/public", SIZE)[0]
    without, whole = public_state(study, "bowl"), public_state(study, "ridge")
    assert not np.allclose(without.mean, whole.mean)
    assert public_model("svm:data=cancer") == "public, without svm"
