"""What a party writes is for its own user, whatever umask that user has."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.terminal import exit_status, in_project

from sottovoce.errors import SottovoceError, StorageError
from sottovoce.files import private, private_folder
from sottovoce.flower.deploy import superlink
from sottovoce.flower.deploy.keys import make_keys
from sottovoce.flower.deploy.rehearsal import free_port, rehearse

# stands for each of Flower's programs: it leaves a file, and an answer
PROGRAM = """\
#!/bin/sh
touch "left-by-$(basename "$0")-$1"
mkdir -p coordinator && touch coordinator/superlink.db
echo '{"success": true, "run-id": "1", "node-id": "7", "runs": []}'
"""
Ran = Callable[..., int]


@pytest.fixture(autouse=True)
def open_handed() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Run a command in a project, with programs of ours in the place of Flower's."""
    names = ("flwr", "flower_superlink", "flower_supernode")
    in_project(tmp_path, monkeypatch, **dict.fromkeys(names, PROGRAM))
    monkeypatch.setattr(superlink, "is_up", lambda link, timeout=1.0: timeout > 1)  # for `start`
    return partial(exit_status, monkeypatch)


def readable(*paths: Path) -> list[str]:
    """What others than the user can read, or look into."""
    found = [path for top in paths for path in (top, *top.rglob("*"))]
    return [str(path) for path in found if stat.S_IMODE(path.stat().st_mode) & 0o077]


def new_in(folder: Path, before: set[Path]) -> list[Path]:
    return sorted(set(folder.rglob("*")) - before)


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--insecure"],
        ["join", "localhost:8000", "--insecure", f"--port={free_port()}"],
        ["start", "--insecure", "--no-follow"],
        ["register", "keys/site-1.pub"],
        ["keys", "more", "--sites=2"],
    ],
    ids=lambda words: words[0],
)
def test_what_a_command_writes_and_what_it_starts_writes_is_for_its_user(
    ran: Ran, words: list[str]
) -> None:
    make_keys(Path("keys"), ["2"])
    Path("sites.toml").write_text('[sites]\na = "1"\nb = "2"\n')
    before = set(Path().rglob("*"))
    assert ran(*words) == 0
    written = new_in(Path(), before)
    assert written
    assert readable(*written, Path("sites.toml")) == ["sites.toml"] * (words[0] != "register")
    assert os.umask(0) == 0  # ours again


@pytest.mark.parametrize(
    ("words", "folder"), [(["serve"], "coordinator"), (["join", "localhost:8000"], "site")]
)
def test_a_folder_that_was_open_to_others_is_closed(
    ran: Ran, words: list[str], folder: str
) -> None:
    for name in (folder, ".flwr"):
        Path(name).mkdir()
        (Path(name) / "old").touch()
    assert ran(*words, "--insecure") == 0
    assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(".flwr").stat().st_mode) == 0o700


def test_a_rehearsal_is_for_its_user(ran: Ran) -> None:
    with pytest.raises(SottovoceError, match="the SuperLink did not start"):
        rehearse(Path(), 2)
    stage = Path("rehearsal")
    made = [stage / name for name in ("logs", "keys", "hub/.flwr", "hub/coordinator")]
    assert readable(*made) == []
    assert (stage / "hub" / "coordinator" / "superlink.db").exists()
    assert stat.S_IMODE(stage.stat().st_mode) == 0o700


def test_private_ends_with_its_block_also_by_an_error() -> None:
    seen = []

    @private()
    def broken() -> None:
        seen.append(os.umask(0o077))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert [*seen, os.umask(0)] == [0o077, 0]


def test_a_folder_that_cannot_be_private_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file could not be made private"):
        private_folder(tmp_path / "file")
    private_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
