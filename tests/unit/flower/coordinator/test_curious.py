"""What whoever sees a vector before the noise can make of it, as the threat model says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import POOLED_TS, SOTTOVOCE
from sottovoce.federation.study import FederatedStudy
from sottovoce.space import Category, Float, Integer, Space

SPACE = Space([Float("rate", 1e-5, 1e-1, log=True), Integer("depth", 2, 12), Float("share", 0, 1)])
MIXED = Space([Float("rate", 1e-5, 1e-1, log=True), Category("kind", ("a", "b", "c"))])


def told(study: FederatedStudy, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first vector of agent 3, before any clip."""
    agent = Agent(study, 3, seed=1)
    for value in values:
        agent.tell(agent.ask(), float(value))
    return np.asarray(agent.message().vector)


@pytest.mark.parametrize("space", [SPACE, MIXED], ids=["numbers", "mixed"])
@pytest.mark.parametrize("features", [16, 32])
def test_the_first_message_and_the_public_design_give_back_the_values_of_all_first_trials(
    space: Space, features: int
) -> None:
    study = FederatedStudy(space, replace(POOLED_TS, features=features), agents=5, rounds=4)
    values = np.random.default_rng(7).normal(40.0, 3.0, study.method.initial)
    vector = told(study, values)

    # the coordinator's side: it has the vector, and the study's public constants
    design = study.public_design[3]
    rows = study.features(np.array([space.encode(space.decode(point)) for point in design]))
    guessed, *_ = np.linalg.lstsq(rows.T, vector, rcond=None)

    assert study.method.features > study.method.initial
    standardised = (values - values.mean()) / values.std()
    np.testing.assert_allclose(guessed, standardised, atol=1e-8)


@pytest.mark.parametrize("clipped", [False, True], ids=["whole", "clipped"])
@pytest.mark.parametrize("space", [SPACE, MIXED], ids=["numbers", "mixed"])
def test_the_first_message_of_effects_gives_back_the_values_standardised_clipped_or_not(
    space: Space, clipped: bool
) -> None:
    study = FederatedStudy(space, SOTTOVOCE, agents=5, rounds=4)
    initial = study.method.initial
    values = np.random.default_rng(7).normal(40.0, 3.0, initial)
    vector = told(study, values)
    if clipped:
        vector = vector / np.linalg.norm(vector)

    # a message is a public linear map of the values standardised: the coordinator works it out
    # by asking what each value alone would have said
    speech = study.consensus.speech(study.consensus.prior, initial)
    design = study.latin_design[3]
    rows = study.effects(np.array([space.encode(space.decode(point)) for point in design]))
    unit, one = np.eye(initial), np.ones((initial, initial), bool)
    said = speech(np.broadcast_to(rows, (initial, *rows.shape)), unit, one).T
    guessed, *_ = np.linalg.lstsq(said, vector, rcond=None)

    assert study.method.features > initial
    standardised = (guessed - guessed.mean()) / guessed.std()  # whatever the clip's factor was
    np.testing.assert_allclose(standardised, (values - values.mean()) / values.std(), atol=1e-8)
