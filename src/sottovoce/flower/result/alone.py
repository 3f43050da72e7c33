"""What a site could have expected of going alone, and which parameters its values depend on.

Both rest on one model of the site's own: a Gaussian process fitted to its own trials alone
(`gp.matern`), whatever it heard.

Alone. What the site's function is elsewhere is not known, so functions are drawn from the model's
posterior; on each, `gp` searches alone from the site's own initial trials, with as many trials.
Each draw is met value by value: a query's value is drawn given the site's trials and the values
drawn before, which is the same as drawing the whole function first. Two things are as little known
as the function, and are drawn for each search as well. The kernel: a few trials hardly tell it, and
with one kernel alone the searches would agree too much. How good a value can be at all: a Gaussian
process has no bound, and would promise ever better values where nobody has looked. The bound lies
above the site's best by an exponential draw; its mean is how far below the next best quarter lies.
What is told is the mean of their best so far and a band of them, with noise as the site's own has
it. `benchmarks/alone.py` sets both beside what going alone really gave.

Importance. The total Sobol' index of each parameter: the share of the variation of the posterior
mean over the space that goes if the parameter alone is held fixed, scaled to sum to 1.

Symbols: B draws, t trials, D coordinates, A parameters, k kernel, λ noise, c bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import qmc

from sottovoce.arrays import FloatArray
from sottovoce.federation import policy
from sottovoce.federation.batch import Batch, Trials
from sottovoce.federation.methods import GP
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.flower.result.data import Alone
from sottovoce.gp.history import informative
from sottovoce.gp.matern import Matern, bumps, fit_map, walked
from sottovoce.gp.predictive import Predictive
from sottovoce.gp.warp import warped
from sottovoce.simulation.streams import Dealer, Draws

DRAWS = 24
BAND = (0.05, 0.95)  # of the searches; the model is too sure, so it holds in fewer cases
STEPS = 150  # of a walk to a kernel; longer ones change nothing that shows
STRIDES = (0.1, 1.5)  # how long such a step is, in deviations of the prior
MOST = 60  # trials that the model rests on: its time is bounded
FEWEST = 5  # values to model anything
BASE = 512  # points of an estimate of Sobol' indices, times A + 1
FLAT = 0.02  # of the values' variance: a posterior mean that varies less has seen nothing
_JITTER = 1e-8
HOW = "the search gp alone, on functions drawn from a model of this site's own trials"
IMPORTANCE = "total Sobol' indices of a Gaussian process fitted to this site's own trials"


@dataclass(frozen=True)
class OwnModel:
    """The model of a site's own trials: points (t, D), values (t,) to be maximised, NaN if failed.

    The first `earlier` of them are from before the study. `known` are points with a value, the most
    informative ones if there are many, `y` their values as the model has them.
    """

    study: FederatedStudy
    points: FloatArray
    raw: FloatArray
    earlier: int
    kernel: Matern
    known: FloatArray
    y: FloatArray

    @classmethod
    def fitted(
        cls, study: FederatedStudy, points: FloatArray, raw: FloatArray, earlier: int = 0
    ) -> OwnModel | None:
        """The model, if the values are enough for one, and not all the same."""
        there = np.flatnonzero(np.isfinite(raw))
        if len(there) < FEWEST or np.ptp(raw[there]) == 0:
            return None
        some = there[np.asarray(informative(raw[there][None], MOST))[0]]
        known, mask = points[some], np.ones((1, len(some)), bool)
        y = np.asarray(warped(raw[some][None], mask))[0]
        kernel, _ = fit_map(study.coordinates, known[None], y[None], mask)
        return cls(study, points, raw, earlier, kernel, known, y)

    def importance(self) -> dict[str, float] | None:
        """The share of each parameter; None if the values tell of none."""
        coordinates, space = self.study.coordinates, self.study.space
        dims, owner = space.dims, np.asarray(coordinates.owner)
        drawn = qmc.Sobol(2 * dims, rng=np.random.default_rng(0)).random(BASE)
        base, other = (np.asarray(space.snap(half)) for half in (drawn[:, :dims], drawn[:, dims:]))
        mean = self._mean(base)
        if np.var(mean) < FLAT * np.var(self.y):
            return None
        moved = [self._mean(np.where(owner == a, other, base)) for a in range(len(space.names))]
        totals = np.asarray([np.mean((each - mean) ** 2) for each in moved])
        shares = totals / totals.sum()
        return dict(zip(space.names, map(float, shares), strict=True))

    def _mean(self, x: FloatArray) -> FloatArray:
        known = np.ones((1, len(self.y)), bool)
        model = Predictive(self.kernel, self.known[None], self.y[None], known)
        return np.asarray(model.moments(x[None])[0][0])

    def alone(self, initial: int, trials: int, sign: float, draws: int = DRAWS) -> Alone | None:
        """The expected best so far of a search alone, of so many trials; sign −1: minimised."""
        first = self.raw[: self.earlier + initial]
        if len(self.raw) < self.earlier + initial or not np.isfinite(first).any():
            return None
        values = self._searched(initial, trials, draws)
        best = np.fmax.accumulate(values, axis=1)[:, self.earlier :] * sign
        ends = (np.quantile(best, q, axis=0, method="weibull") for q in BAND)
        curves = [best.mean(axis=0), *ends]
        mean, low, high = (tuple(None if np.isnan(v) else float(v) for v in c) for c in curves)
        return Alone(mean, low, high, draws, HOW)

    def _searched(self, initial: int, trials: int, draws: int) -> FloatArray:
        """What each simulated search saw, (B, earlier + trials), as the objective's values."""
        space, rounds, began = self.study.space, trials - initial, self.earlier + initial
        method = replace(GP, initial=initial)
        study = FederatedStudy(space, method, agents=draws, rounds=max(rounds, 1))
        size = (draws, began + rounds)
        shape = size if space.finite else (*size, space.dims)
        where = np.zeros(shape, dtype=np.int64 if space.finite else np.float64)
        past = Trials(where, np.full(size, np.nan), earlier=self.earlier)
        who, random = slice(0, draws), Draws(seed=_seed(self.study), run=0)
        dealer, shared = Dealer(random, draws).to(who), method.shared(study)
        batch = Batch(study, who, Surrogate(refit=1), dealer, shared, past)
        past.where[:, :began] = batch.domain.encoded(self.points[None, :began])
        past.raw[:, :began] = self.raw[:began]
        past.count, past.failed = began, bool(np.isnan(self.raw[:began]).any())
        draw = _DrawnFunctions(self, draws, random.stream("functions"))
        for t in range(1, rounds + 1):
            chosen = policy.next_query(batch, t)
            points = np.asarray(batch.domain.decoded(chosen[:, None]))[:, 0]
            past.where[:, past.count] = chosen
            past.raw[:, past.count] = self._unwarped(draw(points))
            past.count += 1
        return np.asarray(past.raw)

    def _unwarped(self, y: FloatArray) -> FloatArray:
        """The model's values as the objective's: the warp keeps the order, and is linear above.

        Between the site's own values by interpolation, which is exact where the warp is linear.
        """
        raw = np.sort(self.raw[np.isfinite(self.raw)])
        mine, first = np.unique(np.sort(self.y), return_index=True)
        raw = raw[first]
        slope = (raw[-1] - raw[len(raw) // 2 - 1]) / (mine[-1] - mine[len(mine) // 2 - 1])
        return np.where(y > mine[-1], raw[-1] + slope * (y - mine[-1]), np.interp(y, mine, raw))


class _DrawnFunctions:
    """B functions drawn from a model's posterior, each with a bound; met one query at a time."""

    def __init__(self, model: OwnModel, draws: int, random: np.random.Generator) -> None:
        self._random = random
        self._kernel = _kernels(model, draws, random)
        self._bound = _bounds(model.y, draws, random)
        self._noise = np.asarray(self._kernel.noise)
        self._points = np.repeat(model.known[None], draws, axis=0)
        self._values = np.repeat(model.y[None], draws, axis=0)
        self._diagonal = np.repeat(self._noise[:, None], len(model.y), axis=1)

    def __call__(self, x: FloatArray) -> FloatArray:
        """What an observation at x (B, D) shows of each function, (B,)."""
        near = self._near(x[:, None], self._points)[:, 0]
        matrix = self._near(self._points, self._points)
        matrix += self._diagonal[:, None] * np.eye(matrix.shape[-1])
        weights = np.linalg.solve(matrix, near[..., None])[..., 0]
        mean = np.sum(weights * self._values, axis=1)
        left = self._kernel.variance - np.sum(weights * near, axis=1)
        z, noise = self._random.standard_normal((2, len(x)))
        f = np.minimum(mean + np.sqrt(np.maximum(left, 0.0)) * z, self._bound)
        self._points = np.concatenate([self._points, x[:, None]], axis=1)
        self._values = np.concatenate([self._values, f[:, None]], axis=1)
        self._diagonal = np.pad(self._diagonal, ((0, 0), (0, 1)), constant_values=_JITTER)
        return np.asarray(np.minimum(f + np.sqrt(self._noise) * noise, self._bound))

    def _near(self, a: FloatArray, b: FloatArray) -> FloatArray:
        rates: Any = self._kernel.rates
        apart = (a * rates)[:, :, None] - (b * rates)[:, None]
        near, _ = bumps(np.sum(apart**2, axis=-1))
        return np.asarray(self._kernel.variance[:, None, None] * near)


def _kernels(model: OwnModel, draws: int, random: np.random.Generator) -> Matern:
    """Kernels that the values allow, one for each draw."""
    shape = (STEPS, draws, model.study.coordinates.parameters + 2)
    low, high = map(math.log, STRIDES)
    strides = np.exp(random.uniform(low, high, size=(*shape[:2], 1)))
    some = random.random(shape) < 0.5  # a move in all numbers at once is seldom taken
    moves = strides * some * random.standard_normal(shape)
    return walked(model.kernel, model.known[None], model.y[None], moves, random.random(shape[:2]))


def _bounds(y: FloatArray, draws: int, random: np.random.Generator) -> FloatArray:
    """How good a value can be on each draw, (B,)."""
    best, *next_best = np.sort(y)[::-1][: 1 + max(2, len(y) // 4)]
    return np.asarray(best + np.mean(best - next_best) * random.exponential(size=draws))


def _seed(study: FederatedStudy) -> int:
    """The same result each time it is asked for; nothing drawn here leaves the site."""
    return int(study.fingerprint[:12], 16)
