"""What the paper's real problems have in common: models are trained, or looked up in a table."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from sottovoce.device import Device
from sottovoce.errors import StorageError, check
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.problems.options import NamedProblem
from sottovoce.lab.problems.table import TableObjectives, load_table, made_by
from sottovoce.lab.problems.training import Trainer
from sottovoce.lab.problems.trials import LiveObjectives
from sottovoce.simulation.problem import Objectives, Setting
from sottovoce.space import Space

LIMIT = 60.0  # seconds


@dataclass(frozen=True)
class RealProblem(NamedProblem):
    """Hyperparameters of a model, tuned by agents that each have data of their own.

    objective: "table" looks scores up among those of trained models, "live" trains each model.
    limit: how many seconds a live trial may take. Of the class: agents, as many as have data;
    measure, what 1 minus the score is called.
    """

    space: ClassVar[Space]
    agents: ClassVar[int]
    measure: ClassVar[str] = "validation error"
    objective: Literal["table", "live"] = "table"
    limit: float = LIMIT

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.limit > 0, f"{self.kind}: limit must be above 0 seconds", limit=self.limit)

    @property
    def setting(self) -> Setting:
        """Kernels are fitted every five points, to values as they come."""
        surrogate = Surrogate(kernel=None, refit=5, standardise=False)
        return Setting(self.space, surrogate, self.agents, self.measure, real_world=True)

    @property
    def usual(self) -> Self:
        """The problem that its table is made from: where scores come from changes none."""
        return replace(self, objective="table", limit=LIMIT)

    @property
    def table(self) -> str:
        """The name of its table, as of a file: one for each way to train."""
        return self.usual.name.replace(":", "-")

    @abstractmethod
    def trainer(self, device: Device) -> Trainer:
        """What trains its models there; reads the data."""

    def draw(self, agents: int, random: np.random.Generator) -> Objectives:
        """The objectives of the first so many agents; nothing is random in them."""
        known, dims = self.setting.agents or 0, self.setting.space.dims
        rule = f"{self.kind}: agents must be from 1 to {known}, as many as have data"
        check(1 <= agents <= known, rule, agents=agents)
        if self.objective == "live":
            return LiveObjectives(self, agents)
        table, again = load_table(self.table, self.usual.name), made_by(self.usual.name)
        if (table.agents, table.dims) != (known, dims):
            raise StorageError(
                f"the table {self.table!r} must have {known} agents and {dims} parameters, "
                f"got {table.agents} and {table.dims}; make it again: {again}"
            )
        return TableObjectives(table, agents)
