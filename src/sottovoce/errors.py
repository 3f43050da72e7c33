"""Every error Sottovoce raises on purpose.

SottovoceError
├── InvalidInput (ValueError)      a value breaks a stated condition
│   └── SpaceError                 a search space, or a point outside it
├── ProtocolError                  a message that does not fit the study or the round
│   ├── StudyMismatch              the sender's public constants differ from ours
│   ├── WrongRound                 the round is not the one that is open
│   ├── UnknownAgent               no such agent in the study
│   ├── DuplicateMessage           the agent has already answered in this round
│   └── RejectedVector             the vector is malformed; it counts as zeros
├── PrivacyError                   going on would break, or could not prove, the guarantee
│   ├── BudgetExceeded             the release would spend more than was granted
│   ├── UnsupportedEvent           the accountant has no sound bound for the event
│   ├── SimulationOnly             seeded randomness in a server that is not a simulation
│   ├── SumRefused                 shares that give no sum, or one that cannot be
│   └── LedgerError                a ledger or a purse is damaged, tampered with, or another's
├── TrialError                     models that cannot be trained, so that nothing can go on
├── StorageError                   a saved file is missing, damaged or of another version
└── MissingExtra (ImportError)     an optional dependency is needed; says how to install it
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SottovoceError(Exception):
    """Base of all errors raised by Sottovoce; each says what must hold, and what came.

    Example:
        >>> Mechanism(participation=1.3)
        Traceback (most recent call last):
        sottovoce.errors.InvalidInput: participation must be in (0, 1], got participation=1.3
    """


class InvalidInput(SottovoceError, ValueError):
    """A value breaks a stated condition."""


class SpaceError(InvalidInput):
    """A search space is ill-defined, or a point lies outside it."""


class ProtocolError(SottovoceError):
    """A message does not fit the study or the round."""


class StudyMismatch(ProtocolError):
    """The sender's public constants differ from ours."""


class WrongRound(ProtocolError):
    """The round is not the one that is open."""


class UnknownAgent(ProtocolError):
    """No such agent in the study."""


class DuplicateMessage(ProtocolError):
    """The agent has already answered in this round."""


class RejectedVector(ProtocolError):
    """The vector is malformed; it counts as zeros."""


class PrivacyError(SottovoceError):
    """Going on would break, or could not prove, the privacy guarantee."""


class BudgetExceeded(PrivacyError):
    """The release would spend more privacy than was granted."""


class UnsupportedEvent(PrivacyError):
    """The accountant has no sound bound for the event."""


class SimulationOnly(PrivacyError):
    """Seeded randomness was offered to a server that is not a simulation."""


class SumRefused(PrivacyError):
    """Shares are too few, do not fit each other, or give a sum that cannot be."""


class LedgerError(PrivacyError):
    """A ledger or a purse is damaged, tampered with, set back, or belongs to another."""


class TrialError(SottovoceError):
    """Models cannot be trained, so that nothing can go on; a single trial may fail without it."""


class StorageError(SottovoceError):
    """A saved file is missing, damaged or of another version."""


class MissingExtra(SottovoceError, ImportError):
    """An optional dependency is needed."""

    def __init__(self, job: str, extra: str) -> None:
        super().__init__(f"{job} needs an extra: pip install 'sottovoce[{extra}]'")


def check(condition: bool, rule: str, **got: object) -> None:
    """Raise InvalidInput unless `condition` holds: ``<rule>, got q=1.3``."""
    if not condition:
        values = ", ".join(f"{name}={value!r}" for name, value in got.items())
        raise InvalidInput(f"{rule}, got {values}" if values else rule)


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to say of an unknown word: the nearest known one, if any is near, and all of them."""
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1)
    all_known = f"known are {', '.join(words)}" if words else "there are none"
    return f"did you mean {near[0]!r}? {all_known}" if near else all_known
