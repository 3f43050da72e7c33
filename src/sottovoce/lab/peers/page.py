"""docs/beyond.md from the kept runs: what a user can act on, then the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput, StorageError, suggestion
from sottovoce.files import write_text
from sottovoce.lab.peers.comparison import filled, paired
from sottovoce.lab.peers.readings import Counts, Reading, counted, curves_in, reading, readings
from sottovoce.lab.peers.sections import (
    ALONE,
    CONTROL,
    DIFFERENT,
    FEDERATIONS,
    GP,
    LIED,
    MAIN,
    OURS,
    PAPER,
    SAMPLER,
    TEN,
    THIRTY,
    VOTE,
    Part,
    tasks_of,
)
from sottovoce.lab.peers.solo import regrets
from sottovoce.lab.peers.tables import (
    BASE,
    NAMES,
    SEARCHES,
    against,
    federation_table,
    judged,
    peer_table,
    rank_table,
    ranked,
    sentence,
    solo_table,
    table,
    told,
)
from sottovoce.lab.peers.together import Federation

FloatArray = NDArray[np.float64]
BEGIN = "<!-- made by benchmarks/beyond.py, do not edit -->"
END = "<!-- end of what is made -->"
PEERS = ("sottovoce/quiet", "sottovoce/local", "sottovoce/flat", "gp/flat", VOTE)
FTS = ("dp-fts-de/own", "dp-fts-de/features")
LIES = "sottovoce/dishonest"
TIMED = 10  # suggestions that are not timed: random for most searches
FIGURE = "growth.png"
SIZES = {"main": MAIN, "thirty": THIRTY, "ten": TEN}
GROWTH = tuple(name for name in FEDERATIONS if name.startswith("growth-"))
Made = tuple[list[str], list[str]]  # lines of the summary, and of a chapter


@dataclass(frozen=True)
class Topic:
    """A part of the page that is made by itself: lines of the summary, and a chapter."""

    label: str  # how its lines of the summary begin
    heading: str  # how its chapter's does
    sections: tuple[str, ...]  # of runs
    made: Callable[[Path, Path], Made]  # from their folder; and the page's, for a figure


def update_page(folder: Path, document: Path, topics: Sequence[str] | None = None) -> Path:
    """Put what the folder's runs say between the document's marks.

    topics: what is made anew, all unless said; the rest of the page stays as it is.
    """
    topics = tuple(TOPICS) if topics is None else topics
    for name in topics:
        if name not in TOPICS:
            raise InvalidInput(f"unknown topic {name!r}; {suggestion(name, TOPICS)}")
    try:
        text = document.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{document} cannot be read: {error}") from error
    head, found, rest = text.partition(BEGIN)
    before, closed, tail = rest.partition(END)
    if not (found and closed):
        raise StorageError(f"{document} must have the marks {BEGIN!r} and {END!r}")
    body = "\n".join(_body(folder, document.parent, before, topics)).strip()
    write_text(document, f"{head}{BEGIN}\n\n{body}\n\n{END}{tail}")
    return document


def _body(folder: Path, beside: Path, before: str, topics: Sequence[str]) -> list[str]:
    """All of it: first the summary, then the tables that it is taken from."""
    chapters = ["## " + each.strip() for each in f"\n{before}".split("\n## ")[1:]]
    short, tables, missing = list[str](), list[str](), list[str]()
    for name, topic in TOPICS.items():
        if name in topics:
            bullets, lines = topic.made(folder, beside)
            left = [line for section in topic.sections for line in _missing(folder, section)]
        else:
            label = f"- **{topic.label}"
            bullets = [line for line in before.splitlines() if line.startswith(label)]
            lines = [each + "\n" for each in chapters if each.startswith(f"## {topic.heading}")]
            unsaid = tuple(f"- `{section}`:" for section in topic.sections)
            left = [line for line in before.splitlines() if line.startswith(unsaid)]
        short, tables, missing = short + bullets, tables + lines, missing + left
    unrun = ["## What was not measured", "", *missing, ""] if missing else []
    return ["## In short", "", *short, "", *tables, *unrun]


def _consortium(name: str) -> Topic:
    """Federations of one size."""
    size = SIZES[name]

    def made(folder: Path, _: Path) -> Made:
        found = readings(folder, FEDERATIONS[name])
        if not found:
            return [], []
        counts = counted(found)
        short = [f"- **{_size(size)}: {_advice(counts)}.** {sentence(counts)}"]
        return short, [*_title(size, found), *federation_table(found, _shown(found))]

    return Topic(_size(size), _size(size), (name,), made)


def _also(*names: str) -> list[Part]:
    """The parts of sections, with what was run for all."""
    return [part for name in ("main", *names) for part in FEDERATIONS[name]]


def _size(size: Federation) -> str:
    return f"{size.agents} sites, ε = {size.epsilon:g}"


def _title(size: Federation, found: Sequence[Reading]) -> list[str]:
    said = _runs({one.runs for one in found})
    return [f"## {_size(size)}, δ = {size.delta:g}", "", f"{said} runs.", ""]


def _runs(counts: set[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least}" if least == most else f"{least} to {most}"


def _shown(found: Sequence[Reading]) -> list[str]:
    known = (OURS, CONTROL, GP, SAMPLER, VOTE)
    return [entry for entry in known if any(entry in one.curves for one in found)]


def _advice(counts: Counts) -> str:
    if counts.joins:
        return "join, if your sites tune alike"
    if 2 * counts.better > counts.problems and counts.better > 2 * len(counts.worse):
        return "join, if your sites tune alike, but not without risk"
    return "going alone is about as good"


def _differ(folder: Path, _: Path) -> Made:
    """Agents that have nothing in common, are opposed, or lie."""
    parts, short, rows = _also("differ"), list[str](), list[list[str]]()
    asked = [(how, name, OURS) for how, names in DIFFERENT.items() for name in names]
    asked += [("one in five lies", name, LIES) for name in LIED]
    words: dict[str, list[str]] = {}
    for how, name, entry in asked:
        one = reading(name, curves_in(folder, parts, name), entry)
        if one is None:
            continue
        words.setdefault(how, []).append(one.over_solo.word)
        means = [told(one.mean(each)) for each in (OURS, CONTROL, GP, SAMPLER)]
        cells = [judged(one.over_solo), judged(one.over_control), str(one.runs)]
        rows.append([how, f"`{name}`", *means, *cells])
    if not rows:
        return [], []
    for how, each in words.items():
        worse = each.count("worse")
        said = f"worse on {worse} of {len(each)}" if worse else "not told to be worse"
        better = each.count("better")
        also = f", better on {better} of {len(each)}" if better else ""
        short.append(f"- **Agents that differ, {how}**, against alone: {said}{also}.")
    head = ["how", "problem", NAMES[OURS], NAMES[CONTROL], NAMES[GP], NAMES[SAMPLER]]
    head += ["over the best solo", "over noise only, all trials", "runs"]
    about = f"{_size(MAIN)}. Liars know what honest agents say, and say the opposite at the clip."
    return short, ["## Agents that differ", "", about, "", *table(head, rows)]


def _real(folder: Path, _: Path) -> Made:
    """The paper's real problems, at a tenth of its ε."""
    found = readings(folder, FEDERATIONS["real"])
    if not found:
        return [], []
    about = [
        f"`{name}`: N = {agents}, ε = {epsilon / 10:.3g}"
        for name, (agents, epsilon) in PAPER.items()
    ]
    short = []
    for one in found:
        over = one.over(SAMPLER)
        alone = f"{judged(over)} over GPSampler alone" if over else "GPSampler not run"
        noise = f"{judged(one.over_control)} over noise alone, all trials"
        short.append(f"- **`{one.problem}` at a tenth of the paper's ε**: {alone}; {noise}.")
    lines = ["## The paper's real problems, at a tenth of its ε", ""]
    lines += [f"{'; '.join(about)}; δ = N^(−1.1). By the tables that the project ships.", ""]
    return short, [*lines, *federation_table(found, _shown(found))]


def _private(folder: Path, _: Path) -> Made:
    """Other private ways, and the ceiling."""
    found = readings(folder, _also("peers", "dp-fts-de"))
    peers = [p for p in (*PEERS, *FTS) if any(p in one.curves for one in found)]
    if not peers:
        return [], []
    said = [said for peer in peers if (said := against(found, peer)) is not None]
    short = [f"- **Against other ways**, {MAIN.agents} sites, after 30 trials. {'. '.join(said)}."]
    each = {len(one.curves[peer]) for one in found for peer in peers if peer in one.curves}
    about = (
        f"{_runs({one.runs for one in found})} runs of `sottovoce`, {_runs(each)} of the others, "
        "compared where both have one. Regret after 30 trials; + where `sottovoce` is better "
        "beyond 95 %, − where it is worse. "
        "*Without noise* is the ceiling, ε = ∞. *Local noise*: each site adds all of it itself, "
        "the same ε against the server. *Nothing usual*: begun without what functions of tuning "
        "usually look like ([method.md](method.md)); `gp` with it is thus also the public warm "
        "start, ε = 0. DP-FTS-DE has its own noise, 10 initial trials and a release "
        "before each query; with *our features* it has M and ℓ as `pooled-ts` has them."
    )
    return short, ["## Against other ways to share", "", about, "", *peer_table(found, peers)]


def _growth(_: Path, beside: Path) -> Made:
    if not (beside / FIGURE).is_file():
        return [], []
    lines = ["## How the gain grows", "", f"![Regret by N and ε]({FIGURE})", ""]
    return ["- **With more sites or a larger ε**: the figure below."], lines


def solo_curves(folder: Path, *names: str) -> dict[str, dict[str, FloatArray]]:
    """All searches' regrets of the first seeds that all have, by problem; complete ones only."""
    found: dict[str, dict[str, FloatArray]] = {}
    for problem in ALONE[names[0]].problems:
        curves: dict[str, FloatArray] = {}
        for name in names:
            for search in ALONE[name].searches:
                tasks = ALONE[name].tasks(folder / "solo", problem, search)
                tasks = [task for task in tasks if task.path.is_file()]
                if len(tasks) == ALONE[name].seeds:
                    curves[search] = regrets(tasks)
        wanted = sum(len(ALONE[name].searches) for name in names)
        if len(curves) == wanted:
            seeds = min(len(each) for each in curves.values())
            found[problem] = filled({name: each[:seeds] for name, each in curves.items()})
    return found


def _seconds(folder: Path, problems: Sequence[str]) -> dict[str, float]:
    """The median time of a suggestion, of each search."""
    by_search: dict[str, list[float]] = {}
    for problem in problems:
        for search in ALONE["alone"].searches:
            for task in ALONE["alone"].tasks(folder / "solo", problem, search):
                by_search.setdefault(search, []).extend(task.result().seconds[TIMED:])
    return {search: float(np.median(each)) for search, each in by_search.items()}


def _alone(folder: Path, _: Path) -> Made:
    """Searches alone, and HEBO on fewer seeds."""
    short, lines = list[str](), list[str]()
    found = solo_curves(folder, "alone")
    if found:
        searches, last = ALONE["alone"].searches, ALONE["alone"].trials
        seconds, points = _seconds(folder, list(found)), (15, 30, last)
        words = [_words(found, n) for n in points]
        ranks = [ranked(found, searches, n) for n in points]
        mean = ", ".join(f"{each['sottovoce']:.2f} against {each[BASE]:.2f}" for each in ranks)
        said = "; ".join(f"after {n} {word}" for n, word in zip(points, words, strict=True))
        times = seconds[BASE] / seconds["sottovoce"]
        short.append(
            f"- **Alone**, `sottovoce.optuna.Sampler` beside GPSampler on {len(found)} problems: "
            f"mean rank {mean} after {', '.join(map(str, points))} trials; {said}; "
            f"{times:.1f} times as fast."
        )
        lines += ["## Alone", "", f"One agent a seed, {ALONE['alone'].seeds} seeds.", ""]
        lines += solo_table(found, searches, points) + rank_table(found, searches, seconds)
    with_hebo = solo_curves(folder, "alone", "hebo")
    if with_hebo:
        searches = ("sottovoce", BASE, "hebo")
        ranks_30 = ranked(with_hebo, searches, 30)
        said = ", ".join(f"{SEARCHES[s]} {ranks_30[s]:.2f}" for s in searches)
        about = f"HEBO, {ALONE['hebo'].seeds} seeds. Mean rank after 30 trials: {said}."
        lines += [about, "", *solo_table(with_hebo, searches, (15, 30))]
    return short, lines


def _words(found: dict[str, dict[str, FloatArray]], n: int) -> str:
    each = [
        paired(curves["sottovoce"][:, n - 1], curves[BASE][:, n - 1]).word
        for curves in found.values()
    ]
    return f"{each.count('better')} better and {each.count('worse') or 'none'} worse"


def _missing(folder: Path, section: str) -> list[str]:
    """What the folder does not hold of a section."""
    tasks = tasks_of(section, folder)
    there = sum(task.path.is_file() for task in tasks)
    return [f"- `{section}`: {there} of {len(tasks)} runs."] if there < len(tasks) else []


TOPICS = {
    **{name: _consortium(name) for name in SIZES},
    "differ": Topic("Agents that differ", "Agents that differ", ("differ",), _differ),
    "real": Topic("`", "The paper's real problems", ("real",), _real),
    "ways": Topic("Against other ways", "Against other ways", ("peers", "dp-fts-de"), _private),
    "growth": Topic("With more sites", "How the gain grows", GROWTH, _growth),
    "alone": Topic("Alone", "Alone", ("alone", "hebo"), _alone),
}
