"""Whose results a folder holds: a site's, the coordinator's, or all those of a rehearsal.

PROJECT/site/             a site that joined         PROJECT/coordinator/   the coordinator
PROJECT/rehearsal/NAME/   the parties of a rehearsal, each a project of its own
PROJECT/simulation/       ledger.db, and site-N/ of every simulated site
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from sottovoce.errors import InvalidInput, check
from sottovoce.flower.pages.result import write_page
from sottovoce.flower.result.coordinator import LEDGER, coordinator_result
from sottovoce.flower.result.data import CoordinatorResult, SiteResult, write_result
from sottovoce.flower.result.recorded import memory_in
from sottovoce.flower.result.site import site_result, study_name
from sottovoce.flower.site.leaving import HOME
from sottovoce.flower.sites import simulated_roster
from sottovoce.flower.studyfile import STUDY, StudyFile, read_study, study_from
from sottovoce.privacy.ledger import read_ledger

STATE, REHEARSAL, SIMULATION = "coordinator", "rehearsal", "simulation"


@dataclass(frozen=True)
class Party:
    """One whose result can be told: its folder, and the project whose study.toml is its own."""

    project: Path
    folder: Path
    name: str
    site: bool
    simulation: bool = False

    def result(self) -> SiteResult | CoordinatorResult:
        """What the study came to, for it."""
        name = study_name(self.project)
        if not self.site:
            return coordinator_result(self.folder, study=name)
        file = study_of(self)
        return site_result(
            file, self.folder, study=name, site=self.name, simulation=self.simulation
        )

    def kept(self) -> tuple[SiteResult | CoordinatorResult, Path]:
        """The same, and the file that it is now in; beside that is a page of it."""
        found = self.result()
        write_page(found, self.folder)
        return found, write_result(found, self.folder)


def parties_in(folder: Path) -> list[Party]:
    """All parties in a folder, the coordinator last."""
    folder = folder.absolute()
    check(folder.is_dir(), "what has a result must be a folder that is there", folder=str(folder))
    found = list(_in(folder))
    if not found:
        raise InvalidInput(
            f"{folder} holds no result yet: it must be a project in which `sottovoce join`, "
            f"`start` or `rehearse` has run, a rehearsal's folder, or one of `sottovoce run`"
        )
    return sorted(found, key=lambda party: not party.site)


def _in(folder: Path) -> Iterator[Party]:
    above = folder.parent
    if (folder / STUDY).is_file():
        yield from _of_project(folder, "this site")
        if not any(map(_holds, (folder / HOME, folder / STATE))):
            for name in (REHEARSAL, SIMULATION):
                if (folder / name).is_dir():
                    yield from _in(folder / name)
    elif folder.name == HOME and memory_in(folder) and (above / STUDY).is_file():
        yield Party(above, folder, "this site", site=True)
    elif folder.name == STATE and (folder / LEDGER).is_file() and (above / STUDY).is_file():
        yield Party(above, folder, "the coordinator", site=False)
    elif (folder / LEDGER).is_file() and (above / STUDY).is_file():
        seeded = read_ledger(folder / LEDGER).constants.get("simulation") is True
        sites = [each for each in sorted(folder.glob("site-*"), key=_number) if memory_in(each)]
        yield from (Party(above, each, each.name, True, seeded) for each in sites)
        yield Party(above, folder, "the coordinator", site=False)
    elif memory_in(folder) and (above / LEDGER).is_file():
        yield from (party for party in _in(above) if party.folder == folder)
    elif folder.is_dir():
        for each in sorted(folder.iterdir(), key=_number):
            if (each / STUDY).is_file():
                yield from _of_project(each, each.name)


def _of_project(project: Path, name: str) -> Iterator[Party]:
    if memory_in(project / HOME):
        yield Party(project, project / HOME, name, site=True)
    if any((project / STATE / name).is_file() for name in (LEDGER, f"{LEDGER}.head")):
        yield Party(project, project / STATE, "the coordinator", site=False)


def _holds(folder: Path) -> bool:
    return memory_in(folder) is not None or (folder / LEDGER).is_file()


def _number(path: Path) -> tuple[str, int]:
    """site-10 after site-9."""
    head, _, tail = path.name.rpartition("-")
    with suppress(ValueError):
        return head, int(tail)
    return path.name, -1


def study_of(party: Party) -> StudyFile:
    """The study in a party's own study.toml."""
    project = party.project
    try:
        noise = _noise((project / STUDY).read_bytes())
    except (OSError, ValueError):
        noise = None  # what is wrong with it is said below
    file = read_study(project / STUDY, noise)
    if party.simulation and file.study.sums is not None:
        return replace(file, roster=simulated_roster(file.study.agents))
    return file


@lru_cache(maxsize=1)  # sites of a rehearsal have the same study.toml, and it takes seconds
def _noise(text: bytes) -> float | None:
    mechanism = study_from(tomllib.loads(text.decode())).study.method.mechanism
    return None if mechanism is None else mechanism.noise
