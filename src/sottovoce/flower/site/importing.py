"""A site that already has trials: those of an Optuna study of its own become what it knows.

All of them go into a memory that is made whole and then put into place, before the site takes part.
What happens after, a kill at any moment or a restart, neither loses nor doubles them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from sottovoce.errors import InvalidInput, SottovoceError, SpaceError, StorageError, check
from sottovoce.federation.searcher import LARGEST
from sottovoce.files import write_whole
from sottovoce.flower.site.memory import lock
from sottovoce.flower.site.storage import NAME, STORAGES, check_only, close, create, opened
from sottovoce.flower.studyfile import StudyFile
from sottovoce.optuna.spaces import distributions_of
from sottovoce.space import Space

MOST = 1000  # trials that are taken, the latest: each message is made from all of them
PATIENCE = 2.0  # seconds for a call of the site to end
_BEFORE = ("study", "site")  # all that a memory may hold of a site that has done nothing yet
_SQLITE = b"SQLite format 3\0"
_STATES = {TrialState.FAIL: "failed", TrialState.PRUNED: "pruned"}


class Imported(NamedTuple):
    """What came of an import."""

    study: str  # its name there
    taken: int
    left_out: dict[str, int]  # how many, by the reason
    memory: Path


class Taken(NamedTuple):
    """A trial to be known."""

    number: int  # there
    params: dict[str, Any]
    value: float


def import_trials(
    file: StudyFile, folder: Path, source: str, name: str | None = None, storage: str = "sqlite"
) -> Imported:
    """Let the site of a folder know the finished trials of a study that lie in the space.

    source: a storage URL of Optuna's, or the file of one; it is only read.
    name: of the study there; None: the only one.
    storage: the kind of the site's memory.
    """
    check(storage in STORAGES, f"storage must be one of {tuple(STORAGES)}", storage=storage)
    path = folder / STORAGES[storage]
    with lock(folder, PATIENCE) as held:
        check(held, "a site must not be running while trials are imported: stop its `join` first")
        check_only(path)
        noted = _untouched(path, storage)
        with _source(source) as there:
            study = _study(there, name, file)
            found = study.get_trials(deepcopy=False)
        space = file.study.space
        taken, left_out = _fitting(found, space)
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        check(
            bool(taken),
            f"a study to import must have a finished trial in the space; {study.study_name!r} has "
            f"{reasons or 'no trial'}",
        )
        noted["imported"] = len(taken)
        direction = StudyDirection[file.direction.upper()]
        write_whole(path, lambda part: _write(part, storage, direction, noted, space, taken))
    return Imported(study.study_name, len(taken), left_out, path)


def _untouched(path: Path, kind: str) -> dict[str, Any]:
    """What the memory of a site holds that has not taken part yet; refused of any other."""
    if not path.exists():
        return {}
    kept = opened(path, kind)
    try:
        study = optuna.load_study(study_name=NAME, storage=kept)
        noted, trials = study.user_attrs, study.get_trials(deepcopy=False)
    except Exception as error:
        raise StorageError(f"{path} is not a site's memory ({type(error).__name__})") from error
    finally:
        close(kept)
    if "imported" in noted:
        raise InvalidInput(
            f"this site has imported {noted['imported']} trials already: it is done once, and "
            f"they stay"
        )
    if trials or any(key not in _BEFORE for key in noted):
        raise InvalidInput(
            f"this site has taken part in the study already ({len(trials)} trials in {path.name}): "
            f"trials are imported before its first call"
        )
    return dict(noted)


@contextmanager
def _source(source: str) -> Iterator[BaseStorage]:
    """Another storage, open to be read. It is not ours: whatever it raises becomes one line."""
    storage = None
    try:
        storage = _storage_at(source)
        yield storage
    except SottovoceError:
        raise
    except ImportError as error:
        raise InvalidInput(f"that kind of storage needs a driver: {error}") from error
    except RuntimeError as error:  # Optuna's word for a storage of another version
        words = " ".join(str(error).split())
        raise StorageError(f"the storage cannot be read: {words}") from error
    except Exception as error:  # whose words may hold a password
        kind = type(error).__name__
        raise StorageError(f"that is no Optuna storage, or cannot be read ({kind})") from error
    finally:
        if storage is not None:
            close(storage)


def _storage_at(source: str) -> BaseStorage:
    path = Path(source)
    if "://" in source:
        try:
            url = make_url(source)
        except ArgumentError:
            raise InvalidInput("a storage URL is like sqlite:///file.db") from None
        if url.get_backend_name() != "sqlite":
            return RDBStorage(source, skip_table_creation=True)
        path = Path(url.database or "")
    check(path.is_file(), "a storage must be a file that is there, or a URL", file=str(path))
    with path.open("rb") as content:
        if content.read(len(_SQLITE)) != _SQLITE:
            return JournalStorage(JournalFileBackend(str(path)))
    # a path may hold what an address gives a meaning to
    address = f"sqlite:///{path.absolute().as_uri()}?mode=ro&uri=true"
    return RDBStorage(address, skip_table_creation=True)


def _study(storage: BaseStorage, name: str | None, file: StudyFile) -> optuna.Study:
    """The study of that name; another direction is a mistake, since all its values mislead."""
    names = sorted(optuna.get_all_study_names(storage))
    check(bool(names), "a storage to import from must hold a study, this one has none")
    if name is None:
        check(len(names) == 1, "name the study: --study", studies=names)
        name = names[0]
    check(name in names, f"no study {name!r} is in the storage", studies=names)
    study = optuna.load_study(study_name=name, storage=storage)
    directions = [each.name.lower() for each in study.directions]
    rule = f"a study to import must have one objective, to {file.direction}"
    check(directions == [file.direction], rule, directions=directions)
    return study


def _fitting(trials: list[FrozenTrial], space: Space) -> tuple[list[Taken], dict[str, int]]:
    """The trials that can be learnt from, and how many cannot, by the reason."""
    taken, left_out = dict[str, Taken](), Counter[str]()
    for trial in trials:
        params = _params(trial, space)
        if isinstance(params, str):
            left_out[params] += 1
            continue
        key = repr((params, trial.value))
        if key in taken:
            left_out["the same as another"] += 1
        else:
            taken[key] = Taken(trial.number, params, float(trial.value or 0.0))
    found = list(taken.values())
    if len(found) > MOST:
        left_out[f"older than the latest {MOST}"] = len(found) - MOST
    return found[-MOST:], dict(left_out)


def _params(trial: FrozenTrial, space: Space) -> dict[str, Any] | str:
    """Where a trial was, as the space has it; or in words why that cannot be said."""
    if trial.state is not TrialState.COMPLETE:
        return _STATES.get(trial.state, "not finished")
    if trial.value is None or not abs(trial.value) <= LARGEST:
        return "without a finite value"
    varied = {n: v for n, v in trial.params.items() if not trial.distributions[n].single()}
    if any(name not in space.names for name in varied):
        return "with parameters that the space does not have"
    if any(name not in trial.params for name in space.names):
        return "without all parameters of the space"
    try:
        return space.decode(space.encode({name: trial.params[name] for name in space.names}))
    except SpaceError:
        return "outside of the space"


def _write(
    path: Path,
    kind: str,
    direction: StudyDirection,
    noted: Mapping[str, Any],
    space: Space,
    taken: list[Taken],
) -> None:
    """A new memory with these trials."""
    declared = distributions_of(space)
    create(path, kind, direction)
    kept = opened(path, kind)
    try:
        study = optuna.load_study(study_name=NAME, storage=kept)
        for name, value in noted.items():
            study.set_user_attr(name, value)
        for number, params, value in taken:
            known = {"asked": params, "imported": number}
            study.add_trial(
                create_trial(params=params, distributions=declared, value=value, user_attrs=known)
            )
    finally:
        close(kept)
