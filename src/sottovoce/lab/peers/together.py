"""Federations and ways to search alone in the same figures, by trials in all.

An entry says what is run:
- a method's name: within ε if it protects its sums, else as it is;
- NAME/own: with the noise it has; NAME/control: with the broadcast replaced by noise;
  NAME/quiet: with next to no noise, the ceiling; NAME/local: with noise that sites add themselves;
  NAME/dishonest: one agent in five lies (`dishonest`); NAME/flat: without what is usual
  (`gp.usual`); NAME/features: with the noise it has, and with the features of `pooled-ts`, as many
  and as smooth as the space calls for;
- dp-hype: a vote within ε, for each number of trials a federation of its own;
- solo/NAME: a few agents of every run alone, by a search of `searches`.

Run r meets the same objectives whatever the entry. Regret is that of the best true value tried so
far, meaned over agents, from the first trial on.

Symbols: N agents, L trials in all.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput, StorageError, check
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.methods import METHODS, POOLED_TS, Method
from sottovoce.federation.planning import sized
from sottovoce.federation.study import FederatedStudy
from sottovoce.files import write_text
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.peers.comparison import CHECKPOINTS
from sottovoce.lab.peers.dishonest import one_in_five
from sottovoce.lab.peers.hype import dp_hype, noise_within
from sottovoce.lab.peers.local import with_local_noise
from sottovoce.lab.peers.solo import one_agent, searched
from sottovoce.lab.problems import problem_named
from sottovoce.privacy.accountant import epsilon as epsilon_of
from sottovoce.simulation import Draws, simulate

FloatArray = NDArray[np.float64]
QUIET = 1e-3  # noise over sensitivity that is as good as none
VARIANTS = ("own", "control", "quiet", "local", "dishonest", "flat", "features")
AS_IT_IS = ("own", "features")  # variants with the noise that a method has
HYPE = "dp-hype"


@dataclass(frozen=True)
class Federation:
    """How many, how long, within what."""

    agents: int
    trials: int
    epsilon: float
    delta: float = 1e-5

    def __post_init__(self) -> None:
        check(self.agents >= 1, "agents must be at least 1", agents=self.agents)
        check(self.trials >= 2, "trials must be at least 2", trials=self.trials)


@dataclass(frozen=True)
class Curve:
    """One run of one entry: mean regret after each trial (None: not known), ε it spends."""

    regret: list[float | None]
    epsilon: float | None  # None: without protection; 0: nothing is sent


def study_of(problem: str, entry: str, size: Federation) -> tuple[FederatedStudy, float | None]:
    """The study that an entry runs, and ε of what it releases."""
    name, _, variant = entry.partition("/")
    known = variant == "" or variant in VARIANTS
    if not known:
        raise InvalidInput(f"{entry}: a variant must be one of {', '.join(VARIANTS)}")
    private = name in METHODS and METHODS[name].private
    within = size.epsilon if private and variant not in AS_IT_IS else None
    config = RunConfig(problem, name, size.agents, 1, delta=size.delta)
    initial = config.resolved_method().initial
    check(initial < size.trials, f"trials must be above the {initial} first", trials=size.trials)
    config = replace(config, rounds=size.trials - initial, epsilon=within)
    study = config.study()
    events = [planned_event(study, "plan")] if study.method.shared.exchanges else []
    events *= study.method.releases.count(study.rounds)
    spent = epsilon_of(events, size.delta) if events else 0.0
    changed = _variant(study, variant)
    spent = {"control": 0.0, "quiet": np.inf}.get(variant, spent)
    return replace(study, method=changed), spent if np.isfinite(spent) else None


def uninformed(method: Method) -> Method:
    """The method without what functions of tuning usually look like."""
    flat = {"informed-consensus": "consensus", "usual": "none"}
    if method.shared_model not in flat:
        raise InvalidInput(f"{method.name} knows nothing beforehand that could be left out")
    return replace(method, name=f"{method.name}-flat", shared_model=flat[method.shared_model])


def _variant(study: FederatedStudy, variant: str) -> Method:
    method = study.method
    if variant == "local":
        return with_local_noise(method, study.agents)
    if variant == "flat":
        return uninformed(method)
    if variant == "features":
        given = sized(POOLED_TS, study.space.dims)
        return replace(method, features=given.features, lengthscale=given.lengthscale)
    if variant in ("control", "quiet") and method.mechanism is None:
        raise InvalidInput(f"{method.name} has no noise to change")
    if variant == "control":
        return replace(method, noise_only=True)
    if variant == "quiet" and method.mechanism is not None:
        return replace(method, mechanism=replace(method.mechanism, noise=QUIET))
    return method


def mean_regret(truth: FloatArray, optimum: FloatArray) -> FloatArray:
    """Over agents, after each trial, (L,): truth (N, L), NaN where a trial failed.

    Who has no value yet is given the largest regret that the run has shown by then.
    """
    each = optimum[:, None] - truth
    largest = np.fmax.accumulate(np.fmax.reduce(each, axis=0))
    best = np.fmin.accumulate(each, axis=1)
    return np.asarray(np.where(np.isnan(best), largest, best).mean(axis=0))


@dataclass(frozen=True)
class TogetherTask:
    """One run of one entry on one problem; calling it does it, unless it is done."""

    folder: Path
    problem: str
    entry: str
    size: Federation
    run: int
    alone: int = 4  # agents of a solo search
    seed: int = 0
    device: str | None = None  # of PyTorch's, in place of NumPy
    batch: int | None = None  # agents at a time, where memory is short; changes nothing else

    @property
    def path(self) -> Path:
        """Where the result is kept."""
        size = self.size
        word = f"n{size.agents}-t{size.trials}-e{size.epsilon:g}-d{size.delta:g}"
        entry = self.entry.replace("/", "+") + (f"-a{self.alone}" if self._solo else "")
        problem = self.problem.replace(":", "-").replace("/", "_")
        return self.folder / problem / word / f"{entry}-s{self.seed}-r{self.run}.json"

    @property
    def _solo(self) -> bool:
        return self.entry.startswith("solo/")

    def __call__(self) -> str:
        """Run it, and keep what came of it."""
        if not self.path.is_file():
            curve = self._curve()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, json.dumps(asdict(curve)))
        return f"{self.problem}, {self.entry}, run {self.run + 1}"

    def result(self) -> Curve:
        """What was kept."""
        try:
            return Curve(**json.loads(self.path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            again = f"{self.path} is damaged ({error}); delete it to run it again"
            raise StorageError(again) from error

    def _curve(self) -> Curve:
        if self._solo:
            return self._alone()
        if self.entry == HYPE:
            return self._voted()
        study, spent = study_of(self.problem, self.entry, self.size)
        draws = Draws(self.seed, self.run)
        lies = one_in_five(study.method) if self.entry.endswith("/dishonest") else None
        outcome = simulate(
            *(study, problem_named(self.problem), draws),
            device=self.device,
            batch=self.batch,
            tamper=lies,
        )
        curve = mean_regret(outcome.truth, outcome.optimum)
        return Curve([_known(value) for value in curve], spent)

    def _voted(self) -> Curve:
        size, problem = self.size, problem_named(self.problem)
        regret: list[float | None] = [None] * size.trials
        noise, draws = noise_within(size.epsilon, size.delta), Draws(self.seed, self.run)
        event = None
        for trials in (n for n in CHECKPOINTS if n <= size.trials):
            result = dp_hype(problem, size.agents, trials, noise, draws)
            regret[trials - 1], event = float(result.regret.mean()), result.event
        spent = 0.0 if event is None else epsilon_of([event], size.delta)
        return Curve(regret, spent)

    def _alone(self) -> Curve:
        import optuna  # which runs of federations do without

        from sottovoce.lab.peers.searches import search_named

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        name, problem, curves = self.entry.partition("/")[2], problem_named(self.problem), []
        for n in range(min(self.alone, self.size.agents)):
            agent = one_agent(problem, self.seed, self.run, self.size.trials, self.size.agents, n)
            seed = self.run * self.size.agents + n
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # peers warn of being experimental, and more
                result = searched(agent, search_named(name, agent.space, seed))
            curves.append([np.nan if r is None else r for r in result.regret])
        each = np.asarray(curves)
        largest = np.nanmax(each) if np.any(np.isfinite(each)) else np.nan
        mean = np.where(np.isnan(each), largest, each).mean(axis=0)
        return Curve([_known(value) for value in mean], 0.0)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def curves_of(tasks: list[TogetherTask]) -> FloatArray:
    """The mean regrets of runs, (R, L); NaN where one is not known."""
    rows = [[np.nan if r is None else r for r in task.result().regret] for task in tasks]
    return np.asarray(rows, dtype=np.float64)
