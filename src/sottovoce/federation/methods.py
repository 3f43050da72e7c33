"""The methods, as frozen values assembled from parts.

`dataclasses.replace(DP_FTS_DE, regions=4)` makes another. Defaults are the paper's for its
synthetic problem; `for_real_world` has what it changes for the real ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.federation.parts import (
    ACQUISITIONS,
    INITIAL_DESIGNS,
    MESSAGES,
    SHARED_MODELS,
    SharedModel,
)
from sottovoce.federation.schedule import Exploration, ReleaseSchedule, SoloProbability
from sottovoce.federation.weights import REAL_WORLD, UNIFORM, Weights
from sottovoce.gp.features import BASES, Basis
from sottovoce.plugins import from_package, installed, loaded, reference_in
from sottovoce.privacy.release import Mechanism

Repeats = Literal["allow", "replace"]


def _doc(text: str) -> dict[str, str]:
    """Of a field that a person may change (see `settings`)."""
    return {"doc": text}


@dataclass(frozen=True)
class Method:
    """Everything that tells one method from another; all of it is public.

    A part is named by its word in `parts`; a setting has its doc in its field, its bounds below.

    Args:
        name: what results and errors call it.
        mechanism: how the server protects the sum; None: it does not.
        noise_only: the broadcast is replaced by noise of the same size (a control).
        weights: what each agent weighs in each region, round by round.
        solo: p_t, the chance to search alone.
        exploration: β_t, the scale of a draw of the own posterior.
        releases: which rounds have a release.

    Example:
        >>> from dataclasses import replace
        >>> mine = replace(DP_FTS_DE, name="mine", regions=4, features=100)
        >>> mine.private, mine.solo_probability(4)
        (True, 0.5)
    """

    name: str
    initial_design: str = field(
        default="region",
        metadata=_doc("first points: region (one's own of P), uniform, public, latin"),
    )
    message: str = field(
        default="posterior-draw",
        metadata=_doc("sent: posterior-draw, posterior-mean, residual, effects"),
    )
    shared_model: str = field(
        default="broadcast",
        metadata=_doc(
            "of broadcasts: none, usual, peer, broadcast, pooled, consensus, informed-consensus"
        ),
    )
    acquisition: str = field(
        default="thompson", metadata=_doc("next query: thompson, joint-thompson, log-ei")
    )
    mechanism: Mechanism | None = None  # how the server protects the sum; None: it does not
    noise_only: bool = False
    trust_gate: bool = field(
        default=False, metadata=_doc("whether agents doubt the shared model by their own values")
    )
    regions: int = field(default=1, metadata=_doc("P, how many regions are explored apart"))
    weights: Weights = field(default_factory=Weights)
    solo: SoloProbability = field(default_factory=SoloProbability)
    exploration: Exploration = field(default_factory=Exploration)
    releases: ReleaseSchedule = field(default_factory=ReleaseSchedule)
    features: int = field(default=50, metadata=_doc("M, how many shared features"))
    lengthscale: float = field(
        default=0.03, metadata=_doc("length scale of the shared features, in the unit cube")
    )
    regularisation: float = field(
        default=0.01, metadata=_doc("λ, noise variance for the shared features")
    )
    basis: Basis = field(
        default="random", metadata=_doc("shared features: random, quasirandom (waves), effects")
    )
    shared_variance: float = field(
        default=0.3, metadata=_doc("τ², share of an agent's variance taken to be shared")
    )
    initial: int = field(default=10, metadata=_doc("N_init, first trials of an agent"))
    repeats: Repeats = field(
        default="allow", metadata=_doc("a query tried before: allow, replace (by a random one)")
    )

    def __post_init__(self) -> None:
        check(bool(self.name), "a method needs a name", name=self.name)
        for parts in (INITIAL_DESIGNS, MESSAGES, SHARED_MODELS, ACQUISITIONS):
            _ = parts[getattr(self, parts.kind)]  # an unknown one is refused
        for name, known in {"repeats": get_args(Repeats), "basis": BASES}.items():
            word = getattr(self, name)
            rule = f"{name} must be one of {', '.join(map(repr, known))}"
            check(word in known, rule, **{name: word})
        for name in ("regions", "features", "initial"):
            count = getattr(self, name)
            whole = isinstance(count, int) and not isinstance(count, bool)
            check(whole and count >= 1, f"{name} must be a whole number above 0", **{name: count})
        for name in ("lengthscale", "regularisation", "shared_variance"):
            size = getattr(self, name)
            check(0 < size < math.inf, f"{name} must be finite and above 0", **{name: size})
        pairs = self.basis != "quasirandom" or self.features % 2 == 0
        rule = "quasi-random features come in pairs: features must be even"
        check(pairs, rule, features=self.features)
        self._check_pooling()
        check(
            self.mechanism is None or self.shared.summed,
            "only a server's sum can be protected",
            shared_model=self.shared_model,
        )
        check(
            not self.noise_only or self.private,
            "a noise-only control needs a mechanism with noise to imitate",
            mechanism=self.mechanism,
        )

    def _check_pooling(self) -> None:
        """Residuals, a public design, a pooled model and the joint posterior go together."""
        pooled = self.shared_model == "pooled"
        rule = "a pooled model is of residuals over a public design, in one region"
        came = (self.message, self.initial_design, self.regions)
        check(
            not pooled or came == ("residual", "public", 1),
            rule,
            message=self.message,
            initial_design=self.initial_design,
            regions=self.regions,
        )
        rule = "residuals are for a pooled model, or for agents that send nothing"
        right = pooled or not self.shared.exchanges
        check(self.message != "residual" or right, rule, shared_model=self.shared_model)
        consensus = self.shared.consensus
        told = (self.message, self.initial_design, self.basis, self.acquisition)
        rule = "a consensus is of effects, from latin designs, and for an acquisition by log-ei"
        check(
            not consensus
            or (told == ("effects", "latin", "effects", "log-ei") and self.regions == 1),
            rule,
            message=self.message,
            initial_design=self.initial_design,
            basis=self.basis,
            acquisition=self.acquisition,
        )
        rule = "what is usual is known of effects: basis must be 'effects'"
        check(not self.shared.informed or self.basis == "effects", rule, basis=self.basis)
        rule = "effects are said for a consensus, or by agents that send nothing"
        silent = consensus or not self.shared.exchanges
        check(self.message != "effects" or silent, rule, shared_model=self.shared_model)
        joint = self.acquisition == "joint-thompson"
        rule = "the joint posterior needs a pooled model, or none at all"
        check(not joint or right, rule, shared_model=self.shared_model)

    @property
    def shared(self) -> type[SharedModel]:
        """The class of its shared model."""
        return SHARED_MODELS[self.shared_model]

    def solo_probability(self, t: int) -> float:
        """p_t: the chance that an agent searches alone in query t."""
        since = self.solo.kind == "since-release"
        return self.solo(self.releases.since(t) if since else t)

    @property
    def private(self) -> bool:
        """Whether what leaves the server is protected."""
        return self.mechanism is not None and self.mechanism.noise > 0


TS = Method("ts", initial_design="uniform", shared_model="none")
GP = Method(
    "gp",
    initial_design="latin",
    shared_model="usual",
    acquisition="log-ei",
    features=1,  # as many as there are effects
    basis="effects",
    shared_variance=0.5,
    initial=5,
)
FTS = Method("fts", initial_design="uniform", shared_model="peer")
FTS_SERVER = Method("fts-server", initial_design="uniform")
FTS_DE = Method("fts-de", regions=2)
DP_FTS = Method("dp-fts", initial_design="uniform", mechanism=Mechanism(clip=8.0))
DP_FTS_DE = Method("dp-fts-de", mechanism=Mechanism(clip=11.0), regions=2)
CONTROL = replace(DP_FTS_DE, name="control", noise_only=True)
POOLED_TS = Method(
    "pooled-ts",
    initial_design="public",
    message="residual",
    shared_model="pooled",
    acquisition="joint-thompson",
    mechanism=Mechanism(clip=5.0, participation=1.0, noise=2.0),
    trust_gate=True,
    weights=UNIFORM,
    solo=SoloProbability("since-release"),
    releases=ReleaseSchedule(every=2, last=6),
    features=16,
    lengthscale=0.4,
    regularisation=0.03,
    basis="quasirandom",
)
POOLED_TS_CONTROL = replace(POOLED_TS, name="pooled-ts-control", noise_only=True)
SOTTOVOCE = Method(
    "sottovoce",
    initial_design="latin",
    message="effects",
    shared_model="informed-consensus",
    acquisition="log-ei",
    mechanism=Mechanism(clip=1.0, participation=1.0, noise=2.0),
    weights=UNIFORM,
    releases=ReleaseSchedule(every=2, last=6),
    features=1,  # as many as there are effects
    regularisation=0.4,
    basis="effects",
    shared_variance=0.5,
    initial=5,
)
SOTTOVOCE_CONTROL = replace(SOTTOVOCE, name="sottovoce-control", noise_only=True)

PLUGINS = "sottovoce.methods"  # entry points of packages with methods of their own

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        *(TS, GP, FTS, FTS_SERVER, FTS_DE, DP_FTS, DP_FTS_DE, CONTROL),
        *(POOLED_TS, POOLED_TS_CONTROL, SOTTOVOCE, SOTTOVOCE_CONTROL),
    )
}


def method_named(name: str) -> Method:
    """The method of that name, of FILE.py:NAME, or of an installed package.

    An unknown one is answered with those there are.
    """
    check(isinstance(name, str), "method must be a word", method=name)
    reference = reference_in(name)
    if reference is not None:
        rule = "a method takes no options: its settings are those of the command, or of the file"
        check(not reference.options, rule, options=reference.options)
        return _own(name, loaded(reference))
    if name in METHODS:
        return METHODS[name]
    others = installed(PLUGINS)
    if name in others:
        return _own(name, from_package(PLUGINS, name))
    raise InvalidInput(f"unknown method {name!r}; {suggestion(name, [*METHODS, *others])}")


def _own(name: str, found: object) -> Method:
    if not isinstance(found, Method):
        raise InvalidInput(f"{name} must be a Method, got {type(found).__name__}")
    return found


def for_real_world(method: Method) -> Method:
    """The paper's settings for its real problems: P = 4, S = 22, M = 100, 1 − p_t = 1/t.

    Those objectives have no noise, so no agent tries a point again. A pooled model has
    settings of its own, which are not the paper's.
    """
    if method.acquisition == "log-ei":  # which tries no point again by itself
        return method
    if method.shared_model == "pooled":
        return replace(method, repeats="replace")
    distributed = method.regions > 1
    mechanism = method.mechanism
    if mechanism is not None:
        mechanism = replace(mechanism, clip=22.0 if distributed else 11.0, participation=0.35)
    return replace(
        method,
        mechanism=mechanism,
        regions=4 if distributed else 1,
        weights=REAL_WORLD,
        solo=SoloProbability("inverse"),
        features=100,
        lengthscale=0.01,
        regularisation=1e-6,
        repeats="replace",
    )
