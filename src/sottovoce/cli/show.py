"""What all commands share: where they print, how numbers and guarantees read, a progress bar."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:  # the commands that need it load it
    from sottovoce.lab.experiments.results import Summary

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def guarantee(summary: Summary) -> str:
    """ε with everything that must stand beside it."""
    epsilon = summary.epsilon
    if epsilon is None:
        return "No privacy: vectors are sent unprotected."
    if epsilon == 0:
        return "Nothing of any agent is sent: ε = 0."
    by_others = ", ".join(
        f"{number(value)} ({name})"
        for name, value in summary.epsilon_by_accountant.items()
        if name not in (summary.accountant, "gdp")
    )
    return (
        f"ε = {epsilon:.2f} ({summary.accountant}), {by_others}; δ = {summary.delta:.3g}, "
        f"{summary.adjacency} adjacency. A simulation: its seeded noise protects nobody."
    )


def number(value: float | None) -> str:
    """An ε to two decimals; none is infinite."""
    return "∞" if value is None or math.isinf(value) else f"{value:.2f}"


def print_json(content: dict[str, Any]) -> None:
    """The one JSON object of a command."""
    print(json.dumps(content, allow_nan=False))


def counting_bar() -> Progress:
    """A bar on standard error that counts what is done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal)


@contextmanager
def progress(total: int) -> Iterator[Any]:
    """A bar on standard error; yields a maker of watchers that show ε as it is spent."""
    from sottovoce.privacy.accountant import epsilon

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[spent]}"),
    )
    quiet = not ERR.is_terminal  # a log needs no bar
    with Progress(*columns, console=ERR, transient=True, disable=quiet) as progress:
        task = progress.add_task("", total=total, spent="")

        def watcher(label: str, delta: float) -> Any:
            def watch(run_number: int, t: int, events: list[Any]) -> None:
                by = (
                    "rdp"
                    if any(getattr(e, "sampling", "") == "fixed" for e in events)
                    else "moments"
                )
                spent = f"ε = {number(epsilon(events, delta, by))}"
                description = f"{label}, run {run_number + 1}"
                progress.update(task, advance=1, description=description, spent=spent)

            return watch

        yield watcher
