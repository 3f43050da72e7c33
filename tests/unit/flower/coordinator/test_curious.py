"""What a curious coordinator can make of all that it holds, as the threat model says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import POOLED_TS, SOTTOVOCE
from sottovoce.federation.study import FederatedStudy
from sottovoce.privacy.noise import SystemEntropy
from sottovoce.secure_sum.grid import released, rounded, spoken
from sottovoce.secure_sum.keys import SIGNATURE, Identity
from sottovoce.secure_sum.protocol import Terms, answered, opened, speech
from sottovoce.secure_sum.terms import SecureSum
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


def test_where_nobody_is_trusted_the_same_guess_is_no_better_than_none() -> None:
    agents, features = 5, 16
    method = replace(POOLED_TS, features=features, initial=6)
    sums = SecureSum(unreliable=2)
    study = FederatedStudy(SPACE, method, agents=agents, rounds=4, sums=sums)
    mechanism, weights = study.method.mechanism, study.weights(0)
    assert mechanism is not None
    who = [Identity.generate() for _ in range(agents)]
    keys = tuple(each.public for each in who)
    terms = Terms(study.fingerprint, study.grid, sums.committee(agents), keys)
    secret, alike = np.random.default_rng(3), []
    for _ in range(12):
        packets, truths = [], []
        for n in range(agents):
            agent = Agent(study, n, seed=n)
            values = secret.normal(40.0, 3.0, study.method.initial)
            for value in values:
                agent.tell(agent.ask(), float(value))
            truths.append((values - values.mean()) / values.std())
            steps = rounded(agent.message().vector, n, weights, mechanism, study.grid)
            packets.append(speech(terms, 0, n, spoken(steps, study.grid, SystemEntropy()), who[n]))
        answers = [
            answered(terms, 0, m, {n: packets[n][m] for n in range(agents)}, who[m])
            for m in range(agents)
        ]

        # the coordinator's side: it has packets that do not open to it, answers, and their sum
        total = opened(terms, 0, range(agents), answers)
        published = released(total, weights, mechanism, study.grid)[0]
        for n in range(agents):
            points = [SPACE.encode(SPACE.decode(point)) for point in study.public_design[n]]
            rows = study.features(np.array(points))
            guessed, *_ = np.linalg.lstsq(rows.T, published * agents, rcond=None)
            alike.append(float(np.corrcoef(guessed, truths[n])[0, 1]))
            for member, packet in enumerate(packets[n]):
                stolen = who[(member + 1) % agents].open(packet[SIGNATURE:], b"")
                assert stolen is None
    # from the vector itself the correlation is 1; here it is within what chance gives
    chance = 1 / np.sqrt(len(alike) * (study.method.initial - 1))
    assert abs(float(np.mean(alike))) < 4 * chance
    assert chance < 0.07


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

    # a message is a public linear map of how far the values standardised are from what is usual:
    # the coordinator works it out by asking what each value alone would have said
    speech = study.consensus.speech(study.consensus.prior, initial)
    design = study.latin_design[3]
    rows = study.effects(np.array([space.encode(space.decode(point)) for point in design]))
    usual = rows @ study.consensus.before.mean
    unit, one = usual + np.eye(initial), np.ones((initial, initial), bool)
    said = speech(np.broadcast_to(rows, (initial, *rows.shape)), unit, one).T
    found, *_ = np.linalg.lstsq(said, vector, rcond=None)

    assert study.method.features > initial
    # whatever the clip's factor was: usual + found/factor has length √n, as what is standardised
    factor = np.roots([found @ found, 2 * found @ usual, usual @ usual - initial]).max()
    guessed = usual + factor * found
    np.testing.assert_allclose(guessed, (values - values.mean()) / values.std(), atol=1e-8)
