"""What a release was worth, from what everybody was sent: more than noise, or not.

Of noise alone |v|²/σ² has the χ² distribution with as many degrees of freedom as v has numbers.
What lies above that is what sites said. One ratio would hide how far noise reaches by chance, which
with few numbers is far: so what cannot be told from noise is said to be nothing.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from scipy.special import gammaincc

from sottovoce.federation.study import FederatedStudy
from sottovoce.privacy.ledger import Entry

Level = Literal["unprotected", "nothing", "little", "something", "much"]

CHANCE = 0.05  # of noise alone being as large: it passes for something in one round of twenty
SURE = 1e-4  # and for much in one of ten thousand


class Worth(NamedTuple):
    """How much of a release is what sites said: an estimate, and how sure it is."""

    level: Level
    signal_to_noise: float | None  # None: there is no noise
    chance: float | None  # of noise alone being as large
    said: str  # the same for a person


def worth(entry: Entry, study: FederatedStudy, speakers: int | None = None) -> Worth:
    """What the release of a round was worth.

    speakers: how many sites spoke; where each adds its share of the noise, fewer add less.
    """
    vectors, noise = entry.release.vectors, study.noise_of(entry.round)
    if noise == 0:
        return Worth("unprotected", None, None, "all of it: there is no noise")
    if study.sums is not None and speakers is not None:
        noise *= math.sqrt(min(max(speakers, 1), study.agents) / study.agents)
    square = float((vectors**2).sum()) / noise**2
    excess = max(0.0, square / vectors.size - 1)
    chance = float(gammaincc(vectors.size / 2, square / 2))
    level, said = _words(excess / (1 + excess), chance)
    return Worth(level, math.sqrt(excess), chance, said)


def _words(share: float, chance: float) -> tuple[Level, str]:
    if chance > CHANCE:
        return "nothing", "nothing: it cannot be told from noise"
    level: Level = "something" if share >= 0.2 else "little"
    if share >= 0.5 and chance < SURE:
        level = "much"
    return level, f"{level}: {max(share, 0.01):.0%} of it is signal"
