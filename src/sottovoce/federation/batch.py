"""A batch of agents of one study: what they have tried, how they model it, what they share.

`Agent` is a batch of one, on NumPy; the simulator has batches of many, on NumPy or a device. What
they do is in `policy`, and is the same.

Symbols: n agents of the batch, L trials there is room for, t trials so far, D dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from sottovoce.acquisition.joint import fitted_jointly
from sottovoce.acquisition.thompson import CANDIDATES
from sottovoce.arrays import Array
from sottovoce.device import NUMPY, Device
from sottovoce.federation.domain import Domain, domain_of
from sottovoce.federation.draws import DrawSource
from sottovoce.federation.parts import SharedModel
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.fit import fit
from sottovoce.gp.history import History, informative, modelled
from sottovoce.gp.kernel import Kernel
from sottovoce.gp.matern import Matern, Shared, fit_map
from sottovoce.gp.posterior import PathwiseDraw, pathwise_mean
from sottovoce.gp.predictive import Predictive, SharedPrior
from sottovoce.gp.warp import warped

REFITTED = 40  # up to so many trials a Matérn kernel is fitted after each, then less often
FITTED = 100  # trials that a Matérn kernel is fitted to
MODELLED = 300  # trials that its predictions rest on: the time of a query is bounded


@dataclass
class Trials:
    """What n agents have tried and seen, with room for more.

    where: (n, L, D) in the cube, or (n, L): rows of the list of a finite space's points.
    raw: (n, L), to be maximised, NaN where a trial failed.
    """

    where: Array
    raw: Array
    count: int = 0
    failed: bool = False  # whether any trial did
    earlier: int = 0  # the first so many are from before the study


@dataclass
class Fitted:
    """A surrogate's kernel, and after how many trials it was fitted."""

    kernel: Kernel | None = None
    trials: int = 0


class Batch:
    """The agents of one slice of a study.

    agents: which; draw: where their random draws come from; shared: what they make of broadcasts.
    """

    def __init__(
        self,
        study: FederatedStudy,
        agents: slice,
        surrogate: Surrogate,
        draw: DrawSource,
        shared: SharedModel,
        trials: Trials,
        device: Device = NUMPY,
    ) -> None:
        self.study, self.agents, self.size = study, agents, agents.stop - agents.start
        self.surrogate, self.draw, self.shared, self.trials = surrogate, draw, shared, trials
        self.device = device
        self.own, self.joint = Fitted(), Fitted()
        self.pending: Array | None = None  # (n, p, D), where trials still run
        self._fitted: tuple[int, SharedPrior | None, Matern, SharedPrior | None] | None = None
        self.domain: Domain = domain_of(self)

    @property
    def xp(self) -> Any:
        """The array library."""
        return self.device.xp

    @property
    def everyone(self) -> Array:
        """The mask (n,) of all."""
        return self.xp.ones(self.size, dtype=self.xp.bool, device=self.device.device)

    def raw(self, count: int | None = None) -> Array:
        """The first `count` values, or all so far, (n, count); NaN where a trial failed."""
        return self.trials.raw[:, : self.trials.count if count is None else count]

    def history(self, standardise: bool | None = None) -> History:
        """All trials so far, as the surrogate models them, or as asked."""
        how = self.surrogate.standardise if standardise is None else standardise
        return self.domain.history(*modelled(self.raw(), how))

    def own_kernel(self) -> Kernel:
        """The surrogate's kernel: the fixed one, or one fitted for each agent, up to date."""
        if self.surrogate.kernel is not None:
            return self.surrogate.kernel
        for count in self._due(self.own):
            values, mask = modelled(self.raw(count), self.surrogate.standardise)
            kernel = fit(self.domain.points(count), values, mask, self.own.kernel)
            self.own = Fitted(kernel, count)
        return cast(Kernel, self.own.kernel)  # asked for only once the initial values are told

    def fitted(self) -> tuple[Matern, SharedPrior | None]:
        """Each agent's kernel, a length scale for each parameter, and what it takes from all.

        Both depend on the trials and what was heard alone, so that nothing of them need be kept.
        """
        xp, count = self.xp, self.trials.count
        count -= count % (1 + count // REFITTED)
        prior = self.shared.prior()
        if self._fitted is None or self._fitted[:2] != (count, prior):
            raw = self.raw(count)
            chosen = informative(raw, FITTED)
            raw = xp.take_along_axis(raw, chosen, axis=1)
            points = xp.take_along_axis(self.domain.points(count), chosen[..., None], axis=1)
            mask, common = xp.isfinite(raw), None
            if prior is not None:
                there = prior.at(points)
                rows = there.rows[..., :-1]  # trust is in the function, whatever its level
                common = Shared(there.mean, xp.matmul(rows, rows.mT))
            y = warped(raw, mask)
            kernel, trust = fit_map(self.study.coordinates, points, y, mask, common)
            trusted = None if prior is None else replace(prior, trust=trust)
            self._fitted = count, prior, kernel, trusted
        return self._fitted[2:]

    def predictive(self) -> tuple[Predictive, Array | None]:
        """What each agent's Matérn model predicts, and the mask (n, s) of failed trials, if any.

        Of a long history it knows the best values and the latest; running trials are among its
        points, with no value.
        """
        xp, raw = self.xp, self.raw()
        chosen = informative(raw, MODELLED)
        raw = xp.take_along_axis(raw, chosen, axis=1)
        points = xp.take_along_axis(self.domain.points(), chosen[..., None], axis=1)
        known = xp.isfinite(raw)
        y, failed = warped(raw, known), ~known
        if self.pending is not None:
            points = xp.concat([points, self.pending], axis=1)
            none = xp.zeros_like(self.pending[..., 0])
            y = xp.concat([y, none], axis=1)
            known, failed = (xp.concat([m, none > 0], axis=1) for m in (known, failed))
        some = bool(xp.any(failed))
        present = xp.ones_like(known) if some or self.pending is not None else None
        kernel, prior = self.fitted()
        model = Predictive(kernel, points, y, known, present, prior)
        return model, failed if some else None

    def posterior_mean(self) -> PathwiseDraw:
        """The mean of each agent's own posterior, in a box or on a list, as a function of x."""
        values, mask = modelled(self.raw(), self.surrogate.standardise)
        return pathwise_mean(self.own_kernel(), self.domain.points(), values, mask)

    def joint_kernel(self) -> Kernel:
        """Each agent's kernel and trust jointly with the shared function, up to date."""
        for count in self._due(self.joint):
            since = count - self.trials.earlier
            shared = self.shared.mean_function(self.study.releases_by(since))
            points, known = self.domain.points(count), self.surrogate.kernel
            kernel = fitted_jointly(points, self.raw(count), shared, self.joint.kernel, known)
            self.joint = Fitted(kernel, count)
        return cast(Kernel, self.joint.kernel)

    def _due(self, fitted: Fitted) -> range:
        """The history lengths at which a kernel is to be fitted, since the last such length.

        They do not depend on when the kernel is needed, so nor does the kernel.
        """
        initial, every = self.study.method.initial + self.trials.earlier, self.surrogate.refit
        first = initial if fitted.trials < initial else fitted.trials + every
        return range(first, self.trials.count + 1, every)

    def shared_draws(self, random: Any, n: int) -> tuple[Array, ...]:
        """For a search by the broadcast: which peer, and candidates unless points are listed."""
        study, drawn = self.study, []
        if not study.method.shared.summed:
            drawn.append(random.integers(study.agents - 1, size=n))
        if not study.space.finite:
            drawn.append(random.random((n, CANDIDATES, study.space.dims)))
        return tuple(drawn)
