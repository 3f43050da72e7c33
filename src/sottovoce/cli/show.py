"""What all commands share: where they print, how numbers and guarantees read, a progress bar."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from sottovoce.flower.deploy.processes import INTERRUPTED

if TYPE_CHECKING:  # the commands that need it load it
    from sottovoce.lab.experiments.results import Summary

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)

Found = Mapping[str, float | None]  # ε by accountant; None is infinite
CLUSTER = "A Ray cluster to run on, by its address."
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@contextmanager
def interruptible(words: str) -> Iterator[None]:
    """Let an interrupt end the command, with these words."""
    try:
        yield
    except KeyboardInterrupt:
        ERR.print(words)
        raise typer.Exit(INTERRUPTED) from None


def guarantee(summary: Summary) -> str:
    """ε with everything that must stand beside it."""
    epsilon = summary.epsilon
    if epsilon is None:
        return "No privacy: vectors are sent unprotected."
    if epsilon == 0:
        return "Nothing of any agent is sent: ε = 0."
    others = by_others(summary.epsilon_by_accountant, summary.accountant)
    return (
        f"ε = {epsilon:.2f} ({summary.accountant}), {others}; δ = {summary.delta:.3g}, "
        f"{summary.adjacency} adjacency. A simulation: its seeded noise protects nobody."
    )


def by_others(found: Found, accountant: str) -> str:
    """ε by the other accountants, but for the approximation."""
    rest = [name for name in found if name not in (accountant, "gdp")]
    return ", ".join(f"{number(found[name])} ({name})" for name in rest)


def meanings(epsilon: Found, replaced: Found) -> list[str]:
    """Which ε covers what, a sentence each: a site's whole contribution, and one record at it."""
    site = "a site's whole contribution is hidden against its absence (zero-out)."
    record = (
        "one record at a site is hidden against its replacement by another, which can move the "
        "site's vector twice as far (replace-one)."
    )
    unknown = "No bound is known here for one record at a site replaced by another."
    return [
        f"{_least(epsilon)}: {site}",
        f"{_least(replaced)}: {record}" if replaced else unknown,
    ]


def _least(found: Found) -> str:
    """The least of the bounds; of an approximation only, if that is all there is."""
    sound = [name for name in ("pld", "rdp", "moments") if name in found] or list(found)
    if not sound:
        return "ε = ∞"
    name = min(sound, key=lambda each: math.inf if (e := found[each]) is None else e)
    return f"ε = {number(found[name])} ({name})"


def number(value: float | None) -> str:
    """An ε to two decimals; none is infinite."""
    return "∞" if value is None or math.isinf(value) else f"{value:.2f}"


def print_json(content: dict[str, Any]) -> None:
    """The one JSON object of a command."""
    print(json.dumps(content, allow_nan=False))


def _bar(*columns: ProgressColumn) -> Progress:
    """A bar on standard error; a log needs none."""
    columns = (TextColumn("{task.description}"), BarColumn(), *columns)
    return Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal)


@contextmanager
def counting(label: str, *columns: ProgressColumn) -> Iterator[Callable[..., None]]:
    """A bar; yields what is to be told how much is done, of how much, and what it was."""
    with _bar(*(columns or [MofNCompleteColumn()]), TimeRemainingColumn()) as progress:
        task = progress.add_task(label, total=None)

        def advance(done: int, total: int | None, said: str = label) -> None:
            progress.update(task, completed=done, total=total, description=said)

        yield advance


@contextmanager
def progress(total: int) -> Iterator[Any]:
    """A bar; yields a maker of watchers that show ε as it is spent."""
    from sottovoce.privacy.accountant import epsilon

    share, spent = TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.fields[spent]}")
    with _bar(share, TimeRemainingColumn(), spent) as progress:
        task = progress.add_task("", total=total, spent="")

        def callback_of(label: str, delta: float) -> Any:
            def callback(run_number: int, t: int, events: list[Any]) -> None:
                fixed = any(getattr(e, "sampling", "") == "fixed" for e in events)
                by = "rdp" if fixed else "moments"
                spent = f"ε = {number(epsilon(events, delta, by))}"
                description = f"{label}, run {run_number + 1}"
                progress.update(task, advance=1, description=description, spent=spent)

            return callback

        yield callback_of
