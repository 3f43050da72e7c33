"""Ledgers for `sottovoce status`: where one is, and several together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import LedgerError, UnsupportedEvent

if TYPE_CHECKING:
    from sottovoce.privacy.events import Event

PLACES = ("coordinator/ledger.db", "ledger.db", "rehearsal/hub/coordinator/ledger.db")


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
