"""A whole federation in one process: groups of agents, by the agents' own moves, and a server.

Symbols: N agents, T rounds, P regions, M features, D dimensions, L = N_init + T, t query number
(1..T); query t uses the broadcast of round t − 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import Array
from sottovoce.device import Place, place_named
from sottovoce.errors import check
from sottovoce.federation.server import aggregate
from sottovoce.federation.study import Study
from sottovoce.privacy.events import Event
from sottovoce.privacy.noise import Seeded
from sottovoce.privacy.release import Diagnostics, diagnose
from sottovoce.simulation.cube import Cube
from sottovoce.simulation.groups import Crowd, Group
from sottovoce.simulation.listed import Ground, Listed
from sottovoce.simulation.problem import DrawnOnDevice, Listing, Objectives, Problem
from sottovoce.simulation.streams import Dealer, Draws

Watcher = Callable[[int, list[Event]], None]

GROUP = 256  # agents at a time: few enough for their arrays to stay in a CPU's cache
DEVICE_GROUP = 32768


@dataclass(frozen=True)
class Outcome:
    """One run: where the agents went, what was there, what was said."""

    points: NDArray[np.float64]  # (N, L, D)
    truth: NDArray[np.float64]  # (N, L), noiseless values; NaN where a trial failed
    observed: NDArray[np.float64]  # (N, L), the same with noise
    optimum: NDArray[np.float64]  # (N,)
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

    crowd: Crowd
    groups: Sequence[Group]
    objectives: Objectives
    truth: Array  # (N, L)
    source: Seeded
    on_device: bool  # whether the objectives live where the groups' arrays do
    broadcasts: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    diagnostics: list[Diagnostics] = field(default_factory=list)


def simulate(
    study: Study,
    problem: Problem,
    draws: Draws,
    watcher: Watcher | None = None,
    *,
    device: str | None = None,
    group: int | None = None,
) -> Outcome:
    """One run of the study's method on objectives drawn from the problem.

    device: a device of PyTorch's ("cuda", say) in place of NumPy. group: how many agents are
    simulated at a time, which bounds the memory and changes nothing else.
    """
    check(study.space == problem.setting.space, "the study must search the problem's space")
    check(group is None or group >= 1, "group must be at least 1", group=group)
    study = replace(study, feature_seed=study.feature_seed + draws.run)
    run = _begun(study, problem, draws, place_named(device), group)
    speaking = study.method.speaking
    _observe(run, [part.start() for part in run.groups])
    for t in range(1, study.rounds + 1):
        if study.method.exchange != "none" and speaking.speaks(t - 1):
            _speak(run, t - 1)
        heard = None if study.method.forgets(t - 1) else run.crowd.broadcast
        _observe(run, [part.next(t, heard)[:, None] for part in run.groups])
        if watcher is not None:
            watcher(t, run.events)
    return _outcome(run)


def _begun(study: Study, problem: Problem, draws: Draws, place: Place, group: int | None) -> _Run:
    """The run before anybody has tried anything."""
    agents, length = study.agents, study.method.initial + study.rounds
    finite, belief = study.space.finite, problem.setting.belief
    dealer = Dealer(draws, agents, place)
    shape = (agents, length) if finite else (agents, length, study.space.dims)
    places = place.zeros(*shape, whole=finite)
    crowd = Crowd(study, belief, dealer, place, places, place.zeros(agents, length))
    size = group or (GROUP if place.torch is None else DEVICE_GROUP)
    slices = [slice(k, min(k + size, agents)) for k in range(0, agents, size)]
    groups: list[Group]
    if finite:
        ground = Ground.of(study, belief.kernel, place)
        groups = [Listed(crowd, who, ground) for who in slices]
    else:
        groups = [Cube(crowd, who) for who in slices]
    random, on_device = draws.stream("objectives"), False
    if draws.on_device and isinstance(problem, DrawnOnDevice):
        on_device = True
        objectives = problem.draw_on_device(agents, random, dealer.stream("objectives"))
    else:
        objectives = problem.draw(agents, random)
    source, truth = Seeded(draws.seed_for("server")), place.zeros(agents, length)
    return _Run(crowd, groups, objectives, truth, source, on_device)


def _observe(run: _Run, chosen: list[Array]) -> None:
    """Evaluate what each group has chosen, s queries an agent, and add it to the histories."""
    crowd = run.crowd
    places = _joined(run, chosen)
    agents, count = places.shape[:2]
    new = slice(crowd.told, crowd.told + count)
    truth = _truth(run, places)
    (noise,) = crowd.dealer.deal(
        "observation",
        crowd.told,
        slice(0, agents),
        lambda random, n: (random.standard_normal((n, count)),),
    )
    crowd.failed = crowd.failed or bool(crowd.place.xp.any(crowd.place.xp.isnan(truth)))
    crowd.places[:, new] = places
    run.truth[:, new] = truth
    crowd.observed[:, new] = truth + run.objectives.noise * noise
    crowd.told = new.stop


def _truth(run: _Run, places: Array) -> Array:
    """The objectives at the places (N, s), or (N, s, D): (N, s), NaN where a trial failed."""
    found, xp = _found(run, places), run.crowd.place.xp
    return xp.where(xp.isfinite(found), found, xp.nan)


def _found(run: _Run, places: Array) -> Array:
    """What the objectives say there."""
    objectives, place, space = run.objectives, run.crowd.place, run.crowd.study.space
    if run.on_device and isinstance(objectives, Listing):
        return objectives.at(places)
    where = place.numpy(places)
    if isinstance(objectives, Listing) and space.finite:
        return place.array(objectives.at(where))
    return place.array(objectives.values(space.points()[where] if space.finite else where))


def _speak(run: _Run, number: int) -> None:
    """Every agent's vector, and the server's release of the round."""
    study, place = run.crowd.study, run.crowd.place
    vectors = _joined(run, [part.messages(number) for part in run.groups])
    if study.method.exchange == "peer":  # nothing is summed: all of them are sent
        vectors = place.numpy(vectors)
    published = aggregate(study, number, vectors, run.source)
    run.broadcasts[number] = published.vectors
    heard = [*run.broadcasts.values()] if study.method.hears == "learn" else [published.vectors]
    run.crowd.broadcast = place.array(np.concatenate(heard))
    run.events.append(published.event)
    mechanism = study.method.mechanism
    if mechanism is not None and not study.method.control:
        run.diagnostics.append(diagnose(vectors, study.weights(number), mechanism))


def _joined(run: _Run, parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else run.crowd.place.xp.concat(parts)


def _outcome(run: _Run) -> Outcome:
    crowd, place, space = run.crowd, run.crowd.place, run.crowd.study.space
    places, optimum = place.numpy(crowd.places), run.objectives.optimum
    return Outcome(
        space.points()[places] if space.finite else places,
        place.numpy(run.truth),
        place.numpy(crowd.observed),
        place.numpy(optimum) if run.on_device else optimum,
        crowd.study.method.initial,
        run.broadcasts,
        run.events,
        run.diagnostics,
    )
