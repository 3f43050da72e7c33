"""A figure to reproduce: its curves, and what the paper claims of them, from one TOML file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast, get_args

from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.federation.methods import method_named
from sottovoce.files import read_toml
from sottovoce.lab.experiments.config import RunConfig, config_from, real, with_objective
from sottovoce.lab.experiments.results import Role, Spender
from sottovoce.privacy.release import Mechanism

MEASURES = ("mean", "final", "first")
Kind = Literal["convergence", "tradeoff"]
RUNS = 5  # the paper's, for its synthetic figures
ROLES = get_args(Role)
BY_FUNCTION = "-by-function"


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    label: str
    config: RunConfig
    role: Role = "method"
    series: str | None = None  # of a trade-off: the points that one line joins
    given: tuple[str, ...] = ()  # the parameters that set it apart
    accounted: str | None = None  # ε as if of this kind of sampling, which bounds nothing


@dataclass(frozen=True)
class Claim:
    """A statement that measurements can bear out or not.

    better/than: the first curve's regret is below the second's, or below `factor` times it.
    comparable/than: they differ by less than the margin.
    quantity/of/value: a number of one curve is the value, within the tolerance: ε by the name of
    an accountant, "clipped_fraction", "final", the regret at T, or "regret", by the measure.
    measure: regret averaged over t = 1..T ("mean"), at T ("final"), over t = 1..5 ("first"), or at
    a t that is given.
    paper: what it says; nothing where the figure is one's own.
    line: what a summary says for all claims that share it. cause: why it may not hold.
    """

    claim: str
    paper: str = ""
    better: str | None = None
    comparable: str | None = None
    than: str | None = None
    measure: str | int = "mean"
    margin: float = 0.0
    factor: float = 1.0
    quantity: str | None = None
    of: str | None = None
    value: float = 0.0
    tolerance: float = 0.0
    line: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        kinds = [self.better, self.comparable, self.quantity]
        check(
            sum(kind is not None for kind in kinds) == 1,
            "a claim must have one of better, comparable and quantity",
            claim=self.claim,
        )
        other = self.of if self.quantity is not None else self.than
        check(other is not None, "a claim must say than which curve, or of which", claim=self.claim)
        check(0 < self.factor < math.inf, "factor must be finite and above 0", factor=self.factor)
        named = self.measure in MEASURES or (type(self.measure) is int and self.measure >= 0)
        rule = f"measure must be one of {MEASURES}, or a whole number t of at least 0"
        check(named, rule, measure=self.measure)

    @property
    def labels(self) -> list[str]:
        """The curves it speaks of."""
        named = (self.better, self.comparable, self.than, self.of)
        return [label for label in named if label is not None]


FACTORS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Vary:
    """A parameter to be halved and doubled, and which way the theorem's bound then goes."""

    symbol: str
    parameter: str
    direction: str
    paper: str
    cause: str = ""  # why measured regret may not follow

    @property
    def verb(self) -> str:
        """What the bound, and regret, do as the parameter grows."""
        return "grows" if self.direction == "up" else "falls"

    def label(self, factor: float) -> str:
        """The curve at that factor; all parameters share the one in the middle."""
        return "base" if factor == 1 else f"{self.symbol} × {factor:g}"


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, or one of your own.

    kind: regret against queries, or a trade-off: regret after the last query against ε.
    group: words with slashes between; each of them chooses it. like, variant: the figure that
    this one is again, and in which other way. functions: drawn so many times, each with `starts`
    runs. accountant: whose ε a trade-off stands over. origin: the file of one's own it is from.
    """

    name: str
    title: str
    paper: str
    about: str
    curves: tuple[Curve, ...]
    claims: tuple[Claim, ...] = ()
    group: str = "own"
    vary: tuple[Vary, ...] = ()  # instead of curves that are written out
    kind: Kind = "convergence"
    like: str | None = None
    variant: str = ""
    functions: int = 0
    accountant: Spender = "moments"
    origin: str = ""

    def __post_init__(self) -> None:
        labels = [curve.label for curve in self.curves]
        check(self.kind in get_args(Kind), f"kind must be one of {get_args(Kind)}", kind=self.kind)
        known = get_args(Spender)
        rule = f"accountant must be one of {known}"
        check(self.accountant in known, rule, accountant=self.accountant)
        check(bool(labels), "a figure must have curves", figure=self.name)
        check(len(set(labels)) == len(labels), "labels of curves must differ", labels=labels)
        for claim in self.claims:
            for label in claim.labels:
                _known(label, labels, f"{self.name}: claim {claim.claim!r}", "curve")
                last = self.curve(label).config.size()[1]
                within = isinstance(claim.measure, str) or claim.measure <= last
                check(within, f"{self.name}: {label!r} ends at t = {last}", measure=claim.measure)

    def curve(self, label: str) -> Curve:
        """The curve of that label."""
        return next(curve for curve in self.curves if curve.label == label)

    def with_runs(self, runs: int | None, seed: int) -> Figure:
        """The same figure over another number of runs, or its own number."""
        changes: dict[str, Any] = {"seed": seed} if runs is None else {"seed": seed, "runs": runs}
        return self._changed(lambda config: replace(config, **changes))

    def by_function(self, count: int) -> Figure:
        """The same figure over so many draws of the objectives, each with its runs as starts."""
        check(count >= 2, "functions must be at least 2", functions=count)
        check(not self.vary, f"{self.name} varies constants: it cannot be told by function")
        return replace(
            self._changed(lambda c: replace(c, runs=count * c.runs, starts=c.runs)),
            name=self.name + BY_FUNCTION,
            title=f"{self.title}, function by function",
            like=self.like or self.name,
            variant=", ".join(filter(None, (self.variant, f"{count} functions"))),
            functions=count,
        )

    def on_device(self, device: str) -> Figure:
        """The same figure with every curve simulated there."""
        return self._changed(lambda config: replace(config, device=device))

    def with_objective(self, objective: str) -> Figure:
        """The same figure with real objectives trained live, or looked up; others as they are."""
        return self._changed(
            lambda config: with_objective(config, objective) if real(config) else config
        )

    def _changed(self, change: Callable[[RunConfig], RunConfig]) -> Figure:
        changed = (replace(c, config=change(c.config)) for c in self.curves)
        return replace(self, curves=tuple(changed))


def figure_from(
    data: Mapping[str, Any], name: str, others: Mapping[str, Mapping[str, Any]] | None = None
) -> Figure:
    """A figure from the content of its TOML file; `others` are those that it may be like."""
    parts = ("common", "curves", "claims", "vary")
    words = ("title", "paper", "about", "group", "kind", "runs", "like", "variant", "accountant")
    _keys(data, (*words, *parts), name)
    if "like" in data:
        data = _merged(data, name, _read_others() if others is None else others)
    check("title" in data, f"{name} must have a title")
    common = data.get("common", {})
    check(isinstance(common, dict), f"{name}: common must be a table", common=common)
    common = {"runs": data.get("runs", RUNS), **common}
    curves = tuple(_curve(entry, common, name) for entry in _tables(data, "curves", name))
    claims = [_filled(Claim, entry, name) for entry in _tables(data, "claims", name)]
    vary = tuple(_filled(Vary, entry, name) for entry in _tables(data, "vary", name))
    curves += tuple(_varied(vary, common, name))
    return Figure(
        name,
        data["title"],
        data.get("paper", ""),
        data.get("about", ""),
        curves,
        tuple(claims),
        data.get("group", "own"),
        vary,
        data.get("kind", "convergence"),
        data.get("like"),
        data.get("variant", ""),
        accountant=data.get("accountant", "moments"),
    )


def _merged(
    data: Mapping[str, Any], name: str, others: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """What a figure is with all that it does not say taken from the one that it is like.

    Common parameters are changed one by one; curves and claims come on top.
    """
    _known(data["like"], list(others), name, "figure to be like")
    base = others[data["like"]]
    check("like" not in base, f"{name}: like must name a figure of its own", like=data["like"])
    variant = data.get("variant")
    check(isinstance(variant, str) and bool(variant), f"{name} must say its variant", got=variant)
    lists = {key: [*base.get(key, []), *_tables(data, key, name)] for key in ("curves", "claims")}
    common = {**base.get("common", {}), **data.get("common", {})}
    return {**base, **data, **lists, "common": common}


def _filled(kind: Any, entry: Mapping[str, Any], name: str) -> Any:
    """A claim or the like from its table."""
    what = f"{name}: a {kind.__name__.lower()}"
    _keys(entry, [field.name for field in fields(kind)], what)
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    lacking = ", ".join(word for word in needed if word not in entry)
    check(not lacking, f"{what} lacks {lacking}", got=dict(entry))
    return kind(**entry)


def _varied(vary: Iterable[Vary], common: Mapping[str, Any], name: str) -> Iterator[Curve]:
    """The curves of a figure that varies its parameters, the common one first."""
    for k, entry in enumerate(vary):
        base = common.get(entry.parameter)
        check(isinstance(base, (int, float)), f"{name}: common must say {entry.parameter}")
        for factor in FACTORS if k == 0 else (FACTORS[0], FACTORS[2]):
            scaled = cast(float, base) * factor
            value = int(scaled) if isinstance(base, int) else scaled
            changed = {**common, entry.parameter: value}
            yield _curve({**changed, "label": entry.label(factor)}, {}, name)


def _curve(entry: Mapping[str, Any], common: Mapping[str, Any], name: str) -> Curve:
    own = dict(entry)
    label, role, series = own.pop("label", None), own.pop("role", "method"), own.pop("series", None)
    accounted = own.pop("accounted", None)
    check(isinstance(label, str) and bool(label), f"{name}: a curve needs a label", label=label)
    check(role in ROLES, f"{name}: role must be one of {ROLES}", role=role)
    shared = _applicable(common, own.get("method", common.get("method")), name)
    config = config_from({**shared, **own}, f"{name}, curve {label!r}")
    return Curve(label, config, role, series, tuple(sorted(set(own) - {"method"})), accounted)


def _applicable(common: Mapping[str, Any], method: Any, name: str) -> dict[str, Any]:
    """The common parameters that mean something to the method."""
    check(isinstance(method, str), f"{name}: a curve needs a method", method=method)
    value = method_named(method)
    protected = {*(field.name for field in fields(Mechanism)), "epsilon"}
    useless = protected if value.mechanism is None else set()
    if value.regions == 1:
        useless.add("regions")
    return {key: item for key, item in common.items() if key not in useless}


def _tables(data: Mapping[str, Any], key: str, name: str) -> list[Mapping[str, Any]]:
    entries = data.get(key, [])
    right = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    check(right, f"{name}: {key} must be a list of tables, [[{key}]]", entries=entries)
    return list(entries)


def _keys(data: Mapping[str, Any], known: Iterable[str], origin: str) -> None:
    for key in data:
        _known(key, list(known), origin, "key")


def _known(word: str, known: list[str], origin: str, what: str) -> None:
    if word not in known:
        raise InvalidInput(f"{origin}: unknown {what} {word!r}; {suggestion(word, known)}")


def figure_from_toml(path: Path) -> Figure:
    """The figure in a TOML file of one's own."""
    return replace(figure_from(read_toml(path), path.stem), origin=str(path))


def known_figures() -> dict[str, Figure]:
    """The paper's figures, by name."""
    return dict(_shipped())


@cache
def _shipped() -> dict[str, Figure]:
    others = _read_others()
    return {name: figure_from(data, name, others) for name, data in others.items()}


def _read_others() -> dict[str, Mapping[str, Any]]:
    """The content of each figure's file, by name."""
    folder = resources.files("sottovoce.lab.experiments") / "figures"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return {f.name.removesuffix(".toml"): tomllib.loads(f.read_text("utf-8")) for f in files}


def chosen_figures(words: Iterable[str]) -> list[Figure]:
    """The figures named: by name, by group, "all", or by the path of a TOML file."""
    known = known_figures()
    groups = sorted({word for figure in known.values() for word in figure.group.split("/")})
    found: dict[str, Figure] = {}
    for word in words:
        if word.endswith(".toml"):
            figure = figure_from_toml(Path(word))
            found[figure.name] = figure
        elif word in ("all", *groups):
            found |= {n: f for n, f in known.items() if word in ("all", *f.group.split("/"))}
        else:
            _known(word, [*known, *groups, "all"], "reproduce", "figure")
            found[word] = known[word]
    return list(found.values())
