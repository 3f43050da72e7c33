"""Some of a run's agents, simulated together: what they say, and where they go next.

A group is as many agents as fit in memory at a time; groups know nothing of each other. What
they have tried and seen is kept for the whole run, and a group looks at its slice of it.

Symbols: n agents of the group, N of the run, t query number, L observations in the end,
P regions, M features, D dimensions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.acquisition import joint as beside
from sottovoce.acquisition import moves
from sottovoce.arrays import Array
from sottovoce.device import Place
from sottovoce.federation.searcher import CANDIDATES
from sottovoce.federation.study import Study
from sottovoce.federation.surrogate import Belief
from sottovoce.gp.fit import fit
from sottovoce.gp.kernel import Kernel
from sottovoce.gp.shared import Common
from sottovoce.simulation.streams import Dealer, Recipe, Stream


@dataclass
class Crowd:
    """All agents of a run: what they know in common, and what they have tried and seen."""

    study: Study
    belief: Belief
    dealer: Dealer
    place: Place
    places: Array  # (N, L, D) in the cube, or (N, L): which of the points of a finite space
    observed: Array  # (N, L), NaN where a trial failed
    told: int = 0
    failed: bool = False  # whether any trial of anybody did
    broadcast: Array | None = None  # the last
    _learnt: dict[int, Common] = field(default_factory=dict)  # by the number of releases

    def learnt(self, releases: int | None = None) -> Common:
        """What all releases, or the first few, say; all agents work out the same."""
        vectors = self.place.numpy(self.broadcast)[:releases]
        if len(vectors) not in self._learnt:
            self._learnt[len(vectors)] = self.study.learnt(vectors)
        return self._learnt[len(vectors)]


class Group(ABC):
    """The agents of one slice of the crowd."""

    def __init__(self, crowd: Crowd, who: slice) -> None:
        self.crowd, self.who, self.size = crowd, who, who.stop - who.start
        self.place, self.xp, self.study = crowd.place, crowd.place.xp, crowd.study
        self._kernel: Kernel | None = None  # the fitted ones
        self._fitted_at = 0
        self._beside_kernel: Kernel | None = None  # those fitted beside the common function
        self._beside_at = 0

    @abstractmethod
    def start(self) -> Array:
        """The initial queries: (n, N_init), or (n, N_init, D)."""

    @abstractmethod
    def messages(self, round_number: int) -> Array:
        """Each agent's vector for a round, (n, M)."""

    @abstractmethod
    def _points(self, count: int) -> Array:
        """The first `count` points each agent tried, (n, count, D)."""

    @abstractmethod
    def _from_own_belief(self, t: int, own: Array) -> Array:
        """The next queries of those that the mask (n,) names, by a draw of their own belief."""

    @abstractmethod
    def _from_broadcast(self, t: int, vectors: Array, other: Array) -> Array:
        """The next queries of those that the mask (n,) names, by what they heard.

        vectors: one (1, P, M) for all, or one for each agent of the group, (n, 1, M).
        """

    @abstractmethod
    def _beside(self, t: int, heard: beside.Heard, some: Array) -> Array:
        """The next queries of those that the mask (n,) names, by draws beside what is common."""

    @abstractmethod
    def _anywhere(self, t: int, some: Array) -> Array:
        """Random queries for those that the mask (n,) names, in place of query t."""

    def next(self, t: int, broadcast: Array | None) -> Array:
        """Query t of each agent, (n,) or (n, D); without a broadcast all go alone."""
        chosen = self._chosen(t, broadcast)
        if self.study.method.repeats == "replace":
            again = moves.repeated(self.crowd.places[self.who, : self.crowd.told], chosen)
            if bool(self.xp.any(again)):
                chosen[again] = self._anywhere(t, again)
        return chosen

    def _chosen(self, t: int, broadcast: Array | None) -> Array:
        """The same, whether tried before or not."""
        everyone = self.xp.ones(self.size, dtype=self.xp.bool, device=self.place.device)
        if broadcast is None:
            return self._from_own_belief(t, everyone)
        (coins,) = self._deal("coin", t, lambda random, n: (random.random(n),))
        own, near = self.study.method.shares(t)
        alone, follow = coins <= own, coins > near
        rest = ~(alone | follow)
        if self.study.method.doubts and bool(self.xp.any(follow)):
            heeds = coins > self._heeded(t)
            alone, follow = alone | (follow & ~heeds), follow & heeds
        chosen = self.xp.empty_like(self.crowd.places[self.who, 0])
        if bool(self.xp.any(alone)):
            chosen[alone] = self._from_own_belief(t, alone)
        if bool(self.xp.any(follow)):
            chosen[follow] = self._from_broadcast(t, self._heard(t, broadcast), follow)
        if bool(self.xp.any(rest)):
            chosen[rest] = self._beside(t, self._beside_what(), rest)
        return chosen

    def _heeded(self, t: int) -> Array:
        """Above which coin each follows the common function, wary as it is, (n,)."""
        told, heard = self.crowd.told, self._beside_what()
        raw = self.crowd.observed[self.who, :told]
        likeness = beside.likeness(self._current_beside(), self._points(told), raw, heard)
        return self.study.method.heeded(t, likeness)

    def _beside_what(self, releases: int | None = None) -> beside.Heard:
        """The common function, as far as it is known, or was after so many releases."""
        weights = self.place.array(self.crowd.learnt(releases).mean)
        return beside.Heard(self.study.features, weights)

    def _sums(self, round_number: int, rows: Array) -> Array:
        """What agents say that all are to learn from, (n, M); rows (n, told, M) are φ."""
        method, raw = self.study.method, self.crowd.observed[self.who, : self.crowd.told]
        if round_number == 0:
            return beside.sums(rows[:, : method.initial], raw[:, : method.initial])
        heard = self.xp.matmul(rows, self._beside_what().weights)
        return beside.news(rows, raw, heard, method.initial, method.regularisation)

    def _heard(self, t: int, broadcast: Array) -> Array:
        """What each hears: one (1, P, M) for all, or for each a vector of its own, (n, 1, M).

        That is the vector of one peer, or a draw of the common function.
        """
        if self.study.method.hears == "learn":
            count = self.study.method.features
            (z,) = self._deal("common", t, lambda random, n: (random.standard_normal((n, count)),))
            return self.place.array(self.crowd.learnt().drawn(self.place.numpy(z)))[:, None]
        if self.study.method.exchange != "peer":
            return broadcast[None]
        (other,) = self._deal("shared", t, self._shared_draws)[:1]
        own = self.xp.arange(self.who.start, self.who.stop, device=self.place.device)
        other = other + self.xp.astype(other >= own, other.dtype)
        return self.xp.take(broadcast, other, axis=0)[:, None, :]

    def _shared_draws(self, random: Stream, n: int) -> tuple[Array, ...]:
        """For following others: whom, among peers; and where to begin, unless points are listed."""
        drawn: list[Array] = []
        if self.study.method.exchange == "peer":
            drawn.append(random.integers(self.study.agents - 1, size=n))
        if not self.study.space.finite:
            drawn.append(random.random((n, CANDIDATES, self.study.space.dims)))
        return tuple(drawn)

    def _start_uniforms(self) -> NDArray[np.float64]:
        """For the initial points, (n, N_init, tries, D)."""
        space = self.study.space
        shape = (self.study.method.initial, moves.starting_tries(space), space.dims)
        (u,) = self._deal("start", 0, lambda random, n: (random.random((n, *shape)),))
        return self.place.numpy(u)

    def _message_draws(self, round_number: int) -> tuple[Array, ...]:
        """For the vectors of a round: prior (n, M) and noise (n, told), standard normals."""
        shapes = (self.study.method.features,), (self.crowd.told,)
        return self._deal(
            "message",
            round_number,
            lambda random, n: tuple(random.standard_normal((n, *shape)) for shape in shapes),
        )

    def _deal(self, name: str, number: int, recipe: Recipe) -> tuple[Array, ...]:
        return self.crowd.dealer.deal(name, number, self.who, recipe)

    def _seen(self, count: int) -> tuple[Array, Array]:
        """The first `count` values as they are modelled, and where there are any: (n, count)."""
        raw = self.crowd.observed[self.who, :count]
        return moves.modelled(raw, self.crowd.belief.standardise)

    def _current_kernel(self) -> Kernel:
        """The fixed kernel, or one fitted for each agent, brought up to date."""
        belief, initial = self.crowd.belief, self.study.method.initial
        if belief.kernel is not None:
            return belief.kernel
        for count in moves.due_fits(initial, belief.refit, self._fitted_at, self.crowd.told):
            self._kernel = fit(self._points(count), *self._seen(count), self._kernel)
            self._fitted_at = count
        return cast(Kernel, self._kernel)

    def _current_beside(self) -> Kernel:
        """Each agent's kernel and trust beside the common function, brought up to date."""
        belief, initial = self.crowd.belief, self.study.method.initial
        for count in moves.due_fits(initial, belief.refit, self._beside_at, self.crowd.told):
            points, raw = self._points(count), self.crowd.observed[self.who, :count]
            start, heard = self._beside_kernel, self._beside_what(self.study.heard_by(count))
            self._beside_kernel = beside.fitted(points, raw, heard, start, belief.kernel)
            self._beside_at = count
        return cast(Kernel, self._beside_kernel)

    def _beside_draws(self, t: int) -> Array:
        """For the factor on the common function and the level, (n, 2)."""
        (z,) = self._deal("beside", t, lambda random, n: (random.standard_normal((n, 2)),))
        return z
