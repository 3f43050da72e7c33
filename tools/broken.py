"""Twelve mistakes of tired people, each tried for real: how long until one line says what it is.

    python tools/broken.py            # a table
    python tools/broken.py --write    # the same, into docs/deploy.md

Each begins with a fresh project; what is measured is the time until the command ends, with its exit
status and what its ledger says was spent.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sottovoce.flower.deploy.keys import make_keys
from sottovoce.flower.deploy.project import make_project
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.ledger import read_ledger

PAGE = Path(__file__).parents[1] / "docs" / "deploy.md"
BEGIN, END = "<!-- written by `python tools/broken.py --write` -->", "<!-- end of the table -->"
LIMIT = 300


@dataclass(frozen=True)
class Mistake:
    """What is done to a project, and the command that is then given."""

    name: str
    do: Callable[[Path], object]
    words: tuple[str, ...] = ("rehearse",)


def _replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise ValueError(f"the template has no {old!r} any more")
    return text.replace(old, new, 1)


def _objective(old: str, new: str) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        path = project / "objective.py"
        text = path.read_text()
        path.write_text(_replaced(text, old, new))

    return change


def _study(old: str, new: str) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        path = project / "study.toml"
        path.write_text(_replaced(path.read_text(), old, new))

    return change


def _expired(project: Path) -> None:
    make_keys(project / "keys", ["1"])
    shutil.copy(project / "keys" / "site-1.key", project / "keys" / "ca.crt")


RETURN = "    return float(np.mean((held_out @ coefficients - y[80:]) ** 2))"
WIDTH = 'trial.suggest_float("width", 0.2, 5.0)'
MISTAKES = (
    Mistake("a syntax error", _objective("def objective(", "def objective(:")),
    Mistake("a module that is not installed", _objective("import optuna\n", "import optunaa\n")),
    Mistake("no function `objective`", _objective("def objective(", "def objectiv(")),
    Mistake("an objective that always fails", _objective(RETURN, "    raise OSError('no data')")),
    Mistake("an objective that returns NaN", _objective(RETURN, "    return float('nan')")),
    Mistake(
        "a new parameter, and no `space --write`",
        _objective(RETURN, f"    trial.suggest_int('depth', 1, 9)\n{RETURN}"),
    ),
    Mistake(
        "bounds swapped in the objective",
        _objective(WIDTH, 'trial.suggest_float("width", 5.0, 0.2)'),
    ),
    Mistake("bounds swapped in study.toml", _study("high = 100.0", "high = 1e-9")),
    Mistake(
        "a trial that takes longer than granted",
        lambda project: (
            _objective(RETURN, f"    import time; time.sleep(3)\n{RETURN}")(project),
            _study("trial_limit = 600", "trial_limit = 1")(project),
        ),
    ),
    Mistake("50 sites of a study of 5", lambda project: None, ("rehearse", "--sites", "50")),
    Mistake("a second `serve`: its port is in use", lambda project: None, ("serve", "--insecure")),
    Mistake(
        "`join` with a file that is no certificate",
        _expired,
        ("join", "127.0.0.1:8000", "--key", "keys/site-1.key"),
    ),
)


def tried(mistake: Mistake, folder: Path) -> tuple[float, int, float, str]:
    """Seconds, exit status, ε spent, and the last line that was said."""
    project = folder / "my-study"
    make_project(project, agents=5, rounds=4, epsilon=4.0)
    study = project / "study.toml"
    study.write_text(study.read_text().replace('"nobody"', '"coordinator"'))
    mistake.do(project)
    words = list(mistake.words)
    with socket.socket() as taken:
        if words[0] == "serve":
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            words += ["--port", str(taken.getsockname()[1])]
        began = time.monotonic()
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "sottovoce.cli", *words],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    seconds = time.monotonic() - began
    spent = 0.0
    for ledger in project.rglob("ledger.db"):
        events = [entry.release.event for entry in read_ledger(ledger).entries]
        spent += epsilon(events, 1e-5) if events else 0.0
    last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    return seconds, done.returncode, spent, last.replace(str(project), "…")


def table() -> list[str]:
    """The table, a line each."""
    rows = ["| what is wrong | seconds | status | ε spent | the line |", "|---|--:|--:|--:|---|"]
    for mistake in MISTAKES:
        with tempfile.TemporaryDirectory() as folder:
            seconds, status, spent, line = tried(mistake, Path(folder))
        said = re.sub(r"port \d+", "port 8000", line).replace("|", "\\|")
        rows.append(f"| {mistake.name} | {seconds:.0f} | {status} | {spent:g} | {said} |")
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Print the table, or write it."""
    rows = table()
    if "--write" not in sys.argv[1:]:
        print("\n".join(rows))
        return
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    new = "\n".join(rows)
    PAGE.write_text(f"{head}{BEGIN}\n{new}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
