"""One party's search: what it has tried, what it believes, where it goes next.

What it hears from others comes in as a broadcast; how messages go is `agent`'s part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.acquisition import joint as beside
from sottovoce.acquisition import moves
from sottovoce.errors import InvalidInput, ProtocolError, UnknownAgent, check
from sottovoce.federation.messages import Broadcast
from sottovoce.federation.study import Study
from sottovoce.federation.surrogate import Belief
from sottovoce.gp.fit import fit
from sottovoce.gp.kernel import Kernel
from sottovoce.gp.shared import Common
from sottovoce.space.regions import Regions

CANDIDATES = 1000  # random points that a maximisation begins with
FREQUENCIES = 128  # of a pathwise prior draw
LARGEST = 1e100  # a value above it could overflow when squared


class RandomSource(Protocol):
    """What a searcher asks of its generator; NumPy's is one."""

    def random(self, size: tuple[int, ...] | None = None, /) -> Any:
        """Uniforms in [0, 1)."""

    def standard_normal(self, size: tuple[int, ...], /) -> Any:
        """Standard normals."""

    def integers(self, high: int, /) -> Any:
        """A whole number below `high`."""


class Searcher:
    """One party, as far as it needs nobody else."""

    def __init__(
        self,
        study: Study,
        index: int,
        *,
        maximise: bool = True,
        belief: Belief | None = None,
        seed: int | None = None,
        random: RandomSource | None = None,
    ) -> None:
        if not isinstance(index, int) or not 0 <= index < study.agents:
            raise UnknownAgent(f"agents are numbered 0 to {study.agents - 1}, got {index!r}")
        check(isinstance(maximise, bool), "maximise must be true or false", maximise=maximise)
        self.study = study
        self.index = index
        self.maximise = maximise
        self.belief = Belief() if belief is None else belief
        check(seed is None or random is None, "give a seed or a generator, not both", seed=seed)
        self._random: RandomSource = np.random.default_rng(seed) if random is None else random
        self._points: list[NDArray[np.float64]] = []
        self._values: list[float] = []
        self._broadcast: Broadcast | None = None
        self._learnt: dict[int, Common] = {}  # by the number of releases
        self._kernel: Kernel | None = None  # the fitted one
        self._fitted_at = 0
        self._beside_kernel: Kernel | None = None  # the one fitted beside the common function
        self._beside_at = 0

    @property
    def observations(self) -> int:
        """How many values it has been told; failed trials have none."""
        return sum(not math.isnan(value) for value in self._values)

    @property
    def trials(self) -> int:
        """How many trials it has been told of, failed ones included."""
        return len(self._values)

    @property
    def starting(self) -> bool:
        """Whether it has not been told of all its initial trials yet."""
        return self.trials < self.study.method.initial

    @property
    def best(self) -> tuple[dict[str, Any], float]:
        """The parameters with the best value told so far, and that value."""
        if not self.observations:
            raise InvalidInput("there is no best before the first value is told")
        k = int(np.nanargmax(self._values) if self.maximise else np.nanargmin(self._values))
        return self.study.space.decode(self._points[k]), self._values[k]

    def ask(self) -> dict[str, Any]:
        """The parameters to try next."""
        return self.study.space.decode(self._initial() if self.starting else self._next())

    def tell(self, params: Mapping[str, Any], value: float | None) -> None:
        """What the objective was at these parameters; None: the trial failed.

        A failed trial teaches the agent nothing, but counts as one of its queries.
        """
        point = self.study.space.encode(params)
        self._values.append(math.nan if value is None else _finite(value))
        self._points.append(point)

    def _generator(self) -> np.random.Generator:
        """Its generator, as far as it can be saved."""
        rule = "only an agent with a generator of NumPy's can be saved"
        check(isinstance(self._random, np.random.Generator), rule, random=type(self._random))
        return cast(np.random.Generator, self._random)

    def _initial(self) -> NDArray[np.float64]:
        """The point dealt to it, or a uniform one of its own region, or of everywhere."""
        space = self.study.space
        if self.study.method.dealt:
            return np.asarray(self.study.dealt[self.index, self.trials])
        regions, boxes = self.study.start
        u = self._random.random((1, 1, moves.starting_tries(space), space.dims))
        return np.asarray(moves.starting_points(space, regions, boxes[[self.index]], u)[0, 0])

    def _next(self) -> NDArray[np.float64]:
        """The point to try once the initial ones are told."""
        point = self._chosen()
        if self.study.method.repeats == "allow":
            return point
        space, tried = self.study.space, np.asarray(self._points)[None]
        told = space.encode(space.decode(point))  # the point as it would be told
        if not moves.repeated(tried, told[None])[0]:
            return point
        if space.finite:
            points = space.points()
            rows = moves.untried_row(space.index(tried), self._random.random((1, len(points))))
            return np.asarray(points[int(rows[0])])
        return np.asarray(space.snap(self._random.random((1, space.dims)))[0])

    def _chosen(self) -> NDArray[np.float64]:
        """The same, whether tried before or not."""
        study = self.study
        t = self.trials - study.method.initial + 1
        alone = (
            study.method.exchange == "none"
            or self._broadcast is None
            or study.method.forgets(t - 1)
        )
        coin = self._random.random()
        own, near = study.method.shares(t)
        scale = study.method.exploration(t, study.space.dims)
        if alone or coin <= own:
            return self._from_own_belief(scale)
        if coin <= near:
            return self._beside(scale)
        heeds = not study.method.doubts or coin > self._heeded(t)
        return self._from_broadcast() if heeds else self._from_own_belief(scale)

    def _heeded(self, t: int) -> float:
        """Above which coin it follows the common function, wary as it is."""
        heard = self._beside_what()
        kernel, points = self._current_beside(), np.asarray(self._points)[None]
        likeness = beside.likeness(kernel, points, self._raw(), heard)
        return float(self.study.method.heeded(t, likeness)[0])

    def _beside_what(self, releases: int | None = None) -> beside.Heard:
        """The common function, as far as it is known, or was after so many releases."""
        return beside.Heard(self.study.features, self._learnt_from(releases).mean)

    def _learnt_from(self, releases: int | None = None) -> Common:
        """What it knows of the function that all have in common; nothing before a broadcast."""
        vectors = np.zeros((0, self.study.method.features))
        if self._broadcast is not None:
            vectors = self._broadcast.vectors[:releases]
        if len(vectors) not in self._learnt:
            self._learnt[len(vectors)] = self.study.learnt(vectors)
        return self._learnt[len(vectors)]

    def _from_own_belief(self, scale: float) -> NDArray[np.float64]:
        space = self.study.space
        history = self._history()
        kernel = self._current_kernel()
        noise = self._random.standard_normal(history.values.shape)
        if space.finite:
            table = moves.exact_table(kernel.one(), space)
            prior = self._random.standard_normal((1, table.shape[1]))
            best = moves.own_point(table, kernel, history, prior, noise, scale)
            return np.asarray(space.points()[int(best[0])])
        draws, everywhere = self._path_draws(noise), Regions((1,) * space.dims)
        return np.asarray(space.snap(moves.own_place(kernel, history, draws, everywhere, scale)[0]))

    def _path_draws(self, noise: NDArray[np.float64]) -> moves.PathDraws:
        dims = self.study.space.dims
        return moves.PathDraws(
            self._random.standard_normal((1, FREQUENCIES, dims)),
            self._random.standard_normal((1, FREQUENCIES, 2)),
            noise,
            self._candidates(),
        )

    def _beside(self, scale: float) -> NDArray[np.float64]:
        """By a draw of its belief beside the common function."""
        space, heard = self.study.space, self._beside_what()
        kernel, history = self._current_beside(), self._history(standardise=True)
        noise = self._random.standard_normal(history.values.shape)
        if not space.finite:
            draws = self._path_draws(noise)
            normals = self._random.standard_normal((1, 2))
            place = beside.place(kernel, history, draws, heard, normals, scale)
            return np.asarray(space.snap(place[0]))
        points = space.points()
        table = moves.exact_table(Kernel(float(kernel.one().lengthscale), 1.0), space)
        prior = self._random.standard_normal((1, table.shape[1]))
        normals = self._random.standard_normal((1, 2))
        values, drawn = heard.at(points[None])[0], (prior, noise, normals)
        best = beside.point(table, values, kernel, history, drawn, scale)
        return np.asarray(points[int(best[0])])

    def _from_broadcast(self) -> NDArray[np.float64]:
        study, space = self.study, self.study.space
        vectors = self._heard()
        if space.finite:
            points = space.points()
            boxes = study.regions.index(points)
            best = moves.shared_point(study.features(points), boxes, vectors)
            return np.asarray(points[int(best[0])])
        place = moves.shared_place(study.features, study.regions, vectors, self._candidates())
        return np.asarray(space.snap(place[0]))

    def _heard(self) -> NDArray[np.float64]:
        """The broadcast's vectors, (1, P, M); of its peers' vectors, one at random.

        Of a common function that it has learnt of, a draw.
        """
        if self._broadcast is None:
            raise ProtocolError(f"agent {self.index} has received no broadcast")
        if self.study.method.hears == "learn":
            normals = self._random.standard_normal((1, 1, self.study.method.features))
            return self._learnt_from().drawn(normals[0])[None]
        vectors = self._broadcast.vectors
        if self.study.method.exchange == "peer":
            other = int(self._random.integers(self.study.agents - 1))
            vectors = vectors[[other + (other >= self.index)]]
        return vectors[None]

    def _history(self, count: int | None = None, standardise: bool | None = None) -> moves.History:
        """Its first `count` trials, or all, as it models them, or as asked."""
        points = np.asarray(self._points[:count])[None]
        how = self.belief.standardise if standardise is None else standardise
        values, mask = moves.modelled(self._raw(count), how)
        index = self.study.space.index(points) if self.study.space.finite else None
        return moves.History(points, values, mask, index)

    def _current_kernel(self) -> Kernel:
        """The fixed kernel, or the fitted one, brought up to date."""
        if self.belief.kernel is not None:
            return self.belief.kernel
        initial, every = self.study.method.initial, self.belief.refit
        for count in moves.due_fits(initial, every, self._fitted_at, self.trials):
            seen = self._history(count)
            self._kernel = fit(seen.points, seen.values, seen.mask, self._kernel)
            self._fitted_at = count
        return cast(Kernel, self._kernel)  # asked for only once the initial values are told

    def _current_beside(self) -> Kernel:
        """Its kernel and trust beside the common function, brought up to date."""
        initial, every = self.study.method.initial, self.belief.refit
        for count in moves.due_fits(initial, every, self._beside_at, self.trials):
            points, start = np.asarray(self._points[:count])[None], self._beside_kernel
            known, heard = self.belief.kernel, self._beside_what(self.study.heard_by(count))
            self._beside_kernel = beside.fitted(points, self._raw(count), heard, start, known)
            self._beside_at = count
        return cast(Kernel, self._beside_kernel)

    def _raw(self, count: int | None = None) -> NDArray[np.float64]:
        """The values of its first `count` trials, to be maximised, NaN where one failed: (1, t)."""
        return np.asarray(self._values[:count])[None] * (1.0 if self.maximise else -1.0)

    def _candidates(self) -> NDArray[np.float64]:
        return np.asarray(self._random.random((1, CANDIDATES, self.study.space.dims)))


def _finite(value: object) -> float:
    """The value as a float, or InvalidInput."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and type(value) is not bool
    try:
        number = float(value) if real else math.nan  # type: ignore[arg-type]
    except OverflowError:  # a whole number beyond the largest float
        number = math.inf
    if not abs(number) <= LARGEST:
        raise InvalidInput(f"a value must be a finite number within ±{LARGEST:g}, got {value!r}")
    return number
