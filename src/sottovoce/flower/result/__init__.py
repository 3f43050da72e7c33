"""What a study came to: for a site its own, for the coordinator what is nobody's own.

`data` says what a result is and how it is kept; `site` and `coordinator` make one from what the
party has on its disk. Nothing of a result is ever sent.
"""

from __future__ import annotations

from sottovoce.flower.result.data import (
    Alone,
    Best,
    CoordinatorResult,
    EarlierTrial,
    RoundResult,
    SiteResult,
    TrialResult,
    read_result,
    write_result,
)

__all__ = [
    "Alone",
    "Best",
    "CoordinatorResult",
    "EarlierTrial",
    "RoundResult",
    "SiteResult",
    "TrialResult",
    "read_result",
    "write_result",
]
