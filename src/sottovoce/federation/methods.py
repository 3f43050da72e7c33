"""The methods, as frozen values of one algorithm.

`dataclasses.replace(DP_FTS_DE, regions=4)` makes another. Defaults are the paper's for its
synthetic problem; `REAL_WORLD` holds what it changes for the real ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.federation.schedule import Exploration, OwnBelief, Speaking
from sottovoce.federation.weights import REAL_WORLD, UNIFORM, Weights
from sottovoce.gp.features import BASES, Basis
from sottovoce.privacy.release import Mechanism

Exchange = Literal["none", "peer", "server"]
Repeats = Literal["allow", "replace"]
Says = Literal["draw", "mean", "sums"]
Hears = Literal["follow", "learn"]

_WORDS: dict[str, tuple[str, ...]] = {
    "exchange": get_args(Exchange),
    "repeats": get_args(Repeats),
    "says": get_args(Says),
    "hears": get_args(Hears),
    "basis": BASES,
}


@dataclass(frozen=True)
class Method:
    """Everything that tells one method from another; all of it is public.

    exchange: "none": agents go alone; "peer": each sees one random other agent's vector (the
    original FTS); "server": a server sums and broadcasts.
    mechanism: how the server protects the sum; None: it does not.
    control: the broadcast is replaced by noise of the same size.
    says: what an agent sends, over its own history: "draw": a draw of its posterior over the
    weights of the shared features (the paper's); "mean": the posterior's mean; "sums": Φᵀy over
    its initial points, then what its values tell beyond what all know (`beside.news`), both for
    `pool.Pool` (needs a dealt start).
    hears: what an agent does with probability 1 − p_t, in place of searching alone. "follow": it
    goes where the broadcast is largest (the paper's). "learn": the broadcast tells of a function
    that all have in common (`pool`); with equal chances it goes where a draw of that function is
    largest, or takes its own to be a multiple of it plus something of its own (`beside`).
    wary: of "learn": who would follow a draw of the common function goes alone instead, unless
    its own values bear that function out (`beside.likeness`).
    dealt: initial points are those of a public design, spread evenly and dealt out.
    basis: shared features drawn at random, or spread evenly.
    common: τ², how much of an agent's variance is taken to be common, for "learn".
    repeats: "replace": an agent that would try a point again tries a uniformly random one
    instead (on a finite space, one of those it has not tried), as repeating a trial without
    noise teaches nothing; "allow": it tries it again.
    """

    name: str
    exchange: Exchange = "server"
    mechanism: Mechanism | None = None
    control: bool = False
    regions: int = 1
    local_start: bool = True  # initial points from the agent's own region, else from everywhere
    weights: Weights = field(default_factory=Weights)
    own_belief: OwnBelief = field(default_factory=OwnBelief)
    exploration: Exploration = field(default_factory=Exploration)
    speaking: Speaking = field(default_factory=Speaking)
    features: int = 50  # M
    lengthscale: float = 0.03  # of the shared features
    regularisation: float = 0.01  # λ of the shared features, the observation noise's variance
    initial: int = 10  # N_init
    repeats: Repeats = "allow"
    says: Says = "draw"
    hears: Hears = "follow"
    wary: bool = False
    dealt: bool = False
    basis: Basis = "random"
    common: float = 0.3

    def __post_init__(self) -> None:
        check(bool(self.name), "a method needs a name", name=self.name)
        for name, known in _WORDS.items():
            word = getattr(self, name)
            rule = f"{name} must be one of {', '.join(map(repr, known))}"
            check(word in known, rule, **{name: word})
        for name in ("regions", "features", "initial"):
            count = getattr(self, name)
            whole = isinstance(count, int) and not isinstance(count, bool)
            check(whole and count >= 1, f"{name} must be a whole number above 0", **{name: count})
        for name in ("lengthscale", "regularisation", "common"):
            size = getattr(self, name)
            check(0 < size < math.inf, f"{name} must be finite and above 0", **{name: size})
        pairs = self.basis == "random" or self.features % 2 == 0
        check(pairs, "spread features come in pairs: features must be even", features=self.features)
        self._check_learning()
        check(
            self.mechanism is None or self.exchange == "server",
            "only a server can protect a sum",
            exchange=self.exchange,
        )
        check(
            not self.control or (self.mechanism is not None and self.mechanism.noise > 0),
            "a control needs a mechanism with noise to imitate",
            mechanism=self.mechanism,
        )

    def _check_learning(self) -> None:
        """Sums and learning go together."""
        learns = self.hears == "follow" or (self.says == "sums" and self.regions == 1)
        rule = "to learn, agents must say sums, in one region"
        check(learns, rule, says=self.says, regions=self.regions)
        if self.says == "sums":
            public = self.dealt and self.hears == "learn"
            check(public, "sums need a dealt start, and agents that learn", dealt=self.dealt)
            check(self.exchange != "peer", "sums need a server to add them", exchange=self.exchange)

    def alone(self, t: int) -> float:
        """p_t: the chance that an agent goes by its own belief, for query t."""
        news = self.own_belief.kind == "news"
        return self.own_belief(self.speaking.since(t) if news else t)

    def shares(self, t: int) -> tuple[float, float]:
        """Up to which number a coin in [0, 1) sends an agent alone, and above which to follow.

        In between it searches beside what is common. For query t.
        """
        alone = self.alone(t)
        return alone, 0.5 * (1.0 + alone) if self.hears == "learn" else alone

    def heeded(self, t: int, likeness: Array) -> Array:
        """Above which number the coin of a wary agent makes it follow, (B,); below, it goes alone.

        likeness (B,) as in `beside.likeness`. The fewer values it has, the less they count: with
        chance 1/√t at least it follows as if it were not wary.
        """
        _, near = self.shares(t)
        xp = array_namespace(likeness)
        return 1.0 - (1.0 - near) * xp.maximum(likeness, xp.full_like(likeness, 1.0 / math.sqrt(t)))

    def forgets(self, round_number: int) -> bool:
        """Whether agents go alone then: the last release is past, and was not learnt from."""
        return self.hears == "follow" and self.speaking.over(round_number)

    @property
    def doubts(self) -> bool:
        """Whether an agent asks its own values before it follows."""
        return self.wary and self.hears == "learn"

    @property
    def private(self) -> bool:
        """Whether what leaves the server is protected."""
        return self.mechanism is not None and self.mechanism.noise > 0


TS = Method("ts", exchange="none", local_start=False)
FTS = Method("fts", exchange="peer", local_start=False)
FTS_SERVER = Method("fts-server", local_start=False)
FTS_DE = Method("fts-de", regions=2)
DP_FTS = Method("dp-fts", mechanism=Mechanism(clip=8.0), local_start=False)
DP_FTS_DE = Method("dp-fts-de", mechanism=Mechanism(clip=11.0), regions=2)
CONTROL = replace(DP_FTS_DE, name="control", control=True)
SOTTOVOCE = Method(
    "sottovoce",
    mechanism=Mechanism(clip=5.0, participation=1.0, noise=2.0),
    local_start=False,
    weights=UNIFORM,
    own_belief=OwnBelief("news"),
    speaking=Speaking(every=2, last=6),
    features=16,
    lengthscale=0.4,
    regularisation=0.03,
    says="sums",
    hears="learn",
    wary=True,
    dealt=True,
    basis="spread",
)
SOTTOVOCE_CONTROL = replace(SOTTOVOCE, name="sottovoce-control", control=True)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        *(TS, FTS, FTS_SERVER, FTS_DE, DP_FTS, DP_FTS_DE, CONTROL),
        *(SOTTOVOCE, SOTTOVOCE_CONTROL),
    )
}


def method_named(name: str) -> Method:
    """The method of that name; an unknown one is answered with those there are."""
    if name not in METHODS:
        raise InvalidInput(f"unknown method {name!r}; {suggestion(name, METHODS)}")
    return METHODS[name]


def for_real_world(method: Method) -> Method:
    """The paper's settings for its real problems: P = 4, S = 22, M = 100, 1 − p_t = 1/t.

    Those objectives have no noise, so no agent tries a point again. A method that learns has
    settings of its own, which are not the paper's.
    """
    if method.hears == "learn":
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
        own_belief=OwnBelief("inverse"),
        features=100,
        lengthscale=0.01,
        regularisation=1e-6,
        repeats="replace",
    )
