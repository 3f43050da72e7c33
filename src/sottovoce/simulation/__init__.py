"""Whole federations in one process, for research."""

from sottovoce.simulation.engine import Outcome, simulate
from sottovoce.simulation.streams import Draws

__all__ = ["Draws", "Outcome", "simulate"]
