"""Differentially private federated Bayesian optimization: tune together, show nothing."""

__version__ = "0.1.0"

from sottovoce.errors import SottovoceError
from sottovoce.federation.agent import Agent
from sottovoce.federation.messages import Broadcast, Message
from sottovoce.federation.methods import DP_FTS_DE, METHODS, SOTTOVOCE, TS, Method
from sottovoce.federation.planning import plan_study
from sottovoce.federation.server import Server
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.privacy import (
    Budget,
    Mechanism,
    epsilon,
    every_epsilon,
    noise_for,
    read_ledger,
    replace_one,
)
from sottovoce.simulation import Draws, Outcome, Problem, Setting, simulate
from sottovoce.space import Category, Float, Integer, Space

__all__ = [
    "DP_FTS_DE",
    "METHODS",
    "SOTTOVOCE",
    "TS",
    "Agent",
    "Broadcast",
    "Budget",
    "Category",
    "Draws",
    "FederatedStudy",
    "Float",
    "Integer",
    "Kernel",
    "Mechanism",
    "Message",
    "Method",
    "Outcome",
    "Problem",
    "Server",
    "Setting",
    "SottovoceError",
    "Space",
    "Surrogate",
    "__version__",
    "epsilon",
    "every_epsilon",
    "noise_for",
    "plan_study",
    "read_ledger",
    "replace_one",
    "simulate",
]
