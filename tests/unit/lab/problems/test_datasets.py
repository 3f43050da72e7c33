from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.problems.datasets import (
    DIGITS,
    HAR,
    LANDMINE,
    SOURCES,
    Layout,
    Source,
    cache_folder,
    find,
    source_named,
)

TOY = Source(
    "toy",
    "a toy",
    (
        Layout("pair", "two files", {"a.txt": None, "sub/b.txt": None}),
        Layout("one", "one file", {"c.txt": hashlib.sha256(b"c").hexdigest()}),
    ),
    ("http://localhost/toy.zip",),
)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOTTOVOCE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SOTTOVOCE_CACHE", str(tmp_path / "cache"))


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_missing_data_set_is_answered_with_the_command_and_the_address(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        find(LANDMINE)
    text = str(caught.value)
    assert "`sottovoce data landmine`" in text
    assert LANDMINE.addresses[0] in text
    assert str(tmp_path / "data" / "landmine") in text
    assert str(tmp_path / "cache" / "landmine") in text


def test_looking_for_data_makes_no_folder(tmp_path: Path) -> None:
    for source in SOURCES.values():
        with pytest.raises(StorageError):
            find(source)
    assert list(tmp_path.iterdir()) == []


def test_the_users_folder_comes_before_the_cache(tmp_path: Path) -> None:
    put(tmp_path / "cache/toy/c.txt", b"c")
    assert find(TOY).folder == tmp_path / "cache" / "toy"
    put(tmp_path / "data/toy/c.txt", b"c")
    assert find(TOY).folder == tmp_path / "data" / "toy"


def test_the_cache_is_where_the_system_keeps_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOTTOVOCE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder(TOY) == tmp_path / "xdg" / "sottovoce" / "toy"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder(TOY) == tmp_path / "home" / ".cache" / "sottovoce" / "toy"


def test_the_official_files_are_preferred_and_must_all_be_there(tmp_path: Path) -> None:
    put(tmp_path / "data/toy/c.txt", b"c")
    put(tmp_path / "data/toy/a.txt", b"a")
    assert find(TOY).layout.kind == "one"
    put(tmp_path / "data/toy/sub/b.txt", b"b")
    found = find(TOY)
    assert found.layout.kind == "pair"
    assert found.path("sub/b.txt").read_bytes() == b"b"


def test_the_checksum_is_the_files_own_or_covers_all_files(tmp_path: Path) -> None:
    put(tmp_path / "data/toy/c.txt", b"c")
    assert find(TOY).checksum == hashlib.sha256(b"c").hexdigest()
    put(tmp_path / "data/toy/a.txt", b"a")
    put(tmp_path / "data/toy/sub/b.txt", b"b")
    before = find(TOY).checksum
    put(tmp_path / "data/toy/sub/b.txt", b"B")
    assert find(TOY).checksum != before


def test_a_damaged_file_is_named_with_both_checksums_and_the_command(tmp_path: Path) -> None:
    path = put(tmp_path / "data/landmine/LandmineData.mat", b"not the data")
    with pytest.raises(StorageError) as caught:
        find(LANDMINE)
    text = str(caught.value)
    assert str(path) in text
    assert hashlib.sha256(b"not the data").hexdigest() in text
    assert str(LANDMINE.layouts[0].files["LandmineData.mat"]) in text
    assert "`sottovoce data landmine`" in text


@pytest.mark.parametrize(
    ("source", "file"), [(HAR, "ucihar_derived561.npz"), (DIGITS, "mnist_50writers.npz")]
)
def test_the_other_known_checksums_are_checked_too(
    tmp_path: Path, source: Source, file: str
) -> None:
    put(tmp_path / "data" / source.name / file, b"")
    with pytest.raises(StorageError, match=file):
        find(source)


def test_files_without_a_published_checksum_are_compared_to_the_record(tmp_path: Path) -> None:
    put(tmp_path / "cache/toy/a.txt", b"a")
    put(tmp_path / "cache/toy/sub/b.txt", b"b")
    line = f"{hashlib.sha256(b'a').hexdigest()}  a.txt\n"
    put(tmp_path / "cache/toy.sha256", line.encode())
    find(TOY)
    put(tmp_path / "cache/toy/a.txt", b"A")
    with pytest.raises(StorageError, match=r"a\.txt is damaged"):
        find(TOY)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    put(tmp_path / "cache/toy/c.txt", b"c")
    record = put(tmp_path / "cache/toy.sha256", b"what is this\n")
    with pytest.raises(StorageError, match=str(record)):
        find(TOY)
    record.write_bytes(b"\xff\xfe")
    with pytest.raises(StorageError, match="could not be read"):
        find(TOY)


def test_an_unknown_data_set_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'landmine'"):
        source_named("landmines")
    assert source_named("har") is HAR


def test_every_source_has_an_address_and_differs_from_the_others() -> None:
    assert list(SOURCES) == ["landmine", "har", "digits"]
    for source in SOURCES.values():
        assert all(address.startswith("http") for address in source.addresses)
        assert replace(source, name="x").command == "sottovoce data x"
