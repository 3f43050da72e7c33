"""What whoever sees a vector before the noise can make of it, as the threat model says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import SOTTOVOCE
from sottovoce.federation.study import FederatedStudy
from sottovoce.space import Category, Float, Integer, Space

SPACE = Space([Float("rate", 1e-5, 1e-1, log=True), Integer("depth", 2, 12), Float("share", 0, 1)])
MIXED = Space([Float("rate", 1e-5, 1e-1, log=True), Category("kind", ("a", "b", "c"))])


@pytest.mark.parametrize("space", [SPACE, MIXED], ids=["numbers", "mixed"])
@pytest.mark.parametrize("features", [16, 32])
def test_the_first_message_and_the_public_design_give_back_the_values_of_all_first_trials(
    space: Space, features: int
) -> None:
    study = FederatedStudy(space, replace(SOTTOVOCE, features=features), agents=5, rounds=4)
    agent, secret = Agent(study, 3, seed=1), np.random.default_rng(7)
    values = secret.normal(40.0, 3.0, study.method.initial)
    for value in values:
        agent.tell(agent.ask(), float(value))
    vector = agent.message().vector

    # the coordinator's side: it has the vector, and the study's public constants
    design = study.public_design[3]
    rows = study.features(np.array([space.encode(space.decode(point)) for point in design]))
    guessed, *_ = np.linalg.lstsq(rows.T, vector, rcond=None)

    assert study.method.features > study.method.initial
    standardised = (values - values.mean()) / values.std()
    np.testing.assert_allclose(guessed, standardised, atol=1e-8)
