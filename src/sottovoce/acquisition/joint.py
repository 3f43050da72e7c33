"""An agent's objective as a multiple of a shared function plus a part of its own, in one posterior.

The own part is a draw of its GP, and there is a level. How far it trusts the shared function it
learns from its own values, which go nowhere. So a shared function that says nothing of its
objective does it little harm.

Symbols: B batch (agents), t observations, D dimensions, M shared features, K points of a finite
space, r rank of the exact features.
"""

from __future__ import annotations

from array_api_compat import device

from sottovoce.acquisition.maximise import JointDraw, RegionalDraw, over_boxes, over_points
from sottovoce.acquisition.thompson import PathDraws
from sottovoce.arrays import Array, array_namespace
from sottovoce.gp import posterior
from sottovoce.gp.fit import fit_joint
from sottovoce.gp.history import History, deviation_of, masked_rows, standardised, variance_of
from sottovoce.gp.kernel import Kernel
from sottovoce.gp.shared import SharedFunction
from sottovoce.space import Regions


def fitted_jointly(
    points: Array,
    raw: Array,
    shared: SharedFunction,
    start: Kernel | None,
    known: Kernel | None,
) -> Kernel:
    """Each agent's kernel and trust jointly with the shared function, for its values standardised.

    points (B, t, D); raw (B, t) values, NaN where a trial failed; known: the kernel of the raw
    values, if the agents know it.
    """
    xp = array_namespace(points)
    mask = xp.isfinite(raw)
    values = standardised(raw, mask)
    if known is not None:
        unit = deviation_of(raw, mask) ** 2
        ones = xp.ones_like(unit)
        sizes = (known.variance / unit, known.noise / unit)
        known = Kernel(known.lengthscale * ones, *sizes)
    return fit_joint(points, values, mask, shared.at(points), start, known)


def shared_fraction(kernel: Kernel, points: Array, raw: Array, shared: SharedFunction) -> Array:
    """How much of its function each agent takes to be shared, (B,), from 0 to 1.

    That is s²v / (s²v + σ²), v the variance of the shared function at the agent's points, with
    the kernel as it was fitted. points and raw as in `fitted_jointly`.
    """
    xp = array_namespace(points)
    mask = xp.isfinite(raw)
    explained = kernel.trust * variance_of(shared.at(points), mask)
    return explained / (explained + kernel.variance)


def joint_in_box(
    kernel: Kernel,
    history: History,
    draws: PathDraws,
    shared: SharedFunction,
    normals: Array,
    scale: float,
) -> Array:
    """The maximiser, (B, D), of a draw of each agent's model jointly with the shared function.

    The kernel has a trust; normals (B, 2) as in `posterior.SharedTerm`.
    """
    xp = array_namespace(history.points)
    term = posterior.SharedTerm(shared.at(history.points), normals)
    path = (draws.frequencies, draws.amplitudes, draws.noise)
    own, factor = posterior.pathwise_joint(
        kernel, history.points, history.values, history.mask, term, path, scale
    )
    everywhere = Regions((1,) * history.points.shape[-1])
    weights = xp.asarray(shared.weights, dtype=factor.dtype, device=device(factor))[None, :]
    function = RegionalDraw(shared.features, everywhere, weights)
    return over_boxes(JointDraw(own, function, factor), draws.candidates, everywhere)[0]


def joint_in_list(
    table: Array,
    at_points: Array,
    kernel: Kernel,
    history: History,
    draws: tuple[Array, ...],
    scale: float,
) -> Array:
    """Index of the best point of a finite space under a draw jointly with the shared function.

    table (K, r) are exact features of a kernel of variance 1, at_points (K,) the shared function at
    the points; draws: prior (B, r), noise (B, t), normals (B, 2).
    """
    xp = array_namespace(table)
    prior, noise, normals = draws
    own = xp.sqrt(kernel.variance)[:, None, None]
    factor = xp.sqrt(kernel.trust)[:, None, None]
    rows = xp.concat(
        [
            own * masked_rows(table, history),
            factor * masked_rows(at_points[:, None], history),
            masked_rows(xp.ones_like(at_points)[:, None], history),
        ],
        axis=-1,
    )
    start = xp.concat([prior, normals], axis=-1)
    weights = posterior.draw(rows, history.values, kernel.noise, start, noise, scale)
    values = own[:, 0] * xp.matmul(weights[:, :-2], table.T)
    return over_points(values + factor[:, 0] * weights[:, -2:-1] * at_points)
