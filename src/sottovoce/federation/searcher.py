"""One party's search: what it has tried, and where it goes next, by ask and tell.

What it does is the policy's, for a batch of one. What it hears from others comes in as a broadcast;
how messages go is `agent`'s part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput, check
from sottovoce.federation import policy
from sottovoce.federation.batch import Batch, Trials
from sottovoce.federation.draws import DrawSource, OwnDraws
from sottovoce.federation.study import FederatedStudy, check_agent
from sottovoce.federation.surrogate import Surrogate

LARGEST = 1e100  # a value above it could overflow when squared
_ROOM = 32  # trials there is room for at first

Direction = Literal["minimize", "maximize"]  # Optuna's words
DIRECTIONS: tuple[str, ...] = get_args(Direction)


def check_direction(direction: object) -> None:
    """Refuse a word that is not a direction."""
    check(direction in DIRECTIONS, f"direction must be one of {DIRECTIONS}", direction=direction)


class Searcher:
    """One party, as far as it needs nobody else."""

    def __init__(
        self,
        study: FederatedStudy,
        index: int,
        *,
        direction: Direction = "maximize",
        surrogate: Surrogate | None = None,
        seed: int | None = None,
        draws: DrawSource | None = None,
    ) -> None:
        check_agent(index, study.agents)
        check_direction(direction)
        check(seed is None or draws is None, "give a seed or draws, not both", seed=seed)
        self.study, self.index, self.direction = study, index, direction
        self.surrogate = Surrogate() if surrogate is None else surrogate
        own = OwnDraws(np.random.default_rng(seed)) if draws is None else draws
        shared, who = study.method.shared(study), slice(index, index + 1)
        self._batch = Batch(study, who, self.surrogate, own, shared, _empty(study, _ROOM))
        self._initial: Any = None  # all initial queries, once the first is asked for

    @property
    def trials(self) -> int:
        """How many trials of the study it has been told of, failed ones included."""
        return self._batch.trials.count - self._batch.trials.earlier

    @property
    def observations(self) -> int:
        """How many values it has been told; failed trials have none."""
        return int(np.sum(np.isfinite(self._batch.raw())))

    @property
    def starting(self) -> bool:
        """Whether it has not been told of all its initial trials yet."""
        return self.trials < self.study.method.initial

    @property
    def best(self) -> tuple[dict[str, Any], float]:
        """The parameters with the best value told so far, and that value."""
        if not self.observations:
            raise InvalidInput("there is no best before the first value is told")
        k = int(np.nanargmax(self._batch.raw()[0]))
        return self.study.space.decode(self._points()[k]), self._values()[k]

    def ask(self, running: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The parameters to try next; `running` are those of trials not yet told.

        An acquisition by Thompson sampling takes no notice of them: its draws differ anyway. While
        initial trials run, the next of them is asked for, and after the last that again.
        """
        encoded = [self.study.space.encode(params) for params in running]
        self._batch.pending = np.stack(encoded)[None] if encoded else None
        number, initial = self.trials + len(encoded), self.study.method.initial
        if self.starting:
            if self._initial is None:
                self._initial = policy.initial_queries(self._batch)
            chosen = self._initial[:, min(number, initial - 1)]
        else:
            chosen = policy.next_query(self._batch, number - initial + 1)
        return self.study.space.decode(self._batch.domain.decoded(chosen)[0])

    def tell(self, params: Mapping[str, Any], value: float | None) -> None:
        """What the objective was at these parameters; None: the trial failed.

        A failed trial teaches the agent nothing, but counts as one of its queries.
        """
        self._add(params, math.nan if value is None else _finite(value))

    def add_earlier(self, params: Mapping[str, Any], value: float) -> None:
        """A value from before the study: it counts as knowledge, not as one of its queries.

        Initial trials are run all the same. All such values come before the first that is told.
        """
        check(self.trials == 0, "earlier values come before the study's own", trials=self.trials)
        self._add(params, _finite(value))
        self._batch.trials.earlier += 1

    def _add(self, params: Mapping[str, Any], value: float) -> None:
        point = self.study.space.encode(params)
        trials = self._batch.trials
        if trials.count == trials.raw.shape[1]:
            trials = self._batch.trials = _with_room(self.study, trials)
        trials.where[0, trials.count] = self._batch.domain.encoded(point[None, None])[0, 0]
        trials.raw[0, trials.count] = value * self._sign
        trials.count += 1
        trials.failed = trials.failed or math.isnan(value)

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "maximize" else -1.0

    def _points(self) -> NDArray[np.float64]:
        """Where its trials were, (t, D)."""
        return np.asarray(self._batch.domain.points()[0])

    def _initial_points(self) -> list[list[float]] | None:
        """Its initial points, (N_init, D), as plain data; None before it asks for the first."""
        if self._initial is None:
            return None
        return cast(list[list[float]], self._batch.domain.decoded(self._initial)[0].tolist())

    def _plan(self, points: list[list[float]] | None) -> None:
        """Take initial points that `_initial_points` gave."""
        if points is None:
            return
        array = np.asarray(points, dtype=float)
        wanted = (self.study.method.initial, self.study.space.dims)
        right = array.shape == wanted and bool(np.all((array >= 0) & (array <= 1)))
        check(right, f"initial points must be {wanted} numbers in [0, 1]", shape=array.shape)
        self._initial = self._batch.domain.encoded(array[None])

    def _values(self) -> list[float]:
        """What it was told, NaN where a trial failed."""
        return [float(raw) * self._sign for raw in self._batch.raw()[0]]


def _empty(study: FederatedStudy, room: int) -> Trials:
    finite = study.space.finite
    shape = (1, room) if finite else (1, room, study.space.dims)
    return Trials(np.zeros(shape, dtype=np.int64 if finite else np.float64), np.zeros((1, room)))


def _with_room(study: FederatedStudy, trials: Trials) -> Trials:
    """The same trials with room for as many more."""
    larger = _empty(study, 2 * trials.count)
    larger.where[:, : trials.count], larger.raw[:, : trials.count] = trials.where, trials.raw
    larger.count, larger.failed, larger.earlier = trials.count, trials.failed, trials.earlier
    return larger


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
