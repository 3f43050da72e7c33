"""Optuna studies: search with our own surrogate in any of them, or as one agent of a federation.

`Sampler` needs nobody else; `AgentSampler` runs the trials of an agent whose messages one moves
oneself; `spaces` turns search spaces into Optuna's distributions and back.
"""

from __future__ import annotations

from sottovoce.errors import MissingExtra

try:
    import optuna  # noqa: F401
except ImportError as error:
    raise MissingExtra("working with Optuna", "optuna") from error

from sottovoce.optuna.federated import AgentSampler
from sottovoce.optuna.sampler import Sampler
from sottovoce.optuna.spaces import (
    check_asked,
    distributions_of,
    space_of,
    space_toml,
    traced_space,
)

__all__ = [
    "AgentSampler",
    "Sampler",
    "check_asked",
    "distributions_of",
    "space_of",
    "space_toml",
    "traced_space",
]
