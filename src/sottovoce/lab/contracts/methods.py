"""What every method must keep to.

A method is tried as it is, on small studies: on a box, on a list and in a mixed space, where all
trials succeed and where some fail.

Symbols: N agents, T rounds, M features, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.errors import check
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.methods import Method
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.lab.contracts.parties import Parties, parties_of, separately
from sottovoce.lab.contracts.promises import kept, sent
from sottovoce.simulation import Draws, Outcome, simulate
from sottovoce.simulation.problem import FunctionObjectives, Setting
from sottovoce.space import Category, Float, Integer, Space

AGENTS, ROUNDS = 4, 4
DRAWS = Draws(seed=3, run=1)
WITHIN = 1e-6  # rounding differs between one agent and many, and grows with every query
MOST_ROUNDS = 60  # of a study that waits for a method's last release

BOX = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
LIST = Space([Float("x", 0.0, 1.0, steps=15), Integer("n", 1, 8)])
MIXED = Space([Float("x", 0.0, 1.0), Integer("n", 1, 8), Category("c", ("a", "b"))])


@dataclass(frozen=True)
class Stage:
    """A small problem of smooth waves, a little further for each agent.

    failing: whether there are pits in which trials fail; all of agent 1's do.
    """

    name: str
    space: Space
    surrogate: Surrogate
    failing: bool = False

    @property
    def setting(self) -> Setting:
        """The space and how agents model it."""
        return Setting(self.space, self.surrogate)

    def draw(self, agents: int, random: np.random.Generator) -> FunctionObjectives:
        """Objectives for that many agents; nothing is random in them."""
        return FunctionObjectives(self._values, np.ones(agents), noise=0.05)

    def _values(self, points: FloatArray) -> FloatArray:
        phase = 0.1 * np.arange(len(points))[:, None]
        waves = np.sin(5 * points.sum(axis=-1) + phase) - (points[..., 0] - 0.4) ** 2
        pit = np.floor(7 * points.sum(axis=-1)) % 3 == 1
        pit[1:2] = True
        return np.where(pit & self.failing, np.nan, waves)


STAGES = tuple(
    Stage(name + (", where trials fail" if failing else ""), space, surrogate, failing)
    for failing in (False, True)
    for name, space, surrogate in (
        ("on a box", BOX, Surrogate(Kernel(0.3, 1.0, 0.01))),
        ("on a list", LIST, Surrogate(refit=2)),
        ("in a mixed space", MIXED, Surrogate(refit=2)),
    )
)


@dataclass(frozen=True)
class Tried:
    """A method and its small studies."""

    method: Method
    _known: dict[str, Outcome] = field(default_factory=dict, compare=False, repr=False)

    def study(self, stage: Stage, rounds: int = ROUNDS) -> FederatedStudy:
        """Of a few agents, at least one a region."""
        return FederatedStudy(stage.space, self.method, max(AGENTS, self.method.regions), rounds)

    def outcomes(self, *, failing: bool | None = None) -> Iterator[tuple[Stage, Outcome]]:
        """A simulated run on every stage, or on those where trials fail, or do not."""
        for stage in STAGES:
            if failing is None or stage.failing == failing:
                if stage.name not in self._known:
                    self._known[stage.name] = simulate(self.study(stage), stage, DRAWS)
                yield stage, self._known[stage.name]


Promise = Callable[[Tried], None]


def its_queries_are_of_the_space(tried: Tried) -> None:
    """It runs on a box, a list and a mixed space, and every query is a point of the space."""
    for stage, outcome in tried.outcomes(failing=False):
        _of_the_space(stage, outcome)


def it_goes_on_where_trials_fail(tried: Tried) -> None:
    """It goes on where trials fail, also with an agent all of whose trials do."""
    for stage, outcome in tried.outcomes(failing=True):
        _of_the_space(stage, outcome)


def _of_the_space(stage: Stage, outcome: Outcome) -> None:
    # to rounding: a point may have been a parameter's value in between
    inside = np.all(np.abs(stage.space.snap(outcome.points) - outcome.points) <= 1e-12, axis=-1)
    came = outcome.points[~inside][:1].tolist()
    check(bool(np.all(inside)), f"{stage.name}: queries must be points of the space", query=came)


def the_same_draws_give_the_same_run(tried: Tried) -> None:
    """The same draws give the same run."""
    for stage, first in tried.outcomes():
        again = simulate(tried.study(stage), stage, DRAWS)
        _close(f"{stage.name}, the queries of a second run", first.points, again.points, 0.0)
        for number, vectors in first.broadcasts.items():
            what = f"{stage.name}, the broadcast {number} of a second run"
            _close(what, vectors, again.broadcasts[number], 0.0)


def agents_alone_do_what_many_do(tried: Tried) -> None:
    """Agents that live by themselves do what the simulator does with all of them at once."""
    for stage, outcome in tried.outcomes():
        parties = separately(tried.study(stage), stage, DRAWS)
        _close(f"{stage.name}, queries of single agents", outcome.points, parties.points)
        for number, vectors in outcome.broadcasts.items():
            heard = parties.broadcasts[number][-len(vectors) :]  # earlier ones may be before it
            _close(f"{stage.name}, the broadcast {number}", vectors, heard)
        rule = f"{stage.name}: a server must release what the simulator does, {outcome.events}"
        check(parties.events == outcome.events, rule, events=parties.events)


def _close(what: str, wanted: FloatArray, came: FloatArray, within: float = WITHIN) -> None:
    check(wanted.shape == came.shape, f"{what} must be of shape {wanted.shape}", shape=came.shape)
    apart = float(np.max(np.abs(wanted - came), initial=0.0))
    check(apart <= within, f"{what} must be the same to within {within:g}", apart=apart)


def what_agents_send_is_finite(tried: Tried) -> None:
    """Each agent sends M finite numbers a round, the same when it is asked again."""
    if not tried.method.shared.exchanges:
        return
    for stage in STAGES:
        parties = parties_of(tried.study(stage), stage, DRAWS)
        parties.try_next(tried.method.initial)
        for n in range(len(parties.agents)):
            _sends(f"{stage.name}: agent {n} must send", parties, n)


def _sends(what: str, parties: Parties, n: int) -> None:
    wanted = (parties.study.method.features,)
    vector = np.asarray(parties.agents[n].message(0).vector)
    check(vector.shape == wanted, f"{what} a vector of shape {wanted}", shape=vector.shape)
    norm = float(np.linalg.norm(vector))
    check(bool(np.isfinite(norm)), f"{what} a vector of finite norm", norm=norm)
    again = parties.agents[n].message(0).vector
    check(np.array_equal(vector, again), f"{what} the same when asked again", vector=again)


def broadcasts_have_their_shape(tried: Tried) -> None:
    """A broadcast holds as many vectors of M finite numbers as its shared model says."""
    for stage, outcome in tried.outcomes():
        study, rows = tried.study(stage), 0
        for number, vectors in outcome.broadcasts.items():
            shared = study.method.shared
            rows = rows + len(vectors) if shared.cumulative else len(vectors)
            came = (rows, *vectors.shape[1:])
            wanted = (shared.broadcast_rows(study, number), study.method.features)
            check(came == wanted, f"broadcast {number} must be of shape {wanted}", shape=came)
            finite = bool(np.all(np.isfinite(vectors)))
            check(finite, f"broadcast {number} must be finite", vectors=vectors)


def nothing_is_released_beyond_the_schedule(tried: Tried) -> None:
    """It releases in the rounds of its schedule and no other, and spends what is planned."""
    every, last = tried.method.releases.every, tried.method.releases.last
    rounds = min(max(ROUNDS, every + 2, 0 if last is None else last + 2), MOST_ROUNDS)
    study = tried.study(STAGES[0], rounds)
    outcome = simulate(study, STAGES[0], DRAWS)
    due = [r for r in range(0, rounds, every) if last is None or r <= last]
    due = due if tried.method.shared.exchanges else []
    came = list(outcome.broadcasts)
    check(came == due, f"in {rounds} rounds releases must be in {due}", rounds=came)
    planned = [planned_event(study, "plan")] * len(due)
    count = tried.method.releases.count(rounds) if due else 0
    check(count == len(due), f"{len(due)} releases must be planned", count=count)
    check(outcome.events == planned, f"releases must spend {planned}", events=outcome.events)


def its_dict_form_is_whole(tried: Tried) -> None:
    """A study of it is the same after being plain data, as study files and ledgers keep it."""
    study = tried.study(STAGES[0])
    there = FederatedStudy.from_dict(study.to_dict())
    check(there == study, f"it must be {study.method} again", method=there.method)


def it_travels(tried: Tried) -> None:
    """Another process gets the same method: it can be pickled."""
    there = sent(tried.method)
    check(there == tried.method, f"it must be {tried.method} there", method=there)


METHOD_PROMISES: tuple[Promise, ...] = (
    its_dict_form_is_whole,
    it_travels,
    its_queries_are_of_the_space,
    it_goes_on_where_trials_fail,
    the_same_draws_give_the_same_run,
    what_agents_send_is_finite,
    broadcasts_have_their_shape,
    agents_alone_do_what_many_do,
    nothing_is_released_beyond_the_schedule,
)


def check_method(method: Method) -> tuple[str, ...]:
    """What the method promises, in words; the first broken promise is an InvalidInput."""
    return tuple(kept(METHOD_PROMISES, Tried(method)))
