"""`sottovoce result`, and how a result reads at the end of other commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sottovoce.cli.show import ERR, OUT, Json, print_json
from sottovoce.errors import MissingExtra, StorageError

if TYPE_CHECKING:
    from sottovoce.flower.result import CoordinatorResult, SiteResult

Kept = tuple["SiteResult | CoordinatorResult", Path]  # a result, and its file


def result(
    folder: Annotated[
        Path,
        typer.Argument(help="A project, a site's folder, a rehearsal's, or one of `run`."),
    ] = Path(),
    as_json: Json = False,
) -> None:
    """What a study came to: best parameters and how they were found; nothing of it is sent."""
    if (folder / "manifest.json").is_file():
        _of_run(folder, as_json)
        return
    kept = kept_results(folder)
    if as_json:
        print_json(as_table(kept))
    else:
        show(kept)


def kept_results(folder: Path) -> list[Kept]:
    """The results of all parties in a folder, each now kept in its party's own."""
    try:
        from sottovoce.flower.result.found import parties_in
    except MissingExtra:
        raise
    except ImportError as error:
        raise MissingExtra("looking at a site's trials", "flower") from error
    return [party.kept() for party in parties_in(folder)]


def as_table(kept: Sequence[Kept]) -> dict[str, Any]:
    """One result as it is; several by who they are."""
    from sottovoce.flower.result.data import SiteResult, to_json

    if len(kept) == 1:
        return to_json(kept[0][0])
    sites = [to_json(each) for each, _ in kept if isinstance(each, SiteResult)]
    others = [to_json(each) for each, _ in kept if not isinstance(each, SiteResult)]
    return {"sites": sites, "coordinator": others[0] if others else None}


def show(kept: Sequence[Kept]) -> None:
    """All of them in words."""
    from sottovoce.flower.result.data import SiteResult

    sites = [each for each, _ in kept if isinstance(each, SiteResult)]
    if len(sites) == 1:
        for line in site_lines(sites[0]):
            OUT.print(line, soft_wrap=True)
    elif sites:
        OUT.print(_together(sites))
    for each, path in kept:
        if not isinstance(each, SiteResult):
            for line in coordinator_lines(each):
                OUT.print(line, soft_wrap=True)
        if len(kept) == 1:
            ERR.print(f"Kept in {path}; a page to look at beside it, result.html", soft_wrap=True)
    if len(kept) > 1:
        ERR.print("Kept as result.json, with a page result.html, in the folder of each, such as")
        ERR.print(str(kept[0][1].with_name("result.html")), soft_wrap=True)


def site_lines(found: SiteResult) -> list[Text]:
    """One site's result, a sentence a line."""
    from sottovoce.flower.deploy.following import in_words
    from sottovoce.flower.result.data import VERDICTS

    count = len(found.trials)
    state = "" if found.over else f" of {found.planned}, so far"
    failed = f", {found.failed} failed" if found.failed else ""
    before = f", and {len(found.earlier)} from before the study" if found.earlier else ""
    lines = [f"{found.site} in {found.study}: {count} trials{state}{failed}{before}."]
    if found.best is None:
        lines.append("No trial gave a value yet.")
    else:
        where = in_words(found.best.params)
        which = "from before the study" if found.best.earlier else f"trial {found.best.number}"
        lines.append(f"Best: {figure(found.best.value)} at {where} ({which}).")
    if found.left is not None:
        lines.append(found.left)
    if found.alone is not None and found.alone.mean and found.alone.mean[-1] is not None:
        low, high = found.alone.low[-1], found.alone.high[-1]
        verdict = (
            "" if found.beside_alone is None else f"The best is {VERDICTS[found.beside_alone]}: "
        )
        lines.append(
            f"{verdict}{figure(found.alone.mean[-1])} after as many trials, {figure(low)} to "
            f"{figure(high)} in four of five cases ({found.alone.how})."
        )
    if found.importance:
        shares = sorted(found.importance.items(), key=lambda each: -each[1])
        words = ", ".join(f"{name} {share:.0%}" for name, share in shares)
        lines.append(f"What mattered: {words} ({found.importance_by}).")
    elif found.best is not None:
        lines.append(f"What mattered: {found.importance_by}.")
    return [Text(line) for line in [*lines, _spent(found)]]


def coordinator_lines(found: CoordinatorResult) -> list[Text]:
    """The coordinator's result, a sentence a line."""
    state = "over" if found.over else "not over"
    if found.stopped is not None:
        state = f"stopped: {found.stopped}"
    done = "" if found.done is None else f"; {found.done} of {found.agents} sites ran all trials"
    lines = [f"{found.study}: the study is {state}{done}."]
    if found.rounds:
        spoke = ", ".join("?" if each.spoke is None else str(each.spoke) for each in found.rounds)
        lines.append(f"Took part, of {found.agents} sites, by release: {spoke}.")
    return [Text(line) for line in [*lines, _spent(found)]]


def _spent(found: SiteResult | CoordinatorResult) -> str:
    seeded = " A simulation: its noise protects nobody." if found.simulation else ""
    return (
        f"Spent: ε = {found.epsilon:.2f} of {found.granted:g} granted ({found.accountant}, "
        f"{found.adjacency}); for one record replaced {found.replace_one:.2f}; δ = "
        f"{found.delta:g}; releases {found.releases} of {found.releases_planned}.{seeded}"
    )


def _together(sites: Sequence[SiteResult]) -> Table:
    from sottovoce.flower.deploy.following import in_words

    alone = any(each.alone is not None for each in sites)
    brought = any(each.earlier for each in sites)
    table = Table(title=f"What each site found ({sites[0].direction}d)")
    more = [*(["earlier"] if brought else []), *(["alone"] if alone else [])]
    for column in ("site", "best", "at", "trials", "failed", *more):
        table.add_column(column, justify="left" if column in ("site", "at") else "right")
    for each in sites:
        best = each.best
        words = [
            each.site,
            "-" if best is None else figure(best.value),
            (each.left or "-") if best is None else in_words(best.params),
            str(len(each.trials)),
            str(each.failed),
        ]
        if brought:
            words.append(str(len(each.earlier)))
        if alone:
            words.append(_expected(each))
        table.add_row(*map(Text, words))
    notes = ["earlier: trials from before the study"] if brought else []
    if alone:
        notes.append(
            "alone: what going alone could have expected (in four of five cases), by a model of "
            "the site's own trials"
        )
    table.caption = "; ".join(notes) or None
    return table


def _expected(found: SiteResult) -> str:
    if found.alone is None:
        return "-"
    mean, low, high = (
        figure(each[-1]) for each in (found.alone.mean, found.alone.low, found.alone.high)
    )
    return f"{mean} ({low} to {high})"


def figure(value: float | None) -> str:
    """A value to four digits."""
    return "-" if value is None else f"{value:.4g}"


def _of_run(folder: Path, as_json: bool) -> None:
    """A simulation's: the means over its agents, as it was saved."""
    try:
        found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        regret = found["regret"]
        first, last = regret["mean"][0], regret["mean"][-1]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise StorageError(
            f"{folder} holds a simulation without a summary: `sottovoce run` was interrupted, "
            f"run it again ({type(error).__name__})"
        ) from error
    if as_json:
        print_json(found)
        return
    OUT.print(
        f"{found['method']}, mean over agents and runs: simple regret {figure(first)} after the "
        f"initial trials, {figure(last)} after {found['rounds']} more.",
        soft_wrap=True,
    )
