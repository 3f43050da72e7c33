"""A result as plain data, and the file it is kept in: result.json, in a party's own folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from sottovoce.errors import StorageError
from sottovoce.federation.searcher import Direction
from sottovoce.files import private, write_text

NAME = "result.json"
Verdict = Literal["better", "about", "worse"]
VERDICTS: dict[Verdict, str] = {
    "better": "better than alone would have been expected to give",
    "about": "about what alone would have been expected to give",
    "worse": "worse than alone would have been expected to give",
}
SCHEMA = 1  # of what follows; a file of another is refused, and made anew from the site's memory


@dataclass(frozen=True)
class Best:
    """The best trial."""

    params: Mapping[str, Any]
    value: float
    number: int  # of the trial
    earlier: bool = False  # whether it is from before the study, and the number that of there


@dataclass(frozen=True)
class TrialResult:
    """One trial of a site's."""

    number: int  # 1 is the first
    params: Mapping[str, Any]
    value: float | None  # None: it failed, or was pruned
    ended: str | None  # when, ISO 8601 in UTC
    round: int  # before which release it was run
    error: str | None = None  # how it failed, in one line


@dataclass(frozen=True)
class EarlierTrial:
    """One that the site brought along from before the study: it is known, and counts as none."""

    number: int  # in the study that it comes from, from 0 as Optuna counts
    params: Mapping[str, Any]
    value: float


@dataclass(frozen=True)
class Alone:
    """The best so far that going alone would have been expected to give, trial by trial.

    mean, and low and high, between which it is in about four of five cases; as long as
    `best_so_far`. The initial trials are the site's own: up to those all three are its own curve.
    """

    mean: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    draws: int
    how: str


@dataclass(frozen=True)
class SiteResult:
    """What a study came to at one site. All of it is the site's own, and stays there.

    Values are as the objective returned them. `epsilon` bounds what the releases so far, that this
    site may have had a part in, tell of it (zero-out adjacency), `replace_one` of one record in it.
    """

    study: str  # the project's name
    fingerprint: str
    site: str  # its name, as far as its folder tells
    agent: int | None  # its number in the study; None: it was never called
    method: str
    direction: Direction
    over: bool  # whether it has run all its trials
    simulation: bool  # then its noise protects nobody
    planned: int  # trials of the whole study
    initial: int  # so many of them before the first release
    best: Best | None  # of all that it knows
    trials: tuple[TrialResult, ...]  # the study's
    failed: int
    best_so_far: tuple[float | None, ...]  # after each trial; None before the first value
    alone: Alone | None  # None: it cannot be told
    importance: Mapping[str, float] | None  # shares that sum to 1; None: it cannot be told
    importance_by: str  # how that was found, or why not
    epsilon: float
    replace_one: float
    delta: float
    granted: float
    accountant: str
    adjacency: str
    releases: int  # heard, or spoken in
    releases_planned: int
    left: str | None = None  # why it left the study, if it did
    earlier: tuple[EarlierTrial, ...] = ()  # from before the study
    schema: int = SCHEMA

    @property
    def beside_alone(self) -> Verdict | None:
        """How the best value stands beside what going alone could have expected, if that is told.

        About the same, if it is within the band; then one study cannot tell whether sharing helped.
        """
        if self.alone is None or self.best is None or not self.alone.mean:
            return None
        low, high = self.alone.low[-1], self.alone.high[-1]
        if low is None or high is None:
            return None
        if low <= self.best.value <= high:
            return "about"
        above = self.best.value > high
        return "better" if above == (self.direction == "maximize") else "worse"

    @property
    def spoke(self) -> bool:
        """Whether anything of it can have been released."""
        return self.releases > 0


@dataclass(frozen=True)
class RoundResult:
    """One release, as the coordinator's journal has it; None: it does not say."""

    round: int
    time: str | None
    replied: int | None
    spoke: int | None
    absent: int | None
    left: int | None
    refused: int | None
    rejected: int | None


@dataclass(frozen=True)
class CoordinatorResult:
    """What a study came to for its coordinator: who took part, what was spent, nobody's values."""

    study: str
    fingerprint: str
    method: str
    agents: int
    trials: int  # of each site, when it is over
    over: bool
    stopped: str | None  # why it ended before its time, if it did
    done: int | None  # sites that have run all their trials; None: it is not known
    rounds: tuple[RoundResult, ...]
    releases: int
    releases_planned: int
    epsilon: float
    replace_one: float
    delta: float
    granted: float
    accountant: str
    adjacency: str
    simulation: bool = False
    schema: int = SCHEMA


Result = SiteResult | CoordinatorResult
R = TypeVar("R", SiteResult, CoordinatorResult)


def to_json(result: Result) -> dict[str, Any]:
    """The result as JSON holds it."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(result), allow_nan=False))
    return found


def write_result(result: Result, folder: Path) -> Path:
    """Keep a result in its party's folder, for its user alone: whole or not at all."""
    path = folder / NAME
    with private():
        write_text(path, json.dumps(to_json(result), indent=2, ensure_ascii=False) + "\n")
    return path


def read_result(path: Path, kind: type[R]) -> R:
    """The result that `write_result` kept."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise StorageError(f"{path} is of schema {content['schema']}, this is schema {SCHEMA}")
        found: R = _made(kind, content)
        return found
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} is no {kind.__name__}: {error!r}") from error


def _made(kind: Any, content: Mapping[str, Any]) -> Any:
    """A frozen dataclass from what JSON gave: lists become tuples, tables the classes they were."""
    hints = get_type_hints(kind)
    unknown = content.keys() - {field.name for field in fields(kind)}
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    return kind(**{name: _value(hints[name], value) for name, value in content.items()})


def _value(hint: Any, value: Any) -> Any:
    if isinstance(value, list):
        (item, *_) = get_args(hint)
        return tuple(_value(item, each) for each in value)
    classes = [each for each in (hint, *get_args(hint)) if is_dataclass(each)]
    return _made(classes[0], value) if classes and isinstance(value, Mapping) else value
