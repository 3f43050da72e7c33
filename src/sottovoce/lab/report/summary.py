"""One line a claim of the paper: what it says, what was measured, and why they differ if they do.

Figures that are others again, in another way, have no lines of their own: what they measured
stands beside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sottovoce.lab.experiments.results import ClaimResult, FigureResult, Verdict

NOT_THE_PAPERS = (
    "",
    "not reported",
    "not in the paper",
)  # what claims say that are not the paper's
_MANY: dict[Verdict, str] = {
    "holds": "hold",
    "within noise": "within noise",
    "does not hold": "do not hold",
}
HEADS = ("claim", "paper", "ours", "verdict", "other ways", "cause where they differ")


def summary_rows(figures: Sequence[FigureResult]) -> list[tuple[str, ...]]:
    """A row for every claim of the paper, in the order of the figures; see HEADS."""
    rows = []
    for figure in figures:
        if figure.like is not None:
            continue
        again = [other for other in figures if other.like == figure.name]
        for line, claims in _lines(figure).items():
            others = [_beside(other, _lines(other).get(line, [])) for other in again]
            rows.append(_row(f"{line} ({figure.paper or figure.name})", claims, others))
    return rows


def other_ways(figures: Sequence[FigureResult]) -> dict[str, str]:
    """What stands beside the claims of figures that are not among these, by a row's first cell."""
    names, notes = {figure.name for figure in figures}, dict[str, list[str]]()
    for figure in figures:
        if figure.like is not None and figure.like not in names:
            for line, claims in _lines(figure).items():
                notes.setdefault(f"{line} ({figure.paper})", []).append(_beside(figure, claims))
    return {cell: "<br>".join(each) for cell, each in notes.items()}


def verdicts(claims: Iterable[ClaimResult]) -> str:
    """How many hold and how many do not, or the verdict of the only one."""
    counts = Counter(claim.verdict for claim in claims)
    if counts.total() == 1:
        return next(iter(counts))
    return ", ".join(
        f"{counts[verdict]} {words}" for verdict, words in _MANY.items() if counts[verdict]
    )


def _lines(figure: FigureResult) -> dict[str, list[ClaimResult]]:
    """The paper's claims by what a summary calls them."""
    found: dict[str, list[ClaimResult]] = {}
    for claim in figure.claims:
        if claim.paper not in NOT_THE_PAPERS:
            found.setdefault(claim.line or claim.claim, []).append(claim)
    return found


def _row(line: str, claims: Sequence[ClaimResult], others: Iterable[str]) -> tuple[str, ...]:
    paper = "; ".join(dict.fromkeys(claim.paper for claim in claims))
    unlike = [claim.cause for claim in claims if claim.verdict != "holds" and claim.cause]
    cause = "; ".join(dict.fromkeys(unlike))
    beside = "<br>".join(other for other in others if other)
    return line, paper, _measured(claims), verdicts(claims), beside or "–", cause or "–"


def _beside(figure: FigureResult, claims: Sequence[ClaimResult]) -> str:
    """What the figure that is another again measured."""
    if not claims:
        return ""
    shares = [claim.share for claim in claims if claim.share is not None]
    if not shares:
        return f"{figure.variant}: {_measured(claims)}, {verdicts(claims)}"
    told = ", ".join(f"{s.holds}/{s.towards}/{s.against}" for s in shares)
    return f"{figure.variant}: {_measured(claims)}, {verdicts(claims)}; {told} of {shares[0].of}"


def _measured(claims: Sequence[ClaimResult]) -> str:
    """The estimate and its standard error; of several, from the least to the greatest."""
    if len(claims) == 1:
        (claim,) = claims
        return _number(claim) + (f" ± {_scaled(claim, claim.stderr)}" if claim.stderr else "")
    ordered = sorted(claims, key=lambda claim: claim.measured)
    return f"{_number(ordered[0])} to {_number(ordered[-1])}"


def _number(claim: ClaimResult) -> str:
    compared = claim.interval is not None
    return f"{claim.measured + 0.0:+.4f}" if compared else _scaled(claim, claim.measured)


def _scaled(claim: ClaimResult, value: float) -> str:
    """Regret to four places, shares in per cent, an ε to two."""
    if "%" in claim.paper:
        return f"{value:.2%}"
    return f"{value:.2f}" if abs(claim.measured) > 1 else f"{value:.4f}"
