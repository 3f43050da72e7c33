"""One run's parameters, from the command line or a TOML file, and the study they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.experiments.planning import check_epsilon, planned, within
from sottovoce.federation.methods import Method, for_real_world, method_named
from sottovoce.federation.schedule import SoloProbability
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.weights import NAMED_WEIGHTS
from sottovoce.files import read_toml
from sottovoce.privacy.budget import paper_delta
from sottovoce.privacy.release import Mechanism
from sottovoce.problems import problem_named
from sottovoce.problems.real import RealProblem

AGENTS = 200  # the paper's synthetic problem, unless a problem has agents of its own
SETTINGS = {"synthetic": 40, "real-world": 60}  # and their rounds

_KINDS: dict[Any, tuple[str, ...]] = {
    int: ("agents", "rounds", "runs", "seed", "regions", "features", "last"),
    (int, float): ("epsilon", "delta", "lengthscale", "clip", "participation", "noise"),
    str: (
        "problem",
        "method",
        "settings",
        "sampling",
        "sensitivity",
        "weights",
        "solo",
        "repeats",
        "initial_design",
        "message",
        "shared_model",
        "acquisition",
        "basis",
        "device",
    ),
    bool: ("trust_gate",),
}
_WORDS: dict[Any, str] = {
    int: "a whole number",
    (int, float): "a number",
    str: "a word",
    bool: "true or false",
}


@dataclass(frozen=True)
class RunConfig:
    """What to run. None leaves the problem's value, or the method's own."""

    problem: str = "synthetic"
    method: str = "dp-fts-de"
    agents: int | None = None
    rounds: int | None = None
    runs: int = 5
    seed: int = 0
    delta: float | None = None  # None: N^(−1.1), the paper's
    epsilon: float | None = None  # in place of a noise: the least that keeps within it
    settings: str | None = None  # the paper's: a name from SETTINGS
    regions: int | None = None
    features: int | None = None
    lengthscale: float | None = None  # of the shared features
    clip: float | None = None
    participation: float | None = None
    noise: float | None = None
    sampling: str | None = None
    sensitivity: str | None = None
    weights: str | None = None  # a name from weights.NAMED_WEIGHTS
    solo: str | None = None  # p_t: root, inverse, square, since-release, or constant: alone
    initial_design: str | None = None  # a name from parts.INITIAL_DESIGNS
    message: str | None = None  # a name from parts.MESSAGES
    shared_model: str | None = None  # a name from parts.SHARED_MODELS
    acquisition: str | None = None  # a name from parts.ACQUISITIONS
    trust_gate: bool | None = None  # whether agents doubt the shared model
    repeats: str | None = None  # of a query tried before: allow or replace
    basis: str | None = None  # shared features: random or quasirandom
    last: int | None = None  # the last round that speaks
    device: str | None = None  # a device of PyTorch's, such as "cuda"; None: NumPy

    def __post_init__(self) -> None:
        for kind, names in _KINDS.items():
            for name in names:
                value = getattr(self, name)
                right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
                check(value is None or right, f"{name} must be {_WORDS[kind]}", **{name: value})
        check(self.runs >= 1, "runs must be at least 1", runs=self.runs)
        check(self.seed >= 0, "seed must be at least 0", seed=self.seed)
        check(self.delta is None or 0 < self.delta < 1, "delta must be in (0, 1)", delta=self.delta)
        # one name for one problem, however it was written
        object.__setattr__(self, "problem", problem_named(self.problem).name)
        # whatever else is wrong is said before anything runs; a noise takes seconds to find
        space, size = problem_named(self.problem).setting.space, self.size()
        _ = FederatedStudy(space, self._method_but_noise(), *size), self.resolved_delta()

    def resolved_method(self) -> Method:
        """The named method with this config's changes."""
        method = self._method_but_noise()
        if self.epsilon is None:
            return method
        return within(method, *self.size(), self.epsilon, self.resolved_delta())

    def _method_but_noise(self) -> Method:
        """The same, without the noise that an ε asks for."""
        method, setting = method_named(self.method), problem_named(self.problem).setting
        if self.resolved_settings() == "real-world":
            method = for_real_world(method)
        if method.shared_model == "pooled":
            method = planned(method, setting.space.dims, setting.surrogate.kernel)
        names = ["regions", "features", "lengthscale", "repeats", "basis", "trust_gate"]
        names += ["initial_design", "message", "shared_model", "acquisition"]
        changes: dict[str, Any] = {
            n: getattr(self, n) for n in names if getattr(self, n) is not None
        }
        if self.weights is not None:
            known = f"weights must be one of {', '.join(NAMED_WEIGHTS)}"
            check(self.weights in NAMED_WEIGHTS, known, weights=self.weights)
            changes["weights"] = NAMED_WEIGHTS[self.weights]
        if self.solo is not None:
            changes["solo"] = SoloProbability(cast(Any, self.solo))
        if self.last is not None:
            changes["releases"] = replace(method.releases, last=self.last)
        parts = [field.name for field in fields(Mechanism)]
        mechanism = {n: getattr(self, n) for n in parts if getattr(self, n) is not None}
        if mechanism and method.mechanism is None:
            raise InvalidInput(
                f"method {method.name!r} protects nothing, so it takes no {', '.join(mechanism)}"
            )
        if method.mechanism is not None:
            changes["mechanism"] = replace(method.mechanism, **mechanism)
        if self.epsilon is not None:
            check(
                self.noise is None, "give either a noise or an epsilon, not both", noise=self.noise
            )
            check_epsilon(method, self.epsilon)
        return replace(method, **changes)

    def resolved_settings(self) -> str:
        """Which of the paper's settings the method starts from: as given, or the problem's."""
        real = problem_named(self.problem).setting.real_world
        name = self.settings or ("real-world" if real else "synthetic")
        check(name in SETTINGS, f"settings must be one of {', '.join(SETTINGS)}", settings=name)
        return name

    def study(self) -> FederatedStudy:
        """The study to simulate."""
        space, (agents, rounds) = problem_named(self.problem).setting.space, self.size()
        return FederatedStudy(space, self.resolved_method(), agents, rounds)

    def size(self) -> tuple[int, int]:
        """N and T: as given, or the problem's, or the paper's."""
        setting, usual = problem_named(self.problem).setting, SETTINGS[self.resolved_settings()]
        agents = setting.agents or AGENTS if self.agents is None else self.agents
        rule = f"{self.problem} has {setting.agents} agents, no more can be asked for"
        check(setting.agents is None or agents <= setting.agents, rule, agents=agents)
        return agents, usual if self.rounds is None else self.rounds

    def resolved_delta(self) -> float:
        """δ as given, or the paper's."""
        return paper_delta(self.size()[0]) if self.delta is None else self.delta

    def to_dict(self) -> dict[str, Any]:
        """All parameters."""
        return asdict(self)


def real(config: RunConfig) -> bool:
    """Whether the problem is one on real data."""
    return isinstance(problem_named(config.problem), RealProblem)


def with_objective(config: RunConfig, objective: str) -> RunConfig:
    """The config with a real problem's objective trained live, or looked up in its table."""
    known = get_args(get_type_hints(RealProblem)["objective"])
    check(objective in known, f"objective must be one of {', '.join(known)}", objective=objective)
    problem = problem_named(config.problem)
    if not isinstance(problem, RealProblem):
        raise InvalidInput(f"problem {config.problem!r} trains nothing, so it takes no objective")
    return replace(config, problem=replace(problem, objective=cast(Any, objective)).name)


def config_from(data: Mapping[str, Any], origin: str) -> RunConfig:
    """A config from a mapping; an unknown key is named, with the nearest known one."""
    known = [field.name for field in fields(RunConfig)]
    for key in data:
        if key not in known:
            raise InvalidInput(f"{origin} has an unknown key {key!r}; {suggestion(key, known)}")
    try:
        return RunConfig(**data)
    except InvalidInput as error:
        raise InvalidInput(f"{origin}: {error}") from error


def config_from_toml(path: str | Path) -> RunConfig:
    """The config in a TOML file."""
    data = read_toml(path)
    return config_from(data, str(path))
