"""A site with a purse: entered before it speaks, asked each time, silent when the purse says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.unit.flower.secured import Secured
from tests.unit.flower.site.test_site import (
    FILE,
    PLENTY,
    asked_after,
    call,
    dies,
    killed,
    next_call,
    quadratic,
)

from sottovoce.errors import BudgetExceeded, LedgerError, StorageError
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.server import Server
from sottovoce.flower.site import leaving, paying
from sottovoce.flower.site.memory import lock
from sottovoce.flower.site.paying import NAME, SILENT, Account, end, enter, kept_in
from sottovoce.flower.site.site import Site
from sottovoce.flower.wire import Reply
from sottovoce.privacy.head import beside
from sottovoce.privacy.purse import Limits, Stake
from sottovoce.privacy.pursefile import Mark, Purse

RELEASES = len(FILE.study.release_rounds)
WIDE = Limits(1e3, 1e-5)


@pytest.fixture
def purse(tmp_path: Path) -> Purse:
    return Purse.new(tmp_path / "purse.db", WIDE)


@pytest.fixture
def folder(tmp_path: Path, purse: Purse) -> Path:
    """Of a site whose study is in the purse."""
    folder = tmp_path / "site"
    folder.mkdir()
    enter(FILE.study, folder, "ours", purse.path)
    return folder


def stake(purse: Purse) -> Stake:
    return purse.look()[0].stakes[FILE.study.fingerprint]


def answered(folder: Path, number: int = 0) -> Reply:
    return Site(FILE, quadratic, folder).answer(call(number))


def is_silent(folder: Path, why: str, reply: Reply) -> None:
    """It refuses with a word that tells nothing, and tells its operator why."""
    assert (reply.answer, reply.reason) == ("refused", f"PrivacyError: {SILENT}")
    assert why in (leaving.why(folder) or "")


def test_all_releases_of_a_study_are_set_aside_when_it_is_entered(
    purse: Purse, folder: Path
) -> None:
    found = stake(purse)
    assert (found.releases, found.kept, found.said) == (RELEASES, RELEASES, {})
    assert found.event == planned_event(FILE.study, "")


def test_what_is_said_is_in_the_purse_first_and_costs_nothing_again(
    purse: Purse, folder: Path
) -> None:
    first = answered(folder)
    assert first.answer == "vector"
    assert list(stake(purse).said) == [0]
    mark = purse.look()[1]
    again = answered(folder)
    assert again.message.to_bytes() == first.message.to_bytes()
    assert purse.look()[1] == mark


def test_the_purse_does_not_tell_what_was_said(tmp_path: Path) -> None:
    found = set()
    for name in ("one", "two"):
        purse, folder = Purse.new(tmp_path / f"{name}.db", WIDE), tmp_path / name
        folder.mkdir()
        enter(FILE.study, folder, name, purse.path)
        Account(folder, FILE.study).say(0, 0, [b"the same"])
        found.add(stake(purse).said[0])
        assert json.loads((folder / NAME).read_text())["salt"] not in str(purse.look())
    assert len(found) == 2


def test_a_whole_study_closes_itself_and_counts_what_was_said(tmp_path: Path, purse: Purse) -> None:
    folders = [tmp_path / str(number) for number in range(2)]
    folders[0].mkdir()
    enter(FILE.study, folders[0], "ours", purse.path)
    server = Server(FILE.study, tmp_path / "ledger.db", PLENTY)
    sites = [Site(FILE, quadratic, folder) for folder in folders]
    for step in FILE.steps[:-1]:
        asked = [next_call(server, agent=n) for n in range(2)]
        server.open_round()
        for n, site in enumerate(sites):
            if not (n == 0 and step.round == 1):  # the first is absent once
                server.submit(site.answer(asked[n]).message)
        server.close_round()
    assert sites[0].answer(next_call(server)).answer == "done"
    assert sites[0].answer(next_call(server)).answer == "done"
    server.close()
    found = stake(purse)
    assert (found.open, found.kept, sorted(found.said)) == (False, RELEASES - 1, [0, 2])


def test_a_study_closed_by_its_operator_says_nothing_more(purse: Purse, folder: Path) -> None:
    said = answered(folder)
    end(FILE, folder)
    assert (stake(purse).open, stake(purse).kept) == (False, 1)
    is_silent(folder, "is not open", answered(folder))
    after = Site(FILE, quadratic, folder).answer(asked_after(said))
    is_silent(folder, "is not open", after)
    enter(FILE.study, folder, "ours", purse.path)  # which only the operator can do
    assert answered(folder).answer == "vector"
    assert stake(purse).kept == RELEASES


def test_rounds_said_before_there_was_a_purse_are_counted(tmp_path: Path, purse: Purse) -> None:
    answered(tmp_path / "site")
    enter(FILE.study, tmp_path / "site", "ours", purse.path)
    end(FILE, tmp_path / "site")
    assert stake(purse).kept == 1


def test_a_site_whose_memory_is_gone_gives_nothing_back(purse: Purse, folder: Path) -> None:
    answered(folder)
    (folder / "study.db").unlink()
    with pytest.raises(StorageError, match="stays set aside"):
        end(FILE, folder)
    assert stake(purse).kept == RELEASES


def test_a_study_that_does_not_fit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    purse = Purse.new(tmp_path / "purse.db", Limits(0.5, 1e-5))
    (tmp_path / "site").mkdir()
    with pytest.raises(BudgetExceeded):
        enter(FILE.study, tmp_path / "site", "ours", purse.path)
    assert kept_in(tmp_path / "site") is None


def test_a_purse_that_was_set_back_silences_the_site(purse: Purse, folder: Path) -> None:
    old = purse.path.read_bytes(), beside(purse.path).read_bytes()
    answered(folder)
    purse.path.write_bytes(old[0])
    beside(purse.path).write_bytes(old[1])
    is_silent(folder, "was set back", answered(folder))


def test_a_purse_that_is_gone_silences_the_site(purse: Purse, folder: Path) -> None:
    purse.path.unlink()
    is_silent(folder, "there is no purse", answered(folder))


def test_a_folder_that_was_set_back_does_not_say_something_else(
    purse: Purse, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "backup")
    other = Site(FILE, lambda trial: -quadratic(trial), tmp_path / "backup")
    answered(folder)
    is_silent(tmp_path / "backup", "has said something else in round 0", other.answer(call(0)))


def test_the_same_study_in_another_folder_is_refused_when_it_is_entered(
    purse: Purse, folder: Path, tmp_path: Path
) -> None:
    answered(folder)
    (tmp_path / "new").mkdir()
    with pytest.raises(LedgerError, match="another feature_seed"):
        enter(FILE.study, tmp_path / "new", "ours", purse.path)


def test_another_purse_is_refused_in_the_middle_of_a_study(folder: Path, tmp_path: Path) -> None:
    other = Purse.new(tmp_path / "other.db", WIDE)
    with pytest.raises(LedgerError, match="is another than the one"):
        enter(FILE.study, folder, "ours", other.path)


@pytest.mark.parametrize("moment", ["say", "_seen"])
def test_a_site_killed_before_or_after_the_purse_was_written_goes_on(
    purse: Purse, folder: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if moment == "say":
            patch.setattr(Purse, "say", killed)
        else:
            seen = paying.Account._seen

            def dying(self: paying.Account, kept: paying.Kept, mark: Mark) -> None:
                if mark != kept.mark:
                    killed()
                seen(self, kept, mark)

            patch.setattr(paying.Account, "_seen", dying)
        dies(folder, call(0), quadratic)
    assert list(stake(purse).said) == ([] if moment == "say" else [0])
    assert answered(folder).answer == "vector"
    assert list(stake(purse).said) == [0]


def test_a_damaged_memory_of_the_purse_silences_the_site(folder: Path) -> None:
    (folder / NAME).write_text("{")
    is_silent(folder, "is damaged", answered(folder))


def test_a_site_at_work_is_not_closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paying, "PATIENCE", 0.0)
    with lock(folder, 0.0), pytest.raises(StorageError, match="is at work"):
        end(FILE, folder)


def test_where_nobody_is_trusted_the_packets_are_what_is_noted(tmp_path: Path) -> None:
    parties = Secured(tmp_path)
    study = parties.file.study
    purse = Purse.new(tmp_path / "purse.db", WIDE)
    folder = tmp_path / "0"
    folder.mkdir()
    enter(study, folder, "ours", purse.path)
    coordinator = parties.coordinator()
    parties.release(coordinator)
    coordinator.stop()
    book = purse.look()[0]
    assert list(book.stakes[study.fingerprint].said) == [0]
    assert book.events == {planned_event(study, ""): len(study.release_rounds)}
