"""What agents make of broadcasts: the function that they share, as far as it is known.

A shared model is a class, one object of which serves all agents of a batch, or of a simulated run:
``@SHARED_MODELS.register("name")``.

Symbols: n agents of the batch, N of the study, P regions, M features, k releases, t query number;
query t uses the broadcast of round t − 1.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sottovoce.arrays import Array, FloatArray
from sottovoce.device import NUMPY, Device
from sottovoce.errors import InvalidInput
from sottovoce.federation import draws
from sottovoce.federation.parts.registry import Registry
from sottovoce.gp.consensus import State, for_agents, known_before
from sottovoce.gp.predictive import SharedPrior
from sottovoce.gp.shared import SharedFunction, SharedPosterior

if TYPE_CHECKING:
    from sottovoce.federation.batch import Batch
    from sottovoce.federation.study import FederatedStudy


class SharedModel:
    """Nothing is shared: agents go alone. The base of all others."""

    exchanges: ClassVar[bool] = False  # whether agents send vectors at all
    summed: ClassVar[bool] = False  # whether a server adds them up
    cumulative: ClassVar[bool] = False  # whether a broadcast holds all releases so far
    consensus: ClassVar[bool] = False  # whether it is of the effects that all share
    informed: ClassVar[bool] = False  # whether it begins with what is usual (`gp.usual`)

    def __init__(self, study: FederatedStudy, device: Device = NUMPY) -> None:
        self._study, self._device = study, device
        self._vectors: FloatArray | None = None
        self._here: Array = None  # the same, where the batch's arrays live

    @classmethod
    def broadcast_rows(cls, study: FederatedStudy, round_number: int) -> int:
        """How many vectors the broadcast of a round holds."""
        raise InvalidInput(f"method {study.method.name!r} sends nothing: its agents go alone")

    def hear(self, vectors: FloatArray) -> None:
        """Take the last broadcast."""
        self._vectors, self._here = vectors, self._device.array(vectors)

    def guides(self, t: int) -> bool:
        """Whether there is something to go by in query t."""
        return self._vectors is not None

    def weights(self, batch: Batch, t: int) -> Array:
        """The weights ω of the function to maximise in query t, one for all, (1, P, M), or for
        each agent of the batch, (n, 1, M)."""
        raise InvalidInput(f"method {self._study.method.name!r} has no shared function")

    def mean_function(self, releases: int | None = None) -> SharedFunction:
        """The posterior mean of the shared function, after all releases or the first few."""
        raise InvalidInput(f"method {self._study.method.name!r} learns no shared function")

    def state(self, releases: int | None = None) -> State:
        """What is known of the effects that all share, after all releases or the first few."""
        raise InvalidInput(f"method {self._study.method.name!r} finds no consensus")

    def prior(self) -> SharedPrior | None:
        """What an agent may take for likely of its function; None: nothing is known of it."""
        return None


SHARED_MODELS = Registry[type[SharedModel]]("shared_model")
SHARED_MODELS.register("none")(SharedModel)


@SHARED_MODELS.register("usual")
class UsualModel(SharedModel):
    """What functions of tuning usually look like (`gp.usual`). Nothing is sent."""

    informed = True

    @cached_property
    def _usual(self) -> SharedPrior:
        return _taken(self._study, self._device, known_before(self._study.expected_effects))

    def prior(self) -> SharedPrior | None:
        """For all the same, for ever."""
        return self._usual


@SHARED_MODELS.register("broadcast")
class BroadcastModel(SharedModel):
    """The last broadcast itself, a vector for each region: φ(x)ᵀω^(i[x]) (the paper's)."""

    exchanges = True
    summed = True

    @classmethod
    def broadcast_rows(cls, study: FederatedStudy, round_number: int) -> int:
        """One for each region."""
        return study.method.regions

    def guides(self, t: int) -> bool:
        """Until the last release is past: then agents go on alone."""
        return super().guides(t) and not self._study.method.releases.over(t - 1)

    def weights(self, batch: Batch, t: int) -> Array:
        """The same for all."""
        return self._here[None]


@SHARED_MODELS.register("peer")
class PeerModel(BroadcastModel):
    """The vector of one random other agent (the original FTS, without a server's sum)."""

    summed = False

    @classmethod
    def broadcast_rows(cls, study: FederatedStudy, round_number: int) -> int:
        """One for each agent."""
        return study.agents

    def weights(self, batch: Batch, t: int) -> Array:
        """Another agent's for each."""
        other = batch.draw(draws.SHARED, t, batch.shared_draws)[0]
        own = batch.xp.arange(batch.agents.start, batch.agents.stop, device=batch.device.device)
        other = other + batch.xp.astype(other >= own, other.dtype)
        return batch.xp.take(self._here, other, axis=0)[:, None, :]


class _Learning(SharedModel):
    """Of those that learn from all releases: a broadcast repeats them, so that none is missed."""

    exchanges = True
    summed = True
    cumulative = True

    @classmethod
    def broadcast_rows(cls, study: FederatedStudy, round_number: int) -> int:
        """All releases so far."""
        return study.method.releases.count(round_number + 1)

    def _heard(self, releases: int | None) -> FloatArray:
        """All releases, or the first few, (k, M)."""
        if self._vectors is None:
            return np.zeros((0, self._study.method.features))
        return self._vectors[:releases]


@SHARED_MODELS.register("pooled")
class Pooled(_Learning):
    """A posterior over the shared function, from all releases so far (`gp.shared`)."""

    def __init__(self, study: FederatedStudy, device: Device = NUMPY) -> None:
        super().__init__(study, device)
        self._posteriors: dict[int, SharedPosterior] = {}  # by the number of releases

    def posterior(self, releases: int | None = None) -> SharedPosterior:
        """What all releases, or the first few, say; the prior before the first."""
        heard = self._heard(releases)
        if len(heard) not in self._posteriors:
            self._posteriors[len(heard)] = self._study.shared_posterior(heard)
        return self._posteriors[len(heard)]

    def mean_function(self, releases: int | None = None) -> SharedFunction:
        """Its mean, with weights where the batch's arrays live."""
        mean = self._device.array(self.posterior(releases).mean)
        return SharedFunction(self._study.features, mean)

    def weights(self, batch: Batch, t: int) -> Array:
        """A draw of the posterior for each agent."""
        count = self._study.method.features
        (z,) = batch.draw(
            draws.SHARED_POSTERIOR, t, lambda random, n: (random.standard_normal((n, count)),)
        )
        drawn = self.posterior().drawn(self._device.numpy(z))
        return self._device.array(drawn)[:, None]


@SHARED_MODELS.register("consensus")
class ConsensusModel(_Learning):
    """The effects that all share, from all releases so far (`gp.consensus`)."""

    consensus = True

    def __init__(self, study: FederatedStudy, device: Device = NUMPY) -> None:
        super().__init__(study, device)
        self._states: list[State] = []  # after each release that was taken in
        self._prior: tuple[int, SharedPrior] | None = None  # and after how many releases

    def hear(self, vectors: FloatArray) -> None:
        """All of them anew, if one is not what it was."""
        before = self._vectors
        if before is None or not np.array_equal(before, vectors[: len(before)]):
            self._states, self._prior = [], None
        super().hear(vectors)

    def state(self, releases: int | None = None) -> State:
        """What all know; each release was made of so many trials as its round says."""
        study, consensus, heard = self._study, self._study.consensus, self._heard(releases)
        while len(self._states) < len(heard):
            k = len(self._states)
            points = study.method.initial + study.release_rounds[k]
            last = self._states[-1] if k else consensus.prior
            self._states.append(consensus.heard(last, points, heard[k], study.release_noise))
        return self._states[len(heard) - 1] if len(heard) else consensus.prior

    def prior(self) -> SharedPrior | None:
        """For all the same."""
        heard = len(self._heard(None))
        if not heard and not self.informed:
            return None
        if self._prior is None or self._prior[0] != heard:
            self._prior = heard, _taken(self._study, self._device, self.state())
        return self._prior[1]


@SHARED_MODELS.register("informed-consensus")
class InformedConsensus(ConsensusModel):
    """The same, begun with what functions of tuning usually look like (`gp.usual`)."""

    informed = True


def _taken(study: FederatedStudy, device: Device, state: State) -> SharedPrior:
    mean, root = for_agents(state)
    return SharedPrior(study.effects, device.array(mean), device.array(root))
