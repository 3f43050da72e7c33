"""`sottovoce new` and `sottovoce space`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.show import OUT, Json, print_json
from sottovoce.errors import MissingExtra

Project = Annotated[Path, typer.Argument(help="A folder that `sottovoce new` made.")]


def new(
    name: Annotated[Path, typer.Argument(help="The folder to make; its name is the app's.")],
    agents: Annotated[int, typer.Option(help="N, the number of sites.")] = 30,
    rounds: Annotated[int, typer.Option(help="T, trials after the initial ones.")] = 15,
    epsilon: Annotated[float, typer.Option(help="ε, the most that may be spent.")] = 4.0,
    publisher: Annotated[str, typer.Option(help="Whose app it is, for Flower.")] = "consortium",
    as_json: Json = False,
) -> None:
    """Make a project: a Flower app around an Optuna objective, which every party gets a copy of."""
    from sottovoce.flower.deploy.project import FILES, make_project

    study = make_project(name, agents=agents, rounds=rounds, epsilon=epsilon, publisher=publisher)
    if as_json:
        print_json({"folder": str(name), "files": list(FILES), "constants": study.constants})
        return
    OUT.print(f"Made {name}: {', '.join(FILES)}", soft_wrap=True)
    OUT.print(f"Next: cd {name}, then sottovoce rehearse; README.md says more.", soft_wrap=True)


def space(
    project: Project = Path(),
    write: Annotated[bool, typer.Option("--write", help="Put it into study.toml.")] = False,
) -> None:
    """What a project's objective asks for, as the tables of study.toml that declare it."""
    try:
        import optuna

        from sottovoce.flower.site.app import objective_of
        from sottovoce.optuna import space_toml, traced_space
    except ImportError as error:
        raise MissingExtra("looking at an objective", "flower") from error
    from sottovoce.flower.deploy.project import STUDY, check_project, write_space
    from sottovoce.flower.deploy.tryout import naming_the_line

    check_project(project)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with naming_the_line(project.absolute()):
        tables = space_toml(traced_space(objective_of(project.absolute()), site=0))
    if write:
        write_space(project / STUDY, tables)
        OUT.print(f"Wrote {project / STUDY}", soft_wrap=True)
    else:
        print(tables.rstrip())
