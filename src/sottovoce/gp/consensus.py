"""What the functions of many agents have in common, learnt from noised sums of one vector each.

Agent n's function, with mean 0 and variance 1, is taken for s φ(x)ᵀω + a level + a part of its
own, of variance λ. All start from ω ~ N(m, VP), P the identity at first; m = 0 and V = τ²I, or what
is usual (`gp.usual`). At each release everybody
knows N(μ, C), and agent n, with residuals r_n = y_n − Φ_n μ at its trials, says

    m_n = A_n r_n / ρ,    A_n = W C Φ_nᵀ (Φ_n C Φ_nᵀ + 11ᵀ + λI)⁻¹,

the posterior mean of ω − μ, weighed by W, cut to the length of the clip. The sum that all hear is
taken for

    b = H(ω − μ)/ρ + own parts + e,    e ~ N(0, σ²I) the noise of the release,

with H the mean of A_n Φ_n and own parts of covariance λ/(ρ²N) times the mean of A_n A_nᵀ; both over
a public design with as many points, the later ones where by then the best is expected, so that
everything but the m_n is public, and what follows from b is arithmetic that costs no privacy: a
posterior over ω from all releases so far.

How much is common at all, and of what kind, the releases say too. P is diagonal: for each feature
a product of factors p_g, for what it is (its traits): of this parameter, a pair, a wave of that
order. log p_g ~ N(0, 1), and those are taken that have the highest posterior density. Where agents
have nothing in common P falls, and what all believe with it; so it does for what has no effect.

W spends the length of a vector on what matters (`gp.promise`): at first the whole space, then more
and more where the best may lie. ρ is the length that messages are expected to have; those that
come louder by a factor are cut.

Symbols: N agents, n0 initial points, M features, G traits, k releases; T = H/ρ of a release, R the
covariance of its own parts and noise; J = Σ TᵀR⁻¹T over the releases, η = Σ TᵀR⁻¹(b + Tμ), μ as it
was before each. What is known is N(μ, C) with C⁻¹ = (VP)⁻¹ + J and μ = m + C(η − Jm).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from array_api_compat import device
from numpy.typing import NDArray

from sottovoce.arrays import Array, array_namespace
from sottovoce.gp.effects import Effects
from sottovoce.gp.promise import Promise, weighing
from sottovoce.gp.usual import Usual
from sottovoce.optim.bfgs import ascend

Matrix = NDArray[np.float64]
LOUD = 2.0  # most messages are cut to the clip: direction is what is told
_LEVEL = 1.0  # variance of the level of an agent's residuals
_AMPLITUDE = 0.1  # variance of s
_DOUBT = 0.5
_MISREAD = 0.03  # of a message's variance: what no number of agents averages away
_SCALE = 1.0  # standard deviation of log p_g
_WIDEST = 6.0  # its bound
_STEPS, _FINE = 60, 1e-6  # of the climb to p: evaluations, tolerance


@dataclass(frozen=True)
class State:
    """What all know of ω: N(mean (M,), covariance (M, M)), and from what.

    information (M, M) is J, evidence (M,) is η; both 0 before the first release. chances (S,): of
    each public point, to be among the best; None: nothing was heard.
    """

    mean: Matrix
    covariance: Matrix
    information: Matrix
    evidence: Matrix
    chances: Matrix | None = None


@dataclass(frozen=True)
class Speech:
    """How agents put their residuals into a vector: public, and the same for all.

    covariance (M, M) is C; weight (M, M) is W; scale is LOUD/ρ.
    """

    mean: Matrix
    covariance: Matrix
    weight: Matrix
    scale: float
    regularisation: float

    def __call__(self, rows: Array, y: Array, mask: Array) -> Array:
        """m_n before the clip: rows φ (B, t, M), values y and mask (B, t) -> (B, M)."""
        xp = array_namespace(rows)
        mean, covariance, weight = (
            xp.asarray(a, dtype=rows.dtype, device=device(rows))
            for a in (self.mean, self.covariance, self.weight)
        )
        known = xp.astype(mask, rows.dtype)
        rows = rows * known[..., None]
        residual = known * (y - xp.matmul(rows, mean))
        spread = xp.matmul(rows, covariance)
        gram = xp.matmul(spread, rows.mT) + _LEVEL * known[:, :, None] * known[:, None, :]
        eye = xp.eye(y.shape[-1], dtype=rows.dtype, device=device(rows))
        solved = xp.linalg.solve(gram + self.regularisation * eye, residual[..., None])
        known_now = xp.matmul(spread.mT, solved)[..., 0]
        return self.scale * xp.matmul(known_now, weight)  # W is symmetric


@dataclass(frozen=True, eq=False)
class Consensus:
    """The model: public, and all that the releases are read with.

    designs (some, n, D): points of some agents, and where they might go on; initial: how many of
    each are not chosen by what is known; promise: public points, for where the best may lie;
    before: what is known before the first release; regularisation: λ; clip: the length that
    vectors are cut to.
    """

    designs: Matrix
    initial: int
    promise: Promise
    agents: int
    before: Usual
    regularisation: float
    clip: float

    @property
    def features(self) -> Effects:
        """What ω weighs."""
        return self.promise.features

    @cached_property
    def _rows(self) -> Matrix:
        return np.asarray(self.features(self.designs))

    @property
    def prior(self) -> State:
        """Before anything is heard."""
        return known_before(self.before)

    def speech(self, state: State, points: int) -> Speech:
        """How agents with so many trials say what is missing."""
        gains, own = self._moments(state, points)
        said = gains @ state.covariance @ gains.T + own
        weight = weighing(self.promise.relevance(state.chances), said)
        length = math.sqrt(float(np.sum(weight * (weight @ said))))
        scale = LOUD * self.clip / length
        return Speech(state.mean, state.covariance, weight, scale, self.regularisation)

    def heard(self, state: State, points: int, release: Matrix, noise: float) -> State:
        """What all know after a release (M,) with noise of standard deviation σ."""
        told = self._told(state, points, release, noise)
        now = self.known(*told, self._borne_out(*told))
        return replace(now, chances=self.promise.chances(now.mean, now.covariance))

    def _told(
        self, state: State, points: int, release: Matrix, noise: float
    ) -> tuple[Matrix, Matrix]:
        """J and η with this release."""
        gains, own = self._moments(state, points)
        speech = self.speech(state, points)
        told = speech.weight * speech.scale / LOUD  # what is left of a message after the clip
        gains, own = told @ gains, told @ own @ told
        misread = _MISREAD * (gains @ state.covariance @ gains.T + own)
        unsure = own / self.agents + misread + (noise**2 + 1e-12) * np.eye(len(own))
        root = np.linalg.cholesky(unsure)
        white = np.linalg.solve(root, gains)
        news = np.linalg.solve(root, release + gains @ state.mean)
        return state.information + white.T @ white, state.evidence + white.T @ news

    def _borne_out(self, information: Matrix, evidence: Matrix) -> Matrix:
        """VP, (M,): the prior variances of highest density, given all releases."""
        traits, expected = self.features.traits, self.before.variance
        beyond = evidence - information @ self.before.mean

        def density(log_p: Matrix) -> tuple[Matrix, Matrix]:
            """Up to a constant, (1,), with its gradient, at log p (1, G)."""
            variance = expected * np.exp(log_p[0] @ traits)
            mean, covariance, log_volume = _posterior(variance, information, beyond)
            value = 0.5 * (beyond @ mean - log_volume - float(np.sum(log_p**2)) / _SCALE**2)
            slope = 0.5 * ((mean**2 + np.diag(covariance)) / variance - 1.0)
            return np.asarray([value]), (traits @ slope - log_p / _SCALE**2)

        start = np.zeros((1, len(traits)))
        found, _ = ascend(density, start, start - _WIDEST, start + _WIDEST, _STEPS, _FINE)
        return np.asarray(expected * np.exp(found[0] @ traits))

    def known(self, information: Matrix, evidence: Matrix, variance: Matrix) -> State:
        """What J and η say of weights that have these variances (M,) before anything is heard."""
        beyond = evidence - information @ self.before.mean
        mean, covariance, _ = _posterior(variance, information, beyond)
        return State(self.before.mean + mean, covariance, information, evidence)

    def revealed(self, points: Sequence[int], noise: float) -> float:
        """The share of the common function's variance that releases at noise σ are to reveal.

        As long as all of P is 1. points: how many trials agents have at each release.
        """
        state = self.prior
        for count in points:
            told = self._told(state, count, np.zeros_like(state.mean), noise)
            state = self.known(*told, self.before.variance)
        left = float(np.sum(self.features.variance * np.diag(state.covariance)))
        return 1.0 - left / float(np.sum(self.features.variance * self.before.variance))

    def signal(self, points: int, noise: float) -> float:
        """The norm of the first sum that the prior leads to expect, over that of its noise."""
        if noise <= 0:
            return math.inf
        speech, (gains, _) = self.speech(self.prior, points), self._moments(self.prior, points)
        told = speech.weight * speech.scale / LOUD
        expected = math.sqrt(float(np.sum((told @ gains) ** 2 * self.before.variance)))
        return expected / (noise * math.sqrt(len(gains)))

    def _moments(self, state: State, points: int) -> tuple[Matrix, Matrix]:
        """H, and the covariance of an agent's own part, (M, M), both without W."""
        points = min(max(points, 1), self.designs.shape[1])
        rows = self._rows[:, :points]
        if state.chances is not None and points > self.initial:
            there = self.promise.sets(state.chances, len(rows), points - self.initial)
            rows = np.concatenate([rows[:, : self.initial], there], axis=1)
        spread = rows @ state.covariance
        gram = spread @ np.swapaxes(rows, -1, -2) + _LEVEL
        gram = gram + self.regularisation * np.eye(rows.shape[1])
        A = np.swapaxes(np.linalg.solve(gram, spread), -1, -2)
        own = np.mean(A @ np.swapaxes(A, -1, -2), axis=0)
        return np.mean(A @ rows, axis=0), self.regularisation * own


def known_before(usual: Usual) -> State:
    """What is known before anything is heard."""
    count = len(usual.mean)
    none = np.zeros(count)
    return State(usual.mean, np.diag(usual.variance), np.zeros((count, count)), none)


def for_agents(state: State) -> tuple[Matrix, Matrix]:
    """Mean (M,) and root (M, M) of the covariance of s ω, as an agent takes its function for.

    s has mean 1 and variance _AMPLITUDE; of what is not known of ω a share is taken in: with
    all of it too little would be left for the own part.
    """
    mean, C = state.mean, state.covariance
    C = _AMPLITUDE * np.outer(mean, mean) + _DOUBT * (1.0 + _AMPLITUDE) * C
    sizes, vectors = np.linalg.eigh(C)
    return mean, vectors * np.sqrt(np.maximum(sizes, 0.0))


def _posterior(
    variance: Matrix, information: Matrix, evidence: Matrix
) -> tuple[Matrix, Matrix, float]:
    """μ and C of ω ~ N(0, diag(variance)) given J and η, and log |I + J diag(variance)|."""
    root = np.sqrt(variance)
    lower = np.linalg.cholesky(np.eye(len(root)) + root[:, None] * information * root)
    half = np.linalg.solve(lower, np.diag(root))
    return half.T @ (half @ evidence), half.T @ half, 2.0 * float(np.sum(np.log(np.diag(lower))))
