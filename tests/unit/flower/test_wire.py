from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import ProtocolError
from sottovoce.federation import messages
from sottovoce.federation.messages import Broadcast
from sottovoce.flower.wire import RECORD, Call, Reply

BROADCAST = Broadcast("f" * 64, 3, np.arange(6.0).reshape(2, 3) / 7, "a" * 64)
CHAIN = ("c" * 64, "b" * 64, "a" * 64)
CALL = Call("f" * 64, 4, 2, {"agents": 5, "method": {"clip": "infinite"}}, BROADCAST, None, CHAIN)
REPLY = Reply("f" * 64, 4, 2, "vector", np.asarray([0.1, -2.5, 1e-300]), "", 3, "a" * 64)


def changed(records: RecordDict, **values: Any) -> RecordDict:
    """The records with other plain values; None takes one out."""
    plain = {**records.config_records[RECORD], **values}
    kept = {name: value for name, value in plain.items() if value is not None}
    arrays = {name: record for name, record in records.items() if name != RECORD}
    return RecordDict({RECORD: ConfigRecord(kept), **arrays})


def with_array(records: RecordDict, name: str, **values: Any) -> RecordDict:
    """The records with an array that is described otherwise."""
    good = records.array_records[name][name]
    described = {
        "dtype": good.dtype,
        "shape": good.shape,
        "stype": good.stype,
        "data": good.data,
        **values,
    }
    others = {key: record for key, record in records.items() if key != name}
    return RecordDict({**others, name: ArrayRecord({name: Array(**described)})})


# there and back


def test_a_call_arrives_as_it_was_sent() -> None:
    back = Call.from_records(CALL.to_records())
    assert replace(back, broadcast=None) == replace(CALL, broadcast=None)
    assert back.broadcast == BROADCAST
    assert back.seed is None


def test_a_call_before_the_first_broadcast_has_none() -> None:
    first = Call.from_records(replace(CALL, broadcast=None).to_records())
    assert (first.broadcast, first.chain) == (None, ())


@pytest.mark.parametrize("seed", [0, 17, 2**62])
def test_a_simulations_call_carries_its_seed(seed: int) -> None:
    assert Call.from_records(replace(CALL, seed=seed).to_records()).seed == seed


@pytest.mark.parametrize("answer", ["done", "busy", "refused"])
def test_an_answer_without_a_vector_arrives_as_it_was_sent(answer: Any) -> None:
    said = Reply("f" * 64, 4, 2, answer, None, "an earlier trial still runs", 3, "a" * 64)
    assert Reply.from_records(said.to_records()) == said


@given(st.lists(st.floats(), min_size=1, max_size=30))
def test_every_number_arrives_bit_for_bit(numbers: list[float]) -> None:
    sent = replace(REPLY, vector=np.asarray(numbers))
    back = Reply.from_records(sent.to_records()).vector
    assert back is not None
    assert back.tobytes() == np.asarray(numbers).tobytes()
    assert back.dtype == np.float64


def test_a_vector_that_arrived_can_be_submitted() -> None:
    message = Reply.from_records(REPLY.to_records()).message
    assert (message.study, message.round, message.agent) == ("f" * 64, 4, 2)
    with pytest.raises(ProtocolError, match="agent 2 said nothing in round 4"):
        _ = replace(REPLY, vector=None).message


def test_nothing_that_travels_is_a_pickle() -> None:
    for records in (CALL.to_records(), REPLY.to_records()):
        for name, record in records.array_records.items():
            assert record[name].stype == "raw"
            assert not record[name].data.startswith((b"\x80", b"\x93NUMPY"))


def test_the_vector_of_a_refusal_is_not_looked_at() -> None:
    records = changed(REPLY.to_records(), answer="refused")
    assert Reply.from_records(records).vector is None


# anything else is refused

WRONG_REPLIES: dict[str, tuple[str, RecordDict]] = {
    "empty": ("must hold a record", RecordDict()),
    "another record": (
        "must hold a record",
        RecordDict({"other": ConfigRecord({"schema": 1})}),
    ),
    "a record of another kind": (
        "must hold a record",
        RecordDict({RECORD: MetricRecord({"schema": 1})}),
    ),
    "no schema": ("'schema'.*type int, got NoneType", changed(REPLY.to_records(), schema=None)),
    "newer schema": ("schema 2, got 3", changed(REPLY.to_records(), schema=3)),
    "schema in words": ("type int, got str", changed(REPLY.to_records(), schema="1")),
    "schema yes or no": ("type int, got bool", changed(REPLY.to_records(), schema=True)),
    "format as long as a book": (
        "raw '<f8', got 'x{20}' '<f8'$",
        with_array(REPLY.to_records(), "vector", stype="x" * 100_000),
    ),
    "many axes": (
        "the number of axes of 'vector' must be 1, got 100000$",
        with_array(REPLY.to_records(), "vector", shape=(1,) * 100_000),
    ),
    "round in words": ("'round'.*type int, got str", changed(REPLY.to_records(), round="4")),
    "round with a fraction": ("type int, got float", changed(REPLY.to_records(), round=4.0)),
    "round yes or no": ("type int, got bool", changed(REPLY.to_records(), round=True)),
    "no agent": ("'agent'.*got NoneType", changed(REPLY.to_records(), agent=None)),
    "list of agents": ("type int, got list", changed(REPLY.to_records(), agent=[2])),
    "study in bytes": ("'study'.*type str, got bytes", changed(REPLY.to_records(), study=b"f")),
    "heard in words": ("'heard'.*type int, got str", changed(REPLY.to_records(), heard="3")),
    "no head": ("'head'.*got NoneType", changed(REPLY.to_records(), head=None)),
    "no reason": ("'reason'.*got NoneType", changed(REPLY.to_records(), reason=None)),
    "unknown answer": ("an answer must be one of", changed(REPLY.to_records(), answer="maybe")),
    "no vector": (
        "must hold an array of that name",
        changed(replace(REPLY, vector=None, answer="done").to_records(), answer="vector"),
    ),
    "numpy's own format": (
        "raw '<f8'",
        with_array(REPLY.to_records(), "vector", stype="numpy.ndarray"),
    ),
    "single precision": ("raw '<f8'", with_array(REPLY.to_records(), "vector", dtype="<f4")),
    "objects": ("raw '<f8'", with_array(REPLY.to_records(), "vector", dtype="O")),
    "two axes": (
        "the number of axes of 'vector' must be 1, got 2$",
        with_array(REPLY.to_records(), "vector", shape=(1, 3)),
    ),
    "no axes": (
        "must be 1, got 0$",
        with_array(REPLY.to_records(), "vector", shape=(), data=b"0" * 8),
    ),
    "empty array": (
        r"every axis of 'vector' must be at least 1, got shape \(0,\)$",
        with_array(REPLY.to_records(), "vector", shape=(0,), data=b""),
    ),
    "negative": (
        r"at least 1, got shape \(-3,\)$",
        with_array(REPLY.to_records(), "vector", shape=(-3,)),
    ),
    "too few bytes": (
        r"'vector' of shape \(3,\) and dtype '<f8' must hold 24 bytes, got 23$",
        with_array(REPLY.to_records(), "vector", data=b"0" * 23),
    ),
    "too many bytes": (
        r"'vector' of shape \(3,\) and dtype '<f8' must hold 24 bytes, got 32$",
        with_array(REPLY.to_records(), "vector", data=b"0" * 32),
    ),
    "a shape beyond its bytes": (
        r"no axis of 'vector' may be above 67108864$",
        with_array(REPLY.to_records(), "vector", shape=(2**62,)),
    ),
}


@pytest.mark.parametrize("what", WRONG_REPLIES)
def test_a_malformed_reply_is_refused(what: str) -> None:
    words, records = WRONG_REPLIES[what]
    with pytest.raises(ProtocolError, match=words):
        Reply.from_records(records)


def test_an_array_that_is_too_large_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LARGEST_ARRAY", 16)
    with pytest.raises(ProtocolError, match=r"'vector' must hold at most 16 bytes, got 24$"):
        Reply.from_records(REPLY.to_records())


WRONG_CALLS: dict[str, tuple[str, RecordDict]] = {
    "a reply": ("'constants'", REPLY.to_records()),
    "constants cut short": ("cannot be read", changed(CALL.to_records(), constants='{"a": ')),
    "constants too deep": ("cannot be read", changed(CALL.to_records(), constants="[" * 100_000)),
    "constants in a list": ("must be a table", changed(CALL.to_records(), constants="[1]")),
    "seed in words": ("'seed'.*int", changed(CALL.to_records(), seed="1")),
    "no head": ("'head'", changed(CALL.to_records(), head=None)),
    "no broadcast round": (
        "'broadcast-round'",
        changed(CALL.to_records(), **{"broadcast-round": None}),
    ),
    "no chain": ("'chain'.*list, got NoneType", changed(CALL.to_records(), chain=None)),
    "chain of numbers": ("must hold digests", changed(CALL.to_records(), chain=[1, 2])),
    "chain cut short": ("64 hex digits", changed(CALL.to_records(), chain=["a" * 63])),
    "chain of words": ("64 hex digits", changed(CALL.to_records(), chain=["x" * 64])),
    "one axis": (
        "the number of axes of 'broadcast' must be 2, got 1$",
        with_array(CALL.to_records(), "broadcast", shape=(6,)),
    ),
    "broadcast of plain values": (
        "must hold an array",
        RecordDict({**changed(CALL.to_records()), "broadcast": ConfigRecord({"a": 1})}),
    ),
}


@pytest.mark.parametrize("what", WRONG_CALLS)
def test_a_malformed_call_is_refused(what: str) -> None:
    words, records = WRONG_CALLS[what]
    with pytest.raises(ProtocolError, match=words):
        Call.from_records(records)


def test_words_from_outside_cannot_rewrite_a_terminal_or_fill_a_disk() -> None:
    nasty = 'ok\x1b[2J\r\n{"event": "closed"}\u202e' + "x" * 10_000
    back = Reply.from_records(replace(REPLY, reason=nasty).to_records())
    assert len(back.reason) <= 500
    assert back.reason.isprintable()
    records = changed(replace(REPLY, reason="").to_records(), reason=nasty)  # not cut by its sender
    assert len(Reply.from_records(records).reason) <= 500
    head = Reply.from_records(changed(REPLY.to_records(), head=nasty)).head
    assert (len(head), head.isprintable()) == (64, True)


PLAIN = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.booleans(),
    st.lists(st.integers(-5, 5), min_size=1, max_size=3),
)
KEYS = st.sampled_from(
    ["schema", "study", "round", "agent", "answer", "reason", "heard", "constants", "seed", "chain"]
)


@given(
    st.dictionaries(KEYS, PLAIN),
    st.sampled_from(["<f8", "<f4", "O", ""]),
    st.lists(st.integers(-2, 5), max_size=3),
    st.binary(max_size=48),
)
def test_whatever_arrives_is_understood_or_refused(
    plain: dict[str, Any], dtype: str, shape: list[int], data: bytes
) -> None:
    for whole, read in (
        (REPLY.to_records(), Reply.from_records),
        (CALL.to_records(), Call.from_records),
    ):
        name = "vector" if "vector" in whole else "broadcast"
        records = with_array(
            changed(whole, **plain), name, dtype=dtype, shape=tuple(shape), data=data
        )
        with suppress(ProtocolError):
            assert read(records).study == records.config_records[RECORD]["study"]


def test_constants_travel_as_the_same_values() -> None:
    from sottovoce.federation.methods import METHODS
    from sottovoce.federation.study import FederatedStudy
    from sottovoce.space import Category, Float, Space

    space = Space([Float("x", 1e-5, 0.1, log=True), Category("c", ("a", "b"))])
    constants = {**FederatedStudy(space, METHODS["sottovoce"], 5, 9).to_dict(), "epsilon": 1.0}
    back = Call.from_records(replace(CALL, constants=constants).to_records())
    assert back.constants == json.loads(json.dumps(constants))


def test_a_constant_that_json_cannot_hold_is_never_sent() -> None:
    with pytest.raises(ValueError, match="JSON"):
        replace(CALL, constants={"epsilon": math.inf}).to_records()
