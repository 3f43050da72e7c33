from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import ProtocolError
from sottovoce.federation.messages import Broadcast, Message

VALUES = np.asarray([0.1, -0.0, 5e-324, 1e300, math.pi, -math.inf, math.nan])


def message(vector: NDArray[Any] = VALUES, agent: int = 3) -> Message:
    return Message("f" * 64, 5, agent, vector)


def broadcast() -> Broadcast:
    return Broadcast("f" * 64, 5, np.arange(6.0).reshape(2, 3) / 7, "ab" * 32)


def altered(data: bytes, **changes: Any) -> bytes:
    """The same bytes with other entries in the header."""
    line, _, body = data.partition(b"\n")
    header = {**json.loads(line), **changes}
    return json.dumps(header).encode() + b"\n" + body


def test_a_message_survives_the_wire_bit_by_bit() -> None:
    back = Message.from_bytes(message().to_bytes())
    assert (back.study, back.round, back.agent) == ("f" * 64, 5, 3)
    assert back.vector.tobytes() == VALUES.tobytes()
    assert back.vector.dtype == np.float64
    assert back.to_bytes() == message().to_bytes()


def test_a_broadcast_survives_the_wire_bit_by_bit() -> None:
    back = Broadcast.from_bytes(broadcast().to_bytes())
    assert (back.study, back.round, back.head) == ("f" * 64, 5, "ab" * 32)
    assert back.vectors.shape == (2, 3)
    assert np.array_equal(back.vectors, broadcast().vectors)
    assert back.to_bytes() == broadcast().to_bytes()


def test_equal_messages_are_equal_bytes_however_they_lie_in_memory() -> None:
    values = np.arange(8.0)
    for same in (values.astype(">f8"), np.repeat(values, 2)[::2], values.astype(np.float32)):
        assert message(same).to_bytes() == message(values).to_bytes()
    table = np.arange(6.0).reshape(3, 2)
    turned = Broadcast("s", 1, np.asfortranarray(table), "h")
    assert turned.to_bytes() == Broadcast("s", 1, table, "h").to_bytes()


def test_different_messages_are_different_bytes() -> None:
    one = message().to_bytes()
    assert one != message(agent=4).to_bytes()
    assert one != Message("e" * 64, 5, 3, VALUES).to_bytes()
    assert one != Message("f" * 64, 6, 3, VALUES).to_bytes()
    assert one != message(VALUES + 1e-3).to_bytes()


def test_two_messages_that_say_the_same_compare_equal() -> None:
    values = np.arange(3.0)
    assert message(values) == message(values.copy())
    assert message(values) != message(values + 1)
    assert broadcast() == broadcast()


@pytest.mark.parametrize("kept", [0, 1, 20, 100, -1, -8])
def test_a_truncated_message_is_refused(kept: int) -> None:
    with pytest.raises(ProtocolError):
        Message.from_bytes(message().to_bytes()[:kept])
    with pytest.raises(ProtocolError):
        Broadcast.from_bytes(broadcast().to_bytes()[:kept])


def test_a_message_with_something_behind_it_is_refused() -> None:
    with pytest.raises(ProtocolError, match="must hold 56 bytes, got 64"):
        Message.from_bytes(message().to_bytes() + b"\0" * 8)


def test_a_message_is_not_a_broadcast() -> None:
    with pytest.raises(ProtocolError, match="not a broadcast"):
        Broadcast.from_bytes(message().to_bytes())
    with pytest.raises(ProtocolError, match="not a message"):
        Message.from_bytes(broadcast().to_bytes())


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 2},
        {"schema": None},
        {"kind": "massage"},
        {"round": "5"},
        {"round": 5.0},
        {"round": True},
        {"agent": "3"},
        {"agent": False},
        {"agent": None},
        {"study": 7},
        {"study": None},
        {"shape": [6]},
        {"shape": [-1, -7]},
        {"shape": 7},
        {"shape": "7"},
        {"shape": None},
        {"shape": [[7]]},
        {"shape": []},
        {"shape": [math.nan]},
        {"shape": [math.inf]},
        {"shape": [7.5]},
        {"shape": [7, *[1] * 99]},
        {"shape": [1 << 60]},
        {"shape": [9 * 10**4299]},  # times eight it is longer than Python writes
    ],
)
def test_a_header_that_does_not_fit_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        Message.from_bytes(altered(message().to_bytes(), **changes))


def test_axes_whose_product_is_too_long_to_be_written_are_refused_in_our_words() -> None:
    with pytest.raises(ProtocolError, match="no axis of 'broadcast' may be above 67108864"):
        Broadcast.from_bytes(altered(broadcast().to_bytes(), shape=[10**4000, 10**4000]))


@pytest.mark.parametrize("missing", ["kind", "schema", "round", "study", "agent", "shape"])
def test_a_header_that_lacks_an_entry_is_refused(missing: str) -> None:
    line, _, body = message().to_bytes().partition(b"\n")
    header = json.loads(line)
    del header[missing]
    with pytest.raises(ProtocolError):
        Message.from_bytes(json.dumps(header).encode() + b"\n" + body)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"null\n",
        b"[]\n",
        b'"message"\n',
        b"12\n",
        b"\xff\xfe\x00\n",
        b"{\n",
        b"\x80\x04\x95" + bytes(50),
        b"[" * 200_000 + b"\n",
        b"9" * 10_000 + b"\n",
    ],
    ids=range(11),
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Message.from_bytes(data)
    with pytest.raises(ProtocolError):
        Broadcast.from_bytes(data)


def test_an_empty_array_is_refused_whatever_its_shape() -> None:
    empty = Broadcast("s", 1, np.empty((0, 3)), "h").to_bytes()
    for shape in ([0, 3], [0, 10**30]):
        with pytest.raises(ProtocolError, match="at least 1"):
            Broadcast.from_bytes(altered(empty, shape=shape))
