"""What Optuna asks of every sampler, asked of ours.

Left out: `MultiObjectiveSamplerTestCase`, as such studies are refused, which
`SingleOnlySamplerTestCase` checks. `AgentSampler` searches the space of its agent's study and no
other, so that none of these cases, which bring spaces of their own, applies to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from sottovoce.optuna import Sampler


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


class TestSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: Sampler(seed=0, initial=1)  # so that most trials come from a draw
