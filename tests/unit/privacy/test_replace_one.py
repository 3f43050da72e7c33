"""ε against one record at a site replaced by another: an agent's vector v becomes any v'.

In units of the sensitivity: |v|, |v'| ≤ 1, noise of standard deviation z.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad

from sottovoce.errors import InvalidInput, UnsupportedEvent
from sottovoce.privacy.accountant import ACCOUNTANTS, epsilon, every_epsilon, replace_one
from sottovoce.privacy.budget import noise_for
from sottovoce.privacy.events import DataFree, NonPrivate, SubsampledGaussian

DELTA = 1e-5
WHOLE = SubsampledGaussian(3.0, 1.0, 50)
SAMPLED = SubsampledGaussian(3.0, 0.3, 50)
FIXED = SubsampledGaussian(3.0, 0.3, 50, "fixed")


def mixed(x: float, z: float, q: float, centre: float) -> float:
    """Density of a release when the agent's vector is `centre`, all else zero."""
    absent, present = (math.exp(-(((x - c) / z) ** 2) / 2) for c in (0.0, centre))
    return ((1 - q) * absent + q * present) / (z * math.sqrt(2 * math.pi))


def delta_of(eps: float, z: float, q: float, v: float, other: float) -> float:
    """The hockey-stick divergence of the two releases, integrated."""

    def gap(x: float) -> float:
        return max(0.0, mixed(x, z, q, v) - math.exp(eps) * mixed(x, z, q, other))

    edges = np.linspace(-12 * z - 1, 12 * z + 1, 60)
    return math.fsum(quad(gap, a, b, epsabs=1e-16, limit=200)[0] for a, b in pairwise(edges))


@pytest.mark.parametrize(("target", "replaced"), [(4.0, 9.08), (1.0, 2.15)])
def test_four_releases_cost_a_record_more_than_twice_what_they_cost_a_site(
    target: float, replaced: float
) -> None:
    z = noise_for(target, DELTA, WHOLE, 4)
    found = replace_one({SubsampledGaussian(z, 1.0, 50): 4}, DELTA)
    assert round(found, 2) == replaced  # as the pages say


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_without_sampling_it_is_epsilon_at_half_the_noise(name: str) -> None:
    half = SubsampledGaussian(1.5, 1.0, 50)
    assert replace_one([WHOLE] * 4, DELTA, name) == epsilon([half] * 4, DELTA, name)


@pytest.mark.parametrize(("z", "q"), [(1.0, 0.25), (2.0, 0.5), (0.5, 0.1), (4.0, 0.9)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_under_sampling_it_is_what_the_worst_pair_of_vectors_gives(
    z: float, q: float, delta: float
) -> None:
    eps = replace_one([SubsampledGaussian(z, q, 50)], delta)
    assert delta_of(eps, z, q, 1.0, -1.0) == pytest.approx(delta, rel=1e-4)
    for v, other in ((1.0, 0.0), (0.0, 1.0), (-1.0, 1.0), (1.0, -0.5), (0.3, -1.0)):
        assert delta_of(eps, z, q, v, other) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.5, 2.5, 3.0])
@pytest.mark.parametrize("length", [0.5, 1.0])
def test_vectors_that_are_not_opposite_are_no_worse(angle: float, length: float) -> None:
    z, q, delta = 1.0, 0.4, 1e-3
    eps = replace_one([SubsampledGaussian(z, q, 50)], delta)
    axis = np.linspace(-9, 9, 600)
    x, y = np.meshgrid(axis, axis)

    def density(a: float, b: float) -> NDArray[np.float64]:
        return np.asarray(np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2) / (2 * math.pi))

    first = (1 - q) * density(0, 0) + q * density(1, 0)
    at = length * math.cos(angle), length * math.sin(angle)
    second = (1 - q) * density(0, 0) + q * density(*at)
    for one, two in ((first, second), (second, first)):
        gap = np.maximum(0, one - math.exp(eps) * two).sum() * (axis[1] - axis[0]) ** 2
        assert gap <= delta * (1 + 1e-3)


def test_two_sampled_releases_stay_within_what_is_answered() -> None:
    # both directions of loss count when releases are composed: integrated over the plane
    z, q, delta = 1.0, 0.3, 1e-3
    eps = replace_one([SubsampledGaussian(z, q, 50)] * 2, delta)
    axis = np.linspace(-10, 10, 2001)
    first, second = ([mixed(x, z, q, c) for x in axis] for c in (1.0, -1.0))
    gap = np.outer(first, first) - math.exp(eps) * np.outer(second, second)
    found = np.maximum(0, gap).sum() * (axis[1] - axis[0]) ** 2
    assert 0.999 * delta < found <= delta * (1 + 1e-5)


def test_a_fixed_sample_is_accounted_for_replacement_already() -> None:
    assert every_epsilon([FIXED] * 3, DELTA, replace_one) == every_epsilon([FIXED] * 3, DELTA)
    assert set(every_epsilon([FIXED], DELTA, replace_one)) == {"rdp"}


def test_under_sampling_only_pld_has_an_answer() -> None:
    assert set(every_epsilon([SAMPLED, WHOLE], DELTA, replace_one)) == {"pld"}
    with pytest.raises(UnsupportedEvent, match=r"moments has no sound bound .* replaced .* pld"):
        replace_one([SAMPLED], DELTA, "moments")


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_exposure_is_infinite_and_silence_is_free(name: str) -> None:
    assert replace_one([SAMPLED, NonPrivate()], DELTA, name) == math.inf
    assert replace_one([DataFree()], DELTA, name) == 0.0


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_what_cannot_be_is_refused(name: str) -> None:
    unknown: Any = object()
    with pytest.raises(UnsupportedEvent):
        replace_one([unknown], DELTA, name)
    with pytest.raises(InvalidInput, match="delta"):
        replace_one([WHOLE], 0.0, name)


def test_an_unknown_accountant_is_refused_whatever_happened() -> None:
    for event in (WHOLE, SAMPLED, FIXED):
        with pytest.raises(InvalidInput, match="abacus"):
            replace_one([event], DELTA, "abacus")
