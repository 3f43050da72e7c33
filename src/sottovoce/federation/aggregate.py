"""What a round publishes of the agents' vectors, and what that spends."""

from __future__ import annotations

import numpy as np

from sottovoce.arrays import Array, FloatArray, IntArray
from sottovoce.errors import InvalidInput, PrivacyError
from sottovoce.federation.study import FederatedStudy
from sottovoce.privacy.events import DataFree, Event, NonPrivate
from sottovoce.privacy.noise import Source
from sottovoce.privacy.release import (
    Release,
    limited_sum,
    noise_only,
    release,
    sensitivity,
    unprotected,
)
from sottovoce.secure_sum.grid import released


def aggregate(
    study: FederatedStudy,
    round_number: int,
    vectors: Array,
    source: Source,
    shares: FloatArray | None = None,
) -> Release:
    """What a round publishes, from the vectors of all agents (N, M), zero rows for the absent.

    shares: where every agent adds its own noise, the sum of their normal draws (P·M,). This is
    then what the sum that nobody can open alone gives too, to its grid; simulation only.
    """
    method = study.method
    if study.sums is not None:
        return _with_shares(study, round_number, vectors, source, shares)
    if not method.shared.summed:
        return Release(np.array(vectors, dtype=np.float64), NonPrivate(source.label))
    weights = study.weights(round_number)
    if method.mechanism is None:
        return unprotected(vectors, weights, source.label)
    if method.noise_only:
        return noise_only(weights, method.features, method.mechanism, source)
    return release(vectors, weights, method.mechanism, source)


def _with_shares(
    study: FederatedStudy,
    round_number: int,
    vectors: Array,
    source: Source,
    shares: FloatArray | None,
) -> Release:
    mechanism, weights = study.method.mechanism, study.weights(round_number)
    if mechanism is None or shares is None or not source.simulation:
        raise PrivacyError("in this study no one party has all vectors, but in a simulation")
    everyone = np.ones(study.agents, dtype=np.bool_)
    total = limited_sum(vectors, weights, everyone, mechanism)
    scale = study.grid.share * sensitivity(weights, mechanism) / study.grid.limit
    noised = total + scale * np.reshape(shares, total.shape)
    return Release(noised, planned_event(study, source.label))


def planned_event(study: FederatedStudy, source: str) -> Event:
    """What each of the study's releases will spend."""
    method = study.method
    if not method.shared.exchanges or method.noise_only:
        return DataFree(source)
    if method.mechanism is None:
        return NonPrivate(source)
    if study.sums is not None:
        return study.grid.event(source)
    return method.mechanism.event(study.agents, source)


def summed(study: FederatedStudy, round_number: int, total: IntArray, source: str) -> Release:
    """What a round publishes of a sum (P·M,) in the grid's steps, noise and all."""
    mechanism = study.method.mechanism
    if mechanism is None:
        raise InvalidInput("a sum in shares needs a mechanism")
    vectors = released(total, study.weights(round_number), mechanism, study.grid)
    return Release(vectors, planned_event(study, source))
