"""Files written by the version before a study could say whom to trust, opened by this one.

tests/former/make.py says how they were made.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from sottovoce import Agent, Broadcast, Server, read_ledger
from sottovoce.errors import LedgerError, StudyMismatch
from sottovoce.flower.chain import check_links
from sottovoce.flower.studyfile import read_study

FORMER = Path(__file__).resolve().parents[1] / "former"


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of what was written: opening a ledger may write beside it."""
    shutil.copytree(FORMER / request.param, tmp_path / "study")
    return tmp_path / "study"


def broadcasts(folder: Path) -> list[Broadcast]:
    return [Broadcast.from_bytes(path.read_bytes()) for path in sorted(folder.glob("*.bin"))]


@pytest.mark.parametrize("folder", ["dp-fts-de", "sottovoce"], indirect=True)
def test_a_former_ledger_verifies_and_holds_what_was_broadcast(folder: Path) -> None:
    view, sent = read_ledger(folder / "ledger.db"), broadcasts(folder)
    assert [entry.round for entry in view.entries] == [each.round for each in sent]
    assert len(sent) == 2
    for entry, each in zip(view.entries, sent, strict=True):
        newest = each.vectors[-len(entry.release.vectors) :]
        assert np.array_equal(newest, entry.release.vectors)
        assert each.head == entry.digest
    assert view.head == sent[-1].head
    assert "sums" not in view.constants


@pytest.mark.parametrize("folder", ["dp-fts-de"], indirect=True)
def test_a_former_study_goes_on_where_its_ledger_ends(folder: Path) -> None:
    file, sent = read_study(folder / "study.toml"), broadcasts(folder)
    assert file.study.sums is None  # what was not said then is the mode that there was
    assert file.study.fingerprint == sent[0].study
    server = Server(file.study, folder / "ledger.db", file.budget)
    assert server.next_round() == 2
    last = server.last_broadcast()
    assert last is not None
    assert last.to_bytes() == sent[-1].to_bytes()
    check_links(file.study, sent[-1], server.chain)
    spent = file.budget.spent(server.events)
    agent = Agent(file.study, 0, direction="minimize", seed=0)
    while agent.starting:
        agent.tell(agent.ask(), 0.5)
    agent.receive(sent[-1])
    server.open_round()
    server.submit(agent.message(2))
    assert server.close_round().round == 2
    assert spent < file.budget.spent(server.events) <= file.budget.epsilon
    server.close()
    assert len(read_ledger(folder / "ledger.db").entries) == 3


@pytest.mark.parametrize("folder", ["sottovoce"], indirect=True)
def test_a_former_study_of_a_method_that_is_another_now_is_refused_with_what_to_do(
    folder: Path,
) -> None:
    file, before = read_study(folder / "study.toml"), (folder / "ledger.db").read_bytes()
    words = r"method.acquisition is 'joint-thompson' there and 'log-ei' here.*"
    words += "To finish it, go on with the settings, and the version of Sottovoce, that it"
    with pytest.raises(LedgerError, match=words):
        Server(file.study, folder / "ledger.db", file.budget)
    assert (folder / "ledger.db").read_bytes() == before
    agent = Agent(file.study, 0, direction="minimize", seed=0)
    with pytest.raises(StudyMismatch):
        agent.receive(broadcasts(folder)[-1])
