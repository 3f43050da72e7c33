from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sottovoce.errors import BudgetExceeded, InvalidInput, LedgerError, PrivacyError
from sottovoce.privacy import pursefile
from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.chain import GENESIS
from sottovoce.privacy.events import Event, NonPrivate, SharedGaussian, SubsampledGaussian
from sottovoce.privacy.head import beside, read_head
from sottovoce.privacy.purse import Limits, Stake, gives_back, opened
from sottovoce.privacy.pursefile import Mark, Purse

DELTA = 1e-5
EVENT = SubsampledGaussian(8.0, 1.0, 30)
SHARES = SharedGaussian(8.0, 20, 4, 256, 40)
SAMPLED = SubsampledGaussian(2.0, 0.2, 50)


@pytest.fixture
def purse(tmp_path: Path) -> Purse:
    """Room for four releases of the event, and not for five."""
    return Purse.new(tmp_path / "purse.db", Limits(epsilon({EVENT: 4}, DELTA), DELTA), "a registry")


def kept(purse: Purse) -> dict[str, int]:
    return {name: stake.kept for name, stake in purse.look()[0].stakes.items()}


def test_a_study_is_refused_when_it_would_pass_the_cap(purse: Purse) -> None:
    purse.enter("a", "first", EVENT, 3)
    with pytest.raises(BudgetExceeded, match=r"would come to .* the purse allows"):
        purse.enter("b", "second", EVENT, 2)
    assert kept(purse) == {"a": 3}
    purse.enter("c", "third", EVENT, 1)
    assert kept(purse) == {"a": 3, "c": 1}


def test_a_record_replaced_has_a_limit_of_its_own(tmp_path: Path) -> None:
    limits = Limits(100.0, DELTA, replace_one({EVENT: 4}, DELTA))
    purse = Purse.new(tmp_path / "purse.db", limits)
    purse.enter("a", "", EVENT, 4)
    with pytest.raises(BudgetExceeded, match="one record replaced"):
        purse.enter("b", "", EVENT, 1)


def test_three_studies_come_to_what_the_accountant_says_of_all_their_events(
    tmp_path: Path,
) -> None:
    limits = Limits(9.0, DELTA, 30.0)
    purse = Purse.new(tmp_path / "purse.db", limits)
    other = SubsampledGaussian(5.0, 1.0, 9)
    for name, event, releases in (("a", EVENT, 4), ("b", SHARES, 3), ("c", other, 2)):
        purse.enter(name, name, event, releases)
    events: list[Event] = [*[EVENT] * 4, *[SHARES] * 3, *[other] * 2]
    spent = limits.spent(purse.look()[0].events)
    assert spent.epsilon == pytest.approx(epsilon(events, DELTA), abs=1e-9)
    assert spent.replace_one == pytest.approx(replace_one(events, DELTA), abs=1e-9)


def test_entering_the_same_study_again_sets_nothing_more_aside(purse: Purse) -> None:
    mark = purse.enter("a", "", EVENT, 4)
    assert purse.enter("a", "", EVENT, 4) == mark
    with pytest.raises(LedgerError, match="with other releases"):
        purse.enter("a", "", EVENT, 3)


def test_a_study_that_said_less_gives_the_rest_back_and_says_nothing_more(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 4)
    purse.say("a", 2, 0, "x")
    purse.close("a")
    assert kept(purse) == {"a": 1}
    with pytest.raises(LedgerError, match="not open"):
        purse.say("a", 2, 1, "y")
    with pytest.raises(LedgerError, match="not open"):
        purse.say("a", 2, 0, "x")  # not even again what it said
    purse.enter("b", "", EVENT, 3)
    with pytest.raises(BudgetExceeded):
        purse.enter("c", "", EVENT, 1)


def test_rounds_that_the_site_knows_of_are_counted_too_when_a_study_is_closed(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 4)
    purse.say("a", 0, 1, "x")
    purse.close("a", [0, 1])
    assert kept(purse) == {"a": 2}


def test_a_closed_study_is_entered_again_only_by_its_operator_and_if_it_fits(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 4)
    purse.say("a", 0, 0, "x")
    purse.close("a")
    with pytest.raises(LedgerError, match="closed"):
        purse.enter("a", "", EVENT, 4)
    purse.enter("b", "", EVENT, 1)
    with pytest.raises(BudgetExceeded):
        purse.enter("a", "", EVENT, 4, again=True)
    purse.close("b")
    purse.enter("a", "", EVENT, 4, again=True)
    assert kept(purse) == {"a": 4, "b": 0}
    assert purse.look()[0].stakes["a"].said == {0: "x"}  # and what was said is not forgotten


def test_a_sampled_study_gives_nothing_back() -> None:
    assert gives_back(EVENT)
    assert gives_back(SHARES)
    assert not gives_back(SAMPLED)
    assert not gives_back(SubsampledGaussian(2.0, 0.5, 50, "fixed"))
    assert not gives_back(NonPrivate())


def test_a_closed_sampled_study_stays_counted_whole() -> None:
    stake = Stake("a", "", SAMPLED, 2, open=False, said={0: "x"})
    assert stake.kept == 2
    assert replace(stake, event=EVENT).kept == 1


@pytest.mark.parametrize("event", [NonPrivate(), SubsampledGaussian(2.0, 0.5, 50, "fixed")])
def test_what_has_no_bound_is_refused(purse: Purse, event: Any) -> None:
    with pytest.raises(PrivacyError):
        purse.enter("a", "", event, 1)
    assert kept(purse) == {}


def test_nothing_is_said_in_a_study_that_was_not_entered(purse: Purse) -> None:
    with pytest.raises(LedgerError, match="not open"):
        purse.say("a", 0, 0, "x")


def test_no_more_is_said_than_was_entered(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 2)
    for number in (0, 4):
        purse.say("a", 0, number, "x")
    with pytest.raises(LedgerError, match="has said all"):
        purse.say("a", 0, 8, "x")


def test_a_second_content_of_a_round_is_refused_and_the_same_costs_nothing(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 2)
    mark = purse.say("a", 0, 0, "x")
    assert purse.say("a", 0, 0, "x") == mark
    with pytest.raises(LedgerError, match="was set back, or the study is run a second time"):
        purse.say("a", 0, 0, "y")


def test_the_same_data_do_not_speak_as_two_agents_of_a_study(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 4)
    purse.say("a", 0, 0, "x")
    with pytest.raises(LedgerError, match="as agent 0 of study a already"):
        purse.say("a", 1, 0, "x")


def test_a_purse_that_was_set_back_with_its_head_is_refused_by_who_saw_more(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 2)
    old, head = purse.path.read_bytes(), beside(purse.path).read_bytes()
    mark = purse.say("a", 0, 0, "x")
    purse.path.write_bytes(old)  # in its place: the same file, an earlier content
    beside(purse.path).write_bytes(head)
    purse.look()  # it looks whole
    for ask in (purse.look, lambda known: purse.say("a", 0, 0, "x", known=known)):
        with pytest.raises(LedgerError, match="was set back"):
            ask(known=mark)


def test_a_purse_that_was_set_back_without_its_head_is_refused(purse: Purse) -> None:
    old = purse.path.read_bytes()
    purse.enter("a", "", EVENT, 2)
    purse.path.write_bytes(old)
    with pytest.raises(LedgerError, match="was truncated"):
        purse.look()


def test_two_copies_part_and_who_saw_one_refuses_the_other(purse: Purse, tmp_path: Path) -> None:
    purse.enter("a", "", EVENT, 2)
    copy = tmp_path / "elsewhere" / "purse.db"
    copy.parent.mkdir()
    for path in (purse.path, beside(purse.path)):
        shutil.copy2(path, copy.parent / path.name)
    with pytest.raises(LedgerError, match=r"was moved or copied: .* purse moved"):
        Purse(copy).look()
    Purse(copy).move()
    mark = purse.say("a", 0, 0, "x")
    with pytest.raises(LedgerError, match="set back, or is a copy"):
        Purse(copy).look(mark)


def test_a_moved_purse_is_used_once_its_owner_said_so(purse: Purse, tmp_path: Path) -> None:
    mark = purse.enter("a", "", EVENT, 2)
    new = tmp_path / "new"
    new.mkdir()
    for path in (purse.path, beside(purse.path)):
        path.rename(new / path.name)
    moved = Purse(new / "purse.db")
    with pytest.raises(LedgerError, match="was moved or copied"):
        moved.say("a", 0, 0, "x", known=mark)
    after = moved.move()
    assert moved.move() == after  # once
    moved.say("a", 0, 0, "x", known=mark)


def test_a_purse_has_one_head_and_one_lock_whatever_link_leads_to_it(
    purse: Purse, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "mine.db"
    link.symlink_to(purse.path)
    Purse(link).enter("a", "trial", EVENT, 1)
    assert [path.name for path in (tmp_path / "links").iterdir()] == ["mine.db"]
    head = read_head(beside(purse.path))
    assert head is not None
    assert head.entries == 2
    old = purse.path.read_bytes()
    Purse(link).enter("b", "another", EVENT, 1)
    purse.path.write_bytes(old)  # set back, and its head was not
    for path in (purse.path, link):
        with pytest.raises(LedgerError, match="truncated"):
            Purse(path).look()


def test_a_copy_put_in_the_place_of_a_purse_is_noticed(purse: Purse) -> None:
    backup = purse.path.with_name("backup")
    shutil.copy2(purse.path, backup)
    backup.replace(purse.path)  # as most programs restore
    with pytest.raises(LedgerError, match="was moved or copied"):
        purse.look()


def test_another_purse_is_not_the_one_a_study_was_begun_in(purse: Purse, tmp_path: Path) -> None:
    mark = purse.enter("a", "", EVENT, 2)
    other = Purse.new(tmp_path / "other.db", Limits(9.0, DELTA))
    with pytest.raises(LedgerError, match="is another than the one"):
        other.enter("a", "", EVENT, 2, known=mark)


def test_a_changed_entry_is_refused(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 2)
    with sqlite3.connect(purse.path) as db:
        db.execute("DROP TRIGGER no_update")
        db.execute(
            "UPDATE entries SET content = replace(content, '\"releases\":2', '\"releases\":1')"
        )
    with pytest.raises(LedgerError, match="tampered"):
        purse.look()


def test_entries_cannot_be_changed_or_taken_out(purse: Purse) -> None:
    with sqlite3.connect(purse.path) as db:
        for statement in ("UPDATE entries SET content = ''", "DELETE FROM entries"):
            with pytest.raises(sqlite3.Error, match="append-only"):
                db.execute(statement)


def test_limits_are_changed_on_record_and_what_is_in_the_purse_stays(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 4)
    purse.limit(Limits(9.0, DELTA))
    purse.enter("b", "", EVENT, 4)
    purse.limit(Limits(0.1, DELTA))
    assert kept(purse) == {"a": 4, "b": 4}
    with pytest.raises(BudgetExceeded):
        purse.enter("c", "", EVENT, 1)


def test_a_purse_is_made_once(purse: Purse) -> None:
    with pytest.raises(LedgerError, match="already, or there was one"):
        Purse.new(purse.path, Limits(99.0, DELTA))
    purse.path.unlink()
    with pytest.raises(LedgerError, match="already, or there was one"):
        Purse.new(purse.path, Limits(99.0, DELTA))
    with pytest.raises(LedgerError, match="there is no purse"):
        Purse(purse.path)


def test_a_making_that_was_killed_is_made_up_for(tmp_path: Path) -> None:
    (tmp_path / "purse.db").touch()
    Purse.new(tmp_path / "purse.db", Limits(1.0, DELTA)).look()


@pytest.mark.parametrize(
    "limits", [(0.0, DELTA), (float("inf"), DELTA), (1.0, 0.0), (1.0, DELTA, -1.0)]
)
def test_limits_must_be_limits(limits: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput):
        Limits(*limits)


@pytest.mark.parametrize("content", [b"", b"not a purse at all", b"SQLite format 3\0"])
def test_what_is_no_purse_is_refused_in_one_of_our_errors(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "purse.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Purse(path).look()


def test_a_purse_that_another_process_holds_is_waited_for(
    purse: Purse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pursefile, "PATIENCE", 0.0)
    held = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print('held', "
            "flush=True); sys.stdin.read()",
            f"{purse.path}.lock",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert held.stdout is not None
        held.stdout.readline()
        with pytest.raises(LedgerError, match="held by another process"):
            purse.look()
    finally:
        held.kill()
        held.communicate()
    purse.look()


def test_what_is_written_is_on_the_disk_and_for_its_user_alone(
    purse: Purse, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = pursefile._verified

    def verified(db: sqlite3.Connection) -> Any:
        asked.append(db.execute("PRAGMA synchronous").fetchone()[0])
        return real(db)

    monkeypatch.setattr(pursefile, "_verified", verified)
    purse.look()
    assert asked == [3]  # EXTRA
    assert Path(f"{purse.path}.lock").stat().st_mode & 0o077 == 0
    assert json.loads(beside(purse.path).read_text())["entries"] == 1


def test_a_mark_says_which_purse_how_long_and_its_newest_digest(purse: Purse) -> None:
    book, mark = purse.look()
    assert mark == Mark(book.name, 1, json.loads(beside(purse.path).read_text())["digest"])
    assert book.data == "a registry"


def test_room_is_told_as_none_left_or_not_at_all_with_a_sampled_study(purse: Purse) -> None:
    purse.enter("a", "", EVENT, 1)
    book = purse.look()[0]
    assert book.room is not None
    assert replace(book, limits=Limits(0.1, DELTA)).room == 0.0
    assert replace(book, stakes={"s": Stake("s", "", SAMPLED, 1)}).room is None


def test_an_entry_of_no_kind_and_a_beginning_without_limits_are_refused(purse: Purse) -> None:
    with pytest.raises(LedgerError, match="has no entry 'gift'"):
        purse.look()[0].after({"kind": "gift", "study": "a"})
    with pytest.raises(LedgerError, match="must begin with its limits"):
        opened({"kind": "limit"})


@pytest.mark.parametrize("contents", [[], [{"kind": "new"}]])
def test_a_chain_that_holds_and_says_nothing_is_no_purse(contents: list[dict[str, str]]) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE entries (seq INTEGER, content TEXT, digest BLOB)")
        for seq, content in enumerate(contents):
            pursefile._insert(db, GENESIS, seq, content)
        with pytest.raises(LedgerError, match=r"is none|no entries"):
            pursefile._verified(db)


def test_a_file_that_sqlite_finds_damaged_is_refused() -> None:
    class Damaged:
        def execute(self, words: str) -> Damaged:
            assert words == "PRAGMA integrity_check"
            return self

        def fetchone(self) -> tuple[str]:
            return ("row 2 missing from index",)

    with pytest.raises(sqlite3.DatabaseError, match="damaged"):
        pursefile._verified(Damaged())  # type: ignore[arg-type]


def test_a_purse_that_another_holds_for_a_moment_is_waited_for(
    purse: Purse, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = os.open(purse.path.with_name(purse.path.name + ".lock"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    monkeypatch.setattr("time.sleep", lambda seconds: os.close(held))
    purse.enter("a", "", EVENT, 1)
    assert kept(purse) == {"a": 1}


def test_a_folder_is_no_purse_and_none_is_made_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="a purse must be a file"):
        Purse.new(tmp_path, Limits(1.0, 1e-5))
    assert not tmp_path.with_name(f"{tmp_path.name}.lock").exists()
