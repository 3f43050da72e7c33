from __future__ import annotations

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.parts.registry import Registry


def test_a_part_is_found_by_the_name_it_was_registered_under() -> None:
    parts = Registry[int]("message")
    assert parts.register("one")(1) == 1
    parts.register("two")(2)
    assert parts.names == ("one", "two")
    assert (parts["one"], parts["two"]) == (1, 2)


def test_an_unknown_part_is_answered_with_the_nearest() -> None:
    parts = Registry[int]("message")
    parts.register("posterior-draw")(1)
    with pytest.raises(InvalidInput, match="unknown message 'posterior-drew'; did you mean"):
        _ = parts["posterior-drew"]


def test_a_name_that_is_taken_is_refused_and_the_first_stays() -> None:
    parts = Registry[int]("message")
    parts.register("one")(1)
    with pytest.raises(InvalidInput, match="this one is taken, got name='one'"):
        parts.register("one")(2)
    assert parts["one"] == 1
