"""`sottovoce budget`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from sottovoce.cli.show import ERR, OUT, Json, meanings, number, print_json
from sottovoce.cli.statement import print_promise, promised
from sottovoce.errors import InvalidInput, check

_PUBLIC = "the number of agents, regions, weights, S, q and z are public."
_ADJACENCY_NOTES = {
    "zero-out": f"zero-out. One agent's vectors become zero in every round; {_PUBLIC}",
    "replace-one": (
        f"replace-one, which includes zero-out. One agent's vectors become any others; {_PUBLIC}"
    ),
}
_ACCOUNTANT_NOTES = {
    "moments": "bound; the paper's",
    "rdp": "bound",
    "pld": "bound; the tightest here",
    "gdp": "approximation, not a bound",
}


def budget(
    study: Annotated[
        Path | None,
        typer.Argument(help="A study.toml, or its folder: what it promises. Without, options."),
    ] = None,
    agents: Annotated[int | None, typer.Option(help="N, the number of agents.")] = None,
    rounds: Annotated[int | None, typer.Option(help="T, the number of rounds that speak.")] = None,
    participation: Annotated[
        float | None, typer.Option(help="q, each agent's chance to be in a round.")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="z, to find ε for.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="ε, to find z for.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ; default N^-1.1, the paper's.")] = None,
    accountant: Annotated[str, typer.Option(help="moments, rdp, pld, gdp or all.")] = "all",
    sampling: Annotated[str, typer.Option(help="poisson or fixed.")] = "poisson",
    unreliable: Annotated[
        int | None,
        typer.Option(
            help="k: sites add the noise in shares, and k of them may fail (trust nobody)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """What a study costs in privacy: what a study.toml promises; ε for a noise; noise for an ε."""
    given = {"--agents": agents, "--rounds": rounds, "--participation": participation}
    if study is not None:
        also = {**given, "--noise": noise, "--epsilon": epsilon, "--delta": delta}
        also["--unreliable"] = unreliable
        both = [name for name, value in also.items() if value is not None]
        check(not both, "a study file says all of it: leave out the options", options=both)
        print_json(promised(study)) if as_json else print_promise(study)
        return
    missing = [name for name, value in given.items() if value is None]
    if agents is None or rounds is None or participation is None:
        raise InvalidInput(f"give a study.toml, or all of {', '.join(given)}; missing: {missing}")
    from sottovoce.lab.experiments.budgeting import Plan, answer, costs_of_stricter_delta

    plan = Plan(agents, rounds, participation, delta, sampling, unreliable)
    result = answer(plan, noise=noise, epsilon=epsilon, accountant=accountant)
    if as_json:
        print_json(result)
    else:
        table = Table(title=f"Privacy of {rounds} rounds, {agents} agents, q = {participation:g}")
        table.add_column("accountant")
        table.add_column(f"ε at δ = {result['delta']:.3g}", justify="right")
        table.add_column("what it is")
        for name, value in result["epsilon"].items():
            table.add_row(name, number(value), _ACCOUNTANT_NOTES[name])
        OUT.print(table)
        OUT.print(f"Noise multiplier z = {result['noise']:g}, {sampling} sampling.")
        for sentence in meanings(result["epsilon"], result["replace_one"]):
            OUT.print(sentence)
        if unreliable is not None:
            print_shares(result)
        OUT.print(f"Adjacency: {_ADJACENCY_NOTES[result['adjacency']]}")
    if delta is None:
        _warn_of_delta(result["delta"], *costs_of_stricter_delta(plan, result))


def print_shares(found: dict[str, Any]) -> None:
    """The price of noise in shares, and what it means if other sites fail than were planned."""
    k, n = found["unreliable"], found["agents"]
    OUT.print(
        f"Noise in shares: {k} of {n} sites may be absent, careless or in league, all "
        f"together. When all are there the sum has {found['price']:.2f} times a trusted server's "
        f"noise."
    )
    table = Table(title="ε if other sites fail than were planned")
    for column in ("sites that fail", "a site", "a record"):
        table.add_column(column, justify="right")
    for each in found["if_failing"]:
        planned = " (planned)" if each["failing"] == k else ""
        spent = number(each["epsilon"]), number(each["replace_one"])
        table.add_row(f"{each['failing']}{planned}", *spent)
    OUT.print(table)


def _warn_of_delta(delta: float, accountant: str, costs: dict[float, float]) -> None:
    """Say what the paper's δ means, and what a stricter one would cost, where there is one."""
    if costs:
        prices = ", ".join(f"ε = {number(e)} at δ = {d:g}" for d, e in costs.items())
        ERR.print(
            f"warning: δ = N^-1.1 = {delta:.2g}, the paper's, is weak: the promise may fail with "
            f"that probability. The same noise costs {prices} ({accountant}).",
            style="yellow",
        )
