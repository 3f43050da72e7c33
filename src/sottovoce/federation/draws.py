"""Random draws, each asked for by its name and number.

Whoever needs a draw says which one it is: the coin of query 7, the noise of the message of round 3.
Where it comes from is the source's affair: an agent's own generator, or the streams of a simulated
run, which serve an agent that lives by itself the same numbers as one of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from sottovoce.arrays import Array

# The words name streams of a simulation's seed: another word is another number.
START = "start"  # initial points
COIN = "coin"  # alone, or by what was heard
OWN = "belief"  # noise of a draw of the own posterior; in a box its path and candidates as well
OWN_PRIOR = "prior"  # prior of such a draw, where points are listed
JOINT = "beside"  # factor on the shared function, and level
CANDIDATES = "candidates"  # of a search by expected improvement
SHARED = "shared"  # which peer; candidates of a search by the broadcast
SHARED_POSTERIOR = "common"  # weights of the shared function
REPEAT = "repeat"  # in place of a query tried before
MESSAGE = "message"  # prior and noise of a posterior draw that is sent

Recipe = Callable[[Any, int], tuple[Array, ...]]  # draws for n agents: arrays (n, ...)


class DrawSource(Protocol):
    """Where the draws of a batch of n agents come from."""

    def __call__(self, name: str, number: int, recipe: Recipe) -> tuple[Array, ...]:
        """The arrays (n, ...) that the recipe draws under this name and number."""


class OwnDraws:
    """The draws of one agent, from its own generator, in the order in which it asks."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def __call__(self, name: str, number: int, recipe: Recipe) -> tuple[Array, ...]:
        """What the recipe draws, for one."""
        return recipe(self.generator, 1)
