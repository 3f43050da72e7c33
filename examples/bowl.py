"""A problem of one's own: each agent's objective is a bowl upside down, about a centre."""

from dataclasses import dataclass

import numpy as np

from sottovoce import Float, Space, Surrogate
from sottovoce.arrays import Array
from sottovoce.lab.problems import FunctionObjectives, NamedProblem, Setting


@dataclass(frozen=True)
class Bowl(NamedProblem):
    kind = "bowl"
    apart: float = 0.05  # how far the agents' centres are from each other
    steps: int | None = None  # values of a parameter; none: any from 0 to 1

    @property
    def setting(self) -> Setting:
        return Setting(Space([Float(n, 0.0, 1.0, steps=self.steps) for n in "xy"]), Surrogate())

    def draw(self, agents: int, random: np.random.Generator) -> FunctionObjectives:
        centres = 0.6 + self.apart * random.standard_normal((agents, 1, 2))

        def values(points: Array) -> Array:  # (N, s, D) -> (N, s)
            return -np.sum((points - centres) ** 2, axis=-1)

        best = values(self.setting.space.snap(centres))[:, 0]
        return FunctionObjectives(values, best, noise=0.01)
