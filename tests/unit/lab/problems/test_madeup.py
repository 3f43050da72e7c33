"""Made-up functions on any space."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.madeup import MadeUp
from sottovoce.space import Category, Integer, Space

ODD = Space([Category("kind", ("a", "b")), Integer("two", 1, 2), Integer("units", 1, 99, log=True)])


@pytest.mark.parametrize("space", [problem_named("bowl").setting.space, ODD], ids=["bowl", "odd"])
def test_values_are_the_same_for_the_same_draw_and_no_point_beats_the_optimum(space: Space) -> None:
    first, again = (MadeUp(space).draw(3, np.random.default_rng(5)) for _ in range(2))
    points = np.asarray(space.snap(np.random.default_rng(1).random((3, 400, space.dims))))
    values = first.values(points)
    assert values.shape == (3, 400)
    assert np.array_equal(values, again.values(points))
    assert np.all(values.max(axis=1) <= first.optimum + 0.02)  # numerical
    assert np.all(first.optimum <= 1.5)
    assert np.all(first.optimum > values.mean(axis=1))


def test_alpha_says_how_alike_agents_are() -> None:
    space = problem_named("bowl").setting.space
    points = np.asarray(space.snap(np.random.default_rng(1).random((300, space.dims))))
    both = np.broadcast_to(points, (2, *points.shape))
    alike, apart = (
        float(
            np.corrcoef(*MadeUp(space, alpha).draw(2, np.random.default_rng(0)).values(both)).min()
        )
        for alpha in (0.0, 1.0)
    )
    assert alike == pytest.approx(1.0)
    assert abs(apart) < 0.9
    with pytest.raises(InvalidInput, match="agents must be at least 1"):
        MadeUp(space).draw(0, np.random.default_rng(0))
