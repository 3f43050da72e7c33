"""Expected improvement, by its logarithm, where trials may fail and others still run.

log EI(x) = log σ(x) + log h(u), u = (μ(x) − best)/σ(x), h(u) = φ(u) + u Φ(u), best the largest
posterior mean at a known trial. The logarithm keeps its gradient where EI itself underflows
(Ament et al., "Unexpected improvements to expected improvement", NeurIPS 2023).

Where values are noisy, one more trial beside the best says little, though EI stays above zero: so
EI is multiplied by 1 − √λ/√(σ(x)² + λ), small where noise would drown what is left to learn
("augmented EI", Huang et al. 2006). Without it a search ends at one point, tried again and again.

Where trials have failed, EI is multiplied by the chance that one succeeds: of all finished trials
the share that did, each weighed by how near it is.

Symbols: B batch, t trials, D coordinates, S points; λ variance of the noise; M(u) = Φ(−u)/φ(u),
Mills' ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from array_api_compat import is_torch_array

from sottovoce.arrays import Array, array_namespace
from sottovoce.gp.features import in_blocks
from sottovoce.gp.predictive import Predictive, Pull

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
_FAR = -1e5  # below, h(u) = φ(u)/u² to rounding
_DOUBT = 0.5  # so many trials' worth of belief in the share that succeeds everywhere


@dataclass(frozen=True)
class LogImprovement:
    """log EI of each batch entry, as a function of x; `failed` (B, t) where trials did, if any."""

    model: Predictive
    failed: Array | None = None
    incumbent: Array = field(init=False, repr=False, compare=False)  # (B, D), where best is
    _best: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        xp, model = array_namespace(self.model.points), self.model
        there = xp.where(model.known, model.moments(model.points)[0], -xp.inf)
        first = xp.argmax(there, axis=-1)[:, None]
        incumbent = xp.take_along_axis(model.points, first[..., None], axis=1)[:, 0]
        best = xp.take_along_axis(there, first, axis=1)
        object.__setattr__(self, "incumbent", incumbent)
        # before the first value is known, EI over the prior's mean
        object.__setattr__(self, "_best", xp.where(xp.isfinite(best), best, 0.0))

    def values(self, x: Array) -> Array:
        """(B, S, D) -> (B, S)."""
        return in_blocks(self._part, x)

    def _part(self, entries: slice) -> Callable[[Array], Array]:
        model, best = self.model.part(entries), self._best[entries]
        failed = None if self.failed is None else self.failed[entries]

        def values(x: Array) -> Array:
            xp = array_namespace(x)
            mean, deviation = model.moments(x)
            value = xp.log(deviation) + log_h((mean - best) / deviation)[0]
            value = value + log_told(deviation, model.kernel.noise)[0]
            return value if failed is None else value + xp.log(_success(model, failed, x)[0])

        return values

    def values_and_gradients(self, x: Array) -> tuple[Array, Array]:
        """(B, S, D) -> (B, S) and (B, S, D)."""
        xp = array_namespace(x)
        mean, deviation, pull = self.model.moments_and_pull(x)
        log, by_mean, by_deviation = log_h((mean - self._best) / deviation)
        told, by_told = log_told(deviation, self.model.kernel.noise)
        value = xp.log(deviation) + log + told
        # EI = σ h(u): ∂EI/∂μ = Φ, ∂EI/∂σ = φ
        slope = pull.of_moments(by_mean / deviation, by_deviation / deviation + by_told)
        if self.failed is None:
            return value, slope
        chance, by_near = _success(self.model, self.failed, x, pull)
        return value + xp.log(chance), slope + pull.of_own(by_near / chance[..., None])


def log_h(u: Array) -> tuple[Array, Array, Array]:
    """log h(u), Φ(u)/h(u) and φ(u)/h(u)."""
    xp = array_namespace(u)
    log_density = -0.5 * u * u - _LOG_ROOT
    above, below = xp.maximum(u, -1.0), xp.minimum(u, -1.0)
    density = xp.exp(-0.5 * above * above - _LOG_ROOT)
    cumulative = 1.0 - density * _mills(above)
    h = density + above * cumulative
    mills = _mills(-below)
    far = below < _FAR
    left = xp.where(far, 1.0 / (below * below), 1.0 + below * xp.where(far, 0.0, mills))
    near = u > -1.0
    return (
        xp.where(near, xp.log(h), log_density + xp.log(left)),
        xp.where(near, cumulative / h, mills / left),
        xp.where(near, density / h, 1.0 / left),
    )


def log_told(deviation: Array, noise: Array) -> tuple[Array, Array]:
    """log(1 − √λ/√(σ² + λ)) and its derivative by σ: σ (B, S), λ (B,)."""
    xp = array_namespace(deviation)
    root = xp.sqrt(noise)[:, None]
    whole = xp.sqrt(deviation * deviation + noise[:, None])
    # 1 − r/w = σ²/(w (w + r)), with no digits lost where σ is small
    log = 2.0 * xp.log(deviation) - xp.log(whole) - xp.log(whole + root)
    return log, root * (whole + root) / (deviation * whole * whole)


def _mills(u: Array) -> Array:
    """M(u), by the scaled complementary error function."""
    x = u / math.sqrt(2.0)
    if is_torch_array(x):
        import torch

        return math.sqrt(math.pi / 2) * torch.special.erfcx(x)
    from scipy.special import erfcx

    return math.sqrt(math.pi / 2) * erfcx(x)


def _success(
    model: Predictive, failed: Array, x: Array, pull: Pull | None = None
) -> tuple[Array, Array]:
    """The chance that a trial at x succeeds, (B, S), and its derivative by `pull.at.own`."""
    xp = array_namespace(x)
    if pull is None:
        pull = model.moments_and_pull(x)[2]
    known, lost = (xp.astype(mask, x.dtype)[:, None, :] for mask in (model.known, failed))
    done, worked = (xp.sum(each, axis=-1) for each in (known + lost, known))
    share = xp.where(worked < done, (worked + _DOUBT) / (done + 2 * _DOUBT), 1.0)
    scale = model.kernel.variance[:, None, None]
    well = xp.sum(pull.at.own * known / scale, axis=-1)
    all_ = xp.sum(pull.at.own * (known + lost) / scale, axis=-1)
    chance = (_DOUBT * share + well) / (_DOUBT + all_)
    by_near = (known - chance[..., None] * (known + lost)) / scale / (_DOUBT + all_)[..., None]
    return chance, by_near
