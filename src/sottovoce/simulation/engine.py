"""A whole federation in one process: batches of agents, by the agents' own policy, and a server.

Symbols: N agents, T rounds, P regions, M features, D dimensions, L = N_init + T, t query number
(1..T); query t uses the broadcast of round t − 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import Array
from sottovoce.device import Device, device_named
from sottovoce.errors import check
from sottovoce.federation import policy
from sottovoce.federation.aggregate import aggregate
from sottovoce.federation.batch import Batch, Trials
from sottovoce.federation.parts import SharedModel
from sottovoce.federation.study import FederatedStudy
from sottovoce.privacy.events import Event
from sottovoce.privacy.noise import Seeded
from sottovoce.privacy.release import Diagnostics, diagnose
from sottovoce.simulation.problem import DrawnOnDevice, Listing, Objectives, Problem
from sottovoce.simulation.streams import Dealer, Draws, share_recipe

RoundCallback = Callable[[int, list[Event]], None]  # after each query: its number, what was spent
Tamper = Callable[[Array], Array]  # vectors of all agents (N, M) -> what some send in their place

BATCH = 256  # agents at a time: few enough for their arrays to stay in a CPU's cache
DEVICE_BATCH = 32768


@dataclass(frozen=True)
class Outcome:
    """One run: where the agents went, what was there, what was sent.

    Args:
        points: where each trial was, (N, L, D); L = N_init + T.
        truth, observed: values without noise, NaN where a trial failed, and with, (N, L).
        optimum: the largest value each agent can reach, (N,).
        initial: N_init.
        broadcasts, events: what was released, by round, and what that spent.
        diagnostics: how each release went, which nobody may know but in a simulation.

    Example:
        >>> from sottovoce.lab.problems import problem_named
        >>> branin = problem_named("branin")
        >>> study = FederatedStudy(branin.setting.space, TS, agents=4, rounds=3)
        >>> outcome = simulate(study, branin, Draws(seed=0, run=0))
        >>> outcome.points.shape, outcome.simple_regret.shape, outcome.events
        ((4, 13, 2), (4, 4), [])
    """

    points: NDArray[np.float64]
    truth: NDArray[np.float64]
    observed: NDArray[np.float64]
    optimum: NDArray[np.float64]
    initial: int
    broadcasts: dict[int, NDArray[np.float64]]
    events: list[Event]
    diagnostics: list[Diagnostics]

    @property
    def simple_regret(self) -> NDArray[np.float64]:
        """Optimum minus the best value queried so far, (N, T + 1); column 0 is after the start.

        An agent all of whose trials failed so far is given the largest regret that any trial of
        the run has shown by then, so its regret may rise. NaN while nobody has a value.
        """
        each = self.optimum[:, None] - self.truth
        regret = np.fmin.accumulate(each, axis=1)[:, self.initial - 1 :]
        largest = np.fmax.accumulate(np.fmax.reduce(each, axis=0))[self.initial - 1 :]
        return np.where(np.isnan(regret), largest, regret)


@dataclass
class _Run:
    """What a run holds while it goes on."""

    study: FederatedStudy
    device: Device
    dealer: Dealer
    shared: SharedModel  # one for all: whoever hears the same knows the same
    trials: Trials  # of all agents; each batch has a view of its rows
    batches: Sequence[Batch]
    objectives: Objectives
    truth: Array  # (N, L)
    source: Seeded
    on_device: bool  # whether the objectives live where the batches' arrays do
    tamper: Tamper | None = None
    broadcasts: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    diagnostics: list[Diagnostics] = field(default_factory=list)


def simulate(
    study: FederatedStudy,
    problem: Problem,
    draws: Draws,
    callback: RoundCallback | None = None,
    *,
    device: str | None = None,
    batch: int | None = None,
    tamper: Tamper | None = None,
) -> Outcome:
    """One run of the study's method on objectives drawn from the problem.

    Args:
        study: its space must be the problem's.
        problem: what to draw objectives from.
        draws: all random draws of the run.
        callback: told after each query its number, and what was spent so far.
        device: a device of PyTorch's ("cuda", say) in place of NumPy.
        batch: how many agents are simulated at a time, which bounds the memory and changes
            nothing else.
        tamper: what is made of all vectors before the server has them: dishonest agents. It can
            harm what is learnt; the clip, the noise and ε stay as they are.

    Example:
        >>> from sottovoce.lab.problems import problem_named
        >>> branin = problem_named("branin")
        >>> study = FederatedStudy(branin.setting.space, SOTTOVOCE, agents=4, rounds=3)
        >>> len(simulate(study, branin, Draws(seed=0, run=0)).events)  # releases in rounds 0 and 2
        2
    """
    check(study.space == problem.setting.space, "the study must search the problem's space")
    check(batch is None or batch >= 1, "batch must be at least 1", batch=batch)
    study = replace(study, feature_seed=study.feature_seed + draws.run)
    run = _begun(study, problem, draws, device_named(device), batch)
    run.tamper = tamper
    _observe(run, [policy.initial_queries(each) for each in run.batches])
    for t in range(1, study.rounds + 1):
        if study.method.shared.exchanges and study.method.releases.released(t - 1):
            _release(run, t - 1)
        _observe(run, [policy.next_query(each, t)[:, None] for each in run.batches])
        if callback is not None:
            callback(t, run.events)
    return _outcome(run)


def _begun(
    study: FederatedStudy, problem: Problem, draws: Draws, device: Device, batch: int | None
) -> _Run:
    """The run before anybody has tried anything."""
    agents, length = study.agents, study.method.initial + study.rounds
    dealer, shared = Dealer(draws, agents, device), study.method.shared(study, device)
    finite = study.space.finite
    shape = (agents, length) if finite else (agents, length, study.space.dims)
    trials = Trials(device.zeros(*shape, whole=finite), device.zeros(agents, length))
    size = batch or (BATCH if device.torch is None else DEVICE_BATCH)
    batches = []
    for k in range(0, agents, size):
        who = slice(k, min(k + size, agents))
        own, view = dealer.to(who), Trials(trials.where[who], trials.raw[who])
        surrogate = problem.setting.surrogate
        batches.append(Batch(study, who, surrogate, own, shared, view, device))
    random, on_device = draws.stream("objectives"), False
    if draws.on_device and isinstance(problem, DrawnOnDevice):
        on_device = True
        objectives = problem.draw_on_device(agents, random, dealer.stream("objectives"))
    else:
        objectives = problem.draw(agents, random)
    source, truth = Seeded(draws.seed_for("server")), device.zeros(agents, length)
    return _Run(
        study, device, dealer, shared, trials, batches, objectives, truth, source, on_device
    )


def _observe(run: _Run, chosen: list[Array]) -> None:
    """Evaluate what each batch has chosen, s queries an agent, and add it to the histories."""
    trials, xp = run.trials, run.device.xp
    where = _joined(run, chosen)
    agents, count = where.shape[:2]
    new = slice(trials.count, trials.count + count)
    truth = _truth(run, where)
    (noise,) = run.dealer.to(slice(0, agents))(
        "observation", trials.count, lambda random, n: (random.standard_normal((n, count)),)
    )
    trials.where[:, new] = where
    run.truth[:, new] = truth
    trials.raw[:, new] = truth + run.objectives.noise * noise
    trials.failed = trials.failed or bool(xp.any(xp.isnan(truth)))
    trials.count = new.stop
    for batch in run.batches:
        batch.trials.count, batch.trials.failed = trials.count, trials.failed


def _truth(run: _Run, where: Array) -> Array:
    """The objectives there, (N, s) or (N, s, D) -> (N, s); NaN where a trial failed."""
    objectives, device, space = run.objectives, run.device, run.study.space
    if run.on_device and isinstance(objectives, Listing):
        found = objectives.at(where)
    elif isinstance(objectives, Listing) and space.finite:
        found = device.array(objectives.at(device.numpy(where)))
    else:
        here = device.numpy(where)
        found = device.array(objectives.values(space.points()[here] if space.finite else here))
    return device.xp.where(device.xp.isfinite(found), found, device.xp.nan)


def _release(run: _Run, number: int) -> None:
    """Every agent's vector, the server's release of the round, and all hear it."""
    study, method = run.study, run.study.method
    vectors = _joined(run, [policy.message(each, number) for each in run.batches])
    if run.tamper is not None:
        vectors = run.tamper(vectors)
    if not method.shared.summed:  # all of them are sent
        vectors = run.device.numpy(vectors)
    published = aggregate(study, number, vectors, run.source, shares=_noise_shares(run, number))
    run.broadcasts[number] = published.vectors
    heard = [*run.broadcasts.values()] if method.shared.cumulative else [published.vectors]
    run.shared.hear(np.concatenate(heard))
    run.events.append(published.event)
    if method.mechanism is not None and not method.noise_only:
        run.diagnostics.append(diagnose(vectors, study.weights(number), method.mechanism))


def _noise_shares(run: _Run, number: int) -> NDArray[np.float64] | None:
    """The sum of all agents' normal draws for their own noise, where each adds its own."""
    if run.study.sums is None:
        return None
    size = run.study.grid.numbers
    total = np.zeros(size)
    for begin in range(0, run.study.agents, BATCH):
        agents = slice(begin, min(begin + BATCH, run.study.agents))
        (normals,) = run.dealer.to(agents)("share", number, partial(share_recipe, size=size))
        total += run.device.numpy(normals).sum(axis=0)
    return total


def _joined(run: _Run, parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else run.device.xp.concat(parts)


def _outcome(run: _Run) -> Outcome:
    device, space, optimum = run.device, run.study.space, run.objectives.optimum
    where = device.numpy(run.trials.where)
    return Outcome(
        space.points()[where] if space.finite else where,
        device.numpy(run.truth),
        device.numpy(run.trials.raw),
        device.numpy(optimum) if run.on_device else optimum,
        run.study.method.initial,
        run.broadcasts,
        run.events,
        run.diagnostics,
    )
