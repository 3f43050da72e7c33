"""The search space: its parameters, the unit cube it is searched in, and the cube's regions."""

from sottovoce.space.neighbours import discrete, neighbours
from sottovoce.space.parameters import Category, Float, Integer, Parameter
from sottovoce.space.regions import Regions, assigned, equal_boxes
from sottovoce.space.space import MAX_POINTS, Space

__all__ = [
    "MAX_POINTS",
    "Category",
    "Float",
    "Integer",
    "Parameter",
    "Regions",
    "Space",
    "assigned",
    "discrete",
    "equal_boxes",
    "neighbours",
]
