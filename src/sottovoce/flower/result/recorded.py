"""A look at what a site has on its disk, which takes no lock and changes nothing.

So it can be taken while the site runs a trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple, cast

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from sottovoce.errors import StorageError
from sottovoce.flower.result.data import EarlierTrial, TrialResult
from sottovoce.flower.site.memory import NAME, STORAGES, counts


class Recorded(NamedTuple):
    """What a site's memory says of its trials."""

    trials: tuple[TrialResult, ...]  # that count, in order
    running: tuple[Mapping[str, Any], ...]  # the parameters of the trials under way
    fingerprint: str | None
    agent: int | None
    heard: int  # round of the last broadcast that it heard; -1: none
    spoke: int  # last round that it spoke in; -1: none
    earlier: tuple[EarlierTrial, ...] = ()  # from before the study


def memory_in(folder: Path) -> Path | None:
    """The file of a site's memory, if there is one in the folder."""
    found = [folder / name for name in STORAGES.values() if (folder / name).is_file()]
    return found[0] if found else None


def recorded(folder: Path) -> Recorded:
    """What the site in the folder has tried, heard and said; nothing, before it is called first."""
    path = memory_in(folder)
    if path is None:
        return Recorded((), (), None, None, -1, -1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = _opened(path)
        try:
            study = optuna.load_study(study_name=NAME, storage=storage)
            return _read(study.user_attrs, study.get_trials(deepcopy=False))
        finally:
            if isinstance(storage, RDBStorage):
                storage.remove_session()
                storage.engine.dispose()
    except (SQLAlchemyError, optuna.exceptions.OptunaError, OSError, KeyError, ValueError) as error:
        kind = type(error).__name__
        raise StorageError(f"{path} cannot be read as a site's memory ({kind})") from error


def _opened(path: Path) -> BaseStorage:
    if path.name == STORAGES["journal"]:
        return JournalStorage(JournalFileBackend(str(path)))
    # a path may hold what an address gives a meaning to
    address = f"sqlite:///{path.absolute().as_uri()}?mode=ro&uri=true"
    return RDBStorage(address, skip_table_creation=True, skip_compatibility_check=True)


def _read(noted: Mapping[str, Any], trials: list[FrozenTrial]) -> Recorded:
    left = noted.get("left", 0)
    ended = [
        each for each in trials if each.number >= left and each.state.is_finished() and counts(each)
    ]
    running = [each.user_attrs for each in trials if each.state is TrialState.RUNNING]
    rounds = [int(key.removeprefix("said-")) for key in noted if key.startswith("said-")]
    heard = noted.get("heard")
    return Recorded(
        tuple(_trial(number, each) for number, each in enumerate(ended, 1)),
        tuple(each["asked"] for each in running if "asked" in each),
        noted.get("study"),
        noted.get("site"),
        -1 if heard is None else heard["round"],
        max(rounds, default=-1),
        tuple(_earlier(each) for each in trials if "imported" in each.user_attrs),
    )


def _earlier(trial: FrozenTrial) -> EarlierTrial:
    noted = trial.user_attrs
    return EarlierTrial(noted["imported"], noted["asked"], cast(float, trial.value))


def _trial(number: int, trial: FrozenTrial) -> TrialResult:
    value = trial.value if trial.state is TrialState.COMPLETE else None
    noted, error = trial.user_attrs, None
    if value is None:
        words = "it was pruned" if trial.state is TrialState.PRUNED else "its process died"
        error = " ".join(str(noted.get("error", words)).split())
    return TrialResult(number, noted["asked"], value, _when(trial), noted["round"], error)


def _when(trial: FrozenTrial) -> str | None:
    """Optuna keeps local time, without saying so."""
    ended = trial.datetime_complete
    with suppress(OverflowError, OSError):
        return None if ended is None else ended.astimezone(UTC).isoformat(timespec="seconds")
    return None
