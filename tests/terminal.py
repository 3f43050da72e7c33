"""Commands in this process through `main`, as the console script runs them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sottovoce import cli
from sottovoce.flower.deploy.project import make_project


def exit_status(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """How `sottovoce WORDS` ends."""
    monkeypatch.setattr(sys, "argv", ["sottovoce", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> Path:
    """Go to a new project, with these scripts in the place of Flower's programs; their folder."""
    make_project(tmp_path / "study", agents=2, rounds=2, epsilon=2.0)
    monkeypatch.chdir(tmp_path / "study")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in programs.items():
        write_program(folder / name.replace("_", "-"), script)
    write_program(folder / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    monkeypatch.setattr(sys, "executable", str(folder / "python"))  # Flower's are beside it
    return folder


def write_program(path: Path, script: str) -> None:
    path.write_text(script)
    path.chmod(0o755)
