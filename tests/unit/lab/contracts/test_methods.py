"""Every promise of a method can be broken, and is then named."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import FTS_SERVER, TS, Method
from sottovoce.federation.parts import ACQUISITIONS, MESSAGES, SHARED_MODELS
from sottovoce.federation.parts.acquisitions import thompson
from sottovoce.federation.parts.messages import posterior_mean
from sottovoce.federation.parts.shared_models import BroadcastModel
from sottovoce.federation.schedule import ReleaseSchedule
from sottovoce.lab.contracts import check_method, methods
from sottovoce.lab.contracts.promises import kept

Broken = Callable[..., Method]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Broken:
    """A method with one part of its own, which nobody else gets to know."""

    def made(base: Method, **parts: Any) -> Method:
        registries: dict[str, Any] = {r.kind: r for r in (ACQUISITIONS, MESSAGES, SHARED_MODELS)}
        names: dict[str, Any] = dict.fromkeys(parts, "broken")
        for kind, part in parts.items():
            monkeypatch.setitem(registries[kind]._parts, "broken", part)
        return replace(base, **names)

    return made


def told_of(method: Method, *promises: methods.Promise) -> str:
    """What is said of one promise, with the others left out."""
    with pytest.raises(InvalidInput) as caught:
        tuple(kept(promises, methods.Tried(method)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def outside(batch: Any, t: int) -> Any:
    return thompson(batch, t) + (1000 if batch.study.space.finite else 0.123)


def blind(batch: Any, t: int) -> Any:
    """Never thinks of trials that fail."""
    chosen = thompson(batch, t)
    return chosen + np.where(np.isnan(batch.raw().sum(axis=-1)), 5000, 0).reshape(
        -1, *(1,) * (chosen.ndim - 1)
    ).astype(chosen.dtype)


def by_the_batch(batch: Any, t: int) -> Any:
    """Does as the first of those that happen to be with it."""
    chosen = thompson(batch, t)
    chosen[:] = chosen[:1]
    return chosen


def restless(batch: Any, t: int, counter: Any = itertools.count()) -> Any:  # noqa: B008
    return thompson(batch, next(counter) % 50 + 1)


def observed(batch: Any) -> Any:
    return np.isfinite(batch.raw()).sum(axis=-1)[:, None]


def test_queries_outside_the_space_are_seen(broken: Broken) -> None:
    method = broken(TS, acquisition=outside)
    said = told_of(method, methods.its_queries_are_of_the_space)
    assert "on a box: queries must be points of the space" in said
    assert "every query is a point" in told_of(method, *methods.METHOD_PROMISES)


def test_a_method_that_does_not_think_of_failed_trials_is_seen(broken: Broken) -> None:
    method = broken(TS, acquisition=blind)
    methods.its_queries_are_of_the_space(methods.Tried(method))
    assert "where trials fail" in told_of(method, methods.it_goes_on_where_trials_fail)


def test_agents_that_look_at_their_neighbours_are_seen(broken: Broken) -> None:
    said = told_of(broken(TS, acquisition=by_the_batch), methods.agents_alone_do_what_many_do)
    assert "queries of single agents must be the same to within 1e-06" in said


def test_a_method_with_draws_of_its_own_is_seen(broken: Broken) -> None:
    method = broken(TS, acquisition=restless)
    said = told_of(method, methods.the_same_draws_give_the_same_run)
    assert "queries of a second run must be the same to within 0" in said


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (lambda b, t: np.full((b.size, 50), np.nan), "agent 0 must send a vector of finite norm"),
        (lambda b, t: np.full((b.size, 50), 1e300), "a vector of finite norm, got norm=inf"),
        (lambda b, t: np.zeros((b.size, 3)), "a vector of shape (50,), got shape=(3,)"),
        (lambda b, t: posterior_mean(b, t) / observed(b), "finite norm"),
    ],
    ids=["nan", "huge", "short", "only where trials fail"],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_a_message_that_is_no_finite_vector_is_seen(
    broken: Broken, message: Any, text: str
) -> None:
    method = broken(FTS_SERVER, message=message)
    assert text in told_of(method, methods.what_agents_send_is_finite)


def test_a_broadcast_of_another_shape_than_its_model_says_is_seen(broken: Broken) -> None:
    class Miscounted(BroadcastModel):
        @classmethod
        def broadcast_rows(cls, study: Any, round_number: int) -> int:
            return 7

    said = told_of(broken(FTS_SERVER, shared_model=Miscounted), methods.broadcasts_have_their_shape)
    assert "broadcast 0 must be of shape (7, 50), got shape=(1, 50)" in said


@dataclass(frozen=True)
class Talkative(ReleaseSchedule):
    def released(self, round_number: int) -> bool:
        return True


@dataclass(frozen=True)
class Understated(ReleaseSchedule):
    def count(self, rounds: int) -> int:
        return 1


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (Talkative(last=2), "releases must be in [0, 1, 2], got rounds=[0, 1, 2, 3]"),
        (Talkative(every=2), "releases must be in [0, 2], got rounds=[0, 1, 2, 3]"),
        (Understated(last=2), "3 releases must be planned, got count=1"),
    ],
)
def test_a_release_that_is_not_of_the_schedule_is_seen(
    schedule: ReleaseSchedule, text: str
) -> None:
    method = replace(FTS_SERVER, releases=schedule)
    assert text in told_of(method, methods.nothing_is_released_beyond_the_schedule)


@dataclass(frozen=True)
class Extended(Method):
    extra: int = 1


def test_a_method_that_plain_data_cannot_hold_is_seen() -> None:
    with pytest.raises(InvalidInput, match="these are not a study's public constants"):
        check_method(Extended("extended", shared_model="none"))
    changed = replace(FTS_SERVER, releases=Talkative())
    assert "it must be Method(name='fts-server'" in told_of(changed, methods.its_dict_form_is_whole)


def test_a_method_that_cannot_be_sent_to_another_process_is_seen() -> None:
    method = replace(TS, weights=lambda *given: None)  # type: ignore[arg-type]
    assert "it can be pickled: " in told_of(method, methods.it_travels)
