"""One run's parameters, from the command line or a TOML file, and the study they make."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from sottovoce.errors import InvalidInput, StorageError, check, suggestion
from sottovoce.methods import Method, method_named
from sottovoce.privacy.budget import paper_delta
from sottovoce.privacy.release import Mechanism
from sottovoce.problems import problem_named
from sottovoce.regions import NAMED_WEIGHTS
from sottovoce.schedule import OwnBelief
from sottovoce.study import Study

_KINDS: dict[Any, tuple[str, ...]] = {
    int: ("agents", "rounds", "runs", "seed", "regions", "features"),
    (int, float): ("delta", "lengthscale", "clip", "participation", "noise"),
    str: ("problem", "method", "sampling", "sensitivity", "weights", "own_belief", "device"),
    bool: ("local_start",),
}
_WORDS: dict[Any, str] = {
    int: "a whole number",
    (int, float): "a number",
    str: "a word",
    bool: "true or false",
}


@dataclass(frozen=True)
class RunConfig:
    """What to run. None leaves the method's own value."""

    problem: str = "synthetic"
    method: str = "dp-fts-de"
    agents: int = 200
    rounds: int = 40
    runs: int = 5
    seed: int = 0
    delta: float | None = None  # None: N^(−1.1), the paper's
    regions: int | None = None
    features: int | None = None
    lengthscale: float | None = None  # of the shared features
    clip: float | None = None
    participation: float | None = None
    noise: float | None = None
    sampling: str | None = None
    sensitivity: str | None = None
    weights: str | None = None  # a name from regions.NAMED_WEIGHTS
    own_belief: str | None = None  # p_t: root, inverse or square
    local_start: bool | None = None
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
        # whatever else is wrong is said before anything runs
        _ = self.study(), self.resolved_delta()

    def resolved_method(self) -> Method:
        """The named method with this config's changes."""
        method = method_named(self.method)
        names = ("regions", "features", "lengthscale", "local_start")
        changes: dict[str, Any] = {
            n: getattr(self, n) for n in names if getattr(self, n) is not None
        }
        if self.weights is not None:
            known = f"weights must be one of {', '.join(NAMED_WEIGHTS)}"
            check(self.weights in NAMED_WEIGHTS, known, got=self.weights)
            changes["weights"] = NAMED_WEIGHTS[self.weights]
        if self.own_belief is not None:
            changes["own_belief"] = OwnBelief(cast(Any, self.own_belief))
        parts = [field.name for field in fields(Mechanism)]
        mechanism = {n: getattr(self, n) for n in parts if getattr(self, n) is not None}
        if mechanism and method.mechanism is None:
            raise InvalidInput(
                f"method {method.name!r} protects nothing, so it takes no {', '.join(mechanism)}"
            )
        if method.mechanism is not None:
            changes["mechanism"] = replace(method.mechanism, **mechanism)
        return replace(method, **changes)

    def study(self) -> Study:
        """The study to simulate."""
        space = problem_named(self.problem).setting.space
        return Study(space, self.resolved_method(), self.agents, self.rounds)

    def resolved_delta(self) -> float:
        """δ as given, or the paper's."""
        return paper_delta(self.agents) if self.delta is None else self.delta

    def to_dict(self) -> dict[str, Any]:
        """All parameters."""
        return asdict(self)


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
    try:
        data = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}") from error
    return config_from(data, str(path))
