"""`sottovoce plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from sottovoce.cli.budget import print_shares
from sottovoce.cli.show import ERR, OUT, Json, counting, meanings, print_json
from sottovoce.errors import InvalidInput, check

if TYPE_CHECKING:
    from sottovoce.federation.study import FederatedStudy

STYLES = {"join": "bold green", "do not join": "bold red", "unclear": "bold yellow"}


def plan(
    project: Annotated[
        Path | None,
        typer.Argument(
            help="A project, or its study.toml; default: the one here.", show_default=False
        ),
    ] = None,
    agents: Annotated[int | None, typer.Option(help="N, the number of agents.")] = None,
    dims: Annotated[
        int | None, typer.Option(help="D, the number of hyperparameters, in place of a study.toml.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="T, trials after the initial ones.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="ε, the most that may be spent.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ; default 1e-5.")] = None,
    runs: Annotated[int, typer.Option(help="Simulations on made-up functions; 0: none.")] = 12,
    unreliable: Annotated[
        int | None,
        typer.Option(
            help="k: sites add the noise in shares, and k of them may fail (trust nobody)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Is sharing worth it here? Settings from what is public, and the gain to expect.

    The space, agents, rounds, ε and δ are those of a study.toml, unless given; or there are --dims
    numbers.
    """
    from sottovoce.lab.experiments.forecast import forecast

    given = {"agents": agents, "rounds": rounds, "epsilon": epsilon, "delta": delta}
    given["unreliable"] = unreliable
    check(runs == 0 or runs >= 2, "runs must be 0, or 2 and more", runs=runs)
    study, resolved = _study(project, dims, given)
    with counting("simulating on made-up functions") as advance:
        found = forecast(study, resolved, runs, advance)
    if as_json:
        print_json(found)
        return
    count = found["parameters"]
    table = Table(title=f"{study.method.name} for {study.agents} agents, {count} parameters")
    table.add_column("setting")
    table.add_column("value", justify="right")
    for name, value in _rows(found):
        table.add_row(name, value)
    OUT.print(table)
    for sentence in meanings({"pld": found["epsilon"]}, found["replace_one"]):
        OUT.print(sentence)
    if "unreliable" in found:
        print_shares(found)
    _print_gain(found)
    _warn_of_delta(found)


def _study(
    project: Path | None, dims: int | None, given: dict[str, Any]
) -> tuple[FederatedStudy, float]:
    """The study that is asked about, and its δ."""
    from sottovoce.federation.planning import DELTA
    from sottovoce.lab.experiments.forecast import planned

    given = {name: value for name, value in given.items() if value is not None}
    if dims is not None:
        check(project is None, "give either a project or --dims, not both", project=str(project))
        missing = [f"--{name}" for name in ("agents", "rounds", "epsilon") if name not in given]
        check(not missing, "with --dims these are needed too", missing=", ".join(missing))
        delta = float(given.get("delta", DELTA))
        return planned(**{**given, "dims": dims, "delta": delta}), delta
    return _in_file(project or Path(), given)


def _in_file(path: Path, given: dict[str, Any]) -> tuple[FederatedStudy, float]:
    """The study of a file, with what was given in place of what it says."""
    from sottovoce.files import read_toml
    from sottovoce.flower.studyfile import STUDY, study_from

    path = path / STUDY if path.is_dir() else path
    if not path.is_file():
        raise InvalidInput(f"there is no {path}: name a project, or give --dims and the rest")
    data = read_toml(path)
    table = data.get("study")
    if isinstance(table, dict):
        data = {**data, "study": {**table, **given}}
    try:
        file = study_from(data)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    return file.study, file.delta


def _print_gain(found: dict[str, Any]) -> None:
    """The answer, last: what joining is to gain, what of it comes from the others, and so."""
    gain = found["gain"]
    if gain is not None:
        OUT.print(
            f"Over the first {gain['trials']} trials {_told(gain['over_alone'])} less regret than "
            f"the best solo search, and {_told(gain['over_noise'])} less than with noise alone, "
            f"which is what comes from the others. 95 % intervals, {gain['runs']} simulations of "
            f"{gain['agents']} agents with the noise of {found['agents']}, on made-up functions of "
            f"which sites share 70 %: yours may share less."
        )
    word = found["advice"]
    OUT.print(
        f"Is sharing worth it here? {word.capitalize()}: {found['because']}.", style=STYLES[word]
    )
    if word == "do not join":
        OUT.print("More agents, or a larger ε, would help; going alone costs nothing.")


def _told(ratio: dict[str, float]) -> str:
    return f"{ratio['gain']:.0%} [{ratio['low']:.0%}, {ratio['high']:.0%}]"


def _warn_of_delta(found: dict[str, Any]) -> None:
    if found["weak_delta"]:
        ERR.print(
            f"warning: δ = {found['delta']:.2g} is weak for {found['agents']} agents: a mechanism "
            f"that shows one agent in {1 / found['delta']:.0f} in the clear would keep it. Choose "
            f"it well below 1/N = {1 / found['agents']:.2g}.",
            style="yellow",
        )


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("ε spent (pld), once and for all", f"{found['epsilon']:.4g}"),
        ("δ", f"{found['delta']:.3g}"),
        ("adjacency", found["adjacency"]),
        ("releases", str(found["releases"])),
        ("noise z", f"{found['noise']:g}"),
        ("clip S", f"{found['clip']:g}"),
        ("participation q", f"{found['participation']:g}"),
        ("features M", str(found["features"])),
        ("initial trials each", str(found["initial"])),
    ]
    if found["revealed"] is not None:
        rows.append(("of the common function revealed", f"{found['revealed']:.0%}"))
        rows.append(("expected signal to noise", f"{found['signal_to_noise']:.2f}"))
    return rows
