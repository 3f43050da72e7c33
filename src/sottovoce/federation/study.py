"""The public constants of one federation. Every party holds the same, and can prove it.

Symbols: N agents, P regions, M features, D dimensions, T rounds.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.errors import InvalidInput, StudyMismatch, UnknownAgent, check
from sottovoce.federation.methods import Method
from sottovoce.federation.schedule import Exploration, ReleaseSchedule, SoloProbability
from sottovoce.federation.weights import Weights
from sottovoce.gp.consensus import Consensus
from sottovoce.gp.effects import Effects, effects
from sottovoce.gp.features import Features, shared_features
from sottovoce.gp.matern import Coordinates
from sottovoce.gp.promise import LABEL as PROMISE
from sottovoce.gp.promise import Promise
from sottovoce.gp.quasirandom import latin_points, quasirandom_points
from sottovoce.gp.shared import PooledModel, SharedPosterior
from sottovoce.gp.usual import Usual, flat_weights, kinds_of, usual_weights
from sottovoce.privacy.release import Mechanism, noise_scale
from sottovoce.secure_sum.grid import Grid, grid_for
from sottovoce.secure_sum.terms import SecureSum
from sottovoce.space import Space
from sottovoce.space.regions import Regions, assigned, equal_boxes

_DESIGN = "sottovoce/design/v1"  # part of what the seed means
_LATIN = "sottovoce/latin/v1"
_FURTHER = "sottovoce/further/v1"
_PUBLIC = 1024  # points, for where the best may lie
_SOME = 100  # agents' designs are enough for what is a mean over all
_PARTS: dict[str, Any] = {  # of a method that are more than a number or a word
    "mechanism": Mechanism,
    "weights": Weights,
    "solo": SoloProbability,
    "exploration": Exploration,
    "releases": ReleaseSchedule,
}


@dataclass(frozen=True)
class FederatedStudy:
    """The public constants of one federation: every party holds the same.

    Args:
        space: what is searched.
        method: how; `plan_study` fits one to a space, a number of agents and an ε.
        agents: N, how many parties there are.
        rounds: T, trials of each agent after its initial ones.
        feature_seed: of the shared features and the public design.
        sums: how sums are taken that nobody can open alone; None: a server is trusted with them.

    Example:
        >>> space = Space([Float("rate", 1e-5, 1e-1, log=True)])
        >>> study = FederatedStudy(space, DP_FTS_DE, agents=20, rounds=5)
        >>> FederatedStudy.from_dict(study.to_dict()).fingerprint == study.fingerprint
        True
    """

    space: Space
    method: Method
    agents: int
    rounds: int
    feature_seed: int = 0
    sums: SecureSum | None = None

    def __post_init__(self) -> None:
        check(isinstance(self.space, Space), "space must be a Space", space=self.space)
        rule = "method must be a Method, such as method_named gives by its name"
        check(isinstance(self.method, Method), rule, method=self.method)
        for name in ("agents", "rounds"):
            count = getattr(self, name)
            whole = isinstance(count, int) and not isinstance(count, bool)
            check(whole and count >= 1, f"{name} must be a whole number above 0", **{name: count})
        check(
            self.method.shared.summed or not self.method.shared.exchanges or self.agents >= 2,
            "learning from another agent needs at least 2 agents",
            agents=self.agents,
        )
        check(
            isinstance(self.feature_seed, int) and self.feature_seed >= 0,
            "feature_seed must be a whole number of at least 0",
            feature_seed=self.feature_seed,
        )
        if self.sums is not None:
            self._check_sums(self.sums)
        _ = self.assignment, self.regions  # P ≤ N, and a space that can be cut, said at once
        if self.method.basis == "effects":
            self._size_effects()

    def _size_effects(self) -> None:
        """Their number follows from the space: the method is told."""
        count, asked = self.effects.count, self.method.features
        rule = (
            "the number of main effects and pairs follows from the space: leave features at 1, or"
        )
        check(asked in (1, count), f"{rule} {count}", features=asked)
        object.__setattr__(self, "method", replace(self.method, features=count))

    def _check_sums(self, sums: SecureSum) -> None:
        mechanism = self.method.mechanism
        if mechanism is None or not self.method.private or self.method.noise_only:
            raise InvalidInput(f"method {self.method.name!r} has no private sum to take in shares")
        check(
            mechanism.rate(self.agents) == 1,
            "a sum in shares has all sites in it: who is sampled must stay secret, and without a "
            "trusted party nobody can draw it in secret; participation must be 1",
            participation=mechanism.participation,
        )
        sums.check(self.agents)

    @cached_property
    def grid(self) -> Grid:
        """The whole numbers of sums that nobody can open alone."""
        if self.sums is None or self.method.mechanism is None:
            raise InvalidInput("a study whose server is trusted has no grid")
        numbers = self.method.regions * self.method.features
        return grid_for(self.agents, self.sums.unreliable, self.method.mechanism.noise, numbers)

    @cached_property
    def regions(self) -> Regions:
        """The P boxes."""
        return equal_boxes(self.method.regions, self.space.dims, self.space.splittable)

    @cached_property
    def assignment(self) -> IntArray:
        """The region each agent explores at first, (N,)."""
        return assigned(self.agents, self.method.regions)

    @cached_property
    def features(self) -> Features:
        """φ, the same for every agent."""
        method, dims = self.method, self.space.dims
        return shared_features(
            self.feature_seed, method.features, dims, method.lengthscale, method.basis
        )

    @cached_property
    def coordinates(self) -> Coordinates:
        """Which parameter each coordinate of the cube belongs to."""
        widths = [p.width for p in self.space.parameters]
        owner = tuple(k for k, width in enumerate(widths) for _ in range(width))
        return Coordinates(owner, tuple(1.0 if widths[k] == 1 else 0.5 for k in owner))

    @cached_property
    def effects(self) -> Effects:
        """The basis of main effects and pairs."""
        return effects(self.coordinates, fine=self.method.shared.consensus)

    @cached_property
    def latin_design(self) -> FloatArray:
        """Each agent's initial points, (N, N_init, D), that lie well by themselves."""
        label = f"{_LATIN}/{self.feature_seed}/{self.agents}/{self.space.dims}".encode()
        points = latin_points(label, self.agents, self.method.initial, self.space.dims)
        return np.asarray(self.space.snap(points))

    @cached_property
    def consensus(self) -> Consensus:
        """How agents say what their functions have in common, and how all read the sums.

        Where they go after their initial points is their own: for the means over all agents,
        points of the same kind stand for it.
        """
        method, last = self.method, self.release_rounds[-1] if self.release_rounds else 0
        initial = self.latin_design[:_SOME]
        label = f"{_FURTHER}/{self.feature_seed}/{self.space.dims}".encode()
        further = latin_points(label, len(initial), last + 1, self.space.dims)
        designs = np.concatenate([initial, np.asarray(self.space.snap(further))], axis=1)
        clip = 1.0 if method.mechanism is None else method.mechanism.clip
        public = quasirandom_points(PROMISE, _PUBLIC, self.space.dims)
        promise = Promise(np.asarray(self.space.snap(public)), self.effects)
        known = (self.agents, self.expected_effects, method.regularisation, clip)
        return Consensus(designs, method.initial, promise, *known)

    @cached_property
    def expected_effects(self) -> Usual:
        """What is taken for likely of the effects' weights before anybody has said anything."""
        effects, variance = self.effects, self.method.shared_variance
        if self.method.shared.informed:
            return usual_weights(kinds_of(self.space, effects), variance)
        return flat_weights(effects.count, variance)

    @cached_property
    def public_design(self) -> FloatArray:
        """The points of the public design, (N, N_init, D): each agent's are a run of it."""
        count = self.agents * self.method.initial
        label = f"{_DESIGN}/{self.feature_seed}/{count}/{self.space.dims}".encode()
        points = np.asarray(self.space.snap(quasirandom_points(label, count, self.space.dims)))
        return points.reshape(self.agents, self.method.initial, self.space.dims)

    @cached_property
    def pooled(self) -> PooledModel:
        """What the public design lets everybody learn from a broadcast."""
        method = self.method
        prior, lam = method.shared_variance, method.regularisation
        return PooledModel(self.public_design, self.features, prior, lam)

    @property
    def release_noise(self) -> float:
        """The standard deviation of what a release adds to each number, in the first round."""
        return self.noise_of(0)

    def noise_of(self, round_number: int) -> float:
        """The same of any round; of noise in shares, if all sites are there."""
        mechanism = self.method.mechanism
        if mechanism is None:
            return 0.0
        price = 1.0 if self.sums is None else self.grid.event("").price
        return price * noise_scale(self.weights(round_number), self.method.features, mechanism)

    def shared_posterior(self, vectors: FloatArray) -> SharedPosterior:
        """What the releases so far (k, M) say of the function that all share."""
        return self.pooled.posterior(np.asarray(vectors), self.release_noise)

    @property
    def release_rounds(self) -> range:
        """The rounds that have a release."""
        return self.method.releases.among(self.rounds)

    def releases_by(self, trials: int) -> int:
        """How many releases an agent can have heard that has been told of so many trials."""
        return self.method.releases.count(trials - self.method.initial + 1)

    def weights(self, round_number: int) -> FloatArray:
        """φ_n^(i) of a round, (P, N)."""
        return self.method.weights(round_number, self.assignment, self.method.regions)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data that JSON can hold."""
        method: dict[str, Any] = plain(asdict(self.method))
        sums = {} if self.sums is None else {"sums": asdict(self.sums)}
        return {
            **sums,
            "agents": self.agents,
            "feature_seed": self.feature_seed,
            "method": method,
            "rounds": self.rounds,
            "schema": 3 if self.method.shared.consensus else 2,
            "space": self.space.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FederatedStudy:
        """The study that `to_dict` wrote; anything else, or of another version, is refused."""
        try:
            parts = {name: _whole(value) for name, value in data["method"].items()}
            for name, kind in _PARTS.items():
                parts[name] = None if parts[name] is None else kind(**parts[name])
            space, method = Space.from_dict(data["space"]), Method(**parts)
            sums = SecureSum(**data["sums"]) if "sums" in data else None
            study = cls(space, method, data["agents"], data["rounds"], data["feature_seed"], sums)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"these are not a study's public constants: {error!r}") from error
        check(study.to_dict() == data, "a study's public constants must be of this version's")
        return study

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the constants: equal exactly when two parties agree on all of them."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def check_same(self, fingerprint: str) -> None:
        """Refuse what comes from a party that holds other constants."""
        if fingerprint != self.fingerprint:
            theirs, ours = fingerprint[:12], self.fingerprint[:12]
            raise StudyMismatch(
                f"the public constants differ: its study is {theirs!r}, this one {ours!r}"
            )


def check_agent(index: object, agents: int) -> None:
    """Refuse what is not the number of an agent."""
    if not isinstance(index, int) or not 0 <= index < agents:
        raise UnknownAgent(f"agents are numbered 0 to {agents - 1}, got {index!r}")


def plain(data: Any) -> Any:
    """The same data for JSON, which lacks infinity; 11 and 11.0 become the same constant."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, float) and math.isinf(data):
        return "infinite"
    return int(data) if isinstance(data, float) and data.is_integer() else data


def _whole(data: Any) -> Any:
    """What `plain` was given, as far as it can be told."""
    if isinstance(data, Mapping):
        return {key: _whole(value) for key, value in data.items()}
    return math.inf if data == "infinite" else data
