from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import DP_FTS_DE, TS, Method
from sottovoce.federation.schedule import SoloProbability
from sottovoce.federation.study import FederatedStudy
from sottovoce.lab.experiments.theory import Terms, bound
from sottovoce.lab.problems.synthetic import SPACE
from sottovoce.privacy.release import Mechanism


def terms(agents: int = 200, clipped: float = 0.01, rounds: int = 3, **changes: Any) -> Terms:
    mechanism = replace(Mechanism(11.0, 0.25, 1.0), **changes.pop("mechanism", {}))
    method: Method = replace(DP_FTS_DE, mechanism=mechanism, **changes)
    return bound(FederatedStudy(SPACE, method, agents, rounds), clipped)


def test_the_terms_are_the_theorems_written_out() -> None:
    found = terms(rounds=2)
    study = FederatedStudy(SPACE, replace(DP_FTS_DE, mechanism=Mechanism(11.0, 0.25, 1.0)), 200, 2)
    noise = clipping = 0.0
    for t in (1, 2):
        share = 1 / math.sqrt(t)
        noise += share * 2 * study.weights(t - 1).max() / 0.25 * 1.0 * 11.0 * math.sqrt(50)
        clipping += share * 2 * 0.01
    assert found.noise == pytest.approx(noise)
    assert found.clipping == pytest.approx(clipping)
    assert found.added == pytest.approx(noise + clipping)
    assert found.others > 0


@pytest.mark.parametrize(
    ("low", "high", "ratio"),
    [
        ({"mechanism": {"noise": 1.0}}, {"mechanism": {"noise": 2.0}}, 2.0),
        ({"mechanism": {"participation": 0.5}}, {"mechanism": {"participation": 0.25}}, 2.0),
        ({"mechanism": {"clip": 5.0}}, {"mechanism": {"clip": 10.0}}, 2.0),
        ({"features": 25}, {"features": 100}, 2.0),
        ({"agents": 400}, {"agents": 200}, 2.0),
    ],
)
def test_the_noise_term_scales_as_the_theorem_says(
    low: dict[str, Any], high: dict[str, Any], ratio: float
) -> None:
    assert terms(**high).noise / terms(**low).noise == pytest.approx(ratio)


def test_more_regions_and_slower_decay_make_the_bound_worse() -> None:
    assert terms(regions=4).added > terms(regions=2).added
    assert terms(solo=SoloProbability("root")).added > terms(solo=SoloProbability("square")).added
    assert terms(clipped=0.5).clipping > terms(clipped=0.1).clipping


def test_methods_without_a_mechanism_and_impossible_shares_are_refused() -> None:
    with pytest.raises(InvalidInput, match="mechanism"):
        bound(FederatedStudy(SPACE, TS, 4, 2), 0.0)
    with pytest.raises(InvalidInput, match="clipped"):
        terms(clipped=1.5)
