"""Settings for a federation, from what is public alone: N, D, T, ε and δ, never anybody's data.

The rules below were chosen on functions of a GP and of the suite's DESIGN split, and are the same
for every problem.
Symbols: N agents, D dimensions, T rounds, M features, ℓ length scale, z noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from sottovoce.errors import InvalidInput, check
from sottovoce.federation.methods import SOTTOVOCE, Method
from sottovoce.federation.settings import with_settings
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.kernel import Kernel
from sottovoce.privacy.budget import MOST_NOISE, noise_for
from sottovoce.privacy.events import SharedGaussian, SubsampledGaussian
from sottovoce.privacy.release import Mechanism
from sottovoce.secure_sum.grid import grid_for
from sottovoce.secure_sum.terms import SecureSum
from sottovoce.space import Space

MOST_FEATURES = 256
MOST_ROUNDS = 1_000_000
DELTA = 1e-5


def plan_study(
    space: Space,
    *,
    agents: int,
    rounds: int,
    epsilon: float,
    delta: float = DELTA,
    method: Method = SOTTOVOCE,
    feature_seed: int = 0,
    changes: Mapping[str, Any] | None = None,
    noise: float | None = None,
    sums: SecureSum | None = None,
) -> FederatedStudy:
    """The study that this many agents should run over so many rounds, within ε at δ.

    Features and length scale follow from the space, the noise from ε: the least with which all
    releases stay within it.

    Args:
        space: what is searched.
        agents: N, how many parties there are; those that are absent count as zero.
        rounds: T, trials of each agent after its initial ones.
        epsilon: the most that may be spent, for zero-out adjacency.
        delta: δ of the guarantee.
        method: how; it must protect its sums.
        feature_seed: public; all parties must have the same.
        changes: settings of the method to change first, by name (`settings.SETTINGS`).
        noise: z, if an earlier plan of the same study found it, which takes seconds.
        sums: how sums are taken that nobody can open alone; None: a server is trusted with them.

    Example:
        >>> space = Space([Float("rate", 1e-5, 1e-1, log=True)])
        >>> study = plan_study(space, agents=30, rounds=15, epsilon=4.0)
        >>> study.method.name, study.agents
        ('sottovoce', 30)
    """
    check_epsilon(method, epsilon)
    fitted = with_settings(sized(method, space.dims), changes or {})
    _ = FederatedStudy(
        space, fitted, agents, rounds, feature_seed, sums
    )  # before a noise is looked for
    if noise is None:
        noised = within(fitted, agents, rounds, epsilon, delta, sums)
    else:
        noised = with_settings(fitted, {"noise": noise})
    return FederatedStudy(space, noised, agents, rounds, feature_seed, sums)


def sized(method: Method, dims: int, kernel: Kernel | None = None) -> Method:
    """The method with the sizes that D dimensions, or a kernel that is known, call for.

    The initial trials of a search by expected improvement, M and ℓ of a pooled model; else it is
    as it is: the paper's sizes are the paper's.
    """
    check(dims >= 1, "dims must be at least 1", dims=dims)
    if method.acquisition == "log-ei":
        return replace(method, initial=few_trials(dims))
    if method.shared_model != "pooled":
        return method
    lengthscale = 0.25 * math.sqrt(dims) if kernel is None else float(kernel.lengthscale)
    # the power itself may be too large for a float
    many = -dims * math.log(lengthscale) > math.log(MOST_FEATURES)
    cells = MOST_FEATURES if many else math.ceil(lengthscale**-dims)
    features = min(max(16 * dims, 2 * cells), MOST_FEATURES)
    return replace(method, features=features, lengthscale=lengthscale)


def few_trials(dims: int) -> int:
    """N_init: each costs a training, and a model with priors needs few."""
    return min(4 + dims // 4, 8)


def check_epsilon(method: Method, epsilon: float) -> None:
    """Refuse an ε for a method without noise, or one that cannot be kept."""
    if method.mechanism is None:
        raise InvalidInput(f"method {method.name!r} protects nothing, so it takes no epsilon")
    check(0 < epsilon < math.inf, "epsilon must be finite and above 0", epsilon=epsilon)


def within(
    method: Method,
    agents: int,
    rounds: int,
    epsilon: float,
    delta: float,
    sums: SecureSum | None = None,
) -> Method:
    """The method with the least noise that keeps all its releases within ε, by pld or rdp."""
    check_epsilon(method, epsilon)
    check(agents >= 1, "agents must be at least 1", agents=agents)
    check(rounds >= 1, "rounds must be at least 1", rounds=rounds)
    check(rounds <= MOST_ROUNDS, f"rounds must be at most {MOST_ROUNDS}", rounds=rounds)
    unit = replace(cast(Mechanism, method.mechanism), noise=1.0)
    event = cast(SubsampledGaussian, unit.event(agents, "plan"))
    planned: SubsampledGaussian | SharedGaussian = event
    if sums is not None:  # with the coarsest grid that any noise may need
        numbers = method.regions * method.features
        grid = grid_for(agents, sums.unreliable, MOST_NOISE, numbers)
        planned = replace(grid.event("plan"), noise=1.0)
    noise = _least_noise(planned, method.releases.count(rounds), epsilon, delta)
    return replace(method, mechanism=replace(unit, noise=noise))


@lru_cache(maxsize=256)
def _least_noise(
    event: SubsampledGaussian | SharedGaussian, releases: int, epsilon: float, delta: float
) -> float:
    fixed = isinstance(event, SubsampledGaussian) and event.sampling == "fixed"
    accountant = "rdp" if fixed else "pld"
    return noise_for(epsilon, delta, event, releases, accountant)
