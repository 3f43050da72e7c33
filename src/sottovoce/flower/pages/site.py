"""What a site's folder says of its search while it runs, as data for its live page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sottovoce.flower.pages.glimpse import glimpse
from sottovoce.flower.result.data import SiteResult, TrialResult
from sottovoce.flower.result.found import Party
from sottovoce.flower.result.recorded import memory_in, recorded
from sottovoce.flower.result.site import site_result
from sottovoce.flower.site.memory import STORAGES
from sottovoce.flower.studyfile import StudyFile


@dataclass(frozen=True)
class SiteView:
    """All that the page shows."""

    result: SiteResult
    running: tuple[Mapping[str, Any], ...]  # the parameters of the trials under way
    spoke: int  # last round that it spoke in; -1: none
    seconds_left: float | None  # at the pace so far, waiting for others included
    dashboard: str | None  # what to tell optuna-dashboard, where that is installed


def look_at_site(file: StudyFile, party: Party, study: str) -> SiteView:
    """The site's search as its memory has it now."""
    with glimpse(party.folder) as copy:
        found = recorded(copy)
        result = site_result(
            file,
            copy,
            study=study,
            site=party.name,
            simulation=party.simulation,
            modelled=False,
        )
    return SiteView(
        result,
        found.running,
        found.spoke,
        seconds_left(result.trials, result.planned, file.cadence),
        _dashboard(memory_in(party.folder)),
    )


def seconds_left(
    trials: tuple[TrialResult, ...], planned: int, cadence: float | None = None
) -> float | None:
    """How long the trials to come take at the pace so far; None if that cannot be told yet."""
    to_come = planned - len(trials)
    if to_come <= 0:
        return 0.0
    if cadence is not None:
        return to_come * cadence
    times = [datetime.fromisoformat(trial.ended) for trial in trials if trial.ended is not None]
    if len(times) < 2:
        return None
    pace = (max(times) - min(times)).total_seconds() / (len(times) - 1)
    return to_come * pace


def _dashboard(memory: Path | None) -> str | None:
    """How to open the site's memory there; read-only, so that it cannot disturb the study."""
    if memory is None or find_spec("optuna_dashboard") is None:
        return None
    if memory.name == STORAGES["journal"]:
        return str(memory.absolute())
    return f"sqlite:///{memory.absolute().as_uri()}?mode=ro&uri=true"
