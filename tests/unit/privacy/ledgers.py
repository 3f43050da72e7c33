"""Made-up releases, and ledgers that hold them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sottovoce.privacy.events import SubsampledGaussian
from sottovoce.privacy.ledger import Ledger
from sottovoce.privacy.release import Release

STUDY = {"agents": 4, "rounds": 9}
EVENT = SubsampledGaussian(1.0, 0.5, 4, "poisson", "os-entropy")


def a_release(seed: int) -> Release:
    return Release(np.random.default_rng(seed).standard_normal((2, 3)), EVENT)


def a_ledger(folder: Path, rounds: int = 3) -> Path:
    path = folder / "study.ledger"
    ledger = Ledger(path, STUDY)
    for number in range(rounds):
        ledger.append(number, a_release(number))
    ledger.close()
    return path
