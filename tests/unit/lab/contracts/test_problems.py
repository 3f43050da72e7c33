"""Every promise of a problem can be broken, and is then named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from sottovoce.errors import InvalidInput, MissingExtra
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.contracts import PROBLEM_PROMISES, check_problem, problems
from sottovoce.lab.problems import FunctionObjectives, Setting
from sottovoce.space import Category, Float, Space

PLANE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
GRID = Space([Float("x", 0.0, 1.0, steps=5), Float("y", 0.0, 1.0, steps=5)])


def bowl(points: Any) -> Any:
    return -np.sum((points - 0.5) ** 2, axis=-1)


@dataclass(frozen=True)
class Bowl:
    """Keeps every promise, unless it is made otherwise."""

    space: Any = PLANE
    values: Callable[[Any], Any] = bowl
    best: float = 0.0
    noise: Any = 0.1
    agents: int | None = None
    name: str = "bowl"

    @property
    def setting(self) -> Setting:
        return Setting(self.space, Surrogate(), self.agents)

    def draw(self, agents: int, random: np.random.Generator) -> FunctionObjectives:
        return FunctionObjectives(self.values, np.full(agents, self.best), self.noise)


def failing(points: Any) -> Any:
    return np.where(points[..., 0] > 0.5, np.nan, bowl(points))


@pytest.mark.parametrize(
    "problem",
    [
        Bowl(),
        Bowl(GRID),
        Bowl(values=failing),
        Bowl(agents=1),
        Bowl(agents=3),
        Bowl(Space([Category("c", ("a", "b", "d"))]), best=-0.75),
    ],
    ids=["box", "list", "failing", "one agent", "three agents", "categories"],
)
def test_a_good_problem_keeps_all_promises(problem: Bowl) -> None:
    assert len(check_problem(problem)) == len(PROBLEM_PROMISES)


@dataclass(frozen=True)
class Moody(Bowl):
    asked: list[int] = field(default_factory=list)

    @property
    def setting(self) -> Setting:
        self.asked.append(0)
        return Setting(Space([Float("x", 0.0, len(self.asked))]), Surrogate())


class Twisted(Space):
    def encode(self, params: Any) -> Any:
        return super().encode(params)[::-1]


class Fickle(Bowl):
    """The seed is not all that decides."""

    def draw(self, agents: int, random: np.random.Generator) -> FunctionObjectives:
        shift = np.random.default_rng().random()
        return FunctionObjectives(lambda x: bowl(x) - shift, np.zeros(agents))


class Drifting(Bowl):
    """Sinks with every question."""

    def draw(self, agents: int, random: np.random.Generator) -> FunctionObjectives:
        asked = list[int]()

        def values(points: Any) -> Any:
            asked.append(0)
            return bowl(points) - len(asked)

        return FunctionObjectives(values, np.zeros(agents))


class Four(Bowl):
    """Knows four agents only."""

    def draw(self, agents: int, random: np.random.Generator) -> FunctionObjectives:
        return FunctionObjectives(bowl, np.zeros(4))


@dataclass(frozen=True)
class Rows(FunctionObjectives):
    def at(self, index: Any) -> Any:
        return np.zeros(index.shape)


class Listed(Bowl):
    def draw(self, agents: int, random: np.random.Generator) -> FunctionObjectives:
        return Rows(self.values, np.zeros(agents))


def in_place(points: Any) -> Any:
    points *= 0.5
    return bowl(points)


def only_one_or_many(points: Any) -> Any:
    if points.shape[1] == 3:
        raise ZeroDivisionError("three is a crowd")
    return bowl(points)


BROKEN = [
    (Bowl(name=""), "name must be a word, got name=''"),
    (Bowl(space="plane"), "space must be a Space, got space=<class 'str'>"),
    (Moody(), "setting must be the same when asked again"),
    (Bowl(Twisted(PLANE.parameters)), "must be encoded as"),
    (Bowl(values=lambda x: bowl(x)[:, :1]), "values must be of shape (4, 25), got shape=(4, 1)"),
    (Bowl(values=lambda x: bowl(x).astype("f4")), "values must be an array of doubles, got dtype"),
    (Bowl(values=lambda x: bowl(x).tolist()), "an array of doubles, got dtype=<class 'list'>"),
    (Bowl(values=lambda x: bowl(x) - np.inf), "must be finite, or NaN if the trial failed"),
    (Bowl(values=lambda x: bowl(x) * np.nan), "of 100 trials some must not fail"),
    (Bowl(values=lambda x: 1 / 0), "doubles, finite, or NaN where a trial failed: ZeroDivisionE"),
    (Bowl(noise=-0.1), "noise must be in [0, ∞), got noise=-0.1"),
    (Bowl(noise="little"), "noise must be in [0, ∞), got noise='little'"),
    (Bowl(best=np.inf), "an optimum must be finite"),
    (Bowl(best=-0.01), "values of agent 0 must be at most -0.01, got value="),
    (Bowl(values=lambda x: bowl(x) + 1e-4), "values of agent 0 must be at most 0.0, got value="),
    (Bowl(GRID, best=0.1), "the optimum must be the largest value"),
    (Listed(GRID), "values by rows must be the same"),
    (Listed(), "only a finite space has rows to ask by"),
    (Fickle(), "values of the same seed must be the same"),
    (Bowl(values=in_place), "after being asked, the points, must be the same"),
    (Drifting(), "values when asked again must be the same"),
    (Bowl(values=lambda x: bowl(x) - 0.1 * x.shape[1]), "of a point alone must be the same"),
    (Bowl(values=lambda x: bowl(x - x.mean(axis=0) + 0.5)), "agent 0 among other points must be"),
    (Four(), "values and optimum must be of shapes (1, 1) and (1,), got shapes="),
    (Bowl(values=lambda x: bowl(x)), "Another process gets the same problem"),
    (Bowl(values=only_one_or_many), "from end to end: ZeroDivisionError: three is a crowd"),
]


@pytest.mark.parametrize(("problem", "text"), BROKEN, ids=[text for _, text in BROKEN])
def test_a_broken_promise_is_named_with_what_came(problem: Bowl, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_problem(problem)
    assert text in str(caught.value)
    assert str(caught.value).startswith("broken promise: ")
    assert "\n" not in str(caught.value)


def test_every_promise_is_broken_by_one_of_these() -> None:
    said = []
    for problem, _ in BROKEN:
        with pytest.raises(InvalidInput) as caught:
            check_problem(problem)
        said.append(str(caught.value).split(": ")[1])
    kept = [(promise.__doc__ or "").splitlines()[0].rstrip(".") for promise in PROBLEM_PROMISES]
    assert set(said) == {sentence.split(": ")[0] for sentence in kept}


def test_a_poor_optimum_shows_near_the_best_of_the_points_tried() -> None:
    seen = problems.Examined(Bowl(values=spiked, best=0.0))
    assert np.all(seen.objectives.values(seen.points(1, problems.MANY)) <= 0)
    with pytest.raises(InvalidInput, match="must be at most"):
        problems.no_value_exceeds_the_optimum(seen)


def spiked(points: Any) -> Any:
    """Above 0 only within a thousandth of the centre."""
    return 1e-6 + bowl(points)


def test_what_the_machine_lacks_breaks_no_promise() -> None:
    def values(points: Any) -> Any:
        raise MissingExtra("training", "experiments")

    with pytest.raises(MissingExtra):
        check_problem(Bowl(values=values))
