from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.terminal import exit_status

from sottovoce.lab.problems import datasets


@pytest.fixture(autouse=True)
def nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOTTOVOCE_DATA", raising=False)
    monkeypatch.setenv("SOTTOVOCE_CACHE", str(tmp_path / "cache"))


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    return exit_status(monkeypatch, "data", *words)


def test_without_a_name_every_data_set_is_listed_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch) == 0
    out = capsys.readouterr().out
    for source in datasets.SOURCES.values():
        assert f"`sottovoce data {source.name}`" in out
        assert source.addresses[0] in out


def test_the_list_as_json_says_what_is_missing_and_what_is_damaged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "cache" / "landmine" / "LandmineData.mat"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"damaged")
    assert command(monkeypatch, "--json") == 0
    listed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["data"]
    assert [entry["name"] for entry in listed] == ["landmine", "har", "digits"]
    assert "is damaged" in listed[0]["problem"]
    assert "are not in" in listed[1]["problem"]
    assert {entry["folder"] for entry in listed} == {None}


def test_an_unknown_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "digit") == 2
    assert "did you mean 'digits'" in capsys.readouterr().err


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The landmine data come from a server here, and are one word."""

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(tmp_path / "served"))

        def log_message(self, format: str, *args: object) -> None:
            pass

    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "LandmineData.mat").write_bytes(b"mines")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    checksum = hashlib.sha256(b"mines").hexdigest()
    layout = replace(datasets.LANDMINE.layouts[0], files={"LandmineData.mat": checksum})
    address = f"http://127.0.0.1:{server.server_address[1]}/LandmineData.mat"
    source = replace(datasets.LANDMINE, layouts=(layout,), addresses=(address,))
    monkeypatch.setitem(datasets.SOURCES, "landmine", source)
    yield checksum
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_data_set_is_downloaded_and_told_with_its_checksum(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    served: str,
) -> None:
    assert command(monkeypatch, "landmine") == 0
    out = capsys.readouterr().out
    assert str(tmp_path / "cache" / "landmine") in out
    assert served in out
    assert command(monkeypatch, "landmine", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["sha256"] == served
    assert answer["published_checksum"] is True


def test_where_no_checksum_is_published_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], served: str
) -> None:
    source = datasets.SOURCES["landmine"]
    layout = replace(source.layouts[0], files={"LandmineData.mat": None})
    monkeypatch.setitem(datasets.SOURCES, "landmine", replace(source, layouts=(layout,)))
    assert command(monkeypatch, "landmine") == 0
    assert "no checksum of these files is published" in capsys.readouterr().err
    assert command(monkeypatch, "landmine", "--json") == 0
    assert json.loads(capsys.readouterr().out)["published_checksum"] is False


def test_a_failed_download_is_one_line_and_status_two(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    served: str,
) -> None:
    (tmp_path / "served" / "LandmineData.mat").unlink()
    assert command(monkeypatch, "landmine") == 2
    assert "answered 404" in capsys.readouterr().err
    assert not (tmp_path / "cache" / "landmine").exists()
