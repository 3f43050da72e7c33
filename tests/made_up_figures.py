"""Figure files that look like real ones, and some that try to break the page.

    python tests/made_up_figures.py FOLDER

writes them under FOLDER/figures; the tests of the report load this file. No number here is a
result: all are drawn from smooth formulas.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from sottovoce import __version__
from sottovoce.lab.experiments.results import FigureResult

HOSTILE = "<script>alert(1)</script><img src=http://example.com/x onerror=alert(2)>\"'&$_{x"


def line(start: float, end: float, speed: float, length: int = 41) -> dict[str, Any]:
    """A regret that falls from `start` towards `end`."""
    mean = [
        end + (start - end) * math.exp(-speed * t) * (1 + 0.06 * math.sin(1.7 * t + 40 * end))
        for t in range(length)
    ]
    return {"t": list(range(length)), "mean": mean, "stderr": [0.03 * m + 0.0004 for m in mean]}


def curve(label: str, method: str, regret: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A curve of which nothing is sent, unless `more` says otherwise."""
    nothing: dict[str, Any] = {
        "parameters": {},
        "role": "method",
        "epsilon": None,
        "delta": None,
        "adjacency": None,
        "clipped_fraction": None,
        "signal_to_noise": None,
    }
    return {"label": label, "method": method, **nothing, **more, "regret": regret}


def private(moments: float, **more: Any) -> dict[str, Any]:
    """What a private curve has besides its line."""
    by = {"moments": moments, "rdp": 0.86 * moments, "pld": 0.71 * moments, "gdp": 0.69 * moments}
    rest = {"delta": 0.0029, "adjacency": "zero-out", "clipped_fraction": 0.0083}
    return {"epsilon": by, **rest, "signal_to_noise": 1.12, **more}


OPEN = {
    "epsilon": {"moments": None, "rdp": None, "pld": None, "gdp": None},
    "delta": 0.0029,
    "adjacency": "zero-out",
    "clipped_fraction": 0.0,
}


def claim(claim: str, verdict: str, difference: float, **more: Any) -> dict[str, Any]:
    """A claim of the paper with what was measured."""
    rest = {"paper": "better", "measured": difference, "text": "0.0133 → 0.0122"}
    return {"claim": claim, **rest, "stderr": 0.0005, "verdict": verdict, **more}


def figure(name: str, title: str, paper: str, curves: list[Any], claims: list[Any]) -> Any:
    """A whole figure file."""
    return {
        "schema": 1,
        "version": __version__,
        "name": name,
        "title": title,
        "paper": paper,
        "kind": "convergence",
        "about": "Agents that explore different parts of the space at first are better informed "
        "about the whole of it together. No privacy: this looks at exploration alone.",
        "problem": "synthetic",
        "objective": "live",
        "runs": 5,
        "seconds": 312.4,
        "settings": {
            "agents": 200,
            "rounds": 40,
            "clip": 11.0,
            "participation": 0.25,
            "features": 100,
            "length_scale": 0.03,
            "sampling": "poisson",
            "sensitivity": "paper",
            "seed": 0,
            "replacing repeats": True,
            "budget": None,
        },
        "x_label": "iterations",
        "y_label": "simple regret, mean over agents",
        "curves": curves,
        "claims": claims,
        "command": f"sottovoce reproduce {name} --runs 5",
        "versions": {"sottovoce": __version__, "numpy": "2.3.1", "python": "3.11.7"},
    }


def _exploration() -> Any:
    ts = curve("TS", "ts", line(0.2, 0.018, 0.09), role="reference")
    rest = [
        curve(f"FTS-DE, P = {p}", "fts-de", line(0.2, e, s), parameters={"regions": p}, **OPEN)
        for p, e, s in ((2, 0.0122, 0.16), (3, 0.0105, 0.19), (4, 0.0098, 0.22))
    ]
    fts = curve("FTS", "fts", line(0.2, 0.0133, 0.13), parameters={"regions": 1}, **OPEN)
    judged = {"measured": 0.0047, "stderr": 0.0011, "text": "FTS: 0.0150, TS: 0.0197"}
    claims = [
        {"claim": "FTS is better than TS", "paper": "faster", **judged, "verdict": "holds"},
        claim("FTS-DE with P = 2 is better than FTS", "within noise", 0.0007),
        claim("More regions are better, up to P = 4", "holds", 0.0024, paper="P = 4 is best"),
    ]
    return figure("benefit-of-de", "Benefit of distributed exploration", "Fig. 1a", claims=claims,
                  curves=[ts, fts, *rest])  # fmt: skip


def _noise() -> Any:
    ts = curve("TS", "ts", line(0.3152, 0.2375, 0.07, 61), role="reference")
    more = [
        curve(
            f"DP-FTS-DE, q = {q:g}, z = {z:g}",
            "dp-fts-de",
            line(0.3152, end, 0.1, 61),
            parameters={"regions": 2, "participation": q, "noise": z},
            **private(eps, clipped_fraction=0.021 * k, signal_to_noise=0.4 / k),
        )
        for k, (q, z, eps, end) in enumerate(
            [
                (0.35, 1, 15.17, 0.2319),
                (0.35, 1.6, 7.12, 0.2327),
                (0.35, 2, 5.14, 0.2332),
                (0.35, 3, 3.05, 0.2358),
                (0.35, 4, 2.16, 0.2373),
            ],
            1,
        )
    ]
    fts = curve("FTS-DE", "fts-de", line(0.3152, 0.2314, 0.11, 61), **OPEN)
    noise = curve(
        "Control: the same run, with a broadcast of pure noise in place of what the agents sent",
        "control", line(0.3152, 0.2371, 0.068, 61), role="control",
        **private(15.17, signal_to_noise=0.0),
    )  # fmt: skip
    claims = [
        claim("DP-FTS-DE at ε = 7.12 is better than TS", "holds", 0.0048),
        claim("More noise costs utility", "holds", 0.0054, text="0.2319 → 0.2373"),
        claim("DP-FTS-DE is better than its noise control", "does not hold", -0.0003,
              paper="not examined"),
    ]  # fmt: skip
    made = figure("landmine-noise", "Privacy against utility on landmine detection", "Fig. 3a",
                  [ts, fts, *more, noise], claims)  # fmt: skip
    return {**made, "problem": "landmine", "objective": None, "seconds": 5821.0,
            "y_label": "validation error, 1 − AUC, mean over 29 fields"}  # fmt: skip


def _point(series: str, label: str, moments: float, pld: float, end: float) -> Any:
    spent = private(moments)
    spent["epsilon"] = {**spent["epsilon"], "pld": pld}
    regret = {**line(0.3152, end, 0.3, 61), "stderr": [0.0005] * 61}
    return curve(label, "dp-fts-de", regret, series=series, **spent)


def tradeoff(name: str = "landmine-tradeoff", paper: str = "Fig. 3b") -> Any:
    """Privacy against utility, with lines to compare with."""
    noise = [
        ("z = 1", 15.17, 10.38, 0.2319),
        ("z = 1.6", 7.12, 4.61, 0.2327),
        ("z = 2", 5.14, 3.23, 0.2332),
        ("z = 3", 3.05, 1.74, 0.2358),
        ("z = 4", 2.16, 1.13, 0.2373),
    ]
    share = [
        ("q = 0.1", 3.75, 2.01, 0.2376),
        ("q = 0.15", 5.98, 3.43, 0.2374),
        ("q = 0.2", 7.69, 4.99, 0.2336),
        ("q = 0.25", 9.82, 6.67, 0.2349),
        ("q = 0.35", 15.17, 10.38, 0.2319),
    ]

    def level(end: float) -> Any:
        return {**line(0.3152, end, 0.3, 61), "stderr": [0.0005] * 61}

    curves = [
        curve("TS", "ts", level(0.2375), role="reference"),
        curve("FTS", "fts", level(0.2346), role="reference", **OPEN),
        curve("FTS-DE", "fts-de", level(0.2314), role="reference", series=None, **OPEN),
        *(_point("q = 0.35", *row) for row in noise),
        *(_point("z = 1", *row) for row in share),
        curve("noise only", "control", level(0.236), role="control", **private(15.17)),
    ]
    claims = [
        claim("Less noise is better", "holds", 0.0054, interval=[0.0042, 0.0066]),
        claim("More agents a round are better", "within noise", -0.0001, interval=[-0.0012, 0.001]),
        claim("ε by moments at z = 1", "holds", 15.17, paper="15.17", stderr=0.0, interval=None),
    ]
    made = figure(name, "Privacy and utility on landmine detection", paper, curves, claims)
    return {**made, "kind": "tradeoff", "problem": "landmine", "measure": "1 − AUC",
            "group": "real/landmine", "runs": 10,
            "objective": "table of 2,400 trained models an agent, interpolated",
            "x_label": "privacy loss ε at δ = 0.0246 (smaller is more private)",
            "y_label": "1 − AUC after 60 rounds, mean over 29 fields"}  # fmt: skip


def _terms() -> Any:
    z = [0.5, 1, 2, 4, 8, 16]
    falls = {"t": z, "mean": [8 / v for v in z], "stderr": None}
    grows = {"t": z, "mean": [0.02 * v * v for v in z], "stderr": None}
    made = figure(
        "terms-of-the-bound", "Terms of the regret bound", "Fig. 10",
        [curve("privacy term", "", falls), curve("noise term", "", grows)], [],
    )  # fmt: skip
    return {**made, "kind": "terms", "x_label": "noise multiplier z", "y_label": "value",
            "objective": None, "runs": 1, "seconds": 0.2, "settings": {}}  # fmt: skip


def _hostile() -> Any:
    long = "a-very-long-name-without-a-space-" * 6
    bad = curve(HOSTILE, HOSTILE, line(1, 0.1, 0.1), parameters={HOSTILE: HOSTILE},
                **private(1.0, adjacency=HOSTILE))  # fmt: skip
    bad["epsilon"][HOSTILE] = 3.0
    other = curve("_hidden " + long, long, line(1, 0.2, 0.1), **private(0.0))
    made = figure("hostile", HOSTILE, "Beyond the paper " + HOSTILE, [bad, other],
                  [claim(HOSTILE + long, "holds", 0.0, paper=HOSTILE, text=HOSTILE)],
                  )  # fmt: skip
    texts = dict.fromkeys(
        ("about", "problem", "objective", "x_label", "y_label", "measure", "group"), HOSTILE
    )
    return {**made, **texts, "command": HOSTILE + " " + long, "settings": {HOSTILE: long},
            "versions": {HOSTILE: HOSTILE, "sottovoce": __version__, "numpy": "2.2.0"}}  # fmt: skip


def figures() -> list[Any]:
    """All of them, in the order in which the page must show them."""
    private_one = figure(
        "synthetic-private", "Private and alone on the synthetic problem", "Fig. 1c",
        [
            curve("TS", "ts", line(0.2, 0.018, 0.09), role="reference"),
            curve("DP-FTS-DE, ε = 9.91", "dp-fts-de", line(0.2, 0.0124, 0.15), **private(9.91)),
            curve("control", "control", line(0.2, 0.021, 0.085), role="control", **private(9.91)),
        ],
        [claim("DP-FTS-DE at ε = 9.91 is better than TS", "holds", 0.0056)],
    )  # fmt: skip
    return [_exploration(), private_one, _noise(), tradeoff(), _terms(), _hostile()]


def read(content: Any) -> FigureResult:
    """What a file of that content is read as."""
    return FigureResult.from_dict(content, "a made-up file")


def write(folder: Path) -> None:
    """Write each as FOLDER/figures/NAME.json."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for made in figures():
        (folder / "figures" / f"{made['name']}.json").write_text(json.dumps(made), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
