"""Ways to search alone: what is asked for the next trial and told how it went.

Each is made as a person would: with its defaults and a seed. Values are to be maximised.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol

import optuna
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState

from sottovoce.errors import InvalidInput, suggestion
from sottovoce.optuna import Sampler
from sottovoce.optuna.spaces import distributions_of
from sottovoce.space import Category, Float, Integer, Parameter, Space


class Search(Protocol):
    """One search, trial by trial."""

    def ask(self) -> dict[str, Any]:
        """The parameters of the next trial."""

    def tell(self, value: float | None) -> None:
        """How it went; None: it failed."""


class OptunaSearch:
    """A sampler in a study of its own, in memory."""

    def __init__(self, sampler: BaseSampler, space: Space) -> None:
        self._study = optuna.create_study(sampler=sampler, direction="maximize")
        self._distributions = distributions_of(space)
        self._trial: optuna.Trial | None = None

    def ask(self) -> dict[str, Any]:
        """All parameters at once."""
        self._trial = self._study.ask(self._distributions)
        return self._trial.params

    def tell(self, value: float | None) -> None:
        """A failed trial is one of Optuna's failed ones."""
        if self._trial is None:
            raise InvalidInput("a trial must be asked for before its value is told")
        if value is None:
            self._study.tell(self._trial, state=TrialState.FAIL)
        else:
            self._study.tell(self._trial, value)
        self._trial = None


class HeboSearch:
    """HEBO, which knows no failed trials: one is told as the worst value so far."""

    def __init__(self, seed: int, space: Space) -> None:
        import numpy as np
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        np.random.seed(seed)  # it draws from the global generator
        torch.manual_seed(seed)
        self._space, self._worst = space, 0.0
        self._hebo = HEBO(
            DesignSpace().parse([_hebo(p) for p in space.parameters]), scramble_seed=seed
        )
        self._asked: Any = None

    def ask(self) -> dict[str, Any]:
        """One suggestion; what is rounded over a bound is put back."""
        self._asked = self._hebo.suggest(n_suggestions=1)
        row = self._asked.iloc[0].to_dict()
        return {p.name: _within(p, row[p.name]) for p in self._space.parameters}

    def tell(self, value: float | None) -> None:
        """It minimises."""
        import numpy as np

        loss = self._worst if value is None else -value
        self._worst = max(self._worst, loss)
        self._hebo.observe(self._asked, np.asarray([[loss]]))


def _hebo(p: Parameter) -> dict[str, Any]:
    if isinstance(p, Category):
        return {"name": p.name, "type": "cat", "categories": list(p.choices)}
    kind = "num" if isinstance(p, Float) else "int"
    if p.log:
        kind = "pow" if isinstance(p, Float) else "pow_int"
    if isinstance(p, Integer) and p.step is not None:
        return {"name": p.name, "type": "step_int", "lb": p.low, "ub": p.high, "step": p.step}
    return {"name": p.name, "type": kind, "lb": p.low, "ub": p.high, "base": 10}


def _within(p: Parameter, value: Any) -> Any:
    if isinstance(p, Category):
        return value.item() if hasattr(value, "item") else value
    inside = min(max(float(value), p.low), p.high)
    return round(inside) if isinstance(p, Integer) else inside


def _gp_sampler(seed: int) -> BaseSampler:
    import torch

    torch.set_num_threads(1)  # as all others; on small matrices more are slower
    return GPSampler(seed=seed)


_SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "sottovoce": lambda seed: Sampler(seed=seed),
    "gpsampler": _gp_sampler,
    "tpe": lambda seed: TPESampler(seed=seed),
    "random": lambda seed: RandomSampler(seed=seed),
}


def known_searches() -> tuple[str, ...]:
    """The names of those that can be run here."""
    without = () if find_spec("torch") else ("gpsampler",)
    names = [name for name in _SAMPLERS if name not in without]
    return (*names, "hebo") if find_spec("hebo") else tuple(names)


def search_named(name: str, space: Space, seed: int) -> Search:
    """A new search of that space."""
    if name not in known_searches():
        raise InvalidInput(f"unknown search {name!r}; {suggestion(name, known_searches())}")
    if name == "hebo":
        return HeboSearch(seed, space)
    return OptunaSearch(_SAMPLERS[name](seed), space)
