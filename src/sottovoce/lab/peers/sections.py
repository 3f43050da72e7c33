"""What docs/beyond.md tells, section by section: which entries, on which problems, how often.

A section says it once: what is run, what its table reads, and what is said to be missing all follow
from it. TEST problems throughout, but where a section says so. Entries that search alone
are those of 100 sites in every section: how many others there are is nothing to them.

Symbols: N agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sottovoce.errors import InvalidInput, suggestion
from sottovoce.lab.peers.solo import SoloTask
from sottovoce.lab.peers.together import Federation, TogetherTask
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.suite import problems
from sottovoce.privacy.budget import paper_delta

OURS, CONTROL, GP, SAMPLER, VOTE = (
    *("sottovoce", "sottovoce/control", "gp", "solo/gpsampler", "dp-hype"),
)
SOLO = (GP, SAMPLER)
TRIALS = 30
MAIN = Federation(100, TRIALS, 1.0)
THIRTY = Federation(30, TRIALS, 4.0)
TEN = Federation(10, TRIALS, 8.0)
SIZES = (10, 30, 100, 300, 1000, 10_000)  # N of the figure of growth
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
GROWTH_TRIALS = 20
GROWTH_PROBLEMS = ("michalewicz", "memory")  # three numbers; four parameters of all kinds
DIFFERENT = {  # agents that differ, by how
    "nothing in common": ("gp:alpha=1,dims=3,lengthscale=0.4", "ridge:kinship=strangers"),
    "two opposite groups": ("ridge:kinship=opposed", "pipeline:kinship=opposed"),
}
LIED = ("michalewicz", "ridge", "memory", "pipeline")
PAPER = {"landmine": (29, 15.17), "har": (30, 15.2), "digits": (50, 15.7)}  # N, the paper's ε


@dataclass(frozen=True)
class Part:
    """Entries that are run on the same problems, in federations of one size."""

    size: Federation
    problems: tuple[str, ...]
    entries: tuple[str, ...]
    runs: int
    alone: int = 2  # agents of each solo search, a run

    def tasks(self, folder: Path, problem: str, entry: str, device: str | None = None) -> Tasks:
        """The runs of one entry on one problem."""
        size, most = self.size, problem_named(problem).setting.agents
        if entry.startswith("solo/") and (most is None or most >= MAIN.agents):
            size = replace(MAIN, trials=size.trials)
        return [
            TogetherTask(folder, problem, entry, size, run, self.alone, device=device)
            for run in range(self.runs)
        ]

    def all_tasks(self, folder: Path, device: str | None = None) -> Tasks:
        """All of it: run by run, so that what is cut short has a few runs of everything."""
        every = [
            self.tasks(folder, problem, entry, device)
            for problem in self.problems
            for entry in self.entries
        ]
        return [each[run] for run in range(self.runs) for each in every]


Tasks = list[TogetherTask]


@dataclass(frozen=True)
class Alone:
    """Searches alone, by seed."""

    problems: tuple[str, ...]
    searches: tuple[str, ...]
    seeds: int
    trials: int

    def tasks(self, folder: Path, problem: str, search: str) -> list[SoloTask]:
        """The runs of one search on one problem."""
        return [SoloTask(folder, problem, search, run, self.trials) for run in range(self.seeds)]

    def all_tasks(self, folder: Path) -> list[SoloTask]:
        """All of it, seed by seed."""
        every = [self.tasks(folder, p, search) for p in self.problems for search in self.searches]
        return [each[run] for run in range(self.seeds) for each in every]


def _fitting(size: Federation) -> tuple[str, ...]:
    """TEST problems that have so many agents."""
    agents = {name: problem_named(name).setting.agents for name in problems("test")}
    return tuple(name for name, most in agents.items() if most is None or most >= size.agents)


def _federations() -> dict[str, tuple[Part, ...]]:
    hundred = _fitting(MAIN)
    usual = (OURS, CONTROL, GP)
    differing = tuple(name for names in DIFFERENT.values() for name in names)
    return {
        "solo": (Part(MAIN, hundred, (SAMPLER, VOTE), 20),),
        "ten": (Part(TEN, _fitting(TEN), (*usual, SAMPLER), 20),),
        "real": _real(usual),
        "dp-fts-de": (Part(MAIN, hundred, ("dp-fts-de/own", "dp-fts-de/features"), 3),),
        "differ": (
            Part(MAIN, differing, (*usual, SAMPLER), 5),
            Part(MAIN, LIED, ("sottovoce/dishonest",), 5),
        ),
        "thirty": (Part(THIRTY, _fitting(THIRTY), (*usual, SAMPLER), 20),),
        "peers": (
            Part(MAIN, hundred, tuple(f"{OURS}/{v}" for v in ("local", "quiet", "flat")), 5),
            Part(MAIN, hundred, (f"{GP}/flat",), 5),
        ),
        "main": (Part(MAIN, hundred, (*usual, SAMPLER, VOTE), 20),),
        **_growth(),
    }


def _real(usual: tuple[str, ...]) -> tuple[Part, ...]:
    """Sites there differ in what can be reached at all: a solo search must be run by each."""
    parts = list[Part]()
    for name, (agents, epsilon) in PAPER.items():
        size = Federation(agents, TRIALS, epsilon / 10, paper_delta(agents))
        parts.append(Part(size, (name,), usual, 10))
        parts.append(Part(size, (name,), (SAMPLER,), 2, alone=agents))
    return tuple(parts)


def _growth() -> dict[str, tuple[Part, ...]]:
    """Fewer runs of larger federations: each is a mean over more agents."""
    parts = dict[str, tuple[Part, ...]]()
    for agents, runs in zip(SIZES, (8, 4, 1, 1, 1, 1), strict=True):
        usual = Part(Federation(agents, GROWTH_TRIALS, 1.0), GROWTH_PROBLEMS, (GP, CONTROL), runs)
        at = [
            Part(Federation(agents, GROWTH_TRIALS, epsilon), GROWTH_PROBLEMS, (OURS,), runs)
            for epsilon in EPSILONS
        ]
        quiet = Part(usual.size, GROWTH_PROBLEMS, ("sottovoce/quiet",), runs)
        parts[f"growth-{agents}"] = (*([usual] if agents <= 100 else []), *at, quiet)
    return parts


FEDERATIONS = _federations()
ALONE = {
    "alone": Alone(
        (*problems("test"), "bowl", "switches", "choices", "boosting", "svm"),
        ("sottovoce", "gpsampler", "tpe", "random"),
        20,
        60,
    ),
    "hebo": Alone(problems("test"), ("hebo",), 5, 30),
}
SECTIONS = (*ALONE, *FEDERATIONS)


def tasks_of(
    section: str, folder: Path, device: str | None = None, some: Sequence[str] | None = None
) -> list[SoloTask] | Tasks:
    """All runs of a section, or those on some problems of it."""
    if section not in SECTIONS:
        raise InvalidInput(f"unknown section {section!r}; {suggestion(section, SECTIONS)}")
    if section in ALONE:
        solo = ALONE[section].all_tasks(folder / "solo")
        return [task for task in solo if some is None or task.problem in some]
    parts = FEDERATIONS[section]
    every = [task for part in parts for task in part.all_tasks(folder / "together", device)]
    return [task for task in every if some is None or task.problem in some]
