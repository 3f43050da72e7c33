"""A rehearsal's folder as its parties leave it, without Flower's processes: all else is real."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from optuna.trial import Trial
from tests.endtoend.parties import EVERYBODY, Objective, Parties

from sottovoce.flower.deploy.project import copy_project, make_project
from sottovoce.flower.site.site import Site
from sottovoce.flower.sites import write_sites
from sottovoce.flower.studyfile import StudyFile

AGENTS, ROUNDS = len(EVERYBODY), 4


def ridge(trial: Trial) -> float:
    """The template's parameters, in no time."""
    penalty = trial.suggest_float("penalty", 1e-4, 100.0, log=True)
    return float(penalty**0.1) + (trial.suggest_float("width", 0.2, 5.0) - 1.2) ** 2


@lru_cache(maxsize=1)
def template() -> tuple[dict[str, str], StudyFile]:
    """A new project's files, and its study: the noise that keeps its ε takes seconds to find."""
    with TemporaryDirectory() as folder:
        project = Path(folder) / "ridge"
        file = make_project(project, agents=AGENTS, rounds=ROUNDS)
        return {path.name: path.read_text() for path in project.iterdir()}, file


class Staged(Parties):
    """Projects of a coordinator and three sites side by side."""

    def __init__(self, folder: Path, objective: Objective = ridge) -> None:
        self.project = folder / "ridge"
        files, self.file = template()
        self.project.mkdir()
        for name, text in files.items():
            (self.project / name).write_text(text)
        self.stage = self.project / "rehearsal"
        self.stage.mkdir()
        for name in ("hub", *(f"site-{n + 1}" for n in EVERYBODY)):
            copy_project(self.project, self.stage / name)
        self.folder = self.stage / "hub" / "coordinator"
        self.folder.mkdir()
        write_sites(
            self.stage / "hub" / "sites.toml", {f"site-{n + 1}": f"{900 + n}" for n in EVERYBODY}
        )
        self.sites = [self.site(n, objective) for n in EVERYBODY]
        self.reached = defaultdict(set)
        self.said = defaultdict(set)

    def site(self, n: int, objective: Objective = ridge) -> Site:
        return Site(self.file, objective, self.home(n))

    def home(self, n: int) -> Path:
        return self.stage / f"site-{n + 1}" / "site"
