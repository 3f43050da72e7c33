"""An agent of a federation as the sampler of an Optuna study."""

from __future__ import annotations

from typing import Any, NoReturn

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from sottovoce.errors import SpaceError, check
from sottovoce.federation.agent import Agent
from sottovoce.optuna.spaces import distributions_of, must_declare


class AgentSampler(BaseSampler):
    """Every trial is what the agent asks for next.

    Who runs the trials tells the agent how they went; Optuna's own record tells it nothing.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._declared = distributions_of(agent.study.space)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The whole space of the agent's study, from the first trial on."""
        wanted = StudyDirection[self.agent.direction.upper()]
        rule = f"the Optuna study must {wanted.name.lower()}, as the agent does"
        check(study.directions == [wanted], rule, directions=study.directions)
        return dict(self._declared)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters that the agent asks for next."""
        return self.agent.ask()

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> NoReturn:
        """All parameters come from the agent: anything else is refused."""
        declared = self._declared.get(param_name)
        raise SpaceError(must_declare(param_name, param_distribution, declared))
