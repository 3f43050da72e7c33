"""Processes that spend from one purse, killed at random moments: the cap holds."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.endtoend.spending import EVENTS

from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.purse import Limits
from sottovoce.privacy.pursefile import Purse

KILLS, WORKERS = 30, 2
LIMITS = Limits(4.0, 1e-5, 10.0)
SCRIPT = Path(__file__).with_name("spending.py")


def started(purse: Purse, sent: Path, seed: int) -> subprocess.Popen[str]:
    words = [sys.executable, str(SCRIPT), str(purse.path), str(sent), str(seed)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
def test_what_killed_processes_have_said_stays_within_the_cap(tmp_path: Path) -> None:
    purse, sent = Purse.new(tmp_path / "purse.db", LIMITS), tmp_path / "sent"
    chance, killed = random.Random(1), 0
    while killed < KILLS:
        workers = [started(purse, sent, 100 * killed + n) for n in range(WORKERS)]
        try:
            time.sleep(chance.uniform(0.0, 1.0))
            for worker in workers:
                assert worker.poll() is None, "it ended by itself"
        finally:
            for worker in workers:
                worker.kill()
                worker.communicate()
        killed += WORKERS
        book, _ = purse.look()  # whole, whatever it was in the middle of
        lines = sent.read_text().splitlines() if sent.exists() else []
        said = [line.split() for line in lines if line != "refused"]
        assert {(s, int(r)) for s, r, _ in said} <= {
            (study, number) for study, stake in book.stakes.items() for number in stake.said
        }
        counts = Counter(EVENTS[int(kind)] for *_, kind in said)
        assert epsilon(counts, LIMITS.delta) <= LIMITS.epsilon
        assert replace_one(counts, LIMITS.delta) <= (LIMITS.replace_one or 0)
        spent = LIMITS.spent(book.events)
        assert spent.epsilon <= LIMITS.epsilon
    assert len(said) > KILLS
    assert "refused" in lines  # the cap was reached
    print(
        f"{killed} kills: {len(said)} things said, {lines.count('refused')} studies refused, "
        f"ε said {epsilon(counts, LIMITS.delta):.3f}, in the purse {spent.epsilon:.3f}, "
        f"of {LIMITS.epsilon:g}"
    )
