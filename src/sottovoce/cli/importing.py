"""`sottovoce import`: a site's trials from before the study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.show import OUT, Json, print_json
from sottovoce.errors import MissingExtra
from sottovoce.files import private, private_folder


@private()
def import_(
    storage: Annotated[
        str, typer.Argument(help="Optuna's: a URL, or the file of an SQLite or journal storage.")
    ],
    study: Annotated[
        str | None, typer.Option(help="The name of the study in it, if there are several.")
    ] = None,
    project: Annotated[Path, typer.Option(help="The site's copy of the project.")] = Path(),
    journal: Annotated[
        bool, typer.Option("--journal", help='The site\'s SuperNode has storage="journal".')
    ] = False,
    as_json: Json = False,
) -> None:
    """Let this site know the trials of an Optuna study that it has run before, ahead of `join`.

    Those that are finished and lie in the study's space are copied into the site's own memory;
    the storage that they come from is only read.
    """
    try:
        import optuna

        from sottovoce.flower.site.app import Home, study_of
        from sottovoce.flower.site.importing import import_trials
    except ImportError as error:
        raise MissingExtra("importing trials", "flower") from error
    from sottovoce.flower.deploy.project import check_project
    from sottovoce.flower.site.leaving import HOME

    check_project(project)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = project / HOME
    private_folder(folder)
    file = study_of(Home(project.absolute(), folder.absolute(), simulation=False))
    kind = "journal" if journal else "sqlite"
    done = import_trials(file, folder, storage, study, kind)
    if as_json:
        print_json({**done._asdict(), "memory": str(done.memory)})
        return
    words = f"{done.taken} trials of study {done.study!r} are known to this site now: {done.memory}"
    OUT.print(words, markup=False, soft_wrap=True)
    if done.left_out:
        others = ", ".join(f"{count} {reason}" for reason, count in done.left_out.items())
        OUT.print(f"Left out: {others}", markup=False, soft_wrap=True)
