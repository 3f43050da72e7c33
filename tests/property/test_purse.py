"""Whatever is entered, said, closed or killed: what was sent never passes the cap."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sottovoce.errors import BudgetExceeded, LedgerError
from sottovoce.privacy import pursefile
from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.events import Event, SharedGaussian, SubsampledGaussian
from sottovoce.privacy.purse import Book, Limits, first, opened
from sottovoce.privacy.pursefile import Purse

DELTA = 1e-5
SHM = Path("/dev/shm")  # noqa: S108
MEMORY = SHM if SHM.is_dir() else None  # thousands of commits
EVENTS: tuple[Event, ...] = (
    SubsampledGaussian(4.0, 1.0, 30),
    SubsampledGaussian(9.0, 1.0, 12),
    SharedGaussian(7.5, 20, 4, 256, 40),
)
SAMPLED = SubsampledGaussian(2.0, 0.2, 50)
PLACE = {"path": "/here", "inode": 1}


def made(limits: Limits) -> Book:
    return opened(first("a purse", "", limits, PLACE))


def entered(book: Book, study: str, event: Event, releases: int) -> Book:
    content = book.enter(study, study, event, releases)
    return book if content is None else book.after(content)


studies = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(1, 6)), min_size=1, max_size=5
).flatmap(st.permutations)


@given(studies, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_what_is_composed_is_the_accountants_own_answer_in_any_order(
    parts: list[tuple[Event, int]], chance: Any
) -> None:
    limits = Limits(1e3, DELTA, 1e4)
    named = list(enumerate(parts))
    one = other = made(limits)
    for number, (event, releases) in named:
        one = entered(one, f"study {number}", event, releases)
    chance.shuffle(named)
    for number, (event, releases) in named:
        other = entered(other, f"study {number}", event, releases)
    events = [event for event, releases in parts for _ in range(releases)]
    spent = limits.spent(one.events)
    assert spent == limits.spent(other.events)
    assert spent.epsilon == pytest.approx(epsilon(events, DELTA), abs=1e-9)
    assert spent.replace_one == pytest.approx(replace_one(events, DELTA), abs=1e-9)


@pytest.mark.slow  # pld takes seconds for each question
def test_sampled_studies_are_composed_with_the_others_too() -> None:
    book = entered(entered(made(Limits(50.0, DELTA)), "a", SAMPLED, 3), "b", EVENTS[0], 4)
    assert book.events == {SAMPLED: 3, EVENTS[0]: 4}
    alone = made(Limits(0.999 * epsilon({SAMPLED: 3, EVENTS[0]: 4}, DELTA), DELTA))
    with pytest.raises(BudgetExceeded):
        entered(entered(alone, "a", SAMPLED, 3), "b", EVENTS[0], 4)


class Killed(BaseException):
    """In place of kill -9."""


@contextmanager
def dying(where: str) -> Iterator[None]:
    """Die within the next write: before its commit, or between that and its head."""
    name = {"before the commit": "_insert", "before the head": "write_head"}[where]
    real = getattr(pursefile, name)

    def dead(*arguments: Any) -> Any:
        if name == "_insert":
            real(*arguments)  # within its transaction
        raise Killed

    setattr(pursefile, name, dead)
    try:
        with contextlib.suppress(Killed):
            yield
    finally:
        setattr(pursefile, name, real)


MOMENTS = st.sampled_from(["never", "before the commit", "before the head"])
LIMITS = Limits(2.5, DELTA, 6.0)


class Life(RuleBasedStateMachine):
    """A purse, the site's folders, and what a bystander has really heard of them."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.purse = Purse.new(Path(self.folder.name) / "purse.db", LIMITS)
        self.sent: set[tuple[str, int]] = set()
        self.events: dict[str, tuple[Event, int]] = {}
        self.numbers = itertools.count()
        self.refused = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def die(self, moment: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if moment == "never" else dying(moment)

    @rule(event=st.sampled_from(EVENTS), releases=st.integers(1, 5), moment=MOMENTS)
    def enter(self, event: Event, releases: int, moment: str) -> None:
        study = f"study {next(self.numbers)}"
        self.events[study] = event, releases
        with self.die(moment):
            try:
                self.purse.enter(study, study, event, releases)
            except BudgetExceeded:
                self.refused += 1

    @precondition(lambda self: self.events)
    @rule(data=st.data(), again=st.booleans(), moment=MOMENTS)
    def enter_again(self, data: st.DataObject, again: bool, moment: str) -> None:
        study = data.draw(st.sampled_from(sorted(self.events)))
        with self.die(moment), contextlib.suppress(BudgetExceeded, LedgerError):
            self.purse.enter(study, study, *self.events[study], again=again)

    @precondition(lambda self: self.events)
    @rule(data=st.data(), number=st.integers(0, 6), moment=MOMENTS)
    def speak(self, data: st.DataObject, number: int, moment: str) -> None:
        study = data.draw(st.sampled_from(sorted(self.events)))
        with self.die(moment), contextlib.suppress(LedgerError):
            self.purse.say(study, 0, number, "content")
            self.sent.add((study, number))  # sent only once it is written

    @precondition(lambda self: self.events)
    @rule(data=st.data(), moment=MOMENTS)
    def close(self, data: st.DataObject, moment: str) -> None:
        study = data.draw(st.sampled_from(sorted(self.events)))
        with self.die(moment), contextlib.suppress(LedgerError):
            self.purse.close(study)

    @invariant()
    def what_was_sent_is_within_the_cap(self) -> None:
        if not hasattr(self, "purse"):
            return
        counts = Counter(self.events[study][0] for study, _ in self.sent)
        assert epsilon(counts, DELTA) <= LIMITS.epsilon
        assert replace_one(counts, DELTA) <= (LIMITS.replace_one or 0)
        book, _ = self.purse.look()
        assert {(s, r) for s, stake in book.stakes.items() for r in stake.said} >= self.sent
        for study in {study for study, _ in self.sent}:
            assert sum(s == study for s, _ in self.sent) <= self.events[study][1]


def test_no_sequence_of_entering_speaking_closing_and_dying_passes_the_cap() -> None:
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
