"""Where the coins and the noise of a release come from.

`SystemEntropy` is for real use: coins from the operating system, noise from OpenDP's exact
sampler, which is safe against attacks on the low bits of floating-point noise. `Seeded` can be
repeated, so anyone who knows the seed can subtract the noise: it is for simulation only. Where
every agent adds its own share of the noise that comes from the first too; `Drawn` simulates it.
"""

from __future__ import annotations

import os
import random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import MissingExtra, check

LARGEST_SCALE = 2.0**58  # of whole-number noise: 64 bits hold 32 times that


class Source(Protocol):
    """Coins for the sampling, noise for the sum."""

    @property
    def label(self) -> str:
        """What the event records."""

    @property
    def simulation(self) -> bool:
        """Whether the draws can be repeated, hence protect nobody."""

    def coins(self, count: int, probability: float) -> NDArray[np.bool_]:
        """`count` independent coins, each true with the probability given."""

    def subset(self, count: int, size: int) -> NDArray[np.bool_]:
        """A uniformly drawn subset of `size` out of `count`, as a mask."""

    def add_gaussian(self, values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """The values, each with independent N(0, scale²) added."""


class ShareSource(Protocol):
    """One agent's own share of a sum's noise."""

    @property
    def simulation(self) -> bool:
        """Whether the draws can be repeated, hence protect nobody."""

    def add_discrete_gaussian(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """The whole numbers, each with an independent discrete Gaussian of that scale added."""


class SystemEntropy:
    """Randomness that nobody can repeat."""

    label = "os-entropy"
    simulation = False

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError as error:
            raise MissingExtra("noise from system entropy", "deployment") from error
        dp.enable_features("contrib")  # OpenDP asks for this before it makes any measurement
        self._dp = dp

    def coins(self, count: int, probability: float) -> NDArray[np.bool_]:
        """True with the given probability, to within 2⁻⁵³."""
        bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(11)
        return bits.astype(np.float64) < probability * 2.0**53

    def subset(self, count: int, size: int) -> NDArray[np.bool_]:
        """A uniform subset, as a mask."""
        mask = np.zeros(count, dtype=np.bool_)
        mask[random.SystemRandom().sample(range(count), size)] = True
        return mask

    def add_gaussian(self, values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """OpenDP's discrete Gaussian on the grid of all doubles."""
        if scale == 0:
            return values.copy()
        domain = self._dp.vector_domain(self._dp.atom_domain(T=float, nan=False))
        mechanism = self._dp.m.make_gaussian(domain, self._dp.l2_distance(T=float), scale=scale)
        return np.asarray(mechanism(values.ravel().tolist()), dtype=float).reshape(values.shape)

    def add_discrete_gaussian(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """OpenDP's discrete Gaussian, in 64 bits: its plain `int` saturates silently at 2³¹."""
        check(0 < scale < LARGEST_SCALE, f"scale must be in (0, {LARGEST_SCALE:g})", scale=scale)
        domain = self._dp.vector_domain(self._dp.atom_domain(T="i64"))
        mechanism = self._dp.m.make_gaussian(domain, self._dp.l2_distance(T=float), scale=scale)
        return np.asarray(mechanism(values.tolist()), dtype=np.int64)


class Seeded:
    """Repeatable randomness. Simulation only: whoever has the seed can remove the noise."""

    simulation = True

    def __init__(self, seed: int) -> None:
        check(
            isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0,
            "seed must be a whole number of at least 0",
            seed=seed,
        )
        self.label = f"simulation-only, seed {seed}"
        self._generator = np.random.default_rng(seed)

    def coins(self, count: int, probability: float) -> NDArray[np.bool_]:
        """Coins from the seed."""
        return self._generator.random(count) < probability

    def subset(self, count: int, size: int) -> NDArray[np.bool_]:
        """A uniform subset from the seed, as a mask."""
        mask = np.zeros(count, dtype=np.bool_)
        mask[self._generator.permutation(count)[:size]] = True
        return mask

    def add_gaussian(self, values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """The values plus floating-point Gaussian noise from the seed."""
        return values + scale * self._generator.standard_normal(values.shape)


class Drawn:
    """A share of noise from normal numbers that were drawn before. Simulation only."""

    simulation = True

    def __init__(self, normals: NDArray[np.float64]) -> None:
        self._normals = normals

    def add_discrete_gaussian(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """The whole numbers plus the normal ones, scaled and rounded."""
        return values + np.rint(scale * self._normals).astype(np.int64)
