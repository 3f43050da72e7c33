"""Configs and the runner that turns them into results on disk."""

from sottovoce.lab.experiments.config import (
    RunConfig,
    config_from,
    config_from_toml,
    with_objective,
)
from sottovoce.lab.experiments.runner import (
    planned_events,
    run_all,
    run_and_save,
    run_one,
    summarise,
)
from sottovoce.lab.experiments.store import RunResult

__all__ = [
    "RunConfig",
    "RunResult",
    "config_from",
    "config_from_toml",
    "planned_events",
    "run_all",
    "run_and_save",
    "run_one",
    "summarise",
    "with_objective",
]
