"""The verdicts as a Markdown table, kept up to date inside a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sottovoce.errors import StorageError
from sottovoce.files import write_text
from sottovoce.report.files import read_figures
from sottovoce.report.text import counted

BEGIN = "<!-- verdicts: made by `sottovoce report`, do not edit -->"
END = "<!-- end of verdicts -->"


def update_markdown(folder: Path, document: Path) -> Path:
    """Put the verdicts of all figures in a folder between the document's marks.

    A document without marks gets them at its end; one that is not there is begun.
    """
    block = "\n".join((BEGIN, "", *_lines(read_figures(folder)), END))
    try:
        text = document.read_text() if document.exists() else "# Reproduction\n"
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{document} cannot be read: {error}") from error
    head, found, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2] if found else "\n"
    write_text(document, f"{head.rstrip()}\n\n{block}{tail}")
    return document


def _lines(figures: list[dict[str, Any]]) -> list[str]:
    lines = []
    for figure in figures:
        lines += [
            f"### {figure['title']}" + (f" ({figure['paper']})" if figure["paper"] else ""),
            "",
            f"{figure['about']} Problem `{figure['problem']}`{_objective(figure)}, "
            f"{counted(figure['runs'], 'run', 'runs')}: `{figure['command']}`.",
            "",
            "| claim | paper | measured | estimate ± standard error | 95 % interval | verdict |",
            "|---|---|---|---|---|---|",
            *(_row(claim) for claim in figure["claims"]),
            "",
        ]
    return lines


def _objective(figure: dict[str, Any]) -> str:
    return f" ({figure['objective']})" if figure["objective"] else ""


def _row(claim: dict[str, Any]) -> str:
    error = f" ± {claim['stderr']:.4f}" if claim["stderr"] else ""
    estimate = f"{claim['measured']:.4f}{error}"
    ends = claim.get("interval")
    between = "[{:.4f}, {:.4f}]".format(*ends) if ends else "–"
    told = (claim["claim"], claim["paper"], claim["text"])
    cells = (*told, estimate, between, f"**{claim['verdict']}**")
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
