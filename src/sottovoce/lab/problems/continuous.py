"""The synthetic problems on a continuum: functions of a GP on the unit cube, D up to 6.

Functions are drawn from a GP with a squared exponential kernel of length scale ℓ and variance
1, by F = 1024 random frequencies, and scaled to [0, 1] by the least and the greatest value that
a short search finds (16 climbs; in six dimensions a function may reach beyond by a tenth).
- alpha None: agent n's objective is f + 0.02 g_n, with f scaled and g_n independent functions of
  the same GP, unscaled. (0.02 up or down at each point, as on the grid, has no meaning here.)
- alpha a number: α f^n + (1 − α) f_base, all functions independent and scaled, as in
  `heterogeneous`.
Observations carry Gaussian noise of standard deviation 0.1. Agents know the kernel and take
values as they come, as in the paper.

The optimum is numerical: the highest point that climbs from the best of many evenly spread
points reach. Nothing proves that there is none higher. But a function has about ℓ^(−D) hills,
and no more are allowed than can be searched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sottovoce.arrays import FloatArray
from sottovoce.errors import check
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.lab.problems.grid import NOISE
from sottovoce.lab.problems.options import NamedProblem
from sottovoce.lab.problems.waves import Waves, drawn_waves, highest_points, scaled_to_unit
from sottovoce.simulation.problem import Setting
from sottovoce.space import Float, Space

FREQUENCIES = 1024  # F
APART = 0.02  # standard deviation of what tells an agent's objective from the common one
MOST_HILLS = 2**14
SHORT_SEARCH = 16  # climbs for the scaling


@dataclass(frozen=True)
class Continuous:
    """Objectives given by functions, with the effort of the search for their optima."""

    functions: Waves
    candidates: int
    starts: int
    noise: float = NOISE

    @cached_property
    def maximisers(self) -> FloatArray:
        """The highest point found of each objective, (N, D)."""
        return highest_points(self.functions, self.candidates, self.starts)

    @cached_property
    def optimum(self) -> FloatArray:
        """The value there, (N,): numerical, never below any candidate's."""
        return self.values(self.maximisers[:, None, :])[:, 0]

    def values(self, points: FloatArray) -> FloatArray:
        """The functions at the points."""
        return self.functions.values(points)


@dataclass(frozen=True)
class GaussianProcess(NamedProblem):
    """Functions of a GP; alpha None: small differences between agents, else the mixture."""

    kind: ClassVar[str] = "gp"
    dims: int = 2
    lengthscale: float = 0.2
    alpha: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check(1 <= self.dims <= 6, "gp: dims must be from 1 to 6", dims=self.dims)
        least = MOST_HILLS ** (-1.0 / self.dims)
        rule = f"gp: lengthscale must be in [{least:.3g}, 10] for dims={self.dims}"
        check(least <= self.lengthscale <= 10, rule, lengthscale=self.lengthscale)
        within = self.alpha is None or 0 <= self.alpha <= 1
        check(within, "gp: alpha must be none or in [0, 1]", alpha=self.alpha)

    @property
    def setting(self) -> Setting:
        """The cube, and the kernel the functions came from."""
        space = Space([Float(f"x{d}", 0.0, 1.0) for d in range(1, self.dims + 1)])
        kernel = Kernel(self.lengthscale, variance=1.0, noise=NOISE**2)
        return Setting(space, Surrogate(kernel, standardise=False))

    def draw(self, agents: int, random: np.random.Generator) -> Continuous:
        """The common function, then those of the agents."""
        check(agents >= 1, "agents must be at least 1", agents=agents)
        hills = self.lengthscale**-self.dims
        candidates = int(np.clip(64 * hills, 2**10, MOST_HILLS))
        frequencies = random.standard_normal((FREQUENCIES, self.dims)) / self.lengthscale
        common = drawn_waves(1, frequencies, random)
        own = drawn_waves(agents, frequencies, random)
        common = scaled_to_unit(common, candidates, SHORT_SEARCH)
        if self.alpha is None:
            functions = own.times(APART).plus(common)
        else:
            own = scaled_to_unit(own, candidates, SHORT_SEARCH)
            functions = own.times(self.alpha).plus(common.times(1.0 - self.alpha))
        starts = int(np.clip(math.sqrt(hills), SHORT_SEARCH, 128))
        return Continuous(functions, candidates, starts)
