"""A site's trials: one after another, or several side by side, each recorded as it begins and ends.

Side by side they are threads of one process. So they live and die together: nothing goes on after a
kill that the site does not know of, and what was under way is found in its memory.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, Trial, TrialState

from sottovoce.errors import SpaceError, StorageError, check
from sottovoce.federation.agent import Agent
from sottovoce.federation.searcher import LARGEST
from sottovoce.flower.site.memory import Lost, Memory, Told
from sottovoce.flower.studyfile import StudyFile
from sottovoce.optuna.spaces import check_asked, distributions_of, must_declare
from sottovoce.space import Space

Objective = Callable[[Trial], Any]
OTHERWISE = (  # all that the coordinator learns: a bound may be the number of the site's records
    "the objective does not ask for its parameters as the study's space declares them; how they "
    "differ is in the site's own log"
)


class Trying:
    """Runs the trials of a step.

    workers: how many side by side. The search knows which are running, and does without their
    values.
    """

    def __init__(self, file: StudyFile, objective: Objective, workers: int = 1) -> None:
        whole = isinstance(workers, int) and not isinstance(workers, bool)
        check(whole and workers > 0, "workers must be a whole number above 0", workers=workers)
        self._file, self._objective, self._workers = file, objective, workers
        self._sampler = Settled(file.study.space)

    def __call__(
        self, round_number: int, memory: Memory, agent: Agent, log: logging.Logger
    ) -> None:
        """Run the trials of the step that have not been run yet, the initial ones first."""
        goal = self._goal(round_number, memory, agent)
        # One of those that were running may have killed the process: each gets it for itself.
        waiting = memory.lost(round_number)
        while waiting or (self._workers == 1 and agent.trials < goal):
            asked = waiting.pop(0) if waiting else Lost(agent.ask(), 0)
            told = self._run(self._begun(asked, round_number, memory), memory, log)
            agent.tell(told.params, told.value)
        if agent.trials < goal:
            self._side_by_side(goal, round_number, memory, agent, log)

    def _side_by_side(
        self, goal: int, round_number: int, memory: Memory, agent: Agent, log: logging.Logger
    ) -> None:
        """As many at once as there are workers; an error is raised when all have ended."""
        initial = self._file.study.method.initial
        running: dict[Future[Told], dict[str, Any]] = {}
        with ThreadPoolExecutor(self._workers, "trial") as pool:
            while running or agent.trials < goal:
                number = agent.trials + len(running)
                may = number < initial or not agent.starting  # later ones rest on the initial ones
                if number < goal and may and len(running) < self._workers:
                    asked = agent.ask(list(running.values()))
                    trial = self._begun(Lost(asked, 0), round_number, memory)
                    running[pool.submit(self._threaded, trial, memory, log)] = asked
                    continue
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    told = future.result()
                    agent.tell(told.params, told.value)

    def _threaded(self, trial: Trial, memory: Memory, log: logging.Logger) -> Told:
        try:
            return self._run(trial, memory, log)
        finally:
            memory.release()

    def _goal(self, round_number: int, memory: Memory, agent: Agent) -> int:
        """How many trials there are when the step is done."""
        initial = self._file.study.method.initial
        if round_number == 0:
            return initial
        due = next(step.trials for step in self._file.steps if step.round == round_number)
        done = sum(told.round == round_number for told in memory.told[initial:])
        return max(agent.trials, initial) + due - done

    def _begun(self, asked: Lost, round_number: int, memory: Memory) -> Trial:
        attempt = asked.attempts + 1
        noted = {"asked": asked.params, "attempt": attempt, "round": round_number}
        return memory.begin(self._sampler, noted)

    def _run(self, trial: Trial, memory: Memory, log: logging.Logger) -> Told:
        """One trial of the site's objective, recorded however it ends."""
        failed = TrialState.FAIL
        try:
            value = value_of(self._objective(trial))
            # one with a single value is asked of nobody, so nobody has compared it yet
            check_asked(trial.distributions, self._file.study.space)
        except optuna.TrialPruned:
            return memory.end(trial, None, TrialState.PRUNED)
        except SpaceError as error:
            log.error("trial %d: %s", trial.number, error)
            memory.end(trial, None, failed, mistake=str(error))
            raise SpaceError(OTHERWISE) from error  # its own words hold what the objective says
        except optuna.exceptions.StorageInternalError as error:
            raise StorageError("the site's storage failed in a trial") from error
        except Exception as error:
            log.exception("trial %d failed", trial.number)
            return memory.end(trial, None, failed, error=f"{type(error).__name__}: {error}")
        if value is None:
            log.error("trial %d gave no finite number within ±%g", trial.number, LARGEST)
            return memory.end(trial, None, failed, error="no finite number was returned")
        return memory.end(trial, value, TrialState.COMPLETE)


class Settled(BaseSampler):
    """Hands out parameters that were settled before the trial began.

    One by one, as Optuna then says how the objective declares each: otherwise than the study
    does is a mistake, which must show before hours of training, not after.
    """

    def __init__(self, space: Space) -> None:
        self._declared: Mapping[str, BaseDistribution] = distributions_of(space)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """None together."""
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """None together."""
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, name: str, asked: BaseDistribution
    ) -> Any:
        """The parameter's value."""
        declared = self._declared.get(name)
        if asked != declared:
            raise SpaceError(must_declare(name, asked, declared))
        return trial.user_attrs["asked"][name]


def value_of(result: Any) -> float | None:
    """What an objective returned, if it is a number to learn from."""
    try:
        number = math.nan if isinstance(result, str) else float(result)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) <= LARGEST else None
