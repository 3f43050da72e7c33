"""The random draws of a simulated run, each kind from a stream of its own.

Streams are named, and a name's draws do not depend on what else is drawn: two methods run with
the same seed meet the same objectives, initial points, coins and observation noise, so their
difference is the method's.
"""

from __future__ import annotations

import zlib

import numpy as np

from sottovoce.errors import check


class Draws:
    """The streams of one run of one seed."""

    def __init__(self, seed: int, run: int) -> None:
        check(seed >= 0 and run >= 0, "seed and run must be at least 0", seed=seed, run=run)
        self.seed = seed
        self.run = run

    def stream(self, name: str, round_number: int = 0) -> np.random.Generator:
        """The generator of that name (and round), always from its beginning."""
        key = (self.run, zlib.crc32(name.encode()), round_number)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def seed_for(self, name: str) -> int:
        """A whole number of that name, for what takes a seed."""
        return int(self.stream(name).integers(2**63))
