"""One party of a federation: it tries points, learns, says one vector a round, hears the rest.

Its history never leaves it. What it says is one draw from its posterior over the weights of the
shared features, made once for each round.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce import moves
from sottovoce.belief import Belief, kernel_from_list, kernel_to_list
from sottovoce.errors import (
    InvalidInput,
    ProtocolError,
    StorageError,
    StudyMismatch,
    UnknownAgent,
    WrongRound,
    check,
)
from sottovoce.files import write_text
from sottovoce.kernel import Kernel
from sottovoce.kernelfit import fit
from sottovoce.messages import Broadcast, Message
from sottovoce.regions import Regions
from sottovoce.study import Study

CANDIDATES = 1000  # random points that a maximisation begins with
FREQUENCIES = 128  # of a pathwise prior draw
LARGEST = 1e100  # a value above it could overflow when squared


class Agent:
    """One party.

    The seed only makes a run repeatable; without one the operating system provides it.
    """

    def __init__(
        self,
        study: Study,
        index: int,
        *,
        maximise: bool = True,
        belief: Belief | None = None,
        seed: int | None = None,
    ) -> None:
        if not isinstance(index, int) or not 0 <= index < study.agents:
            raise UnknownAgent(f"agents are numbered 0 to {study.agents - 1}, got {index!r}")
        check(isinstance(maximise, bool), "maximise must be true or false", maximise=maximise)
        self.study = study
        self.index = index
        self.maximise = maximise
        self.belief = Belief() if belief is None else belief
        self._random = np.random.default_rng(seed)
        self._points: list[NDArray[np.float64]] = []
        self._values: list[float] = []
        self._broadcast: Broadcast | None = None
        self._said: Message | None = None
        self._kernel = self.belief.kernel
        self._fitted_at = 0

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
    def round(self) -> int:
        """The round it speaks in next: the one after the last broadcast it received."""
        return 0 if self._broadcast is None else self._broadcast.round + 1

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

    def message(self, round_number: int | None = None) -> Message:
        """Its vector for a round (its next, unless another later one is named).

        Asked twice for the same round, it says the same again.
        """
        method = self.study.method
        if method.exchange == "none":
            raise ProtocolError(f"method {method.name!r} sends nothing: its agents go alone")
        if self.starting:
            raise ProtocolError(
                f"agent {self.index} speaks after its {method.initial} initial trials, "
                f"it has been told of {self.trials}"
            )
        earliest = self.round if self._said is None else max(self.round, self._said.round)
        number = earliest if round_number is None else round_number
        if not earliest <= number < self.study.rounds:
            raise WrongRound(
                f"agent {self.index} is at round {earliest}, asked for {number}; "
                f"the last is {self.study.rounds - 1}"
            )
        if self._said is None or self._said.round != number:
            history = self._history()
            rows = moves.known_rows(self.study.features(history.points), history.mask)
            prior = self._random.standard_normal((1, method.features))
            noise = self._random.standard_normal(history.values.shape)
            drawn = moves.message(rows, history.values, method.regularisation, prior, noise)
            self._said = Message(self.study.fingerprint, number, self.index, drawn[0])
        return self._said

    def receive(self, broadcast: Broadcast) -> None:
        """Take what the server sent. The same broadcast twice does no harm."""
        if broadcast.study != self.study.fingerprint:
            raise StudyMismatch(
                f"the broadcast's study is {broadcast.study[:12]}, "
                f"agent {self.index} holds {self.study.fingerprint[:12]}"
            )
        if not 0 <= broadcast.round < self.study.rounds:
            raise WrongRound(
                f"rounds are numbered 0 to {self.study.rounds - 1}, got {broadcast.round}"
            )
        if broadcast.round < self.round - 1:
            raise WrongRound(f"agent {self.index} is at round {self.round}, got {broadcast.round}")
        method = self.study.method
        count = self.study.agents if method.exchange == "peer" else method.regions
        wanted = (count, method.features)
        if broadcast.vectors.shape != wanted or not np.all(np.isfinite(broadcast.vectors)):
            raise ProtocolError(
                f"a broadcast must be finite and of shape {wanted}, got {broadcast.vectors.shape}"
            )
        known = self._broadcast
        if known is not None and known.round == broadcast.round and known != broadcast:
            # fresh noise for the same round is a second release, which nobody accounted for
            raise ProtocolError(f"round {broadcast.round} was broadcast before, with other content")
        self._broadcast = broadcast

    def save(self, path: str | Path) -> None:
        """Write everything it knows to one file, whole or not at all. It holds the history."""
        content = {
            "schema": 1,
            "study": self.study.fingerprint,
            "index": self.index,
            "maximise": self.maximise,
            "belief": self.belief.to_dict(),
            "points": [point.tolist() for point in self._points],
            "values": [None if math.isnan(value) else value for value in self._values],
            "random": self._random.bit_generator.state,
            "kernel": None if self._kernel is None else kernel_to_list(self._kernel),
            "fitted_at": self._fitted_at,
            "said": None if self._said is None else self._said.to_bytes().hex(),
            "broadcast": None if self._broadcast is None else self._broadcast.to_bytes().hex(),
        }
        write_text(Path(path), json.dumps(content))

    @classmethod
    def load(cls, path: str | Path, study: Study, belief: Belief | None = None) -> Agent:
        """The agent that `save` wrote, for the same study; it goes on as if never stopped."""
        try:
            content = json.loads(Path(path).read_text())
            if content["schema"] != 1:
                raise StorageError(f"{path} is of schema {content['schema']}, this is schema 1")
            if content["study"] != study.fingerprint:
                raise StudyMismatch(f"{path} belongs to another study")
            agent = cls(study, content["index"], maximise=content["maximise"], belief=belief)
            agent._restore(content)
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error}") from error
        except StudyMismatch:
            raise
        except (ValueError, KeyError, TypeError, ProtocolError) as error:
            raise StorageError(f"{path} is not a saved agent: {error!r}") from error
        return agent

    def _restore(self, content: dict[str, Any]) -> None:
        """Take over what `save` wrote; raises on anything that does not fit."""
        if content["belief"] != self.belief.to_dict():
            raise InvalidInput(f"it was saved with another belief, {content['belief']}")
        for point, value in zip(content["points"], content["values"], strict=True):
            self.tell(self.study.space.decode(np.asarray(point, dtype=float)), value)
        self._random.bit_generator.state = content["random"]
        if self._kernel is None and content["kernel"] is not None:
            self._kernel = kernel_from_list(content["kernel"])
        self._fitted_at = int(content["fitted_at"])
        if content["broadcast"] is not None:
            self.receive(Broadcast.from_bytes(bytes.fromhex(content["broadcast"])))
        if content["said"] is not None:
            said = Message.from_bytes(bytes.fromhex(content["said"]))
            if (said.study, said.agent) != (self.study.fingerprint, self.index):
                raise StudyMismatch("what it said was said in another study, or by another agent")
            self._said = said

    def _initial(self) -> NDArray[np.float64]:
        """A uniform point of its own region, or of everywhere."""
        space = self.study.space
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
            or study.method.speaking.over(t - 1)
        )
        coin = self._random.random()
        if alone or coin <= study.method.own_belief(t):
            return self._from_own_belief(study.method.exploration(t, study.space.dims))
        return self._from_broadcast()

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
        draws = moves.PathDraws(
            self._random.standard_normal((1, FREQUENCIES, space.dims)),
            self._random.standard_normal((1, FREQUENCIES, 2)),
            noise,
            self._candidates(),
        )
        everywhere = Regions((1,) * space.dims)
        return np.asarray(space.snap(moves.own_place(kernel, history, draws, everywhere, scale)[0]))

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
        """The broadcast's vectors, (1, P, M); of its peers' vectors, one at random."""
        if self._broadcast is None:
            raise ProtocolError(f"agent {self.index} has received no broadcast")
        vectors = self._broadcast.vectors
        if self.study.method.exchange == "peer":
            other = int(self._random.integers(self.study.agents - 1))
            vectors = vectors[[other + (other >= self.index)]]
        return vectors[None]

    def _history(self, count: int | None = None) -> moves.History:
        """Its first `count` trials, or all."""
        points = np.asarray(self._points[:count])[None]
        raw = np.asarray(self._values[:count])[None] * (1.0 if self.maximise else -1.0)
        values, mask = moves.modelled(raw, self.belief.standardise)
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

    def _candidates(self) -> NDArray[np.float64]:
        return self._random.random((1, CANDIDATES, self.study.space.dims))


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
