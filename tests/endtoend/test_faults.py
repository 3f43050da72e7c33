"""Federations of real processes that harm is done to, and the checks that would show it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.endtoend.faults import jobs_of, page_of
from tests.endtoend.federation import FIRST_PORT, PORTS, Storage, own_port
from tests.endtoend.invariants import Broken, check_heard, check_kept, check_trials
from tests.endtoend.killing import VICTIMS, Kill, Killed
from tests.endtoend.outcomes import keep

from sottovoce.flower.studyfile import Step
from sottovoce.privacy.ledger import Ledger, LedgerView, read_ledger
from sottovoce.privacy.noise import Seeded
from sottovoce.privacy.release import Mechanism, release

ROOT = Path(__file__).resolve().parents[2]
STEPS = [Step(0, 2), Step(1, 1), Step(2, 1)]
ENDED = [{"event": e, "trial": k, "value": 0.5} for k in range(3) for e in ("began", "ended")]


def trial(number: int, state: str = "COMPLETE", **noted: Any) -> tuple[str, dict[str, Any], float]:
    return state, {"round": number, **noted}, 0.5


STORED = Storage({}, [trial(0), trial(0), trial(1)])


def ledger(path: Path, *seeds: int) -> LedgerView:
    written = Ledger(path, {"agents": 2})
    for number, seed in enumerate(seeds):
        vectors, weights = np.ones((2, 4)), np.full((1, 2), 0.5)
        written.append(number, release(vectors, weights, Mechanism(clip=1.0), Seeded(seed)))
    written.close()
    return read_ledger(path)


def test_a_ledger_that_grew_is_kept_and_one_with_fresh_noise_is_not(tmp_path: Path) -> None:
    before = ledger(tmp_path / "before", 1)
    check_kept(None, before)
    check_kept(before, ledger(tmp_path / "longer", 1, 2))
    with pytest.raises(Broken, match="lost or changed"):
        check_kept(before, ledger(tmp_path / "fresh", 3, 2))
    with pytest.raises(Broken, match="lost or changed"):
        check_kept(ledger(tmp_path / "two", 1, 2), before)


def test_a_broadcast_that_is_not_the_ledgers_shows() -> None:
    heard = {
        "broadcast-0": hashlib.sha256(b"zero").hexdigest(),
        "broadcast": base64.b64encode(b"zero").decode(),
    }
    check_heard(Storage(heard, []), {0: b"zero"})
    with pytest.raises(Broken, match="round 0 that is not the ledger's"):
        check_heard(Storage(heard, []), {0: b"other"})
    with pytest.raises(Broken, match="last broadcast"):
        check_heard(Storage({"broadcast": heard["broadcast"]}, []), {0: b"other"})


def test_trials_that_ended_and_are_stored_are_as_they_should_be() -> None:
    check_trials(STEPS, ENDED, STORED, kills=0)
    late = Storage({}, [trial(1), trial(1), trial(1)])  # away in round 0
    check_trials(STEPS, ENDED, late, kills=0)


@pytest.mark.parametrize(
    ("lines", "trials", "words"),
    [
        (ENDED, STORED.trials[:2], "is not stored"),
        ([*ENDED, ENDED[0]], STORED.trials, "ran a trial twice"),
        (ENDED[:4], STORED.trials, "never ended"),
        (ENDED, [*STORED.trials[:2], trial(1, "FAIL")], "stored as FAIL"),
        (ENDED, [*STORED.trials[:2], trial(1, "FAIL", lost=True)], "lost in 0 kills"),
        (ENDED, [trial(0), trial(0), trial(0)], "slots of round 0"),
    ],
)
def test_a_trial_that_is_lost_or_repeated_shows(
    lines: list[dict[str, Any]], trials: list[tuple[str, dict[str, Any], float]], words: str
) -> None:
    with pytest.raises(Broken, match=words):
        check_trials(STEPS, lines, Storage({}, list(trials)), kills=0)


def faults(folder: Path, *words: str, limit: float) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.endtoend.faults", folder, *words],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=limit,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow  # about two minutes, most of them Flower's
def test_a_study_ends_though_its_site_coordinator_and_link_are_killed(tmp_path: Path) -> None:
    faults(tmp_path, "--kills", "1", "--only", "sottovoce", limit=1800)
    assert (tmp_path / "sottovoce.log").read_text().count(" killed ") == 3
    (row,) = json.loads((tmp_path / "sottovoce.json").read_text())["rows"]
    assert 0 < row["epsilon"] <= row["granted"]


@pytest.mark.slow  # about twenty minutes each
@pytest.mark.parametrize("victim", list(VICTIMS))
def test_twenty_kills_lose_nothing_and_release_nothing_twice(tmp_path: Path, victim: str) -> None:
    faults(tmp_path, "--kills", "20", "--jobs", "2", "--only", victim, limit=7200)
    came = [json.loads(path.read_text())["came"] for path in tmp_path.glob("*.json")]
    assert sum(len(each["kills"]) for each in came) == 20
    assert all(0 < each["epsilon"] <= each["granted"] for each in came)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["client", "slow", "evil", "strangers"])
def test_a_bad_site_harms_nobody_but_itself(tmp_path: Path, scenario: str) -> None:
    assert "all holds" in faults(tmp_path, "--only", scenario, limit=1800)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted, which needs root")
def test_a_full_disk_stops_the_run_and_sends_nothing(tmp_path: Path) -> None:
    assert "all holds" in faults(tmp_path, "--only", "disk", limit=1800)


@pytest.mark.slow
def test_an_old_backup_of_the_ledger_releases_nothing(tmp_path: Path) -> None:
    assert "all holds" in faults(tmp_path, "--only", "backup", limit=1800)


def test_every_kill_is_in_one_job_and_a_job_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    jobs = jobs_of(["sums-site", "disk"], kills=10)
    assert [(job.name, list(job.kills)) for job in jobs[:3]] == [
        ("sums-site-00", [0, 1, 2, 3]),
        ("sums-site-04", [4, 5, 6, 7]),
        ("sums-site-08", [8, 9]),
    ]
    assert jobs[3].name == "disk"
    keep(tmp_path / "sums-site-04.json", "sums-site", Killed(), 1.0, 4)
    assert [job.done(tmp_path) for job in jobs] == [False, True, False, False]


def test_no_port_is_given_twice_before_all_others_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FIRST_PORT, "21600")
    given = [own_port() for _ in range(20)]  # nobody listens on any of them yet
    assert len({*given}) == 20
    assert all(21600 <= port < 21600 + PORTS for port in given)


def test_the_page_counts_the_kills_of_all_jobs(tmp_path: Path) -> None:
    kills = [
        Kill("the coordinator's process", "between the exchanges", 1, 0, 40.0),
        Kill("the coordinator's process", "between the exchanges", 2, 1, 60.0),
        Kill("the coordinator's process", "while it starts", 2, 0, 80.0),
    ]
    for first, part in ((0, kills[:2]), (2, kills[2:])):
        came = Killed(part, 1, 3, 0, 19.5, 20.0, 6)
        keep(tmp_path / f"c-{first}.json", "sums-coordinator", came, 90.0, len(part))
    page = page_of(tmp_path)
    (line,) = [line for line in page.splitlines() if line.startswith("| The coordinator dies")]
    assert "process 3 times; between the exchanges 2 times; while it starts once" in line
    assert "(1 of 2 before any member had answered)" in line
    assert line.endswith(
        "| 2 studies ended, in 6 runs, each from where the ledger ends | 19.5 of 20 | 12 |"
    )
    assert "--kills 3" in page
    assert "took 3 minutes" in page


def test_a_page_made_anew_keeps_its_lines_of_other_faults(tmp_path: Path) -> None:
    before = (ROOT / "docs" / "faults.md").read_text()
    came = Killed([Kill("its SuperNode alone", "at a random moment", 0, 0, 9.0)], 1, 1, 0, 9, 20, 6)
    keep(tmp_path / "site-00.json", "site", came, 60.0, 1)
    keep(tmp_path / "sums-site-00.json", "sums-site", came, 60.0, 1)
    page = page_of(tmp_path, before)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    old = [line for line in before.splitlines() if line.startswith("| ")]
    assert rows[1].startswith("| A site dies | `kill -9`: its SuperNode alone once")
    assert "9 of 20" in rows[1]
    (shared,) = [line for line in rows if line.startswith("| A site dies, trust nobody |")]
    rest = [line for line in old if not line.startswith("| A site dies")]
    assert [line for line in rows if line not in (rows[1], shared)] == rest
    assert f"{len(rest) - 1} are of an earlier run" in page
    assert page.rpartition("|")[2] == before.rpartition("|")[2]  # what an operator does


def test_the_page_of_faults_has_a_line_of_each() -> None:
    text = (ROOT / "docs" / "faults.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    for word in ("A site dies", "The coordinator dies", "The SuperLink dies", "NaN", "disk"):
        assert sum(word in line for line in lines) >= 1, word
    for spent, granted in re.findall(r"\| ([\d.]+) of ([\d.]+) \|", text):
        assert 0 < float(spent) <= float(granted)
