"""Ledgers for `sottovoce status`: where one is, what its releases are worth, several together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import LedgerError, UnsupportedEvent

if TYPE_CHECKING:
    from sottovoce.federation.study import FederatedStudy
    from sottovoce.privacy.events import Event
    from sottovoce.privacy.ledger import Entry

PLACES = ("coordinator/ledger.db", "ledger.db", "rehearsal/hub/coordinator/ledger.db")
CHANCE = 0.05  # of noise alone being as large


def ledger_in(path: Path) -> Path:
    """The ledger meant by a path: itself, or that of a coordinator's project."""
    if not path.exists():
        raise LedgerError(f"there is no ledger or folder {path}")
    if not path.is_dir():
        return path
    for place in PLACES:
        if (path / place).is_file():
            return path / place
    if (path / "site").is_dir():
        raise LedgerError(
            f"{path} is a site's folder, and the ledger is the coordinator's: `sottovoce result` "
            f"has what this site found, `sottovoce purse show` what its data have spent"
        )
    raise LedgerError(f"{path} has no ledger: none of {', '.join(PLACES)} is there")


def worth(entry: Entry, study: FederatedStudy) -> dict[str, Any]:
    """What a release said beyond its noise, estimated from what everybody was sent.

    |v|² is σ² times a χ² of as many degrees as there are numbers, if there is nothing but noise.
    """
    from scipy.special import gammaincc

    vectors, noise = entry.release.vectors, study.noise_of(entry.round)
    if noise == 0:
        return {"signal_to_noise": None, "chance": None, "said": "all of it: there is no noise"}
    square, count = float((vectors**2).sum()) / noise**2, vectors.size
    excess = max(0.0, square / count - 1)
    chance = float(gammaincc(count / 2, square / 2))
    return {
        "signal_to_noise": math.sqrt(excess),
        "chance": chance,
        "said": _words(excess / (1 + excess), chance),
    }


def _words(share: float, chance: float) -> str:
    if chance > CHANCE:
        return "nothing: it cannot be told from noise"
    amount = "much" if share >= 0.5 else "something" if share >= 0.2 else "little"
    return f"{amount}: {max(share, 0.01):.0%} of it is signal"


def together(events: Sequence[Event], deltas: Sequence[float]) -> dict[str, Any]:
    """ε of several studies for a site that spoke in all rounds of all, at the least δ of them."""
    from sottovoce.privacy.accountant import epsilon, replace_one

    found: dict[str, Any] = {"delta": min(deltas)}
    for name, measure in (("epsilon", epsilon), ("replace_one", replace_one)):
        try:
            value = measure(list(events), found["delta"], "pld")
        except UnsupportedEvent:  # fixed-size samples
            value = math.inf
        found[name] = value if math.isfinite(value) else None
    return found
