"""Curves and verdicts as Markdown tables, kept up to date inside a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sottovoce.errors import StorageError
from sottovoce.files import write_text
from sottovoce.lab.experiments.results import ClaimResult, CurveResult, FigureResult
from sottovoce.lab.report.keeping import kept_rows, kept_sections
from sottovoce.lab.report.summary import HEADS, other_ways, summary_rows
from sottovoce.pages.text import counted, epsilon

BEGIN = "<!-- verdicts: made by `sottovoce report`, do not edit -->"
END = "<!-- end of verdicts -->"
BEGIN_CLAIMS = "<!-- claims: made by `sottovoce report`, do not edit -->"
END_CLAIMS = "<!-- end of claims -->"
MOMENTS = (0, 1, 5, 10, 20)  # the queries at which a curve is told, besides its last


def update_markdown(figures: Sequence[FigureResult], document: Path, *, keep: bool = False) -> Path:
    """Put the tables of these figures between the document's marks.

    A document without marks gets them at its end; one that is not there is begun. The marks of
    a summary, one line a claim, are filled where there are any. keep: what stands there of
    other figures stays.
    """
    try:
        text = document.read_text() if document.exists() else "# Reproduction\n"
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{document} cannot be read: {error}") from error
    head, found, rest = text.partition(BEGIN_CLAIMS)
    if found:
        old, _, tail = rest.partition(END_CLAIMS)
        rows = _summary(figures)
        if keep:
            told = kept_rows(old.partition("|---|")[2], rows[2:], other_ways(figures))
            rows = [*rows[:2], *told]
        text = "\n".join((f"{head}{BEGIN_CLAIMS}", "", *rows, "", f"{END_CLAIMS}{tail}"))
    head, found, rest = text.partition(BEGIN)
    old, _, tail = rest.partition(END) if found else ("", "", "\n")
    new = "\n".join(_lines(figures))
    body = f"{kept_sections(old, new)}\n" if keep else new
    block = f"{BEGIN}\n\n{body}\n{END}"
    write_text(document, f"{head.rstrip()}\n\n{block}{tail}")
    return document


def _summary(figures: Sequence[FigureResult]) -> list[str]:
    """One line for each claim of the paper."""
    rows = summary_rows(figures)
    return [_cells(HEADS), "|" + "---|" * len(HEADS), *map(_cells, rows)]


def _lines(figures: Sequence[FigureResult]) -> list[str]:
    lines = []
    for figure in figures:
        objective = f" ({figure.objective})" if figure.objective else ""
        lines += [
            f"### {figure.heading}",
            "",
            f"{figure.about} Problem `{figure.problem}`{objective}, "
            f"{counted(figure.runs, 'run', 'runs')}: {_commands(figure)}.",
            "",
            *([] if figure.kind == "terms" else [*_curves(figure), ""]),
            "| claim | paper | measured | estimate ± standard error | 95 % interval | verdict |",
            "|---|---|---|---|---|---|",
            *(_row(claim) for claim in figure.claims),
            "",
        ]
    return lines


def _commands(figure: FigureResult) -> str:
    return ", ".join(f"`{command}`" for command in figure.command.splitlines())


def _curves(figure: FigureResult) -> list[str]:
    """Each curve's privacy, and its regret at a few moments and on the whole."""
    curves: Sequence[CurveResult] = figure.curves
    by = ("rdp",) if figure.accountant == "rdp" else ("moments", "pld")
    last = min(len(curve.regret.mean) for curve in curves) - 1
    moments = [*(t for t in MOMENTS if t < last), last]
    head = [
        "curve",
        *(f"ε {name}" for name in by),
        *(f"t = {t}" for t in moments),
        f"mean, t = 1..{last}",
    ]
    rows = []
    for curve in curves:
        regret, spent = curve.regret.mean, curve.epsilon or {}
        budget = [epsilon(spent[name]) if spent.get(name, 0) != 0 else "–" for name in by]
        told = [regret[t] for t in moments] + [sum(regret[1 : last + 1]) / last]
        rows.append([curve.full_label, *budget, *(f"{value:.4f}" for value in told)])
    return [_cells(head), "|" + "---|" * len(head), *map(_cells, rows)]


def _row(claim: ClaimResult) -> str:
    error = f" ± {claim.stderr:.4f}" if claim.stderr else ""
    estimate = f"{claim.measured:.4f}{error}"
    between = "[{:.4f}, {:.4f}]".format(*claim.interval) if claim.interval else "–"
    told = (claim.claim, claim.paper, claim.text)
    return _cells((*told, estimate, between, f"**{claim.verdict}**"))


def _cells(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
