"""The paper's agents that differ (its appendix, "Robustness Against Heterogeneous Agents").

Besides one function f_base, each agent i has a function f^i of its own, all independent draws
of the GP of the synthetic problem, each scaled to [0, 1] on the same grid; its objective is
α f^i + (1 − α) f_base. α = 0: all agents share one objective; α = 1: their objectives are
independent. The paper has 50 agents and shows α = 0.7 and α = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.errors import check
from sottovoce.lab.problems.grid import SETTING, Table, drawn_functions
from sottovoce.lab.problems.options import NamedProblem
from sottovoce.simulation.problem import Setting


@dataclass(frozen=True)
class Heterogeneous(NamedProblem):
    """The mixture of a common function and one's own, by α; level=0.5 centres its values."""

    kind: ClassVar[str] = "heterogeneous"
    alpha: float = 0.7
    level: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "heterogeneous: alpha must be in [0, 1]"
        check(0 <= self.alpha <= 1, rule, alpha=self.alpha)

    @property
    def setting(self) -> Setting:
        """The synthetic problem's."""
        return SETTING

    def draw(self, agents: int, random: np.random.Generator) -> Table:
        """f_base and the f^i, which do not depend on α, and their mixtures."""
        check(agents >= 1, "agents must be at least 1", agents=agents)
        f = drawn_functions(agents + 1, random)
        return Table(self.alpha * f[1:] + (1 - self.alpha) * f[:1] - self.level)
