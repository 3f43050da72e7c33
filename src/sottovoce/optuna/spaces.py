"""Search spaces and Optuna's distributions, one from the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal

from optuna import Trial, TrialPruned, create_study
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import RandomSampler

from sottovoce.errors import SpaceError
from sottovoce.space import Category, Float, Integer, Parameter, Space


def space_of(distributions: Mapping[str, BaseDistribution]) -> Space:
    """The space of an objective's parameters, sorted by name, whatever order it asks in.

    One with a single value is left out: Optuna never asks a sampler for it.
    """
    varied = {name: d for name, d in sorted(distributions.items()) if not d.single()}
    if not varied:
        names = sorted(distributions)
        raise SpaceError(f"a parameter with more than one value is needed, got {names}")
    return Space([_parameter(name, d) for name, d in varied.items()])


def _parameter(name: str, d: BaseDistribution) -> Parameter:
    if isinstance(d, FloatDistribution):
        steps = None if d.step is None else round((d.high - d.low) / d.step) + 1
        return Float(name, d.low, d.high, d.log, steps)
    if isinstance(d, IntDistribution):
        return Integer(name, d.low, d.high, d.log, d.step)
    if isinstance(d, CategoricalDistribution):
        if any(
            choice is None for choice in d.choices
        ):  # Category would say what a choice may be, not what to do
            raise SpaceError(
                f"parameter {name!r}: a study's file has no word for None, "
                f"name the choice, 'none' say; got {d.choices}"
            )
        return Category(name, d.choices)  # type: ignore[arg-type]
    raise SpaceError(f"parameter {name!r}: no such kind of parameter is known, got {d!r}")


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """What an objective has to ask for, by name.

    Steps that Optuna cannot write (on a logarithmic scale, or thirds of a range) become a plain
    range: the objective asks for that, and gets values on the steps.
    """
    return {p.name: _distribution(p) for p in space.parameters}


def _distribution(p: Parameter) -> BaseDistribution:
    if isinstance(p, Category):
        return CategoricalDistribution(p.choices)
    if isinstance(p, Integer):
        return IntDistribution(p.low, p.high, p.log, p.step or 1)
    return FloatDistribution(p.low, p.high, p.log, _step(p))


def _step(p: Float) -> float | None:
    """The step between the values, if Optuna would take it for one that divides the range."""
    if p.steps is None or p.log:
        return None
    length = Decimal(str(p.high)) - Decimal(str(p.low))  # as Optuna divides
    step = float(length / (p.steps - 1))
    return None if length % Decimal(str(step)) else step


def check_asked(distributions: Mapping[str, BaseDistribution], space: Space) -> None:
    """Whatever a trial asked for must be what the space declares.

    It may ask for less: a branch that it did not take has no part in its value.
    """
    declared = distributions_of(space)
    for name, asked in distributions.items():
        free = asked.single() and name not in declared  # a constant, which no space need declare
        if asked != declared.get(name) and not free:
            raise SpaceError(must_declare(name, asked, declared.get(name)))


def must_declare(name: str, asked: BaseDistribution, declared: BaseDistribution | None) -> str:
    """What to say when an objective and its study's space differ."""
    has = "does not have it" if declared is None else f"declares {declared}"
    return (
        f"parameter {name!r}: the study's space must declare it exactly as the objective asks "
        f"for it, {asked}; it {has}"
    )


def traced_space(objective: Callable[[Trial], float], *, site: int | None = None) -> Space:
    """The space that an objective asks for, found by running one trial at random.

    site: what it finds in `trial.study.user_attrs["site"]`, as a simulated site would.
    """
    study = create_study(sampler=RandomSampler())
    if site is not None:
        study.set_user_attr("site", site)
    trial = study.ask()
    with suppress(TrialPruned):  # it has asked for its parameters by then
        objective(trial)
    return space_of(trial.distributions)


def space_toml(space: Space) -> str:
    """The space as the tables [[space.parameters]] of study.toml."""
    tables = [
        "\n".join(["[[space.parameters]]", *(f"{key} = {_toml(v)}" for key, v in table.items())])
        for table in space.to_dict()["parameters"]
    ]
    return "\n\n".join(tables) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # JSON's words are TOML's too, but for one control character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
