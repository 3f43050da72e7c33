"""The methods, as frozen values of one algorithm.

`dataclasses.replace(DP_FTS_DE, regions=4)` makes another. Defaults are the paper's for its
synthetic problem; `REAL_WORLD` holds what it changes for the real ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.privacy.release import Mechanism
from sottovoce.regions import REAL_WORLD, Weights
from sottovoce.schedule import Exploration, OwnBelief, Speaking

Exchange = Literal["none", "peer", "server"]
Repeats = Literal["allow", "replace"]


@dataclass(frozen=True)
class Method:
    """Everything that tells one method from another; all of it is public.

    exchange: "none": agents go alone; "peer": each sees one random other agent's vector (the
    original FTS); "server": a server sums and broadcasts.
    mechanism: how the server protects the sum; None: it does not.
    control: the broadcast is replaced by noise of the same size.
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

    def __post_init__(self) -> None:
        check(bool(self.name), "a method needs a name", name=self.name)
        check(
            self.exchange in ("none", "peer", "server"),
            "exchange must be 'none', 'peer' or 'server'",
            exchange=self.exchange,
        )
        check(
            self.repeats in ("allow", "replace"),
            "repeats must be 'allow' or 'replace'",
            repeats=self.repeats,
        )
        for name in ("regions", "features", "initial"):
            count = getattr(self, name)
            whole = isinstance(count, int) and not isinstance(count, bool)
            check(whole and count >= 1, f"{name} must be a whole number above 0", **{name: count})
        for name in ("lengthscale", "regularisation"):
            size = getattr(self, name)
            check(0 < size < math.inf, f"{name} must be finite and above 0", **{name: size})
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

METHODS: dict[str, Method] = {
    method.name: method for method in (TS, FTS, FTS_SERVER, FTS_DE, DP_FTS, DP_FTS_DE, CONTROL)
}


def method_named(name: str) -> Method:
    """The method of that name; an unknown one is answered with those there are."""
    if name not in METHODS:
        raise InvalidInput(f"unknown method {name!r}; {suggestion(name, METHODS)}")
    return METHODS[name]


def for_real_world(method: Method) -> Method:
    """The paper's settings for its real problems: P = 4, S = 22, M = 100, 1 − p_t = 1/t.

    Those objectives have no noise, so no agent tries a point again.
    """
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
