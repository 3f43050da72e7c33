"""What an agent sends: one vector over the shared features, from its own history.

A message is a function of a batch and a round that gives each agent's vector, (n, M):
``@MESSAGES.register("name")``.

Symbols: n agents of the batch, t trials, M features; φ features at the trials, (n, t, M), zero
where a trial failed; y values; λ noise variance of the shared features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sottovoce.arrays import Array, array_namespace
from sottovoce.federation import draws
from sottovoce.federation.parts.registry import Registry
from sottovoce.gp import posterior
from sottovoce.gp.history import known_rows, standardised
from sottovoce.gp.shared import RESIDUAL_GAIN
from sottovoce.gp.warp import warped

if TYPE_CHECKING:
    from sottovoce.federation.batch import Batch

MessagePart = Callable[["Batch", int], Array]
MESSAGES = Registry[MessagePart]("message")


@MESSAGES.register("posterior-draw")
def posterior_draw(batch: Batch, round_number: int) -> Array:
    """ω ~ N(ν, λΣ⁻¹), a draw of the posterior over the weights of the features (the paper's)."""
    method, values = batch.study.method, batch.history().values
    shapes = (method.features,), (batch.trials.count,)
    prior, noise = batch.draw(
        draws.MESSAGE,
        round_number,
        lambda random, n: tuple(random.standard_normal((n, *shape)) for shape in shapes),
    )
    rows = batch.domain.features()
    root = batch.domain.feature_root(rows)
    return posterior.draw(rows, values, method.regularisation, prior, noise, root=root)


@MESSAGES.register("posterior-mean")
def posterior_mean(batch: Batch, round_number: int) -> Array:
    """ν, the mean of that posterior."""
    values, lam = batch.history().values, batch.study.method.regularisation
    return posterior.mean(batch.domain.features(), values, lam)


@MESSAGES.register("residual")
def residual(batch: Batch, round_number: int) -> Array:
    """Φᵀy over the initial points; later, what the values tell beyond what is shared by then.

    For the pooled shared model (`gp.shared`), over a public design: values from before the study,
    which are from elsewhere, are left out.
    """
    method, since = batch.study.method, batch.trials.earlier
    rows, raw = batch.domain.features()[:, since:], batch.raw()[:, since:]
    if round_number == 0:
        return feature_sums(rows[:, : method.initial], raw[:, : method.initial])
    known = batch.xp.matmul(rows, batch.shared.mean_function().weights)
    return residual_mean(rows, raw, known, method.initial, method.regularisation)


@MESSAGES.register("effects")
def effects(batch: Batch, round_number: int) -> Array:
    """What an agent's values say of the effects that all share, beyond what is known by then.

    For a consensus (`gp.consensus`). A failed trial counts as the worst that did not fail: so that
    all learn where not to go.
    """
    study, raw = batch.study, with_failures(batch.raw())
    speech = study.consensus.speech(batch.shared.state(), batch.trials.count)
    mask = batch.xp.isfinite(raw)
    return speech(study.effects(batch.domain.points()), warped(raw, mask), mask)


def with_failures(raw: Array) -> Array:
    """Each agent's values (B, t), the least in place of NaN; who has none keeps NaN."""
    xp = array_namespace(raw)
    known = xp.isfinite(raw)
    least = xp.min(xp.where(known, raw, xp.inf), axis=-1, keepdims=True)
    return xp.where(known | ~xp.isfinite(least), raw, least)


def feature_sums(rows: Array, raw: Array) -> Array:
    """Φᵀy, (B, M): rows (B, t, M) are φ at the initial points, y their values standardised.

    raw (B, t) values, NaN where a trial failed.
    """
    xp = array_namespace(rows)
    mask = xp.isfinite(raw)
    y = standardised(raw, mask)
    return xp.matmul(xp.matrix_transpose(known_rows(rows, mask)), y[..., None])[..., 0]


def residual_mean(rows: Array, raw: Array, shared: Array, initial: int, lam: float) -> Array:
    """The posterior mean of what is missing in the shared function, (B, M), times the gain.

    An agent takes its values, in the units of its first `initial`, for those of the shared
    function plus φ(x)ᵀδ with δ ~ N(0, I), a level ~ N(0, 1), and noise of variance λ; this is the
    mean of δ, larger by the gain, as the clip is that of the first sums. rows (B, t, M) are φ at
    all its points, raw (B, t) as in `feature_sums`, shared (B, t) the shared function there.
    """
    xp = array_namespace(rows)
    mask = xp.isfinite(raw)
    y = standardised(raw, mask, initial)
    level = xp.ones_like(y)[..., None]
    known = known_rows(xp.concat([rows, level], axis=-1), mask)
    left = xp.where(mask, y - shared, xp.zeros_like(y))
    return RESIDUAL_GAIN * posterior.mean(known, left, lam)[..., :-1]
