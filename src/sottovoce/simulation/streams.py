"""The random draws of a simulated run, each kind from a stream of its own.

Streams are named, and a name's draws do not depend on what else is drawn: two methods run with
the same seed meet the same objectives, initial points, coins and observation noise, so their
difference is the method's. Nor do they depend on how many agents are simulated at a time: every
`chunk` of agents has streams of its own.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import TypeAlias

import numpy as np

from sottovoce.arrays import Array
from sottovoce.device import NUMPY, Device, DeviceStream
from sottovoce.errors import check
from sottovoce.federation.draws import DrawSource, Recipe
from sottovoce.federation.study import check_agent

CHUNK = 4096
DEVICE_CHUNK = 32768  # keeps a GPU busy, and below 65536, where some batched kernels end


Stream: TypeAlias = np.random.Generator | DeviceStream


class Draws:
    """The streams of one run of one seed.

    Args:
        seed: of the simulation.
        run: its number; runs of one seed differ in all draws.
        chunk: how many agents share a stream.
        on_device: agents' draws come from the device's own generator, when the run is on one.
            That is faster, and gives other numbers of the same distribution.
        starts: so many runs in a row share their objectives, and differ in all other draws.

    Example:
        >>> draws = Draws(seed=0, run=3)
        >>> draws.stream("coin", 7).random() == Draws(seed=0, run=3).stream("coin", 7).random()
        True
    """

    def __init__(
        self,
        seed: int,
        run: int,
        *,
        chunk: int | None = None,
        on_device: bool = False,
        starts: int = 1,
    ) -> None:
        check(seed >= 0 and run >= 0, "seed and run must be at least 0", seed=seed, run=run)
        check(starts >= 1, "starts must be at least 1", starts=starts)
        default = DEVICE_CHUNK if on_device else CHUNK
        self.seed = seed
        self.run = run
        self.chunk = default if chunk is None else chunk
        self.on_device = on_device
        self.starts = starts
        check(self.chunk >= 1, "chunk must be at least 1", chunk=chunk)

    def stream(self, name: str, number: int = 0, chunk: int = 0) -> np.random.Generator:
        """The generator of that name (and number, and chunk), always from its beginning."""
        return np.random.default_rng(self._sequence(name, number, chunk))

    def seed_for(self, name: str, number: int = 0, chunk: int = 0) -> int:
        """A whole number of that name, for what takes a seed."""
        return int(self.stream(name, number, chunk).integers(2**63))

    def _sequence(self, name: str, number: int, chunk: int) -> np.random.SeedSequence:
        run = self.run // self.starts if name == "objectives" else self.run
        key = (run, zlib.crc32(name.encode()), number)
        return np.random.SeedSequence(self.seed, spawn_key=(*key, chunk) if chunk else key)


class Dealer:
    """Deals the draws of a run of N agents to batches of them, as arrays of the device."""

    def __init__(self, draws: Draws, agents: int, device: Device = NUMPY) -> None:
        rule = "draws on a device need a run on a device: simulate(..., device='cuda')"
        check(device.torch is not None or not draws.on_device, rule)
        self._draws, self._agents, self._device = draws, agents, device
        # the chunk dealt last, by name: batches smaller than a chunk come back for the rest of it
        self._last: dict[str, tuple[tuple[int, int], tuple[Array, ...]]] = {}

    def to(self, agents: slice) -> DrawSource:
        """The draws of a slice of all agents."""
        return partial(self._deal, agents)

    def _deal(self, who: slice, name: str, number: int, recipe: Recipe) -> tuple[Array, ...]:
        """The arrays (n, ...) that the recipe draws, for the n agents of a slice of all."""
        size = self._draws.chunk
        parts = []
        for chunk in range(who.start // size, -(-who.stop // size)):
            begin = chunk * size
            here = slice(max(who.start - begin, 0), who.stop - begin)
            whole = self._whole(name, number, chunk, recipe)
            parts.append([array[here] for array in whole])
        if len(parts) == 1:
            return tuple(parts[0])
        return tuple(self._device.xp.concat(arrays) for arrays in zip(*parts, strict=True))

    def _whole(self, name: str, number: int, chunk: int, recipe: Recipe) -> tuple[Array, ...]:
        key, arrays = self._last.get(name, ((-1, -1), ()))
        if key != (number, chunk):
            self._last.pop(name, None)  # before the next is drawn, to hold only one
            count = min(self._draws.chunk, self._agents - chunk * self._draws.chunk)
            arrays = recipe(self.stream(name, number, chunk), count)
            arrays = tuple(self._device.array(array) for array in arrays)
            self._last[name] = ((number, chunk), arrays)
        return arrays

    def stream(self, name: str, number: int = 0, chunk: int = 0) -> Stream:
        """The generator itself, the device's where it is to draw."""
        if not self._draws.on_device:
            return self._draws.stream(name, number, chunk)
        return DeviceStream(self._device, self._draws.seed_for(name, number, chunk))


def share_recipe(random: Stream, count: int, size: int) -> tuple[Array]:
    """The normal draws of so many agents' own shares of a sum's noise."""
    return (random.standard_normal((count, size)),)


def draws_of_agent(draws: Draws, agents: int, index: int) -> DrawSource:
    """One agent's draws in a simulated run of N, for a party that lives by itself.

    Each is addressed by its name and number, so a process may come and go in between.
    """
    check_agent(index, agents)
    return Dealer(draws, agents).to(slice(index, index + 1))
