"""`sottovoce data`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import DownloadColumn, TransferSpeedColumn

from sottovoce.cli.show import ERR, OUT, Json, counting, print_json

if TYPE_CHECKING:
    from sottovoce.lab.problems.datasets import Found, Source


def data(
    name: Annotated[str | None, typer.Argument(help="landmine, har or digits.")] = None,
    as_json: Json = False,
) -> None:
    """Find the data of a real problem, or download them; without a name, list all."""
    from sottovoce.lab.problems.datasets import source_named

    if name is None:
        _list(as_json)
        return
    source = source_named(name)
    found = _fetched(source)
    if as_json:
        print_json(_described(source, found))
        return
    OUT.print(f"{source.title}: {found.layout.title}", soft_wrap=True)
    OUT.print(f"  in {found.folder}", soft_wrap=True)
    OUT.print(f"  SHA-256 {found.checksum}", soft_wrap=True)
    if not _is_published(found):
        ERR.print(
            "note: no checksum of these files is published; what came first is remembered and "
            "compared to from then on.",
            style="yellow",
            soft_wrap=True,
        )


def have_data(names: Iterable[str]) -> None:
    """Before models are trained live: find the data of these problems, or download them."""
    from sottovoce.lab.problems import problem_named
    from sottovoce.lab.problems.datasets import SOURCES
    from sottovoce.lab.problems.real import RealProblem

    problems = [problem_named(name) for name in names]
    live = [p for p in problems if isinstance(p, RealProblem) and p.objective == "live"]
    for kind in sorted({problem.kind for problem in live} & set(SOURCES)):
        _fetched(SOURCES[kind])


def _fetched(source: Source) -> Found:
    """Where it lies; a download shows how much of it has come."""
    from sottovoce.lab.problems.downloads import fetch

    with counting(source.name, DownloadColumn(), TransferSpeedColumn()) as watch:
        return fetch(source, watch)


def _list(as_json: bool) -> None:
    """Every data set: where it lies, or how to get it."""
    from sottovoce.errors import StorageError
    from sottovoce.lab.problems.datasets import SOURCES, find

    entries = []
    for source in SOURCES.values():
        try:
            found, problem = find(source), ""
        except StorageError as error:
            found, problem = None, str(error)
        entries.append({**_described(source, found), "problem": problem or None})
        if not as_json:
            where = f"{found.layout.title}, in {found.folder}" if found else problem
            OUT.print(f"{source.name}: {source.title}\n  {where}", soft_wrap=True)
    if as_json:
        print_json({"data": entries})


def _is_published(found: Found) -> bool:
    return None not in found.layout.files.values()


def _described(source: Source, found: Found | None) -> dict[str, Any]:
    return {
        "name": source.name,
        "title": source.title,
        "address": source.addresses[0],
        "command": source.command,
        "kind": found.layout.kind if found else None,
        "folder": str(found.folder) if found else None,
        "sha256": found.checksum if found else None,
        "published_checksum": _is_published(found) if found else None,
    }
