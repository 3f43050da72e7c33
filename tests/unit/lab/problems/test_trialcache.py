from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sottovoce.errors import StorageError
from sottovoce.lab.problems.datasets import cache_home
from sottovoce.lab.problems.trialcache import DamagedTrial, TrialCache, trial_key

KEY = trial_key(3, {"C": 0.1, "gamma": 2.0})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "trials.sqlite"


def spoil(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    with database:
        database.execute(statement)
    database.close()


def test_a_score_is_found_again_exactly(path: Path) -> None:
    scores = {KEY: 1 / 3, trial_key(3, {"C": 0.2, "gamma": 2.0}): 0.0}
    first = TrialCache("svm", path)
    first.put(scores)
    first.close()
    second = TrialCache("svm", path)
    assert second.get([*scores, trial_key(4, {"C": 0.1, "gamma": 2.0})]) == scores
    second.close()


def test_equal_parameters_have_one_key_in_whatever_order() -> None:
    assert trial_key(0, {"a": 1, "b": 0.5}) == trial_key(0, {"b": 0.5, "a": 1})
    assert trial_key(0, {"a": 1, "b": 0.5}) != trial_key(1, {"a": 1, "b": 0.5})
    assert trial_key(0, {"a": 1.0}) != trial_key(0, {"a": 1.0000000000000002})


def test_another_trainer_has_scores_of_its_own(path: Path) -> None:
    one, other = TrialCache("svm-1", path), TrialCache("svm-2", path)
    one.put({KEY: 0.5})
    assert other.get([KEY]) == {}
    other.put({KEY: 0.75})
    assert one.get([KEY]) == {KEY: 0.5}
    one.close()
    other.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE trials SET score = 0.9 WHERE agent = 3",
        "UPDATE trials SET score = NULL WHERE agent = 3",
        "UPDATE trials SET checksum = NULL WHERE agent = 3",
        "UPDATE trials SET agent = 5 WHERE agent = 3",
        "UPDATE trials SET score = 'high' WHERE agent = 3",
    ],
)
def test_a_damaged_score_is_dropped_and_said_to_be(path: Path, damage: str) -> None:
    sound, moved = trial_key(4, {"C": 1.0}), (5, KEY[1])
    cache = TrialCache("svm", path)
    cache.put({KEY: 0.5, sound: 0.25})
    spoil(path, damage)
    with pytest.warns(DamagedTrial, match=f"{path}.*trained again: 1"):
        assert cache.get([KEY, moved, sound]) == {sound: 0.25}
    assert cache.get([KEY, moved, sound]) == {sound: 0.25}  # said once
    cache.put({KEY: 0.5})
    assert cache.get([KEY]) == {KEY: 0.5}
    cache.close()


def test_a_file_that_is_no_database_is_named_and_said_to_be_safe_to_delete(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("scores: many\n" * 1000)
    with pytest.raises(StorageError, match=rf"{path} is not a cache.*safe to delete"):
        TrialCache("svm", path)
    assert path.read_text().startswith("scores: many")


def test_a_database_of_something_else_is_refused(path: Path) -> None:
    path.parent.mkdir()
    spoil(path, "CREATE TABLE trials (name TEXT)")
    cache = TrialCache("svm", path)
    with pytest.raises(StorageError, match=f"{path} could not be used"):
        cache.get([KEY])
    cache.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file"):
        TrialCache("svm", tmp_path / "file" / "trials.sqlite")


def test_several_processes_write_at_once_and_nothing_is_lost(path: Path) -> None:
    script = """
import sys
from pathlib import Path
from sottovoce.lab.problems.datasets import cache_home
from sottovoce.lab.problems.trialcache import TrialCache
cache = TrialCache("svm", Path(sys.argv[1]))
for k in range(50):
    cache.put({(int(sys.argv[2]), f"{k}"): k / 50, (99, f"{k}"): 0.5})
cache.close()
"""
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(path), str(n)]) for n in range(3)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    cache = TrialCache("svm", path)
    every = {(n, f"{k}"): k / 50 for n in range(3) for k in range(50)}
    assert cache.get([*every, (99, "7")]) == every | {(99, "7"): 0.5}
    cache.close()


def test_the_folder_is_the_one_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOTTOVOCE_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert cache_home() == tmp_path / "own"
    monkeypatch.delenv("SOTTOVOCE_CACHE")
    assert cache_home() == tmp_path / "shared" / "sottovoce"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_home() == Path.home() / ".cache" / "sottovoce"
