"""One run's parameters, from the command line or a TOML file, and the study they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.federation.methods import Method, for_real_world, method_named
from sottovoce.federation.planning import check_epsilon, sized, within
from sottovoce.federation.settings import SETTINGS, check_type, plain_type, with_settings
from sottovoce.federation.study import FederatedStudy
from sottovoce.files import read_toml
from sottovoce.lab.problems import problem_label, problem_named
from sottovoce.lab.problems.real import RealProblem
from sottovoce.privacy.budget import paper_delta

AGENTS = 200  # the paper's synthetic problem, unless a problem has agents of its own
PAPER = {"synthetic": 40, "real-world": 60}  # and their rounds


@cache
def _types() -> dict[str, Any]:
    return get_type_hints(RunConfig)


@dataclass(frozen=True)
class RunConfig:
    """What to run. None leaves the problem's value, or the method's own.

    changes: settings of the method that are to be others, by name (`federation.settings`).
    """

    problem: str = "synthetic"
    method: str = "dp-fts-de"
    agents: int | None = None
    rounds: int | None = None
    runs: int = 5
    seed: int = 0
    starts: int = 1  # so many runs in a row share their objectives
    delta: float | None = None  # None: N^(−1.1), the paper's
    epsilon: float | None = None  # in place of a noise: the least that keeps within it
    settings: str | None = None  # the paper's: a name from PAPER
    device: str | None = None  # a device of PyTorch's, such as "cuda"; None: NumPy
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, hint in _types().items():
            value = getattr(self, name)
            if name != "changes" and value is not None:
                check_type(name, plain_type(hint), value)
        check(self.runs >= 1, "runs must be at least 1", runs=self.runs)
        check(self.starts >= 1, "starts must be at least 1", starts=self.starts)
        check(self.seed >= 0, "seed must be at least 0", seed=self.seed)
        check(self.delta is None or 0 < self.delta < 1, "delta must be in (0, 1)", delta=self.delta)
        # one name for one problem, however it was written
        object.__setattr__(self, "problem", problem_label(self.problem))
        object.__setattr__(self, "changes", dict(self.changes))
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
        method = sized(method, setting.space.dims, setting.surrogate.kernel)
        if self.epsilon is not None:
            noise = self.changes.get("noise")
            check(noise is None, "give either a noise or an epsilon, not both", noise=noise)
            check_epsilon(method, self.epsilon)
        return with_settings(method, self.changes)

    def resolved_settings(self) -> str:
        """Which of the paper's settings the method starts from: as given, or the problem's."""
        real = problem_named(self.problem).setting.real_world
        name = self.settings or ("real-world" if real else "synthetic")
        check(name in PAPER, f"settings must be one of {', '.join(PAPER)}", settings=name)
        return name

    def study(self) -> FederatedStudy:
        """The study to simulate."""
        space, (agents, rounds) = problem_named(self.problem).setting.space, self.size()
        return FederatedStudy(space, self.resolved_method(), agents, rounds)

    def size(self) -> tuple[int, int]:
        """N and T: as given, or the problem's, or the paper's."""
        setting, usual = problem_named(self.problem).setting, PAPER[self.resolved_settings()]
        agents = setting.agents or AGENTS if self.agents is None else self.agents
        rule = f"{self.problem} has {setting.agents} agents, no more can be asked for"
        check(setting.agents is None or agents <= setting.agents, rule, agents=agents)
        return agents, usual if self.rounds is None else self.rounds

    def resolved_delta(self) -> float:
        """δ as given, or the paper's."""
        return paper_delta(self.size()[0]) if self.delta is None else self.delta

    def changed(self, **given: Any) -> RunConfig:
        """With parameters and settings of the method changed, by name; None changes nothing."""
        own = {f.name for f in fields(self)} - {"changes"}
        given = {name: value for name, value in given.items() if value is not None}
        mine = {name: value for name, value in given.items() if name in own}
        other = {name: value for name, value in given.items() if name not in own}
        return replace(self, **mine, changes={**self.changes, **other})

    def to_dict(self) -> dict[str, Any]:
        """All parameters, flat; of the method's settings, those that were changed."""
        flat = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "changes"}
        return {**flat, **self.changes}


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
    changed = replace(problem, objective=cast(Any, objective))
    return replace(config, problem=problem_label(config.problem, changed))


def config_from(data: Mapping[str, Any], origin: str) -> RunConfig:
    """A config from a flat mapping; an unknown key is named, with the nearest known one."""
    known = [f.name for f in fields(RunConfig) if f.name != "changes"] + list(SETTINGS)
    for key in data:
        if key not in known:
            raise InvalidInput(f"{origin} has an unknown key {key!r}; {suggestion(key, known)}")
    changes = {key: value for key, value in data.items() if key in SETTINGS}
    own = {key: value for key, value in data.items() if key not in SETTINGS}
    try:
        return RunConfig(**own, changes=changes)
    except InvalidInput as error:
        raise InvalidInput(f"{origin}: {error}") from error


def config_from_toml(path: str | Path) -> RunConfig:
    """The config in a TOML file."""
    data = read_toml(path)
    return config_from(data, str(path))
