"""`sottovoce plan`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from sottovoce.cli.budget import print_shares
from sottovoce.cli.show import ERR, OUT, Json, meanings, print_json


def plan(
    agents: Annotated[int, typer.Option(help="N, the number of agents.")],
    dims: Annotated[int, typer.Option(help="D, the number of hyperparameters.")],
    rounds: Annotated[int, typer.Option(help="T, trials after the initial ones.")],
    epsilon: Annotated[float, typer.Option(help="ε, the most that may be spent.")],
    delta: Annotated[float | None, typer.Option(help="δ; default N^-1.1, the paper's.")] = None,
    runs: Annotated[int, typer.Option(help="Simulations on made-up functions; 0: none.")] = 4,
    unreliable: Annotated[
        int | None,
        typer.Option(
            help="k: sites add the noise in shares, and k of them may fail (trust nobody)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Settings for a federation from what is public, and the gain to expect from it."""
    from sottovoce.lab.experiments.forecast import LITTLE, forecast

    with ERR.status("simulating on made-up functions", spinner="line"):
        found = forecast(agents, dims, rounds, epsilon, delta, runs, unreliable)
    if as_json:
        print_json(found)
        return
    table = Table(title=f"sottovoce for {agents} agents, {dims} parameters")
    table.add_column("setting")
    table.add_column("value", justify="right")
    for name, value in _rows(found):
        table.add_row(name, value)
    OUT.print(table)
    for sentence in meanings({"pld": found["epsilon"]}, found["replace_one"]):
        OUT.print(sentence)
    if unreliable is not None:
        print_shares(found)
    gain = found["gain"]
    if gain is not None:
        OUT.print(
            f"Expected gain over going alone: {gain['gain']:.0%} ± {gain['error']:.0%} less regret "
            f"over t = 1..{rounds} ({gain['runs']} simulations on made-up functions that agents "
            f"share to 70 %)."
        )
    if found["revealed"] < LITTLE:
        ERR.print(
            f"warning: {agents} agents are too few for ε = {epsilon:g}: the releases are to reveal "
            f"only {found['revealed']:.0%} of what they have in common. More agents, or a larger "
            f"ε, would help; going alone costs nothing.",
            style="yellow",
        )


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("ε spent (pld), once and for all", f"{found['epsilon']:.4g}"),
        ("δ", f"{found['delta']:.3g}"),
        ("adjacency", found["adjacency"]),
        ("releases", str(found["releases"])),
        ("noise z", f"{found['noise']:g}"),
        ("clip S", f"{found['clip']:g}"),
        ("participation q", f"{found['participation']:g}"),
        ("features M", str(found["features"])),
        ("initial points each, public design", str(found["initial"])),
        ("of the common function revealed", f"{found['revealed']:.0%}"),
        ("expected signal to noise", f"{found['signal_to_noise']:.2f}"),
    ]
