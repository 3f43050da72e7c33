"""What `reproduce` writes and `report` reads: a figure's curves and claims, as they were measured.

A figure is one file, FOLDER/figures/NAME.json: these classes as JSON, with a schema and the
version that wrote it. Whatever is not that, whole and of this version, is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import lru_cache
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from sottovoce import __version__
from sottovoce.errors import InvalidInput, StorageError, check
from sottovoce.pages.trace import Trace

SCHEMA = 1
MOST = 10_000  # runs that anybody would ask for
Role = Literal["method", "reference", "control"]
Verdict = Literal["holds", "within noise", "does not hold"]
Spender = Literal["moments", "rdp"]  # the accountants that a trade-off may stand over
AGAIN = "sottovoce reproduce NAME (--list shows the names)"

_NAMES: dict[Any, str] = {str: "text", int: "a whole number"}


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the runs of one config show: all parameters, regret, ε, and how the releases went.

    epsilon: by the tightest accountant there is; None where it is infinite: nothing is protected.
    signal_to_noise: by release, None where there is no noise.
    """

    problem: str
    method: str
    agents: int
    rounds: int
    runs: int
    epsilon: float | None
    epsilon_by_accountant: Mapping[str, float | None]
    delta: float
    accountant: str
    adjacency: str
    regret: Trace
    clipped_fraction: float | None
    signal_to_noise: tuple[float | None, ...]
    failed_trials: int
    seconds: float
    study: Mapping[str, Any]
    config: Mapping[str, Any]
    versions: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class CurveResult:
    """One curve of a figure; epsilon by accountant, None where nothing is protected."""

    label: str
    role: Role
    series: str | None = None
    method: str
    parameters: Mapping[str, Any]
    epsilon: Mapping[str, float | None] | None
    delta: float | None
    adjacency: str | None
    clipped_fraction: float | None
    signal_to_noise: float | None
    regret: Trace

    @property
    def full_label(self) -> str:
        """Its name, which without its series would say only half."""
        return f"{self.label} ({self.series})" if self.series else self.label


@dataclass(frozen=True)
class Share:
    """Of so many functions: for how many a claim holds, points its way, and does not hold."""

    of: int
    holds: int
    towards: int
    against: int

    @property
    def words(self) -> str:
        """In words."""
        told = f"holds for {self.holds} of {self.of} functions, does not for {self.against}"
        return f"{told}; the mean points its way for {self.towards}"


@dataclass(frozen=True)
class ClaimResult:
    """A claim, what was measured, and what follows.

    line: what a summary says for all claims that share it. cause: why it may not hold.
    """

    claim: str
    paper: str
    measured: float  # the mean difference in regret, or the quantity
    stderr: float
    text: str  # what was measured, in words
    verdict: Verdict
    interval: tuple[float, float] | None = None  # of the mean difference, at 95 %
    share: Share | None = None
    line: str = ""
    cause: str = ""
    needs: int | None = None  # so many runs, or functions, would settle it

    def __post_init__(self) -> None:
        ordered = self.interval is None or self.interval[0] <= self.interval[1]
        check(ordered, "interval must have its lower end first", interval=self.interval)

    @property
    def hint(self) -> str:
        """What would settle a verdict that is open; nothing where it is settled."""
        if self.verdict != "within noise":
            return ""
        unit = "runs" if self.share is None else "functions"
        if self.interval is None:
            return f"one alone shows no spread: take several {unit}"
        if self.needs is None:
            return f"more than {MOST:,} {unit} would be needed: there is hardly a difference"
        return f"about {self.needs:,} {unit} would settle it, if mean and spread stay as they are"


@dataclass(frozen=True, kw_only=True)
class FigureResult:
    """A figure with all that is needed to show it, and to make it again."""

    name: str
    title: str
    paper: str
    group: str | None = None
    kind: Literal["convergence", "terms", "tradeoff"]
    about: str
    problem: str
    objective: str | None
    measure: str = "simple regret"
    runs: int
    seconds: float
    settings: Mapping[str, Any]
    x_label: str
    y_label: str
    curves: tuple[CurveResult, ...]
    claims: tuple[ClaimResult, ...]
    command: str
    versions: Mapping[str, str]
    like: str | None = None
    variant: str = ""
    accountant: Spender = "moments"

    def __post_init__(self) -> None:
        named = re.fullmatch(r"[a-z0-9][a-z0-9-]{0,79}", self.name) is not None
        check(named, "name must be lower-case letters, digits and hyphens", name=self.name)
        check(self.runs > 0, "runs must be above 0", runs=self.runs)
        check(bool(self.curves), "a figure must have curves")
        if self.kind == "tradeoff":
            self._check_points()

    def _check_points(self) -> None:
        """A point of a series needs an ε to stand at, and without points there is no trade-off."""
        points = [curve for curve in self.curves if curve.series is not None]
        check(bool(points), "a trade-off must have a curve with a series")
        for curve in points:
            spent = curve.epsilon or {}
            first, pld = spent.get(self.accountant), spent.get("pld")
            known = first is not None and min(first, pld or 0) >= 0
            rule = f"{curve.full_label!r} has a series, so its ε must be a number from 0 up"
            check(known, rule, **{self.accountant: first, "pld": pld})

    @property
    def own(self) -> bool:
        """Whether it is somebody's own: neither the paper's nor one of this project's."""
        return not self.paper and self.group in (None, "own")

    @property
    def heading(self) -> str:
        """Its title and its place in the paper."""
        return f"{self.title} ({self.paper})" if self.paper else self.title

    @property
    def quantity(self) -> str:
        """What y is, in words."""
        return "value" if self.kind == "terms" else self.measure

    def to_dict(self) -> dict[str, Any]:
        """What its file holds."""
        return {"schema": SCHEMA, "version": __version__, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Any, origin: str) -> FigureResult:
        """The figure that `to_dict` wrote; anything else, or of another version, is refused."""
        known = data if isinstance(data, dict) else {}
        try:
            check(data is known, f"it must be an object, got {type(data).__name__}")
            for key, ours in (("schema", SCHEMA), ("version", __version__)):
                check(known.get(key) == ours, f"{key} must be {ours!r}", **{key: known.get(key)})
            return cast(FigureResult, _read(cls, data, ""))
        except InvalidInput as error:
            command = known.get("command")
            again = command if isinstance(command, str) and command else AGAIN
            raise StorageError(
                f"{origin} is not a figure to report: {error}; finished runs are kept, "
                f"make it again with: {again}"
            ) from error


@lru_cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, data: Any, where: str) -> Any:
    """An instance of a class from what JSON gave; keys that are not its fields are passed over."""
    _require(isinstance(data, dict), where, "an object", data)
    found = {}
    for field in fields(kind):
        if field.name in data:
            path = f"{where}.{field.name}".removeprefix(".")
            found[field.name] = _value(_types(kind)[field.name], data[field.name], path)
        else:
            check(field.default is not MISSING, f"{where or 'the file'} lacks {field.name!r}")
    try:
        return kind(**found)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}" if where else str(error)) from error


def _value(kind: Any, value: Any, where: str) -> Any:
    """A value of the type of its field, from what JSON gave."""
    origin, inner = get_origin(kind), get_args(kind)
    if NoneType in inner:
        return None if value is None else _value(inner[0], value, where)
    if is_dataclass(kind):
        return _read(kind, value, where)
    if origin is tuple:
        any_length = inner[1] is Ellipsis
        _require(isinstance(value, list), where, "a list", value)
        _require(any_length or len(value) == len(inner), where, f"{len(inner)} numbers", value)
        return tuple(_value(inner[0], entry, f"{where}[{k}]") for k, entry in enumerate(value))
    if origin is Mapping:
        _require(isinstance(value, dict), where, "an object", value)
        return {key: _value(inner[1], entry, f"{where}.{key}") for key, entry in value.items()}
    if origin is Literal:
        _require(value in inner, where, f"one of {inner}", value)
    elif kind is float:
        number = type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)
        _require(number, where, "a finite number", value)
    elif kind is not Any:
        _require(type(value) is kind, where, _NAMES[kind], value)
    return value


def _require(condition: bool, where: str, words: str, value: Any) -> None:
    if not condition:
        raise InvalidInput(f"{where} must be {words}, got {str(value)[:60]!r}")
