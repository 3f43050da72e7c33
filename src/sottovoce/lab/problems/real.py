"""What the paper's real problems have in common: models are trained, or looked up in a table."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

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
    limit: how many seconds a live trial may take. level: subtracted from every score, so that 1
    makes an accuracy minus an error; regret does not change. standardise: whether agents model
    their values with mean 0 and variance 1, or, as the paper's, as they come. training: where
    training has chance in it, what decides it; None: each run its own. Of the class: agents, as
    many as have data; measure, what 1 minus the score is called.
    """

    space: ClassVar[Space]
    agents: ClassVar[int]
    measure: ClassVar[str] = "validation error"
    objective: Literal["table", "live"] = "table"
    limit: float = LIMIT
    level: float = 0.0
    standardise: Literal["no", "yes"] = "no"
    training: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        number = self.training is None or (self.trainings > 1 and 0 <= self.training < 2**32)
        rule = f"{self.kind}: training must be in [0, 2^32), and of a problem with chance in it"
        check(number, rule, training=self.training)
        check(self.limit > 0, f"{self.kind}: limit must be above 0 seconds", limit=self.limit)

    @property
    def setting(self) -> Setting:
        """Kernels are fitted every five points, to values as they come unless said."""
        surrogate = Surrogate(kernel=None, refit=5, standardise=self.standardise == "yes")
        return Setting(self.space, surrogate, self.agents, self.measure, real_world=True)

    @property
    def usual(self) -> Self:
        """The problem that its table is made from: where scores come from changes none."""
        plain = replace(self, level=0.0, standardise="no", training=None)
        return replace(plain, objective="table", limit=LIMIT)

    @property
    def trainings(self) -> int:
        """How often a table usually has each model trained: once, but where chance takes part."""
        return 1

    @property
    def table(self) -> str:
        """The name of its table, as of a file: one for each way to train."""
        return self.usual.name.replace(":", "-")

    @abstractmethod
    def trainer(self, device: Device) -> Trainer:
        """What trains its models there; reads the data."""

    def draw(self, agents: int, random: np.random.Generator) -> Objectives:
        """The objectives of the first so many agents; only chance in training is random in them.

        It is drawn once for all points, so that a point asked for twice has one score.
        """
        known, rule = self.setting.agents or 0, f"{self.kind}: agents must be from 1 to"
        check(1 <= agents <= known, f"{rule} {known}, as many as have data", agents=agents)
        objectives = self._decided(random)._objectives(agents)
        return Lowered(objectives, self.level) if self.level else objectives

    def _decided(self, random: np.random.Generator) -> Self:
        """The problem with a training of its own."""
        if self.trainings == 1 or self.training is not None:
            return self
        return replace(self, training=int(random.integers(2**32)))

    def _objectives(self, agents: int) -> Objectives:
        if self.objective == "live":
            return LiveObjectives(self, agents)
        table, again = load_table(self.table, self.usual.name), made_by(self.usual.name)
        known, dims = self.setting.agents, self.setting.space.dims
        fits = (table.agents, table.dims) == (known, dims)
        if not fits or (table.trainings > 1) != (self.trainings > 1):
            often = "several trainings" if self.trainings > 1 else "one training"
            raise StorageError(
                f"the table {self.table!r} must have {known} agents, {dims} parameters and "
                f"{often} a point, got {table.agents}, {table.dims} and {table.trainings}; make "
                f"it again: {again}"
            )
        return TableObjectives(table, agents, training=self.training)


@dataclass(frozen=True)
class Lowered:
    """Objectives with a constant subtracted from every value."""

    objectives: Objectives
    level: float

    @property
    def noise(self) -> float:
        """As it is."""
        return self.objectives.noise

    @property
    def optimum(self) -> NDArray[np.float64]:
        """As much lower."""
        return self.objectives.optimum - self.level

    def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """As much lower: (N, s, D) -> (N, s)."""
        return self.objectives.values(points) - self.level
