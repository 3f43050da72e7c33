"""Whole federations in one process, for research."""

from sottovoce.simulation.engine import Outcome, RoundCallback, simulate
from sottovoce.simulation.problem import Objectives, Problem, Setting
from sottovoce.simulation.streams import Draws, draws_of_agent

__all__ = [
    "Draws",
    "Objectives",
    "Outcome",
    "Problem",
    "RoundCallback",
    "Setting",
    "draws_of_agent",
    "simulate",
]
