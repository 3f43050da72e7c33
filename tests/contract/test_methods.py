"""What every method must keep to, asked of every one that is shipped."""

from __future__ import annotations

import pytest

from sottovoce.federation.methods import METHODS, for_real_world
from sottovoce.lab.contracts import METHOD_PROMISES, check_method


@pytest.mark.parametrize("name", METHODS)
def test_a_shipped_method_keeps_every_promise(name: str) -> None:
    assert len(check_method(METHODS[name])) == len(METHOD_PROMISES)


@pytest.mark.parametrize("name", METHODS)
def test_so_it_does_with_the_settings_for_the_real_world(name: str) -> None:
    assert len(check_method(for_real_world(METHODS[name]))) == len(METHOD_PROMISES)
