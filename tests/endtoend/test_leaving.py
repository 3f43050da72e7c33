"""Sites whose objective fails in every trial leave before they speak."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.trial import Trial
from tests.endtoend.parties import AGENTS, FILES, Parties

from sottovoce.errors import ProtocolError


def broken(trial: Trial) -> float:
    raise RuntimeError("patient 12345")


@pytest.mark.parametrize("method", FILES)
def test_when_every_trial_of_every_site_fails_nothing_is_released_and_nothing_spent(
    tmp_path: Path, method: str
) -> None:
    parties = Parties(tmp_path, FILES[method], broken)
    with pytest.raises(ProtocolError, match=r"no site took part in round 0.*nothing was spent"):
        parties.run()
    assert parties.released == 0
    assert parties.said == {}
    assert [line["event"] for line in parties.journal[1:-1]] == ["left"] * AGENTS
    assert "patient" not in str(parties.journal)


@pytest.mark.parametrize("method", FILES)
def test_a_site_that_left_counts_as_absent_and_comes_back_when_it_is_mended(
    tmp_path: Path, method: str
) -> None:
    parties = Parties(tmp_path, FILES[method])
    sound, parties.sites[1] = parties.sites[1], parties.site(1, broken)
    parties.run(1)
    events = [line["event"] for line in parties.journal if line["event"] != "answered"]
    assert events == ["opened", "left", "closed"]
    closed = parties.journal[-1]
    assert (closed["spoke"], closed["left"], closed["absent"]) == (AGENTS - 1, 1, 0)
    parties.sites[1] = sound
    parties.run()
    assert parties.journal[-1]["done"] == AGENTS
    assert [line["event"] for line in parties.journal].count("left") == 1
