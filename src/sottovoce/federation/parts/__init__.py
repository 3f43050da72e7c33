"""The parts that a method is assembled from, one file a kind; a new part is one function or class.

A method names one of each: its `initial_design`, `message`, `shared_model` and `acquisition`.
"""

from sottovoce.federation.parts.acquisitions import ACQUISITIONS
from sottovoce.federation.parts.initial_designs import INITIAL_DESIGNS
from sottovoce.federation.parts.messages import MESSAGES
from sottovoce.federation.parts.shared_models import SHARED_MODELS, SharedModel

__all__ = ["ACQUISITIONS", "INITIAL_DESIGNS", "MESSAGES", "SHARED_MODELS", "SharedModel"]
