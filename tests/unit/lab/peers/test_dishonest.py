"""Agents that lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import GP, SOTTOVOCE
from sottovoce.lab.peers.dishonest import one_in_five
from sottovoce.lab.peers.together import Federation, TogetherTask


def test_one_in_five_says_the_opposite_of_the_honest_mean_at_the_clip() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(10, 4)) + 2.0
    said = np.asarray(one_in_five(SOTTOVOCE)(vectors))
    clip = SOTTOVOCE.mechanism.clip  # type: ignore[union-attr]
    honest = [n for n in range(10) if n % 5]
    assert np.linalg.norm(said, axis=1) == pytest.approx(clip)  # these honest ones are all louder
    mean = said[honest].mean(axis=0)
    for liar in (0, 5):
        assert said[liar] == pytest.approx(-clip * mean / np.linalg.norm(mean))
    assert np.allclose(
        said[honest], vectors[honest] / np.linalg.norm(vectors[honest], axis=1)[:, None]
    )


def test_against_silence_there_is_nothing_to_say_and_without_a_clip_no_bound() -> None:
    assert np.array_equal(one_in_five(SOTTOVOCE)(np.zeros((6, 3))), np.zeros((6, 3)))
    with pytest.raises(InvalidInput, match="no clip"):
        one_in_five(GP)


def test_lies_change_what_is_learnt_and_not_what_is_spent(tmp_path: Path) -> None:
    size = Federation(agents=10, trials=8, epsilon=50.0)
    honest, lied = (
        TogetherTask(tmp_path, "bowl", entry, size, run=0)
        for entry in ("sottovoce", "sottovoce/dishonest")
    )
    honest(), lied()
    assert honest.result().epsilon == lied.result().epsilon
    assert honest.result().regret[:4] == lied.result().regret[:4]  # before anything is said
    assert honest.result().regret != lied.result().regret
