"""Differentially private federated Bayesian optimization: tune together, show nothing."""

__version__ = "0.1.0"

from sottovoce.errors import SottovoceError
from sottovoce.federation.agent import Agent
from sottovoce.federation.messages import Broadcast, Message
from sottovoce.federation.methods import (
    CONTROL,
    DP_FTS,
    DP_FTS_DE,
    FTS,
    FTS_DE,
    FTS_SERVER,
    METHODS,
    SOTTOVOCE,
    TS,
    Method,
    for_real_world,
)
from sottovoce.federation.schedule import Exploration, ReleaseSchedule, SoloProbability
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.federation.weights import Weights
from sottovoce.gp.kernel import Kernel
from sottovoce.privacy import Budget, Mechanism, epsilon, every_epsilon, noise_for, paper_delta
from sottovoce.space import Category, Float, Integer, Space

__all__ = [
    "CONTROL",
    "DP_FTS",
    "DP_FTS_DE",
    "FTS",
    "FTS_DE",
    "FTS_SERVER",
    "METHODS",
    "SOTTOVOCE",
    "TS",
    "Agent",
    "Broadcast",
    "Budget",
    "Category",
    "Exploration",
    "FederatedStudy",
    "Float",
    "Integer",
    "Kernel",
    "Mechanism",
    "Message",
    "Method",
    "ReleaseSchedule",
    "Server",
    "SoloProbability",
    "SottovoceError",
    "Space",
    "Surrogate",
    "Weights",
    "__version__",
    "epsilon",
    "every_epsilon",
    "for_real_world",
    "noise_for",
    "paper_delta",
]
