"""What live pages show of a folder: looked at anew when a file of it changed, else remembered."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from sottovoce.errors import InvalidInput, SottovoceError
from sottovoce.flower.pages.coordinator import look_at_coordinator
from sottovoce.flower.pages.glimpse import Mark, mark_of
from sottovoce.flower.pages.live import Shown, coordinator_page, site_page, waiting_page
from sottovoce.flower.pages.site import look_at_site
from sottovoce.flower.result.found import Party, parties_in, study_of
from sottovoce.flower.result.site import study_name
from sottovoce.flower.sites import NAME as SITES
from sottovoce.flower.studyfile import STUDY
from sottovoce.pages.text import escaped

_Seen = tuple[tuple[Mark, list[int]], Shown]


class Watcher:
    """Looks at a folder for any number of pages; never at the processes that write it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_by_one = threading.Lock()
        self._seen: dict[str, _Seen] = {}

    def names(self) -> list[str]:
        """Who can be looked at: the coordinator first."""
        try:
            found = parties_in(self._folder)
        except SottovoceError:
            return []
        return [party.name for party in sorted(found, key=lambda party: party.site)]

    def shown(self, name: str | None) -> Shown:
        """What a party's page shows now; of nobody in particular, that of the first one."""
        with self._one_by_one:
            try:
                found = sorted(parties_in(self._folder), key=lambda party: party.site)
            except InvalidInput:
                return waiting_page()
            except SottovoceError as error:
                return waiting_page(_sentence(error), "bad")
            party = found[0] if name is None else _named(name, found)
            if party is None:
                return waiting_page(f"There is nothing of {escaped(name)} here, or not any more.")
            return self._looked_at(party)

    def _looked_at(self, party: Party) -> Shown:
        files = (party.project / STUDY, party.project / SITES)
        mark = (mark_of(party.folder), [_changed(file) for file in files])
        kept = self._seen.get(party.name)
        if kept is None or kept[0] != mark:
            kept = (mark, _look(party))
            self._seen[party.name] = kept
        return kept[1]


def _look(party: Party) -> Shown:
    study = study_name(party.project)
    try:
        if not party.site:
            return coordinator_page(look_at_coordinator(party.project, party.folder, study))
        file = study_of(party)
        return site_page(look_at_site(file, party, study))
    except SottovoceError as error:
        return waiting_page(_sentence(error), "bad")


def _named(name: str, found: Sequence[Party]) -> Party | None:
    return next((party for party in found if party.name == name), None)


def _sentence(error: SottovoceError) -> str:
    text = str(error)
    return escaped(text[:1].upper() + text[1:]) + "."


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
