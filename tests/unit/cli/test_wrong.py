"""What a tired person types: each ends in one line that says what must hold, and writes nothing."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import optuna
import pytest
from tests.terminal import exit_status

from sottovoce.flower.deploy.project import make_project

WRONG = {
    "watch nowhere": "what is watched must be a folder",
    "watch text.txt": "what is watched must be a folder",
    "watch empty --port 70000": "port must be in [0, 65535], got port=70000",
    "watch empty --port TAKEN": "cannot be listened on: Address already in use; try another --port",
    "watch empty --host nobody.invalid": "nobody.invalid:8600 cannot be listened on",
    "purse show nowhere.db": "there is no purse nowhere.db: `sottovoce purse new` makes one",
    "purse show empty": "there is no purse empty",
    "purse new empty --epsilon 1": "a purse must be a file, empty is a folder",
    "purse new p.db --epsilon -1": "epsilon must be finite and above 0, got epsilon=-1.0",
    "purse new p.db --epsilon nan": "epsilon must be finite and above 0, got epsilon=nan",
    "purse new p.db --epsilon 1 --delta 2": "delta must be",
    "purse new no/where/p.db --epsilon 1": "purse no/where/p.db cannot be read or written",
    "purse enter empty": "must be a project that `sottovoce new` made",
    "purse enter broken": "study.toml",
    "purse close study": "is in no purse",
    "purse cap nowhere.db --epsilon 2": "there is no purse nowhere.db",
    "import nowhere.db --project study": "a storage must be a file that is there, or a URL",
    "import empty --project study": "a storage must be a file that is there, or a URL",
    "import text.txt --project study": "a storage to import from must hold a study",
    "import sqlite: --project study": "a storage must be a file that is there, or a URL",
    "import mysql://me@db/old --project study": "that kind of storage needs a driver",
    "import none.db --project study": "a storage to import from must hold a study",
    "import none.db --project empty": "must be a project that `sottovoce new` made",
    "statement nowhere": "nowhere",
    "statement empty": "study.toml",
    "statement text.txt": "text.txt",
    "statement broken": "study.toml",
    "statement study --out nowhere": "nowhere must be a folder",
    "statement study --out text.txt": "text.txt must be a folder",
    "status nowhere": "there is no ledger or folder nowhere",
    "status empty": "empty has no ledger",
    "status text.txt": "ledger text.txt cannot be read as a ledger",
    "status study": "study has no ledger",
    "status study/study.toml --watch": "cannot be read as a ledger",
    "status text.txt text.txt": "a ledger must be given once",
}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project, one that is broken, and things that are none."""
    folder = tmp_path_factory.mktemp("things")
    make_project(folder / "study", agents=2, rounds=4, epsilon=2.0)
    shutil.copytree(folder / "study", folder / "broken")
    (folder / "broken" / "study.toml").write_text("agents = ")
    (folder / "empty").mkdir()
    (folder / "text.txt").write_text("nothing of the kind\n")
    storage = optuna.storages.RDBStorage(f"sqlite:///{folder / 'none.db'}")
    storage.remove_session()
    storage.engine.dispose()
    return folder


def written() -> dict[Path, bytes]:
    """All files, but for a site's lock and the noise of its study, which takes seconds to find."""
    kept = ("lock", "noise.json")
    files = (path for path in Path().rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if path.name not in kept}


@pytest.mark.parametrize(("typed", "said"), WRONG.items())
def test_a_wrong_word_is_one_line_and_status_2_and_nothing_is_written(
    typed: str,
    said: str,
    things: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(things, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before = written()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert exit_status(monkeypatch, *typed.replace("TAKEN", port).split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err
    assert written() == before
