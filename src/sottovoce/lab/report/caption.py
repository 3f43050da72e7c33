"""What stands in small type under a figure: how it was measured, and what it costs in privacy."""

from __future__ import annotations

from collections.abc import Sequence

from sottovoce.lab.experiments.results import CurveResult, FigureResult
from sottovoce.pages.text import counted, epsilon, number

_FEW = 4  # so many different ε are told one by one
_SOUND = ("pld", "rdp", "moments")  # bounds, the tightest first


def note(figure: FigureResult) -> str:
    """All of it."""
    facts = [figure.problem, *([figure.objective] if figure.objective else [])]
    facts.append(counted(figure.runs, "run", "runs"))
    if any(any(curve.regret.errors) for curve in figure.curves):
        drawn = "bars and bands" if figure.kind == "tradeoff" else "bands"
        facts.append(f"{drawn} ± 1 standard error")
    return " ".join([f"{', '.join(facts)}.", *([said] if (said := privacy(figure)) else [])])


def privacy(figure: FigureResult) -> str:
    """ε of the curves with the δ and the adjacency it is for; nothing where there is no ε."""
    private = [curve for curve in figure.curves if any((curve.epsilon or {}).values())]
    spending = [curve for curve in private if curve.role != "control"] or private
    open_ones = [c for c in figure.curves if c.epsilon and not any(c.epsilon.values())]
    bare = [c.full_label for c in open_ones if None in (c.epsilon or {}).values()]
    said = []
    if spending:
        said.append(f"{_spent(spending, figure)}; {_terms(spending)}.")
    if bare:
        said.append(f"ε = ∞ for {', '.join(bare)}.")
    if spending:
        said.append("A simulation: its seeded noise protects nobody.")
    return " ".join(said)


def _spent(curves: Sequence[CurveResult], figure: FigureResult) -> str:
    """Each ε and whose it is; of many, from the least to the greatest."""
    names = _accountants(curves, figure)
    groups: dict[tuple[float | None, ...], list[str]] = {}
    for curve in curves:
        key = tuple((curve.epsilon or {}).get(name) for name in names)
        groups.setdefault(key, []).append(curve.full_label)
    if len(groups) > _FEW:
        ranges = []
        for k, name in enumerate(names):
            known = [value for key in groups if (value := key[k]) is not None]
            ranges.append(f"{epsilon(min(known))} to {epsilon(max(known))} ({name})")
        return f"ε from {', '.join(ranges)}"
    told = []
    for key, labels in groups.items():
        each = zip(key, names, strict=True)
        values = ", ".join(f"{epsilon(value)} ({name})" for value, name in each)
        whose = "" if len(groups) == len(curves) == 1 else f" for {', '.join(labels)}"
        told.append(f"ε = {values}{whose}")
    return "; ".join(told)


def _accountants(curves: Sequence[CurveResult], figure: FigureResult) -> list[str]:
    """The tightest bound that all have; of the paper's figures, and of a trade-off, theirs too."""
    shared = [name for name in _SOUND if all((c.epsilon or {}).get(name) for c in curves)]
    first = shared[:1] or [figure.accountant]
    theirs = figure.accountant in shared and not figure.own
    return list(dict.fromkeys([*first, *([figure.accountant] if theirs else [])]))


def _terms(curves: Sequence[CurveResult]) -> str:
    deltas = sorted({curve.delta for curve in curves if curve.delta is not None})
    kinds = sorted({curve.adjacency for curve in curves if curve.adjacency is not None})
    shown = [number(delta, 3) for delta in deltas]
    delta = f"δ = {shown[0]}" if len(shown) == 1 else f"δ from {shown[0]} to {shown[-1]}"
    return ", ".join([*([delta] if shown else []), *(f"{kind} adjacency" for kind in kinds)])
