"""A site's result, from its study.toml and what it has on its disk."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.errors import SpaceError, StudyMismatch
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.result.alone import FEWEST, IMPORTANCE, OwnModel
from sottovoce.flower.result.data import Best, EarlierTrial, SiteResult, TrialResult
from sottovoce.flower.result.recorded import Recorded, recorded
from sottovoce.flower.site import leaving
from sottovoce.flower.studyfile import StudyFile
from sottovoce.privacy.accountant import replace_one
from sottovoce.privacy.events import adjacency


def site_result(
    file: StudyFile,
    folder: Path,
    *,
    study: str,
    site: str,
    simulation: bool = False,
    modelled: bool = True,
) -> SiteResult:
    """The result so far of the site that lives in a folder.

    study, site: their names. Where it is not over, `alone` and the rest are of what there is.
    modelled: False leaves out what takes a model of the values, and seconds.
    """
    found = recorded(folder)
    ours = file.study.fingerprint
    if found.fingerprint not in (None, ours):
        raise StudyMismatch(
            f"{folder} belongs to study {str(found.fingerprint)[:12]}, study.toml is {ours[:12]}"
        )
    values = [trial.value for trial in found.trials]
    sign = 1.0 if file.direction == "maximize" else -1.0
    planned = file.study.method.initial + file.study.rounds
    model = _model(file.study, found, sign) if modelled else None
    importance = None if model is None else model.importance()
    initial = file.study.method.initial
    return SiteResult(
        study=study,
        fingerprint=ours,
        site=site,
        agent=found.agent,
        method=file.study.method.name,
        direction=file.direction,
        over=len(found.trials) >= planned,
        simulation=simulation,
        planned=planned,
        initial=initial,
        best=best_of(found.trials, sign, found.earlier),
        trials=found.trials,
        failed=values.count(None),
        best_so_far=best_so_far(values, sign, known_before(found.earlier, sign)),
        alone=None if model is None else model.alone(initial, len(values), sign),
        importance=importance,
        importance_by=_importance_by(model, importance),
        left=leaving.why(folder),
        earlier=found.earlier,
        **_spent(file, found),
    )


def best_of(
    trials: Sequence[TrialResult], sign: float, earlier: Sequence[EarlierTrial] = ()
) -> Best | None:
    """The best trial, the first of equals; sign −1: values are minimised."""
    known = [Best(each.params, each.value, each.number, earlier=True) for each in earlier]
    known += [
        Best(trial.params, trial.value, trial.number) for trial in trials if trial.value is not None
    ]
    return max(known, key=lambda each: sign * each.value, default=None)


def known_before(earlier: Sequence[EarlierTrial], sign: float) -> float | None:
    """The best value from before the study."""
    return sign * max(sign * each.value for each in earlier) if earlier else None


def best_so_far(
    values: Sequence[float | None], sign: float, before: float | None = None
) -> tuple[float | None, ...]:
    """The best value after each trial; `before`: the best that was known already."""
    raw = [math.nan if value is None else sign * value for value in (before, *values)]
    best = sign * np.fmax.accumulate(np.asarray(raw, float))[1:]
    return tuple(None if math.isnan(value) else float(value) for value in best)


def study_name(project: Path) -> str:
    """What a project is called: in its pyproject.toml, or by its folder."""
    try:
        table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
        return str(table["project"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return project.absolute().name


def _model(study: FederatedStudy, found: Recorded, sign: float) -> OwnModel | None:
    known: list[TrialResult | EarlierTrial] = [*found.earlier, *found.trials]
    if not known:
        return None
    try:
        points = np.stack([study.space.encode(each.params) for each in known])
    except SpaceError:
        return None  # of a space that was changed by hand
    raw = [math.nan if each.value is None else sign * each.value for each in known]
    return OwnModel.fitted(study, points, np.asarray(raw), len(found.earlier))


def _importance_by(model: OwnModel | None, importance: object) -> str:
    if model is None:
        return f"not told: it takes {FEWEST} values that are not all the same"
    return IMPORTANCE if importance else "not told: the values hardly depend on any parameter"


def _spent(file: StudyFile, found: Recorded) -> dict[str, Any]:
    """What the releases that it may have had a part in have spent, from what is public.

    One that it spoke in, and did not hear of, may have been made: it counts.
    """
    study, budget = file.study, file.budget
    last = max(found.heard, found.spoke)
    made = sum(number <= last for number in study.release_rounds)
    events = [planned_event(study, "planned")] * made
    return {
        "epsilon": budget.spent(events) if made else 0.0,
        "replace_one": replace_one(events, budget.delta, budget.accountant) if made else 0.0,
        "delta": budget.delta,
        "granted": budget.epsilon,
        "accountant": budget.accountant,
        "adjacency": adjacency([planned_event(study, "planned")]),
        "releases": made,
        "releases_planned": len(study.release_rounds),
    }
