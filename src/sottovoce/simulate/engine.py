"""A whole federation in one process: all agents of a run at once, by the agents' own moves.

Symbols: N agents, T rounds, P regions, M features, D dimensions, t query number (1..T); query t
uses the broadcast of round t − 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce import moves
from sottovoce.agent import CANDIDATES, FREQUENCIES
from sottovoce.belief import Belief
from sottovoce.errors import ProtocolError, check
from sottovoce.kernel import Kernel
from sottovoce.kernelfit import fit
from sottovoce.posterior import exact_features
from sottovoce.privacy.events import Event
from sottovoce.privacy.noise import Seeded
from sottovoce.privacy.release import Diagnostics, diagnose
from sottovoce.problems.protocol import Objectives, Problem
from sottovoce.regions import Regions
from sottovoce.server import aggregate
from sottovoce.simulate.draws import Draws
from sottovoce.study import Study

Watcher = Callable[[int, list[Event]], None]


@dataclass(frozen=True)
class Outcome:
    """One run: where the agents went, what was there, what was said."""

    points: NDArray[np.float64]  # (N, N_init + T, D)
    truth: NDArray[np.float64]  # (N, N_init + T), noiseless values
    observed: NDArray[np.float64]  # (N, N_init + T)
    optimum: NDArray[np.float64]  # (N,)
    initial: int
    broadcasts: dict[int, NDArray[np.float64]]
    events: list[Event]
    diagnostics: list[Diagnostics]

    @property
    def simple_regret(self) -> NDArray[np.float64]:
        """Optimum minus the best value queried so far, (N, T + 1); column 0 is after the start."""
        best = np.maximum.accumulate(self.truth, axis=1)[:, self.initial - 1 :]
        return self.optimum[:, None] - best


@dataclass
class _Run:
    """What a run holds while it goes on."""

    study: Study
    belief: Belief
    draws: Draws
    objectives: Objectives
    points: NDArray[np.float64]
    truth: NDArray[np.float64]
    observed: NDArray[np.float64]
    told: int = 0
    kernel: Kernel | None = None  # the fitted ones
    fitted_at: int = 0
    broadcast: NDArray[np.float64] | None = None
    broadcasts: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    diagnostics: list[Diagnostics] = field(default_factory=list)


def simulate(
    study: Study, problem: Problem, draws: Draws, watcher: Watcher | None = None
) -> Outcome:
    """One run of the study's method on objectives drawn from the problem."""
    setting = problem.setting
    check(study.space == setting.space, "the study must search the problem's space")
    study = replace(study, feature_seed=study.feature_seed + draws.run)
    method, length = study.method, study.method.initial + study.rounds
    objectives = problem.draw(study.agents, draws.stream("objectives"))
    shape = (study.agents, length)
    run = _Run(
        study,
        setting.belief,
        draws,
        objectives,
        np.zeros((*shape, study.space.dims)),
        np.zeros(shape),
        np.zeros(shape),
    )
    source = Seeded(draws.seed_for("server"))
    _observe(run, _initial_points(run))
    for t in range(1, study.rounds + 1):
        if method.exchange != "none" and method.speaking.speaks(t - 1):
            _speak(run, t - 1, source)
        _observe(run, _next_points(run, t)[:, None, :])
        if watcher is not None:
            watcher(t, run.events)
    return Outcome(
        run.points,
        run.truth,
        run.observed,
        objectives.optimum,
        method.initial,
        run.broadcasts,
        run.events,
        run.diagnostics,
    )


def _observe(run: _Run, points: NDArray[np.float64]) -> None:
    """Evaluate (N, s, D) points and add them to the histories."""
    new = slice(run.told, run.told + points.shape[1])
    run.points[:, new] = points
    run.truth[:, new] = run.objectives.values(points)
    noise = run.draws.stream("observation", run.told).standard_normal(run.truth[:, new].shape)
    run.observed[:, new] = run.truth[:, new] + run.objectives.noise * noise
    run.told = new.stop


def _initial_points(run: _Run) -> NDArray[np.float64]:
    """N_init uniform points for each agent, from its own region or from everywhere: (N, s, D)."""
    study, space = run.study, run.study.space
    shape = (study.agents, study.method.initial, moves.starting_tries(space), space.dims)
    return moves.starting_points(space, *study.start, run.draws.stream("start").random(shape))


def _history(run: _Run, count: int | None = None) -> moves.History:
    """The first `count` observations of every agent, or all."""
    end = run.told if count is None else count
    points, values = run.points[:, :end], run.observed[:, :end]
    mask = np.ones(values.shape, dtype=np.bool_)
    if run.belief.standardise:
        values = moves.standardised(values, mask)
    index = run.study.space.index(points) if run.study.space.finite else None
    return moves.History(points, values, mask, index)


def _speak(run: _Run, round_number: int, source: Seeded) -> None:
    """Every agent's vector, and the server's release of the round."""
    study, method = run.study, run.study.method
    history = _history(run)
    random = run.draws.stream("message", round_number)
    prior = random.standard_normal((study.agents, method.features))
    noise = random.standard_normal(history.values.shape)
    rows = study.features(history.points)
    vectors = moves.message(rows, history.values, method.regularisation, prior, noise)
    published = aggregate(study, round_number, vectors, source)
    run.broadcast = run.broadcasts[round_number] = published.vectors
    run.events.append(published.event)
    if method.mechanism is not None and not method.control:
        weights = study.weights(round_number)
        run.diagnostics.append(diagnose(vectors, weights, method.mechanism))


def _next_points(run: _Run, t: int) -> NDArray[np.float64]:
    """Query t of every agent, (N, D)."""
    study, method = run.study, run.study.method
    coins = run.draws.stream("coin", t).random(study.agents)
    own = coins <= method.own_belief(t)
    if method.exchange == "none" or run.broadcast is None or method.speaking.over(t - 1):
        own[:] = True
    chosen = np.empty((study.agents, study.space.dims))
    if own.any():
        chosen[own] = _from_own_belief(run, t, own)
    if not own.all():
        chosen[~own] = _from_broadcast(run, t, ~own)
    return chosen


def _from_own_belief(run: _Run, t: int, who: NDArray[np.bool_]) -> NDArray[np.float64]:
    space, agents = run.study.space, run.study.agents
    some = _part(_history(run), who)
    random = run.draws.stream("belief", t)
    noise = random.standard_normal((agents, run.told))[who]
    if space.finite:
        return np.asarray(space.points()[_best_points(run, some, noise, t, who)])
    draws = moves.PathDraws(
        random.standard_normal((agents, FREQUENCIES, space.dims))[who],
        random.standard_normal((agents, FREQUENCIES, 2))[who],
        noise,
        random.random((agents, CANDIDATES, space.dims))[who],
    )
    kernels, everywhere = _current_kernel(run).part(who), Regions((1,) * space.dims)
    scale = run.study.method.exploration(t, space.dims)
    return np.asarray(space.snap(moves.own_place(kernels, some, draws, everywhere, scale)))


def _best_points(
    run: _Run, some: moves.History, noise: NDArray[np.float64], t: int, who: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The index each of the agents asked tries next on a finite space, (n,)."""
    space, random = run.study.space, run.draws.stream("prior", t)
    scale = run.study.method.exploration(t, space.dims)
    kernel = _current_kernel(run)
    if run.belief.kernel is not None:
        table = moves.exact_table(kernel, space)
        prior = random.standard_normal((run.study.agents, table.shape[1]))[who]
        return np.asarray(moves.own_point(table, kernel, some, prior, noise, scale))
    priors = random.standard_normal((run.study.agents, len(space.points())))
    best = []
    for k, agent in enumerate(np.flatnonzero(who)):  # each has a kernel, hence a table, of its own
        own = kernel.one(int(agent))
        table = exact_features(own, space.points())
        prior = priors[[agent], : table.shape[1]]
        one = _part(some, np.arange(k, k + 1))
        best.append(int(moves.own_point(table, own, one, prior, noise[k : k + 1], scale)[0]))
    return np.asarray(best)


def _from_broadcast(run: _Run, t: int, who: NDArray[np.bool_]) -> NDArray[np.float64]:
    study, space = run.study, run.study.space
    random = run.draws.stream("shared", t)
    vectors = _heard(run, random, who)
    if space.finite:
        points = space.points()
        boxes = study.regions.index(points)
        best = moves.shared_point(study.features(points), boxes, vectors)
        return np.broadcast_to(points[best], (int(who.sum()), space.dims))
    candidates = random.random((study.agents, CANDIDATES, space.dims))[who]
    vectors = np.broadcast_to(vectors, (len(candidates), *vectors.shape[1:]))
    place = moves.shared_place(study.features, study.regions, vectors, candidates)
    return np.asarray(space.snap(place))


def _heard(run: _Run, random: np.random.Generator, who: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What each hears: one (1, P, M) for all, or for each the vector of one peer (n, 1, M)."""
    if run.broadcast is None:
        raise ProtocolError("no round has been released yet")
    if run.study.method.exchange != "peer":
        return run.broadcast[None]
    agents = run.study.agents
    other = random.integers(agents - 1, size=agents)
    other = other + (other >= np.arange(agents))
    return run.broadcast[other[who]][:, None, :]


def _part(history: moves.History, who: NDArray[Any]) -> moves.History:
    index = None if history.index is None else history.index[who]
    return moves.History(history.points[who], history.values[who], history.mask[who], index)


def _current_kernel(run: _Run) -> Kernel:
    """The fixed kernel, or one fitted for each agent, brought up to date."""
    if run.belief.kernel is not None:
        return run.belief.kernel
    initial, every = run.study.method.initial, run.belief.refit
    for count in moves.due_fits(initial, every, run.fitted_at, run.told):
        seen = _history(run, count)
        run.kernel = fit(seen.points, seen.values, seen.mask, run.kernel)
        run.fitted_at = count
    return cast(Kernel, run.kernel)
