"""Whole federations in one process, for research."""

from sottovoce.simulate.draws import Draws
from sottovoce.simulate.engine import Outcome, simulate

__all__ = ["Draws", "Outcome", "simulate"]
