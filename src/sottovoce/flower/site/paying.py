"""A site's side of its purse, for the study in its folder: entered, asked before the site speaks.

`purse.json` in the site's folder says which purse the study was entered in, what the site saw of
it last, and holds a salt: a purse notes what was said by a digest that tells nothing without it.
The file is the site's own, so no run and no coordinator can name another purse, or none. Without
it no purse is asked; what was entered stays set aside all the same.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sottovoce.errors import LedgerError, PrivacyError, StorageError
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.study import FederatedStudy
from sottovoce.files import write_whole
from sottovoce.flower.site import leaving
from sottovoce.flower.site.log import log_error
from sottovoce.flower.site.memory import STORAGES, Memory, lock
from sottovoce.flower.studyfile import StudyFile
from sottovoce.privacy.purse import SOURCE
from sottovoce.privacy.pursefile import Mark, Purse

NAME = "purse.json"
PATIENCE = 2.0  # seconds for a call of the site to end
SILENT = "this site's purse does not let it speak"  # all that the coordinator learns


@dataclass(frozen=True)
class Kept:
    """What a site remembers of its purse."""

    path: Path
    salt: str
    mark: Mark


def kept_in(folder: Path) -> Kept | None:
    """What the site with this folder remembers of its purse; None: its study is in none."""
    path = folder / NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Kept(Path(found["path"]), str(found["salt"]), Mark(**found["mark"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} is damaged, or cannot be read: {error}") from error


def enter(study: FederatedStudy, folder: Path, name: str, purse: Path) -> Mark:
    """Enter a study in a purse, for good; nothing happens if it is there. The operator's to do."""
    kept = kept_in(folder)
    asked = Purse(purse.absolute())
    known = None if kept is None else kept.mark
    stake = asked.look(known)[0].stakes.get(study.fingerprint)
    if kept is None and stake is not None and stake.said:
        raise LedgerError(
            f"study {study.fingerprint[:12]} has spoken from this purse already, and {folder} does "
            f"not know of it: that was another folder, or this one was set back. To run a study "
            f"again, give it another feature_seed"
        )
    event, releases = planned_event(study, SOURCE), len(study.release_rounds)
    mark = asked.enter(study.fingerprint, name, event, releases, again=True, known=known)
    salt = secrets.token_hex(32) if kept is None else kept.salt
    _write(folder, Kept(asked.path, salt, mark))
    return mark


class Account:
    """What a site's purse has to say, for the time of one call. The folder must be locked."""

    def __init__(self, folder: Path, study: FederatedStudy) -> None:
        self._folder, self._study = folder, study.fingerprint

    def check(self) -> None:
        """Refuse to work for a study that is not open in the purse."""
        with self._refusing():
            kept = kept_in(self._folder)
            if kept is not None:
                book, mark = Purse(kept.path).look(kept.mark)
                stake = book.stakes.get(self._study)
                if stake is None or not stake.open:
                    raise LedgerError(f"study {self._study[:12]} is not open in {kept.path}")
                self._seen(kept, mark)

    def say(self, agent: int, round_number: int, content: Iterable[bytes]) -> None:
        """Note in the purse what is about to be sent, and only then return."""
        with self._refusing():
            kept = kept_in(self._folder)
            if kept is not None:
                named = hmac.new(bytes.fromhex(kept.salt), digestmod=hashlib.sha256)
                for part in content:
                    named.update(len(part).to_bytes(8, "big") + part)
                words = self._study, agent, round_number, named.hexdigest()
                self._seen(kept, Purse(kept.path).say(*words, known=kept.mark))

    def close(self, said: Iterable[int]) -> None:
        """The study is over: give back what was not said. What cannot be stays set aside."""
        try:
            kept = kept_in(self._folder)
            if kept is not None:
                purse = Purse(kept.path)
                self._seen(kept, purse.close(self._study, list(said), known=kept.mark))
        except (PrivacyError, StorageError) as error:
            log_error(self._folder, error)

    def _seen(self, kept: Kept, mark: Mark) -> None:
        if mark != kept.mark:
            _write(self._folder, replace(kept, mark=mark))

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Tell the operator why, and others only that: what a purse holds is nobody else's."""
        try:
            yield
        except (PrivacyError, StorageError) as error:
            leaving.note(self._folder, f"This site says nothing in the study: {error}")
            raise PrivacyError(SILENT) from error


def end(file: StudyFile, folder: Path) -> Mark:
    """Take no further part in the folder's study, and give back what was not said."""
    with lock(folder, PATIENCE) as held:
        if not held:
            raise StorageError(f"the site in {folder} is at work: interrupt `join` first")
        kept = kept_in(folder)
        if kept is None:
            raise LedgerError(f"the study in {folder} is in no purse")
        purse, study = Purse(kept.path), file.study
        stake = purse.look(kept.mark)[0].stakes.get(study.fingerprint)
        there = [kind for kind, name in STORAGES.items() if (folder / name).exists()]
        if not there and stake is not None and stake.said:
            raise StorageError(
                f"the site's memory in {folder} is gone, so what it said cannot be told: all of "
                f"the study stays set aside"
            )
        said: list[int] = []
        for kind in there:
            with Memory(folder, kind, study, file.direction) as memory:
                said += [number for number in study.release_rounds if memory.spoke(number)]
        mark = purse.close(study.fingerprint, said, known=kept.mark)
        _write(folder, replace(kept, mark=mark))
        return mark


def _write(folder: Path, kept: Kept) -> None:
    content = {"path": str(kept.path), "salt": kept.salt, "mark": asdict(kept.mark)}

    def written(part: Path) -> None:
        with part.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())

    write_whole(folder / NAME, written)
