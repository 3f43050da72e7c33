"""Tables of Markdown from readings, and sentences from their counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sottovoce.lab.peers.comparison import CHECKPOINTS, Paired, mean_ranks, paired
from sottovoce.lab.peers.readings import Counts, Reading
from sottovoce.lab.peers.sections import CONTROL, GP, OURS, SAMPLER, VOTE

FloatArray = NDArray[np.float64]
NAMES = {
    OURS: "`sottovoce`",
    CONTROL: "noise only",
    GP: "`gp` alone",
    SAMPLER: "GPSampler alone",
    VOTE: "DP-Hype",
    "sottovoce/local": "local noise",
    "sottovoce/quiet": "without noise",
    "sottovoce/flat": "`sottovoce`, nothing usual",
    "gp/flat": "`gp`, nothing usual",
    "sottovoce/dishonest": "one in five lies",
    "dp-fts-de/own": "DP-FTS-DE",
    "dp-fts-de/features": "DP-FTS-DE, our features",
}
SEARCHES = {
    "sottovoce": "`Sampler`",
    "gpsampler": "GPSampler",
    "tpe": "TPE",
    "random": "random",
    "hebo": "HEBO",
}
EARLIER = (10, 15, 20)
BASE = "gpsampler"
MARKS = {"better": " +", "worse": " −", "–": ""}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Lines of a table, and an empty one."""
    cells = [list(head), *(list(row) for row in rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return [lines[0], "|" + "---|" * len(cells[0]), *lines[1:], ""]


def told(value: float | None) -> str:
    """A regret; a dot where nothing is known."""
    return "·" if value is None else f"{value:.4f}"


def judged(found: Paired | None) -> str:
    """A difference with its interval and its word."""
    if found is None:
        return "·"
    word = f"**{found.word}**" if found.word in ("better", "worse") else found.word
    return f"{found.mean:+.4f} ± {found.reach:.4f} {word}"


def trials(needs: float, most: int) -> str:
    """How many trials are needed."""
    return f"> {most}" if math.isinf(needs) else f"{needs:.0f}"


def federation_table(found: Sequence[Reading], shown: Sequence[str]) -> list[str]:
    """Each problem: entries after 30 trials, ours before, ours against solo and noise."""
    ends = {one.after for one in found}
    after = f" after {ends.pop()}" if len(ends) == 1 else ""
    head = [
        *("problem", "best solo"),
        *(f"{NAMES[entry]}{after if entry == OURS else ''}" for entry in shown),
        *(f"after {n}" for n in EARLIER),
        *("over the best solo", "the same, all trials", "over noise only, all trials", "needs"),
    ]
    rows = [
        [
            f"`{one.problem}`",
            NAMES[one.solo].removesuffix(" alone"),
            *(told(one.mean(entry)) for entry in shown),
            *(told(one.mean(OURS, n)) for n in EARLIER),
            *(judged(one.over_solo), judged(one.over_solo_all), judged(one.over_control)),
            trials(one.needs, one.curves[OURS].shape[1]),
        ]
        for one in found
    ]
    return table(head, rows)


def peer_table(found: Sequence[Reading], peers: Sequence[str]) -> list[str]:
    """Each problem: regret of ours and of peers; + where ours is better, − where it is worse."""
    rows = [
        [
            f"`{one.problem}`",
            told(one.mean(OURS)),
            *(
                told(one.mean(peer))
                + ("" if (over := one.over(peer)) is None else MARKS[over.word])
                for peer in peers
            ),
        ]
        for one in found
    ]
    return table(["problem", NAMES[OURS], *(NAMES[peer] for peer in peers)], rows)


def against(found: Sequence[Reading], peer: str) -> str | None:
    """On how many problems ours is better than a peer; None: it was not run."""
    words = [over.word for one in found if (over := one.over(peer)) is not None]
    if not words:
        return None
    worse = words.count("worse")
    harm = f", worse on {worse}" if worse else ", worse on none"
    return f"{NAMES[peer]}: better on {words.count('better')} of {len(words)}{harm}"


def sentence(counts: Counts, most: int = 30) -> str:
    """A section's verdicts in words."""
    names = f" ({', '.join(f'`{name}`' for name in counts.worse)})" if counts.worse else ""
    said = (
        f"After {most} trials better than the best solo search on {counts.better} of "
        f"{counts.problems} problems, worse on {len(counts.worse) or 'none'}{names}; more than 3 % "
        f"above it on {counts.beyond or 'none'}. Over all trials better than it on "
        f"{counts.sooner}, worse on {counts.later or 'none'}. "
    )
    if counts.told:
        harmed = f", worse on {counts.harmed}" if counts.harmed else ""
        said += f"And better than noise alone on {counts.heard} of {counts.told}{harmed}. "
    needs = trials(counts.needs, most)
    return said + f"The median problem needs {needs} trials for what solo has after {most}."


def solo_table(
    found: Mapping[str, Mapping[str, FloatArray]], searches: Sequence[str], points: Sequence[int]
) -> list[str]:
    """Searches alone; + and −: better and worse than GPSampler beyond 95 %."""
    head = ["problem", *(f"{SEARCHES[s]}: {n}" for n in points for s in searches)]
    rows = []
    for problem, curves in found.items():
        cells = [f"`{problem}`"]
        for n in points:
            for search in searches:
                here = paired(curves[search][:, n - 1], curves[BASE][:, n - 1])
                mark = "" if search == BASE else MARKS[here.word]
                cells.append(f"{here.ours:.4f}{mark}")
        rows.append(cells)
    return table(head, rows)


def rank_table(
    found: Mapping[str, Mapping[str, FloatArray]],
    searches: Sequence[str],
    seconds: Mapping[str, float],
) -> list[str]:
    """Mean ranks after so many trials, and what a suggestion takes."""
    length = min(each.shape[1] for curves in found.values() for each in curves.values())
    points = [n for n in CHECKPOINTS if n <= length]
    ranks = {n: ranked(found, searches, n) for n in points}
    rows = [
        [
            SEARCHES[search],
            *(f"{ranks[n][search]:.2f}" for n in points),
            f"{1e3 * seconds[search]:.1f}" if search in seconds else "·",
        ]
        for search in searches
    ]
    return table(["mean rank after", *map(str, points), "ms a suggestion"], rows)


def ranked(
    found: Mapping[str, Mapping[str, FloatArray]], searches: Sequence[str], n: int
) -> dict[str, float]:
    """The mean rank of each search after n trials."""
    return mean_ranks(
        [{s: float(curves[s][:, n - 1].mean()) for s in searches} for curves in found.values()]
    )
