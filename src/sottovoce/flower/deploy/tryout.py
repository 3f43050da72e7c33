"""One trial of a project's objective, in a process of its own, before a study begins.

    python -P -m sottovoce.flower.deploy.tryout PROJECT

It reads a study's space on standard input and writes what came of it, one JSON object, to the file
that SOTTOVOCE_TRYOUT names. The trial is of a study in memory that nobody keeps, at points that
depend on nothing of the site's: it counts nowhere, and no file of the site's is touched. It runs
where the site's trials will, in its folder: a path that they would not find is not found here.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.errors import InvalidInput, SottovoceError, SpaceError

ANSWER = "SOTTOVOCE_TRYOUT"
ATTEMPTS = 3  # at different points: a single failure is an objective's good right


@contextmanager
def naming_the_line(project: Path) -> Iterator[None]:
    """Whatever a project's own code raises, in one line: where, and what."""
    try:
        yield
    except SottovoceError:
        raise
    except (Exception, SystemExit) as error:
        words = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
        what = f"{type(error).__name__}: {words}" if words else type(error).__name__
        raise InvalidInput(f"the objective must run: {_where(error, project)}: {what}") from error


def _where(error: BaseException, project: Path) -> str:
    """The innermost line of the project's own files, not of a library that they called."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [(frame.filename, frame.lineno) for frame in frames]
    if isinstance(error, SyntaxError):
        lines.append((error.filename or "", error.lineno))
    for name, line in reversed(lines):
        path = Path(name)
        if path.is_relative_to(project) and "site-packages" not in path.parts and line:
            return f"{path}, line {line}"
    return str(project / "objective.py")


def tried(project: Path, table: dict[str, Any]) -> dict[str, Any]:
    """Import the objective and run a trial; what it asked for, returned and took."""
    import optuna

    from sottovoce.flower.site.app import objective_of
    from sottovoce.flower.site.trying import Settled, value_of
    from sottovoce.optuna.spaces import check_asked
    from sottovoce.space import Space

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = Space.from_dict(table)
    with naming_the_line(project):
        objective = objective_of(project)
    last = InvalidInput("the objective must run")
    for k in range(ATTEMPTS):
        study = optuna.create_study()
        study.set_user_attr("site", 0)
        point = np.asarray(space.snap(np.full(space.dims, (0.5, 0.25, 0.75)[k])))
        study.sampler = Settled(space)
        trial, began = study.ask(), time.monotonic()
        trial.set_user_attr("asked", space.decode(point))
        try:
            with naming_the_line(project):
                returned = objective(trial)
                check_asked(trial.distributions, space)
        except SpaceError as error:
            raise SpaceError(f"{error}. Run `sottovoce space --write`") from error
        except InvalidInput as error:
            last = error
            if isinstance(error.__cause__, optuna.TrialPruned):
                return {"value": None, "seconds": time.monotonic() - began, "unasked": []}
            continue
        seconds = time.monotonic() - began
        value = value_of(returned)
        if value is not None:
            unasked = [name for name in space.names if name not in trial.distributions]
            return {"value": value, "seconds": seconds, "unasked": unasked}
        got = f"{type(returned).__name__} {returned!r}"[:80]
        last = InvalidInput(f"the objective must return a finite number, got {got}")
    raise last


def main() -> None:
    """Try, and answer."""
    project, target = Path(sys.argv[1]), Path(os.environ.pop(ANSWER))
    table = json.loads(sys.stdin.readline())
    try:
        answer = tried(project, table)
    except SottovoceError as error:
        answer = {"error": str(error)}
    target.write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
