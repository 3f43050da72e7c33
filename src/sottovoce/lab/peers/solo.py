"""Searching alone, with nothing shared: one agent of a problem, by any search.

Run r is agent r of the run's draw where a problem has agents of its own, else the one agent of
draw r; objectives and observation noise come from the simulator's streams, so that all searches
meet the same. The regret of a trial is the optimum less the largest truth tried so far, as in
the simulator. Trials are counted from the first: none is free.

Results are kept in a folder, a file a run, and are not computed again.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import StorageError, check
from sottovoce.files import write_text
from sottovoce.lab.problems import Problem, problem_named
from sottovoce.simulation import Draws
from sottovoce.space import Space

if TYPE_CHECKING:  # it needs Optuna, which runs of federations do without
    from sottovoce.lab.peers.searches import Search


@dataclass(frozen=True)
class OneAgent:
    """The objective of one agent, and what its observations add."""

    space: Space
    optimum: float
    truth: Callable[[NDArray[np.float64]], float]  # (D,) -> NaN if the trial failed
    noise: NDArray[np.float64]  # of each trial


@dataclass(frozen=True)
class SoloResult:
    """One search: the regret after each trial, None while all have failed; seconds of each ask."""

    regret: list[float | None]
    seconds: list[float]


def one_agent(
    problem: Problem, seed: int, run: int, trials: int, agents: int | None = None, n: int = 0
) -> OneAgent:
    """The agent that is searched for in that run: agent n of a federation of so many, if given."""
    draws, known = Draws(seed, run), problem.setting.agents
    if agents is None:
        agents, n = (1, 0) if known is None else (known, run % known)
    objectives, everyone = problem.draw(agents, draws.stream("objectives")), agents

    def truth(point: NDArray[np.float64]) -> float:
        points = np.broadcast_to(point, (everyone, 1, point.size))
        return float(objectives.values(np.ascontiguousarray(points))[n, 0])

    noise = objectives.noise * draws.stream("observation", n).standard_normal(trials)
    return OneAgent(problem.setting.space, float(objectives.optimum[n]), truth, noise)


def searched(agent: OneAgent, search: Search) -> SoloResult:
    """As many trials as there is noise for."""
    least, regret, seconds = np.inf, list[float | None](), list[float]()
    for noise in agent.noise:
        begun = time.perf_counter()
        params = search.ask()
        seconds.append(time.perf_counter() - begun)
        truth = agent.truth(agent.space.encode(params))
        if np.isfinite(truth):
            least = min(least, agent.optimum - truth)
        search.tell(truth + float(noise) if np.isfinite(truth) else None)
        regret.append(float(least) if np.isfinite(least) else None)
    return SoloResult(regret, seconds)


@dataclass(frozen=True)
class SoloTask:
    """One run of one search on one problem; calling it does it, unless it is done."""

    folder: Path
    problem: str
    search: str
    run: int
    trials: int
    seed: int = 0

    @property
    def path(self) -> Path:
        """Where the result is kept."""
        problem = self.problem.replace(":", "-").replace("/", "_")
        name = f"{self.search}-t{self.trials}-s{self.seed}-r{self.run}.json"
        return self.folder / problem / name

    def __call__(self) -> str:
        """Search, and keep what came of it."""
        check(self.trials >= 1, "trials must be at least 1", trials=self.trials)
        if not self.path.is_file():
            import optuna

            from sottovoce.lab.peers.searches import search_named

            optuna.logging.set_verbosity(optuna.logging.ERROR)
            agent = one_agent(problem_named(self.problem), self.seed, self.run, self.trials)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # peers warn of being experimental, and more
                result = searched(agent, search_named(self.search, agent.space, self.run))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, json.dumps(asdict(result)))
        return f"{self.problem}, {self.search}, run {self.run + 1}"

    def result(self) -> SoloResult:
        """What was kept."""
        try:
            return SoloResult(**json.loads(self.path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            again = f"{self.path} is damaged ({error}); delete it to run it again"
            raise StorageError(again) from error


def regrets(tasks: list[SoloTask]) -> NDArray[np.float64]:
    """The regrets of the tasks, (R, trials); NaN while a run has no value."""
    rows = [[np.nan if r is None else r for r in task.result().regret] for task in tasks]
    return np.asarray(rows, dtype=np.float64)
