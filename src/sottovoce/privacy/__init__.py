"""The part that carries the guarantee. Imports nothing of Sottovoce but its errors.

`release` limits and noises, and says what that spent as an event; `accountant` turns events into
ε; `budget` finds the noise for an ε and refuses to exceed it; `ledger` records each release
before it is sent; `noise` is where randomness comes from.
"""

from sottovoce.privacy.accountant import ACCOUNTANTS, BOUNDS, epsilon, every_epsilon, replace_one
from sottovoce.privacy.budget import Budget, noise_for, paper_delta
from sottovoce.privacy.events import (
    DataFree,
    Event,
    NonPrivate,
    SharedGaussian,
    SubsampledGaussian,
    adjacency,
)
from sottovoce.privacy.ledger import Entry, Ledger, LedgerView, read_ledger
from sottovoce.privacy.noise import Drawn, Seeded, ShareSource, Source, SystemEntropy
from sottovoce.privacy.release import (
    Diagnostics,
    Mechanism,
    Release,
    diagnose,
    noise_only,
    release,
    unprotected,
)

__all__ = [
    "ACCOUNTANTS",
    "BOUNDS",
    "Budget",
    "DataFree",
    "Diagnostics",
    "Drawn",
    "Entry",
    "Event",
    "Ledger",
    "LedgerView",
    "Mechanism",
    "NonPrivate",
    "Release",
    "Seeded",
    "ShareSource",
    "SharedGaussian",
    "Source",
    "SubsampledGaussian",
    "SystemEntropy",
    "adjacency",
    "diagnose",
    "epsilon",
    "every_epsilon",
    "noise_for",
    "noise_only",
    "paper_delta",
    "read_ledger",
    "release",
    "replace_one",
    "unprotected",
]
