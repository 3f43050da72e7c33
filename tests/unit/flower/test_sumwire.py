"""What travels in the second exchange is understood, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from flwr.app import ConfigRecord, RecordDict

from sottovoce.errors import ProtocolError
from sottovoce.flower.sumwire import SumCall, SumReply, answers_in, answers_text
from sottovoce.flower.wire import Reply
from sottovoce.secure_sum.protocol import Answer

CALL = SumCall("study", 2, 1, (0, 3), (b"one", b"two"))
REPLY = SumReply("study", 2, 1, "share", b"share", b"signature")


def changed(records: RecordDict, **changes: Any) -> RecordDict:
    plain = {**dict(records.config_records["sottovoce"]), **changes}
    kept = {key: value for key, value in plain.items() if value is not None}
    return RecordDict({"sottovoce": ConfigRecord(kept)})


def test_calls_and_replies_come_back_from_flowers_records() -> None:
    assert SumCall.from_records(CALL.to_records()) == CALL
    assert SumReply.from_records(REPLY.to_records()) == REPLY
    assert REPLY.answer == Answer(1, b"share", b"signature")
    sealed = Reply("study", 0, 1, "sealed", packets=(b"a", b"b"))
    assert Reply.from_records(sealed.to_records()).packets == (b"a", b"b")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"speakers": [0.5, 1.0]}, "must be numbers"),
        ({"speakers": [0]}, "1 speakers must have as many packets"),
        ({"packets": ["text", "text"]}, "must hold bytes"),
        ({"packets": None}, "'packets' of a message must be of type list"),
        ({"agent": "one"}, "'agent' of a message must be of type int"),
        ({"schema": 1}, "must be of schema 2"),
    ],
)
def test_a_call_that_is_not_one_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        SumCall.from_records(changed(CALL.to_records(), **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "maybe"}, "must be one of"),
        ({"share": "text"}, "'share' of a message must be of type bytes"),
        ({"share": bytes((1 << 26) + 1)}, "a share must hold at most"),
    ],
)
def test_an_answer_that_is_not_one_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        SumReply.from_records(changed(REPLY.to_records(), **changes))


def test_packets_larger_than_anything_should_be_are_not_looked_at() -> None:
    big = Reply("study", 0, 1, "sealed", packets=(bytes(1 << 26), b"more"))
    with pytest.raises(ProtocolError, match="must hold at most"):
        Reply.from_records(big.to_records())


def test_what_gave_a_sum_is_always_written_alike_and_read_back() -> None:
    answers = [Answer(4, b"d", b"4"), Answer(1, b"a", b"1")]
    text = answers_text([3, 0], answers)
    assert text == answers_text([0, 3], answers[::-1])
    assert answers_in(text) == ((0, 3), (answers[1], answers[0]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"speakers":[0],"answers":[[1]]}',
        b'{"speakers":["a"],"answers":[]}',
        b'{"speakers":[0],"answers":[["x","",""]]}',
        b'{"speakers":[0],"answers":[[1,2,3]]}',
    ],
)
def test_what_gave_no_sum_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        answers_in(data)
