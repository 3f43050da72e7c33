"""A group of agents on a finite space: its points are listed, and agents are at rows of the list.

Features of all points are taken once a run; every agent's Gram matrix is kept as an inverse
root R that grows by a row with every observation, so that a query costs O(t²), not O(t³).

Symbols: n agents of the group, t observations, L in the end, K points, M features, D dimensions,
r rank of the exact features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from sottovoce.acquisition import joint as beside
from sottovoce.acquisition import moves
from sottovoce.arrays import Array, array_namespace
from sottovoce.device import Place
from sottovoce.federation.study import Study
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.posterior import exact_features, mean, next_root_row
from sottovoce.simulation.groups import Crowd, Group


@dataclass(frozen=True)
class Ground:
    """What all groups know of the points."""

    points: Array  # (K, D)
    boxes: Array  # (K,), the region each lies in
    shared: Array  # (K, M), φ
    exact: Array | None  # (K, r), exact features of the kernel, if all agents have the same

    @classmethod
    def of(cls, study: Study, kernel: Kernel | None, place: Place) -> Ground:
        """The points of the study's space, in the place where arrays live."""
        points = study.space.points()
        exact = None
        if kernel is not None:  # rows are what is taken, so they should lie together
            exact = place.array(np.ascontiguousarray(moves.exact_table(kernel, study.space)))
        boxes, shared = study.regions.index(points), study.features(points)
        return cls(place.array(points), place.array(boxes), place.array(shared), exact)


class Roots:
    """R of each agent of a group, (n, L, L), filled row by row."""

    def __init__(self, place: Place, size: int, length: int, lam: float) -> None:
        self._place, self._shape, self._lam = place, (size, length, length), lam
        self._rows: Array | None = None  # made when first asked for: not every method needs it
        self._known = 0

    def upto(self, count: int, similar: Callable[[int], Array]) -> Array:
        """R of the first `count` observations, (n, count, count).

        similar(k): inner products of observation k's features with those of 0, ..., k.
        """
        rows = self._place.zeros(*self._shape) if self._rows is None else self._rows
        for k in range(self._known, count):
            rows[:, k, : k + 1] = next_root_row(rows[:, :k, :k], similar(k), self._lam)
        self._rows, self._known = rows, count
        return rows[:, :count, :count]


class Listed(Group):
    """Agents on a finite space."""

    def __init__(self, crowd: Crowd, who: slice, ground: Ground) -> None:
        super().__init__(crowd, who)
        self._ground = ground
        length, kernel = crowd.places.shape[1], crowd.belief.kernel
        self._shared_roots = Roots(self.place, self.size, length, self.study.method.regularisation)
        noise = 1.0 if kernel is None else float(kernel.noise)
        self._own_roots = Roots(self.place, self.size, length, noise)

    def start(self) -> Array:
        """N_init rows for each agent: dealt, or uniform in its own region or everywhere."""
        space, (regions, boxes) = self.study.space, self.study.start
        if self.study.method.dealt:
            return self.place.array(space.index(self.study.dealt[self.who]))
        u = self._start_uniforms()
        return self.place.array(moves.starting_rows(space, regions, boxes[self.who], u))

    def messages(self, round_number: int) -> Array:
        """Each agent's vector for a round, (n, M)."""
        method, told = self.study.method, self.crowd.told
        history = self._history()
        rows = moves.masked_rows(self._ground.shared, history)
        if method.says == "sums":
            return self._sums(round_number, rows)
        if method.says == "mean":
            return mean(rows, history.values, method.regularisation)
        root = self._shared_roots.upto(
            told, lambda k: self.xp.matmul(rows[:, : k + 1], rows[:, k, :, None])[..., 0]
        )
        prior, noise = self._message_draws(round_number)
        return moves.message(rows, history.values, method.regularisation, prior, noise, root)

    def _from_own_belief(self, t: int, own: Array) -> Array:
        exact, told = self._ground.exact, self.crowd.told
        if exact is None:
            return self._by_fitted_kernels(t, own)
        kernel, rank = self._current_kernel(), exact.shape[1]
        history, points = self._history(), self._points(told)
        root = self._own_roots.upto(told, partial(_likeness, kernel, points, history.mask))
        (noise,) = self._deal("belief", t, lambda random, n: (random.standard_normal((n, told)),))
        (prior,) = self._deal("prior", t, lambda random, n: (random.standard_normal((n, rank)),))
        scale = self.study.method.exploration(t, self.study.space.dims)
        if bool(self.xp.all(own)):  # nothing to leave out, nothing to copy
            return moves.own_point(exact, kernel, history, prior, noise, scale, root)
        some = self._history(own)
        return moves.own_point(exact, kernel, some, prior[own], noise[own], scale, root[own])

    def _beside(self, t: int, heard: beside.Heard, some: Array) -> Array:
        kernel, told, ground = self._current_beside(), self.crowd.told, self._ground
        common = self.xp.matmul(ground.shared, heard.weights)
        count = ground.points.shape[0] if ground.exact is None else ground.exact.shape[1]
        (noise,) = self._deal("belief", t, lambda random, n: (random.standard_normal((n, told)),))
        (prior,) = self._deal("prior", t, lambda random, n: (random.standard_normal((n, count)),))
        scale = self.study.method.exploration(t, self.study.space.dims)
        normals, raw = self._beside_draws(t), self.crowd.observed[self.who, :told]
        values, mask = moves.modelled(raw, True)
        history = moves.History(None, values, mask, self._index(told))
        if ground.exact is not None:
            table = ground.exact / float(cast(Kernel, self.crowd.belief.kernel).variance) ** 0.5
            draws = (prior[some], noise[some], normals[some])
            part = history.part(some)
            return beside.point(table, common, kernel.part(some), part, draws, scale)
        best, points = [], self.study.space.points()
        for k in self.xp.nonzero(some)[0]:  # each has a kernel, hence exact features, of its own
            mine = slice(int(k), int(k) + 1)
            unit = Kernel(float(kernel.part(int(k)).lengthscale), 1.0)
            table = self.place.array(exact_features(unit, points))
            draws = (prior[mine, : table.shape[1]], noise[mine], normals[mine])
            part = history.part(mine)
            best.append(beside.point(table, common, kernel.part(mine), part, draws, scale))
        return self.xp.concat(best)

    def _by_fitted_kernels(self, t: int, own: Array) -> Array:
        """One agent after the other: each has a kernel, hence exact features, of its own."""
        kernel, told = self._current_kernel(), self.crowd.told
        points = self.study.space.points()
        count, scale = len(points), self.study.method.exploration(t, self.study.space.dims)
        (noise,) = self._deal("belief", t, lambda random, n: (random.standard_normal((n, told)),))
        (prior,) = self._deal("prior", t, lambda random, n: (random.standard_normal((n, count)),))
        best = []
        for k in self.xp.nonzero(own)[0]:
            one, mine = kernel.one(int(k)), slice(int(k), int(k) + 1)
            table = self.place.array(exact_features(one, points))
            draws = prior[mine, : table.shape[1]], noise[mine]
            best.append(moves.own_point(table, one, self._history(mine), *draws, scale))
        return self.xp.concat(best)

    def _from_broadcast(self, t: int, vectors: Array, other: Array) -> Array:
        if vectors.shape[0] > 1:
            vectors = vectors[other]
        return moves.shared_point(self._ground.shared, self._ground.boxes, vectors)

    def _anywhere(self, t: int, some: Array) -> Array:
        count = self._ground.points.shape[0]
        (u,) = self._deal("repeat", t, lambda random, n: (random.random((n, count)),))
        return moves.untried_row(self._index(self.crowd.told)[some], u[some])

    def _points(self, count: int) -> Array:
        index = self._index(count)
        flat = self.xp.take(self._ground.points, self.xp.reshape(index, (-1,)), axis=0)
        return self.xp.reshape(flat, (self.size, count, -1))

    def _index(self, count: int) -> Array:
        return self.crowd.places[self.who, :count]

    def _history(self, some: Array | slice = slice(None)) -> moves.History:
        """What (some of) the agents have seen, by index alone."""
        told = self.crowd.told
        values, mask = self._seen(told)
        known = mask[some] if self.crowd.failed else None  # a mask costs a copy of all features
        return moves.History(None, values[some], known, self._index(told)[some])


def _likeness(kernel: Kernel, points: Array, mask: Array | None, k: int) -> Array:
    """k(x_k, x_i) for i = 0, ..., k, zero where either is no observation: (n, k + 1)."""
    near = covariance(kernel, points[:, k : k + 1], points[:, : k + 1])[:, 0]
    if mask is None:
        return near
    xp = array_namespace(near)
    return xp.where(mask[:, : k + 1] & mask[:, k : k + 1], near, xp.zeros_like(near))
