from __future__ import annotations

import json
from typing import Any

import pytest

from sottovoce.errors import InvalidInput, LedgerError
from sottovoce.privacy.events import (
    DataFree,
    Event,
    NonPrivate,
    SharedGaussian,
    SubsampledGaussian,
    adjacency,
    from_dict,
    grouped,
    to_dict,
)

EVENTS: list[Event] = [
    SubsampledGaussian(1.0, 0.25, 200, "poisson", "os-entropy"),
    SubsampledGaussian(2.0, 1.0, 3, "fixed", "simulation-only, seed 4"),
    SharedGaussian(4.0, 10, 2, 256, 40, "os-entropy"),
    NonPrivate("none"),
    DataFree("os-entropy"),
]


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_survives_a_trip_through_json(event: Event) -> None:
    back = from_dict(json.loads(json.dumps(to_dict(event))))
    assert back == event
    assert back.source == event.source


def test_events_that_spend_alike_are_equal_wherever_their_randomness_came_from() -> None:
    first = SubsampledGaussian(1.0, 0.25, 200, source="os-entropy")
    second = SubsampledGaussian(1.0, 0.25, 200, source="simulation-only, seed 1")
    assert first == second
    assert grouped([first, second]) == {first: 2}


def test_fixed_samples_are_bounded_under_a_wider_adjacency() -> None:
    poisson, fixed = EVENTS[0], EVENTS[1]
    assert adjacency([poisson, DataFree()]) == "zero-out"
    assert adjacency([fixed]) == "replace-one"


def test_grouping_leaves_out_what_spends_nothing() -> None:
    assert grouped([DataFree(), NonPrivate(), DataFree()]) == {NonPrivate(): 1}


def test_events_may_come_counted() -> None:
    event = SubsampledGaussian(1.0, 0.5, 3)
    assert grouped({event: 10**9, DataFree(): 4}) == {event: 10**9}


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "laplace"},
        {"kind": "non-private", "colour": "red"},
        {"kind": "subsampled-gaussian", "noise": -1, "participation": 0.5, "agents": 3},
        {"kind": "subsampled-gaussian", "noise": "much", "participation": 0.5, "agents": 3},
    ],
)
def test_what_is_not_an_event_is_refused_not_guessed(bad: dict[str, Any]) -> None:
    with pytest.raises(LedgerError):
        from_dict(bad)


@pytest.mark.parametrize(
    ("noise", "q", "agents", "sampling", "word"),
    [
        (0.0, 0.5, 3, "poisson", "z must"),
        (float("inf"), 0.5, 3, "poisson", "z must"),
        (float("nan"), 0.5, 3, "poisson", "z must"),
        (1e-170, 0.5, 3, "poisson", "z must be between"),
        (1e170, 0.5, 3, "poisson", "z must be between"),
        (1.0, 0.0, 3, "poisson", "participation must"),
        (1.0, 1.3, 3, "poisson", "participation=1.3"),
        (1.0, 0.5, 0, "poisson", "agents"),
        (1.0, 0.5, 3, "lottery", "lottery"),
    ],
)
def test_an_event_that_cannot_be_is_refused(
    noise: float, q: float, agents: int, sampling: Any, word: str
) -> None:
    with pytest.raises(InvalidInput, match=word):
        SubsampledGaussian(noise, q, agents, sampling)
