from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import DP_FTS, FTS, POOLED_TS, TS, Method
from sottovoce.federation.parts import SHARED_MODELS, SharedModel
from sottovoce.federation.schedule import ReleaseSchedule
from sottovoce.federation.study import FederatedStudy
from sottovoce.space import Float, Space

SPACE = Space([Float("x", 0.0, 1.0)])


def study_of(method: Method) -> FederatedStudy:
    return FederatedStudy(SPACE, method, agents=5, rounds=9)


def heard(method: Method, rows: int = 1) -> SharedModel:
    """The method's shared model after a broadcast."""
    shared = method.shared(study_of(method))
    shared.hear(np.ones((rows, method.features)))
    return shared


def test_the_shared_models_have_these_names() -> None:
    heard = ("broadcast", "peer", "pooled", "consensus", "informed-consensus")
    assert SHARED_MODELS.names == ("none", "usual", *heard)


@pytest.mark.parametrize("method", [TS, FTS, DP_FTS, POOLED_TS])
def test_before_a_broadcast_there_is_nothing_to_go_by(method: Method) -> None:
    shared = method.shared(study_of(method))
    assert not any(shared.guides(t) for t in range(1, 5))


def test_what_was_followed_is_forgotten_after_the_last_release_and_what_was_learnt_is_not() -> None:
    briefly = heard(replace(DP_FTS, releases=ReleaseSchedule(last=2)))
    assert [briefly.guides(t) for t in range(1, 6)] == [True, True, True, False, False]
    assert all(heard(POOLED_TS).guides(t) for t in range(1, 20))
    assert all(heard(DP_FTS).guides(t) for t in range(1, 20))


def test_a_broadcast_has_as_many_vectors_as_its_kind_of_sharing_needs() -> None:
    regions = replace(DP_FTS, regions=3)
    rows = {
        method.shared_model: [
            method.shared.broadcast_rows(study_of(method), number) for number in (0, 1, 2, 9)
        ]
        for method in (FTS, regions, POOLED_TS)
    }
    assert rows == {"peer": [5] * 4, "broadcast": [3] * 4, "pooled": [1, 1, 2, 4]}


def test_of_what_is_not_shared_nothing_can_be_asked() -> None:
    with pytest.raises(InvalidInput, match="'ts' sends nothing"):
        TS.shared.broadcast_rows(study_of(TS), 0)
    with pytest.raises(InvalidInput, match="'dp-fts' learns no shared function"):
        heard(DP_FTS).mean_function()


def test_a_pooled_model_knows_what_it_knew_after_the_first_releases() -> None:
    study = study_of(POOLED_TS)
    releases = np.random.default_rng(0).standard_normal((3, POOLED_TS.features))
    shared = POOLED_TS.shared(study)
    np.testing.assert_array_equal(shared.mean_function().weights, np.zeros(POOLED_TS.features))
    shared.hear(releases)
    for count, wanted in ((1, releases[:1]), (2, releases[:2]), (None, releases)):
        found = shared.mean_function(count).weights
        np.testing.assert_array_equal(found, study.shared_posterior(wanted).mean)
