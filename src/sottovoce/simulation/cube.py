"""A group of agents on a space that is searched as a cube, with candidates and ascents.

Symbols: n agents of the group, t observations, D dimensions, M features.
"""

from __future__ import annotations

from sottovoce.acquisition import joint as beside
from sottovoce.acquisition import moves
from sottovoce.arrays import Array
from sottovoce.federation.searcher import CANDIDATES, FREQUENCIES
from sottovoce.gp import posterior
from sottovoce.simulation.groups import Group
from sottovoce.simulation.streams import Stream
from sottovoce.space.regions import Regions


class Cube(Group):
    """Agents on a space with a continuous parameter, or with too many points to list."""

    def start(self) -> Array:
        """N_init points for each agent: dealt, or uniform in its own region or everywhere."""
        space, (regions, boxes) = self.study.space, self.study.start
        if self.study.method.dealt:
            return self.place.array(self.study.dealt[self.who])
        u = self._start_uniforms()
        return self.place.array(moves.starting_points(space, regions, boxes[self.who], u))

    def messages(self, round_number: int) -> Array:
        """Each agent's vector for a round, (n, M)."""
        method, told = self.study.method, self.crowd.told
        if method.says == "sums":
            return self._sums(round_number, self.study.features(self._points(told)))
        values, mask = self._seen(told)
        rows = moves.known_rows(self.study.features(self._points(told)), mask)
        if method.says == "mean":
            return posterior.mean(rows, values, method.regularisation)
        prior, noise = self._message_draws(round_number)
        return moves.message(rows, values, method.regularisation, prior, noise)

    def _from_own_belief(self, t: int, own: Array) -> Array:
        space, told = self.study.space, self.crowd.told
        noise, frequencies, amplitudes, candidates = self._deal("belief", t, self._path_draws)
        draws = moves.PathDraws(frequencies[own], amplitudes[own], noise[own], candidates[own])
        values, mask = self._seen(told)
        some = moves.History(self._points(told)[own], values[own], mask[own])
        kernels, everywhere = self._current_kernel().part(own), Regions((1,) * space.dims)
        scale = self.study.method.exploration(t, space.dims)
        return space.snap(moves.own_place(kernels, some, draws, everywhere, scale))

    def _beside(self, t: int, heard: beside.Heard, some: Array) -> Array:
        noise, frequencies, amplitudes, candidates = self._deal("belief", t, self._path_draws)
        draws = moves.PathDraws(frequencies[some], amplitudes[some], noise[some], candidates[some])
        values, mask = moves.modelled(self.crowd.observed[self.who, : self.crowd.told], True)
        history = moves.History(self._points(self.crowd.told)[some], values[some], mask[some])
        kernels, normals = self._current_beside().part(some), self._beside_draws(t)[some]
        scale = self.study.method.exploration(t, self.study.space.dims)
        place = beside.place(kernels, history, draws, heard, normals, scale)
        return self.study.space.snap(place)

    def _path_draws(self, random: Stream, n: int) -> tuple[Array, ...]:
        dims = self.study.space.dims
        return (
            random.standard_normal((n, self.crowd.told)),
            random.standard_normal((n, FREQUENCIES, dims)),
            random.standard_normal((n, FREQUENCIES, 2)),
            random.random((n, CANDIDATES, dims)),
        )

    def _from_broadcast(self, t: int, vectors: Array, other: Array) -> Array:
        candidates = self._deal("shared", t, self._shared_draws)[-1][other]
        if vectors.shape[0] > 1:
            vectors = vectors[other]
        shape = (candidates.shape[0], *vectors.shape[1:])
        vectors = self.xp.broadcast_to(vectors, shape)
        place = moves.shared_place(self.study.features, self.study.regions, vectors, candidates)
        return self.study.space.snap(place)

    def _anywhere(self, t: int, some: Array) -> Array:
        dims = self.study.space.dims
        (u,) = self._deal("repeat", t, lambda random, n: (random.random((n, dims)),))
        return self.study.space.snap(u[some])

    def _points(self, count: int) -> Array:
        return self.crowd.places[self.who, :count]
