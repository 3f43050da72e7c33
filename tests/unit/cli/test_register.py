"""`sottovoce register` with those who do nothing but sum; a program in the place of Flower's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.terminal import exit_status, in_project

from sottovoce.flower.deploy.keys import make_keys
from sottovoce.flower.deploy.roster import enrolled
from sottovoce.flower.sites import numbered_aggregators, numbered_sites, read_roster
from sottovoce.flower.studyfile import read_study

# gives every key the number of those it was given before, and one
FLWR = """\
#!{python}
import json
from pathlib import Path

given = Path("given")
count = len(given.read_text()) + 1 if given.exists() else 1
given.write_text("x" * count)
print(json.dumps({{"success": True, "node-id": str(100 + count)}}))
"""
STUDY = """\
[study]
agents = 3
rounds = 2
epsilon = 4.0
direction = "minimize"
trust = "nobody"
aggregators = 2
unreliable = 1

[[space.parameters]]
type = "float"
name = "x"
low = 0.0
high = 1.0
"""
SITES, SUMMING = [f"keys/site-{k}.pub" for k in (1, 2, 3)], ["keys/sum-1.pub", "keys/sum-2.pub"]
Register = Callable[..., tuple[int, str]]


@pytest.fixture
def register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Register:
    """Register these keys: the status, and what was said."""
    in_project(tmp_path, monkeypatch, flwr=FLWR.format(python=sys.executable))
    Path("study.toml").write_text(STUDY)
    make_keys(Path("keys"), ["site-1", "site-2", "site-3", "sum-1", "sum-2", "sum-3"])

    def registered(*words: str) -> tuple[int, str]:
        status = exit_status(monkeypatch, "register", *words)
        return status, " ".join("".join(capfd.readouterr()).split())

    return registered


def test_aggregators_follow_the_sites_and_the_keys_digest_comes_with_the_last(
    register: Register,
) -> None:
    status, said = register(*SITES)
    assert status == 0
    assert "says 3 agents and 2 aggregators; 3 and 0 are listed" in said
    status, said = register(*SUMMING, "--aggregators")
    assert status == 0
    assert numbered_sites("sites.toml", 3) == {101: 0, 102: 1, 103: 2}
    assert numbered_aggregators("sites.toml", 3) == {104: 3, 105: 4}
    digest = read_roster("sites.toml").digest
    assert f"Every party needs sites.toml beside its study.toml; its keys: {digest}" in said
    file = read_study("study.toml")
    assert file.terms.committee.members == (3, 4)
    assert "This is sum-2, aggregator 2 of 2: it only sums." in enrolled(
        file, Path("keys/sum-2.key")
    )
    assert "This site is site-1, agent 0 of 3." in enrolled(file, Path("keys/site-1.key"))


def test_aggregators_may_come_first(register: Register) -> None:
    assert register(*SUMMING, "--aggregators")[0] == 0
    assert "its keys:" in register(*SITES)[1]
    assert numbered_aggregators("sites.toml", 3) == {101: 3, 102: 4}


def test_more_aggregators_than_the_study_has_are_refused(register: Register) -> None:
    status, said = register(*SUMMING, "keys/sum-3.pub", "--aggregators")
    assert (status, Path("sites.toml").exists()) == (2, False)
    assert "study.toml says aggregators = 2, so no more can be listed" in said


def test_a_party_is_a_site_or_an_aggregator_but_not_both(register: Register) -> None:
    assert register(*SITES)[0] == 0
    status, said = register("keys/site-1.pub", "--aggregators")
    assert status == 2
    assert "never both" in said
    assert numbered_aggregators("sites.toml", 3) == {}


def test_aggregators_of_a_study_whose_coordinator_is_trusted_are_refused(
    register: Register,
) -> None:
    text = STUDY.replace('"nobody"', '"coordinator"')
    Path("study.toml").write_text(
        text.replace("aggregators = 2\n", "").replace("unreliable = 1\n", "")
    )
    status, said = register(*SUMMING, "--aggregators")
    assert status == 2
    assert "study.toml says aggregators = 0" in said
