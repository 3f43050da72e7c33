"""What the paper's real problems have in common: models are trained, or looked up in a table."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sottovoce.errors import check
from sottovoce.place import Place
from sottovoce.problems.options import NamedProblem
from sottovoce.problems.protocol import Objectives, Trainer


@dataclass(frozen=True)
class RealProblem(NamedProblem):
    """Hyperparameters of a model, tuned by agents that each have data of their own.

    objective: "table" looks scores up among those of trained models, "live" trains each model.
    limit: how many seconds a live trial may take.
    """

    objective: Literal["table", "live"] = "table"
    limit: float = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.limit > 0, f"{self.kind}: limit must be above 0 seconds", limit=self.limit)

    @property
    def table(self) -> str:
        """The name of its table: one for each way to train."""
        return self.kind

    @abstractmethod
    def trainer(self, place: Place) -> Trainer:
        """What trains its models there; reads the data."""

    def draw(self, agents: int, random: np.random.Generator) -> Objectives:
        """The objectives of the first so many agents; nothing is random in them."""
        raise NotImplementedError
