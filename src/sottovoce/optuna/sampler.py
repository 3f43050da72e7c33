"""Our search, in any Optuna study with one objective."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any, Literal

import numpy as np
from optuna import Study as OptunaStudy
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from sottovoce.errors import SpaceError, check
from sottovoce.federation.methods import GP, TS, Repeats
from sottovoce.federation.searcher import LARGEST, Direction, Searcher
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.optuna.spaces import space_of
from sottovoce.space import Space

FEW_POINTS = 100  # listed at once; a person waits for every suggestion
_ALONE = {"gp": GP, "ts": TS}
_REFIT = {"gp": 1, "ts": 5}  # trials from one fit to the next
Distributions = Mapping[str, BaseDistribution]
Row = tuple[dict[str, float], float | None]  # a trial: its parameters, numbered; its value


class Sampler(BaseSampler):
    """Each trial is where a Gaussian process that has seen the others expects most improvement.

    method: "gp", or "ts", Thompson sampling: where a draw of a simpler process is largest.
    initial: how many values it sees before it models them, trials being uniform until then; None:
    as many as suit the method, 5 to 10 of "gp", 10 of "ts".
    surrogate, repeats: of "ts" alone: how its process is fitted or fixed; "replace": a point tried
    before gives way to a random one, for objectives without noise.
    A seed makes a study repeatable, if its trials run one after the other.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        method: Literal["gp", "ts"] = "gp",
        initial: int | None = None,
        surrogate: Surrogate | None = None,
        repeats: Repeats = "allow",
    ) -> None:
        check(method in _ALONE, f"method must be one of {tuple(_ALONE)}", method=method)
        known = surrogate is None or isinstance(surrogate, Surrogate)
        check(known, "surrogate must be a Surrogate, or None", surrogate=surrogate)
        plain = surrogate is None and repeats == "allow"
        rule = 'surrogate and repeats are settings of method="ts"'
        check(method == "ts" or plain, rule, surrogate=surrogate, repeats=repeats)
        whole = isinstance(initial, int) and not isinstance(initial, bool) and initial >= 1
        rule = "initial must be a whole number above 0, or None"
        check(initial is None or whole, rule, initial=initial)
        natural = seed is None or (isinstance(seed, int) and seed >= 0)
        check(natural, "seed must be a whole number of at least 0, or None", seed=seed)
        self._initial = initial
        self._surrogate = Surrogate(refit=_REFIT[method]) if surrogate is None else surrogate
        self._method = replace(_ALONE[method], repeats=repeats)
        self._seeded(np.random.SeedSequence(seed))
        # what running trials were given, by study and number: the storage has it only later
        self._given: dict[str, dict[int, dict[str, float]]] = {}
        self._lock = Lock()  # Optuna's workers are threads that share the sampler

    def _seeded(self, seed: np.random.SeedSequence) -> None:
        uniform, self._seeds = seed.spawn(2)
        self._uniform = RandomSampler(int(uniform.generate_state(1)[0]))
        self._search: _Search | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def reseed_rng(self) -> None:
        """Forget the seed: each of several workers must go its own way."""
        with self._lock:
            self._seeded(np.random.SeedSequence())

    def infer_relative_search_space(
        self, study: OptunaStudy, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that all complete trials asked for alike."""
        shared = intersection_search_space(study.get_trials(deepcopy=False))
        return {name: d for name, d in shared.items() if not d.single()}

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Where to go next; nothing before enough values are known."""
        _check_single(study)
        maximised = study.directions[0] == StudyDirection.MAXIMIZE
        direction: Direction = "maximize" if maximised else "minimize"
        with self._lock:  # from here, or a worker with an older list would begin anew
            trials = study.get_trials(deepcopy=False)
            rows = _rows(trials, search_space)
            known = sum(value is not None for _, value in rows.values())
            if not search_space or known < self._first(len(search_space)):
                return {}
            search = self._search
            if search is None or not search.goes_on(search_space, direction, rows):
                search = self._search = self._begun(search_space, direction, rows)
            search.tell(rows)
            running = _running(trials, search_space, self._given.get(study.study_name, {}))
            numbers = search.searcher.ask(search.inside(running.values()))
            self._given = {study.study_name: {**running, trial.number: numbers}}
        return {name: d.to_external_repr(numbers[name]) for name, d in search_space.items()}

    def _first(self, parameters: int) -> int:
        """How many values are seen before they are modelled."""
        if self._initial is not None:
            return self._initial
        return min(5 + parameters // 2, 10) if self._method.acquisition == "log-ei" else TS.initial

    def _begun(
        self, distributions: Distributions, direction: Direction, rows: Mapping[int, Row]
    ) -> _Search:
        """A search that has seen these trials as its initial ones, so that one fit is enough."""
        space = _numbered(distributions, listed=self._method.acquisition == "log-ei")
        inside = sum(_holds(space, params) for params, _ in rows.values())
        method = replace(self._method, initial=max(inside, 1))
        (child,) = self._seeds.spawn(1)
        seed = int(child.generate_state(1, np.uint64)[0])
        federation = FederatedStudy(space, method, agents=1, rounds=1)
        searcher = Searcher(
            federation, 0, direction=direction, surrogate=self._surrogate, seed=seed
        )
        return _Search(dict(distributions), searcher)

    def sample_independent(
        self,
        study: OptunaStudy,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Uniform: initial trials, and parameters that only some trials ask for."""
        _check_single(study)
        with self._lock:
            return self._uniform.sample_independent(study, trial, param_name, param_distribution)


class _Search:
    """A search over one space, and which trials it has been told of."""

    def __init__(self, distributions: Distributions, searcher: Searcher) -> None:
        self.distributions = distributions
        self.searcher = searcher
        self.told: dict[int, Row] = {}

    def goes_on(
        self, distributions: Distributions, direction: Direction, rows: Mapping[int, Row]
    ) -> bool:
        """Whether it is the same search, and all it was told still stands."""
        same = (self.distributions, self.searcher.direction) == (distributions, direction)
        return same and all(rows.get(number) == row for number, row in self.told.items())

    def inside(self, running: Iterable[Mapping[str, float]]) -> list[Mapping[str, float]]:
        """Those of the trials that lie in the space."""
        return [params for params in running if _holds(self.searcher.study.space, params)]

    def tell(self, rows: Mapping[int, Row]) -> None:
        """What is new."""
        for number in sorted(rows.keys() - self.told.keys()):
            self.told[number] = rows[number]
            with suppress(SpaceError):  # a person may queue a trial outside of the space
                self.searcher.tell(*rows[number])


def _check_single(study: OptunaStudy) -> None:
    count = len(study.directions)
    check(count == 1, "the sampler takes studies with one objective", objectives=count)


class _PromptSpace(Space):
    """A space that is listed only if it is small: a draw at K listed points costs K³ a fit."""

    @property
    def finite(self) -> bool:
        """Whether there are few enough points to wait for."""
        return self.size is not None and self.size <= FEW_POINTS


def _numbered(distributions: Distributions, listed: bool) -> Space:
    """The space of Optuna's own numbers for values: a choice, whatever it is, is its place.

    listed: whether its points are listed if there are some two thousand, or only if there are few.
    """
    places = {
        name: CategoricalDistribution(range(len(d.choices)))
        if isinstance(d, CategoricalDistribution)
        else d
        for name, d in distributions.items()
    }
    space = space_of(places)
    return space if listed else _PromptSpace(space.parameters)


def _rows(trials: Sequence[FrozenTrial], distributions: Distributions) -> dict[int, Row]:
    """The finished trials that asked for just these parameters, and maybe others, by number."""
    return {
        trial.number: (_params(trial, distributions), _value(trial))
        for trial in trials
        if trial.state.is_finished() and _asks(trial, distributions)
    }


def _running(
    trials: Sequence[FrozenTrial],
    distributions: Distributions,
    given: Mapping[int, dict[str, float]],
) -> dict[int, dict[str, float]]:
    """The parameters of the trials that have not come to an end, by number, as far as known.

    given: what was suggested, by trial; one that has just begun has not asked for it yet.
    """
    found = {}
    for trial in trials:
        if trial.state == TrialState.RUNNING:
            if _asks(trial, distributions):
                found[trial.number] = _params(trial, distributions)
            elif given.get(trial.number, {}).keys() == distributions.keys():
                found[trial.number] = given[trial.number]
    return found


def _asks(trial: FrozenTrial, distributions: Distributions) -> bool:
    return all(trial.distributions.get(name) == d for name, d in distributions.items())


def _params(trial: FrozenTrial, distributions: Distributions) -> dict[str, float]:
    return {name: d.to_internal_repr(trial.params[name]) for name, d in distributions.items()}


def _value(trial: FrozenTrial) -> float | None:
    """What a trial teaches: nothing if it failed, was pruned, or came to no usable number."""
    if trial.state != TrialState.COMPLETE or trial.value is None:
        return None
    return trial.value if abs(trial.value) <= LARGEST else None


def _holds(space: Space, params: Mapping[str, float]) -> bool:
    try:
        space.encode(params)
    except SpaceError:
        return False
    return True
