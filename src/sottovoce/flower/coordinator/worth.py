"""What a release was worth, from what everybody was sent: more than noise, or not.

Of noise alone |v|²/σ² has the χ² distribution with as many degrees of freedom as v has numbers.
What lies above that is what sites said. One ratio would hide how far noise reaches by chance, which
with few numbers is far: so what cannot be told from noise is said to be nothing.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from scipy.stats import chi2

from sottovoce.federation.study import FederatedStudy
from sottovoce.privacy.ledger import Entry

Level = Literal["unprotected", "nothing", "a little", "much"]

CHANCE = 0.01  # noise alone looks like more than noise in one round of a hundred
SURE = 1e-4  # and like much more in one of ten thousand
WORDS: dict[Level, str] = {
    "unprotected": "no noise was added",
    "nothing": "this round said nothing: noise alone would look like it",
    "a little": "this round said something, under more noise than that",
    "much": "this round said more than its noise",
}


class Worth(NamedTuple):
    """How much of a release is what sites said."""

    level: Level
    share: float | None  # of |v|², an estimate; None where it says nothing, or there is no noise

    @property
    def words(self) -> str:
        """The same for a person."""
        return WORDS[self.level]


def worth(entry: Entry, study: FederatedStudy, speakers: int | None = None) -> Worth:
    """What the release of a round was worth.

    speakers: how many sites spoke; where each adds its share of the noise, fewer add less.
    """
    vectors, noise = entry.release.vectors, study.noise_of(entry.round)
    if noise == 0:
        return Worth("unprotected", None)
    if study.sums is not None and speakers is not None:
        noise *= math.sqrt(min(max(speakers, 1), study.agents) / study.agents)
    heard = float((vectors**2).sum()) / noise**2
    by_chance = float(chi2.sf(heard, vectors.size))
    if by_chance > CHANCE:
        return Worth("nothing", None)
    share = 1 - vectors.size / heard
    return Worth("much" if share >= 0.5 and by_chance < SURE else "a little", share)
