"""How a batch of agents searches its space: as a box with candidates and ascents, or as a list.

A domain finds where drawn functions are largest. In a box agents are at points (n, D) of the cube;
on a list, at rows (n,) of the list of a finite space's points, whose features are taken once, and
every agent's Gram matrix is kept as an inverse root R that grows by a row with every observation,
so that a query costs O(t²), not O(t³).

Symbols: n agents of the batch, t trials, D dimensions, K points, M features, r rank of the exact
features; a mask (n,) names those of the batch that are meant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.acquisition import joint, thompson
from sottovoce.acquisition.maximise import Drawn, over_boxes, over_points
from sottovoce.acquisition.mixed import over_mixed
from sottovoce.acquisition.thompson import CANDIDATES, FREQUENCIES, PathDraws, exact_table
from sottovoce.arrays import Array
from sottovoce.federation import draws
from sottovoce.federation.candidates import (
    elsewhere,
    near_and_far,
    untried_row,
    visited,
    visited_rows,
)
from sottovoce.federation.tables import point_tables
from sottovoce.gp.history import History, known_rows, masked_rows
from sottovoce.gp.kernel import Kernel
from sottovoce.gp.roots import Roots, gram_row
from sottovoce.space import Regions

if TYPE_CHECKING:
    from sottovoce.federation.batch import Batch


_STARTS = 8  # ascents from the best of them, and as many from the best of each part of the cube


class Domain(ABC):
    """Where a batch of agents searches."""

    def __init__(self, batch: Batch) -> None:
        self._batch, self._study = batch, batch.study

    @abstractmethod
    def encoded(self, points: NDArray[np.float64]) -> Array:
        """Points of the space in the domain's form: (n, s, D) -> (n, s), or (n, s, D)."""

    @abstractmethod
    def decoded(self, chosen: Array) -> NDArray[np.float64]:
        """Points from the domain's form."""

    @abstractmethod
    def points(self, count: int | None = None) -> Array:
        """The first `count` points each agent tried, or all so far, (n, count, D)."""

    @abstractmethod
    def history(self, values: Array, mask: Array) -> History:
        """The trials so far, with these values and this mask (n, t)."""

    @abstractmethod
    def features(self) -> Array:
        """φ at the trials so far, (n, t, M), zero where one failed."""

    def feature_root(self, rows: Array) -> Array | None:
        """R over those features, (n, t, t), where it is kept."""
        return None

    @abstractmethod
    def own(self, t: int, some: Array) -> Array:
        """Query t of some, by a draw of their own posterior."""

    @abstractmethod
    def joint(self, t: int, some: Array) -> Array:
        """Query t of some, by a draw of the posterior joint with the shared function."""

    @abstractmethod
    def shared(self, t: int, weights: Array, some: Array) -> Array:
        """Query t of some, by the shared function: weights (1, P, M), or (n, 1, M)."""

    @abstractmethod
    def largest(self, t: int, function: Drawn, around: Array | None = None) -> Array:
        """Query t of all, where a function of one's own is largest.

        around (n, D): a good point of each, near which candidates are tried too; then no agent is
        sent where it has been, as long as there is another point of a discrete space.
        """

    @abstractmethod
    def untried(self, t: int, some: Array) -> Array:
        """Random queries for some, in place of query t that they have tried before."""

    @abstractmethod
    def repeated(self, chosen: Array) -> Array:
        """Which agents have tried what they chose before, (n,)."""

    @property
    def _xp(self) -> Any:
        return self._batch.xp

    def _scale(self, t: int) -> float:
        return self._study.method.exploration(t, self._study.space.dims)

    def _normals(self, name: str, t: int, *shape: int) -> Array:
        (z,) = self._batch.draw(name, t, lambda random, n: (random.standard_normal((n, *shape)),))
        return z


class Box(Domain):
    """A space with a continuous parameter, or with too many points to list."""

    def encoded(self, points: NDArray[np.float64]) -> Array:
        """As they are."""
        return self._batch.device.array(points)

    def decoded(self, chosen: Array) -> NDArray[np.float64]:
        """As they are."""
        return self._batch.device.numpy(chosen)

    def points(self, count: int | None = None) -> Array:
        """The first `count` points each agent tried, or all so far."""
        trials = self._batch.trials
        return trials.where[:, : trials.count if count is None else count]

    def history(self, values: Array, mask: Array) -> History:
        """The trials so far."""
        return History(self.points(), values, mask)

    def features(self) -> Array:
        """φ at the trials so far, zero where one failed."""
        mask = self._xp.isfinite(self._batch.raw())
        return known_rows(self._study.features(self.points()), mask)

    def own(self, t: int, some: Array) -> Array:
        """Where a pathwise draw of the own posterior is largest."""
        kernel, history = self._batch.own_kernel().part(some), self._batch.history().part(some)
        everywhere = Regions((1,) * self._study.space.dims)
        chosen = thompson.own_in_box(
            kernel, history, self._paths(t, some), everywhere, self._scale(t)
        )
        return self._study.space.snap(chosen)

    def joint(self, t: int, some: Array) -> Array:
        """Where a draw of the joint posterior is largest."""
        batch, normals = self._batch, self._normals(draws.JOINT, t, 2)[some]
        kernel = batch.joint_kernel().part(some)
        history, shared = batch.history(standardise=True).part(some), batch.shared.mean_function()
        paths = self._paths(t, some)
        chosen = joint.joint_in_box(kernel, history, paths, shared, normals, self._scale(t))
        return self._study.space.snap(chosen)

    def shared(self, t: int, weights: Array, some: Array) -> Array:
        """Where φ(x)ᵀω^(i[x]) is largest."""
        candidates = self._batch.draw(draws.SHARED, t, self._batch.shared_draws)[-1][some]
        weights = weights[some] if weights.shape[0] > 1 else weights
        weights = self._xp.broadcast_to(weights, (candidates.shape[0], *weights.shape[1:]))
        study = self._study
        chosen = thompson.shared_in_box(study.features, study.regions, weights, candidates)
        return study.space.snap(chosen)

    def largest(self, t: int, function: Drawn, around: Array | None = None) -> Array:
        """By ascents from the best of random candidates, and steps of discrete parameters."""
        space = self._study.space
        if around is None:
            candidates = self._paths(t, self._batch.everyone).candidates
        else:
            candidates = near_and_far(self._batch, t, around)
        if space.continuous:
            top = over_boxes(function, candidates, Regions((1,) * space.dims), _STARTS)[0]
            return top if around is None else elsewhere(self._batch, function, candidates, top)
        return over_mixed(function, space.snap(candidates), space, partial(visited, self._batch))

    def repeated(self, chosen: Array) -> Array:
        """To rounding: a point may have been a parameter's value in between."""
        apart = self._xp.abs(self.points() - chosen[:, None])
        same = apart <= self._batch.device.array(self._study.space.rounding)
        return self._xp.any(self._xp.all(same, axis=-1), axis=-1)

    def untried(self, t: int, some: Array) -> Array:
        """Uniform points."""
        dims = self._study.space.dims
        (u,) = self._batch.draw(draws.REPEAT, t, lambda random, n: (random.random((n, dims)),))
        return self._study.space.snap(u[some])

    def _paths(self, t: int, some: Array) -> PathDraws:
        dims, told = self._study.space.dims, self._batch.trials.count

        def recipe(random: Any, n: int) -> tuple[Array, ...]:
            return (
                random.standard_normal((n, told)),
                random.standard_normal((n, FREQUENCIES, dims)),
                random.standard_normal((n, FREQUENCIES, 2)),
                random.random((n, CANDIDATES, dims)),
            )

        noise, frequencies, amplitudes, candidates = self._batch.draw(draws.OWN, t, recipe)
        return PathDraws(frequencies[some], amplitudes[some], noise[some], candidates[some])


class PointList(Domain):
    """A finite space."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        kernel = batch.surrogate.kernel
        self._tables = point_tables(batch.study, kernel, batch.device)
        self._feature_roots = Roots(batch.device, batch.size, self._study.method.regularisation)
        noise = 1.0 if kernel is None else float(kernel.noise)
        self._own_roots = Roots(batch.device, batch.size, noise)

    def encoded(self, points: NDArray[np.float64]) -> Array:
        """Their rows in the list."""
        return self._batch.device.array(self._study.space.index(points))

    def decoded(self, chosen: Array) -> NDArray[np.float64]:
        """The points of the rows."""
        return np.asarray(self._study.space.points()[self._batch.device.numpy(chosen)])

    def points(self, count: int | None = None) -> Array:
        """The first `count` points each agent tried, or all so far."""
        index = self._index(count)
        flat = self._xp.take(self._tables.points, self._xp.reshape(index, (-1,)), axis=0)
        return self._xp.reshape(flat, (*index.shape, self._study.space.dims))

    @property
    def _room(self) -> int:
        """Trials there is room for."""
        return int(self._batch.trials.raw.shape[1])

    def _index(self, count: int | None = None) -> Array:
        trials = self._batch.trials
        return trials.where[:, : trials.count if count is None else count]

    def history(self, values: Array, mask: Array) -> History:
        """The trials so far, by rows alone; a mask costs a copy of all features."""
        return History(None, values, mask if self._batch.trials.failed else None, self._index())

    def features(self) -> Array:
        """φ at the trials so far, zero where one failed."""
        return masked_rows(self._tables.shared, self._batch.history())

    def feature_root(self, rows: Array) -> Array:
        """R over those features, as far as it had not been worked out."""
        return self._feature_roots.upto(
            rows.shape[1],
            self._room,
            lambda k: self._xp.matmul(rows[:, : k + 1], rows[:, k, :, None])[..., 0],
        )

    def own(self, t: int, some: Array) -> Array:
        """Where an exact draw of the own posterior is largest."""
        if self._tables.exact is None:
            return self._one_by_one(t, some, self._own_of_one)
        kernel, history = self._batch.own_kernel(), self._batch.history()
        near = partial(gram_row, kernel, self.points(), history.mask)
        root = self._own_roots.upto(self._batch.trials.count, self._room, near)
        noise, prior = self._own_draws(t)
        if not bool(self._xp.all(some)):  # else there is nothing to leave out, nothing to copy
            history, root = history.part(some), root[some]
            noise, prior = noise[some], prior[some]
        scale = self._scale(t)
        return thompson.own_in_list(self._tables.exact, kernel, history, prior, noise, scale, root)

    def _own_of_one(self, t: int, mine: slice) -> Array:
        kernel, noise, prior = self._batch.own_kernel().one(mine.start), *self._own_draws(t)
        table = self._batch.device.array(exact_table(kernel, self._study.space))
        history, prior = self._batch.history().part(mine), prior[mine, : table.shape[1]]
        return thompson.own_in_list(table, kernel, history, prior, noise[mine], self._scale(t))

    def joint(self, t: int, some: Array) -> Array:
        """Where an exact draw of the joint posterior is largest."""
        if self._tables.exact is None:
            return self._one_by_one(t, some, self._joint_of_one)
        variance = float(cast(Kernel, self._batch.surrogate.kernel).variance)
        return self._jointly(t, self._tables.exact / variance**0.5, some)

    def _joint_of_one(self, t: int, mine: slice) -> Array:
        unit = Kernel(float(self._batch.joint_kernel().part(mine.start).lengthscale), 1.0)
        table = self._batch.device.array(exact_table(unit, self._study.space))
        return self._jointly(t, table, mine)

    def _jointly(self, t: int, table: Array, some: Array | slice) -> Array:
        """With exact features (K, r) of a kernel of variance 1."""
        noise, prior = self._own_draws(t)
        normals = self._normals(draws.JOINT, t, 2)
        history = self._batch.history(standardise=True).part(some)
        weights = self._batch.shared.mean_function().weights
        at_points = self._xp.matmul(self._tables.shared, weights)
        drawn = (prior[some, : table.shape[1]], noise[some], normals[some])
        kernel = self._batch.joint_kernel().part(some)
        return joint.joint_in_list(table, at_points, kernel, history, drawn, self._scale(t))

    def _one_by_one(self, t: int, some: Array, query: Callable[[int, slice], Array]) -> Array:
        """Each agent has a kernel, hence exact features, of its own."""
        each = [int(k) for k in self._xp.nonzero(some)[0]]
        return self._xp.concat([query(t, slice(k, k + 1)) for k in each])

    def _own_draws(self, t: int) -> tuple[Array, Array]:
        """Noise (n, t) and prior (n, r) of a draw; where ranks differ, as many as points."""
        exact = self._tables.exact
        rank = len(self._tables.points) if exact is None else exact.shape[1]
        noise = self._normals(draws.OWN, t, self._batch.trials.count)
        return noise, self._normals(draws.OWN_PRIOR, t, rank)

    def shared(self, t: int, weights: Array, some: Array) -> Array:
        """Where the shared function is largest."""
        weights = weights[some] if weights.shape[0] > 1 else weights
        return thompson.shared_in_list(self._tables.shared, self._tables.boxes, weights)

    def largest(self, t: int, function: Drawn, around: Array | None = None) -> Array:
        """Of all points."""
        xp, batch = self._xp, self._batch
        every = xp.broadcast_to(self._tables.points, (batch.size, *self._tables.points.shape))
        values = function.values(every)
        if around is None:
            return over_points(values)
        visited = visited_rows(self._index(), every.shape[1])
        if batch.pending is not None:
            running = batch.device.array(self._study.space.index(batch.pending))
            visited |= visited_rows(running, every.shape[1])
        visited &= ~xp.all(visited, axis=-1, keepdims=True)
        return over_points(xp.where(visited, -xp.inf, values))

    def repeated(self, chosen: Array) -> Array:
        """The same row."""
        return self._xp.any(self._index() == chosen[:, None], axis=-1)

    def untried(self, t: int, some: Array) -> Array:
        """A uniform row of those that an agent has not tried."""
        count = len(self._study.space.points())
        (u,) = self._batch.draw(draws.REPEAT, t, lambda random, n: (random.random((n, count)),))
        return untried_row(self._index()[some], u[some])


def domain_of(batch: Batch) -> Domain:
    """How the batch's study is searched."""
    return PointList(batch) if batch.study.space.finite else Box(batch)
