"""study.toml: the public constants of a study, which every party holds a copy of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.federation.methods import method_named
from sottovoce.federation.planning import DELTA, plan_study
from sottovoce.federation.searcher import Direction, check_direction
from sottovoce.federation.settings import SETTINGS
from sottovoce.federation.study import FederatedStudy
from sottovoce.files import read_toml
from sottovoce.flower.sites import NAME as SITES
from sottovoce.flower.sites import Roster, read_roster
from sottovoce.plugins import reference_in
from sottovoce.privacy.budget import Budget
from sottovoce.secure_sum.terms import SecureSum, default_unreliable
from sottovoce.space import Space

if TYPE_CHECKING:
    from sottovoce.secure_sum.protocol import Terms

STUDY = "study.toml"
NUMBERS: dict[str, type | tuple[type, ...]] = {
    "agents": int,
    "rounds": int,
    "feature_seed": int,
    "epsilon": (int, float),
    "delta": (int, float),
    "trial_limit": (int, float),
    "cadence": (int, float),
    "unreliable": int,
    "aggregators": int,
}
NEEDED = ("agents", "rounds", "epsilon", "direction")
KEYS = (*NUMBERS, "method", "direction", "trust")
TRUSTS = COORDINATOR, NOBODY = ("coordinator", "nobody")
CHANGES = tuple(name for name in SETTINGS if name != "noise")  # which follows from ε


class Step(NamedTuple):
    """What sites do between two releases: this many trials, then speak in this round.

    The last step has round T: there is nothing more to say.
    """

    round: int
    trials: int


@dataclass(frozen=True)
class StudyFile:
    """A study as its parties agreed on it."""

    study: FederatedStudy
    epsilon: float
    delta: float
    direction: Direction
    trial_limit: float = 600.0  # seconds that a site is given for one trial
    cadence: float | None = None  # seconds of every trial, also of one that takes less
    roster: Roster | None = None  # where nobody is to be trusted with vectors: everybody's keys

    @property
    def terms(self) -> Terms:
        """What all parties of its sums agree on."""
        from sottovoce.secure_sum.protocol import Terms

        sums = self.study.sums
        if sums is None or self.roster is None:
            raise InvalidInput(
                f"trust is {NOBODY!r}, so {SITES} with the keys of all {self.study.agents} sites "
                f"must lie beside study.toml: the coordinator's `sottovoce register` writes it"
            )
        agents = self.study.agents
        return Terms(
            self.study.fingerprint, self.study.grid, sums.committee(agents), self.roster.keys
        )

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        return Budget(self.epsilon, self.delta)

    @property
    def constants(self) -> dict[str, Any]:
        """What all parties must agree on, as plain data; time limits are the coordinator's own."""
        return {
            **self.study.to_dict(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "direction": self.direction,
            **({} if self.cadence is None else {"cadence": self.cadence}),
        }

    def seconds(self, step: Step) -> float:
        """For the trials of a step: all that they may take, or with a cadence what they do take."""
        return step.trials * (self.trial_limit if self.cadence is None else self.cadence)

    @property
    def steps(self) -> list[Step]:
        """All steps of the study, in order."""
        study = self.study
        ends = [*study.release_rounds[1:], study.rounds]
        pairs = zip(study.release_rounds, ends, strict=True)
        later = [Step(end, end - start) for start, end in pairs]
        return [Step(0, study.method.initial), *later]


def read_study(path: str | Path, noise: float | None = None, *, enrolled: bool = True) -> StudyFile:
    """The study in a TOML file; whatever is wrong with it is named.

    noise: what an earlier reading of the same file found, which takes seconds.
    enrolled: False while sites are still being listed, so that their keys are not all there.
    """
    data = read_toml(path)
    keys = Path(path).with_name(SITES)
    try:
        sealed = enrolled and _trust(data) == NOBODY and keys.exists()
        return study_from(data, noise, read_roster(keys) if sealed else None)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _trust(data: Mapping[str, Any]) -> object:
    table = data.get("study")
    return table.get("trust") if isinstance(table, Mapping) else None


def study_from(
    data: Mapping[str, Any], noise: float | None = None, roster: Roster | None = None
) -> StudyFile:
    """The study in the tables [study] and [space] of a file, and its sites' keys if it has any."""
    for key in data:
        check(key in ("study", "space"), "its tables must be [study] and [space]", table=key)
    for key in ("study", "space"):
        table = data.get(key)
        check(isinstance(table, Mapping), f"a table [{key}] is needed", **{key: table})
    table = data["study"]
    _check_keys(table)
    space = Space.from_dict(data["space"])
    name = str(table.get("method", "sottovoce"))
    # a study file goes from hand to hand: reading one must not run what it names
    check(reference_in(name) is None, "a federation's method must be an installed one", method=name)
    method = method_named(name)
    rule = "a federation needs a method that says something of its agents"
    check(not method.noise_only, rule, method=method.name)
    epsilon, delta = float(table["epsilon"]), float(table.get("delta", DELTA))
    study = plan_study(
        space,
        agents=table["agents"],
        rounds=table["rounds"],
        epsilon=epsilon,
        delta=delta,
        method=method,
        feature_seed=table.get("feature_seed", 0),
        changes={key: table[key] for key in CHANGES if key in table},
        noise=noise,
        sums=_sums(table, roster),
    )
    limit = float(table.get("trial_limit", StudyFile.trial_limit))
    cadence = float(table["cadence"]) if "cadence" in table else None
    for key, value in {"trial_limit": limit, "cadence": cadence}.items():
        rule = f"{key} must be a finite number of seconds above 0"
        check(value is None or 0 < value < math.inf, rule, **{key: value})
    direction = cast(Direction, table["direction"])
    return StudyFile(study, epsilon, delta, direction, limit, cadence, roster)


def _sums(table: Mapping[str, Any], roster: Roster | None) -> SecureSum | None:
    """How sums are taken: where nobody is trusted, in shares."""
    trust, agents = table.get("trust", TRUSTS[0]), table["agents"]
    check(trust in TRUSTS, f"trust must be one of {TRUSTS}", trust=trust)
    if trust != NOBODY:
        for key in ("unreliable", "aggregators"):
            check(key not in table, f"{key} is for trust = 'nobody'", trust=trust)
        return None
    aggregators = table.get("aggregators", 0)
    if roster is not None:
        parties = agents + aggregators
        rule = f"the study has {agents} agents, so {SITES} must have the keys of {parties} sites"
        if aggregators:
            rule = f"{rule} and aggregators together"
        check(len(roster.keys) == parties, rule, keys=len(roster.keys))
    unreliable = table.get("unreliable", default_unreliable(agents, aggregators))
    return SecureSum(unreliable, "" if roster is None else roster.digest, aggregators)


def _check_keys(table: Mapping[str, Any]) -> None:
    for key in table:
        if key not in (*KEYS, *CHANGES):
            known = suggestion(key, (*KEYS, *CHANGES))
            raise InvalidInput(f"[study] has an unknown key {key!r}; {known}")
    missing = [key for key in NEEDED if key not in table]
    check(not missing, f"[study] must have {', '.join(NEEDED)}", missing=missing)
    for key, kind in NUMBERS.items():
        value = table.get(key, 1)
        right = isinstance(value, kind) and not isinstance(value, bool)
        word = "a whole number" if kind is int else "a number"
        check(right, f"{key} must be {word}", **{key: value})
    check_direction(table["direction"])


def difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """The first constant in which two parties differ, in words; None if there is none."""
    mine, other = dict(_leaves(ours)), dict(_leaves(theirs))
    for name in sorted(mine.keys() | other.keys()):
        if name not in mine or name not in other or mine[name] != other[name]:
            there, here = (
                repr(all_[name]) if name in all_ else "missing" for all_ in (other, mine)
            )
            return f"{name} is {there} there and {here} here"
    return None


def _leaves(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    elif isinstance(data, list) and data:
        for k, value in enumerate(data):
            yield from _leaves(value, f"{name}[{k}]")
    else:
        yield name, data
