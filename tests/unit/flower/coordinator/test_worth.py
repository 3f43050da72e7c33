from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.methods import DP_FTS
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.coordinator.worth import CHANCE, worth
from sottovoce.privacy.ledger import Entry
from sottovoce.privacy.release import Mechanism, Release
from sottovoce.secure_sum.terms import SecureSum
from sottovoce.space import Float, Space

FEATURES = 20
METHOD = replace(DP_FTS, features=FEATURES, mechanism=Mechanism(clip=5.0, participation=1.0))
STUDY = FederatedStudy(Space([Float("x", 0.0, 1.0)]), METHOD, 10, 5)
NOISE = STUDY.noise_of(0)


def entry(vectors: np.ndarray, study: FederatedStudy = STUDY) -> Entry:
    return Entry(0, Release(vectors, planned_event(study, "test")), "")


def noise(seed: int) -> np.ndarray:
    return NOISE * np.random.default_rng(seed).standard_normal((1, FEATURES))


def test_noise_alone_says_nothing_but_in_one_round_of_a_hundred() -> None:
    said = [worth(entry(noise(seed)), STUDY).level for seed in range(2000)]
    assert "much" not in said
    assert abs(1 - said.count("nothing") / len(said) - CHANCE) < 0.015


@given(st.floats(1.2, 1e3), st.integers(0, 99))
def test_what_is_louder_is_never_worth_less(factor: float, seed: int) -> None:
    order = ["nothing", "little", "something", "much"]
    there = noise(seed)
    levels = [order.index(worth(entry(k * there), STUDY).level) for k in (1, factor, factor**2)]
    assert levels == sorted(levels)


def test_a_release_far_above_its_noise_is_said_to_be_so_with_its_share() -> None:
    found = worth(entry(np.full((1, FEATURES), 3 * NOISE)), STUDY)
    assert found.level == "much"
    assert found.signal_to_noise == pytest.approx(8**0.5)
    assert found.said == "much: 89% of it is signal"


def test_where_sites_add_shares_of_the_noise_fewer_speakers_have_added_less() -> None:
    study = replace(STUDY, sums=SecureSum(2))
    there = np.full((1, FEATURES), 1.1 * study.noise_of(0))
    assert worth(entry(there, study), study).level == "nothing"
    assert worth(entry(there, study), study, speakers=10).level == "nothing"
    assert worth(entry(there, study), study, speakers=3).level == "much"
    assert worth(entry(0 * there, study), study, speakers=0).level == "nothing"


def test_without_noise_there_is_nothing_to_tell_apart() -> None:
    open_ = replace(STUDY, method=replace(METHOD, mechanism=None))
    assert worth(entry(np.ones((1, FEATURES))), open_).level == "unprotected"
