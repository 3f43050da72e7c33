from __future__ import annotations

import hashlib
import io
import socketserver
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sottovoce.errors import StorageError
from sottovoce.lab.problems.datasets import Found, Layout, Source, find
from sottovoce.lab.problems.downloads import fetch

BODY = bytes(range(256)) * 4000  # about 1 MB, more than one chunk


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Server(socketserver.ThreadingTCPServer):
    """Serves `files`; notes the ranges asked for; may break off, refuse, or ignore ranges."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.ranges: list[str | None] = []
        self.break_after: int | None = None
        self.status: int | None = None
        self.honours_ranges = True

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, asked = self.server, self.headers.get("Range")
        server.ranges.append(asked)
        body = server.files.get(self.path.strip("/"))
        if server.status or body is None:
            self.send_error(server.status or 404)
            return
        start = int(asked[len("bytes=") : -1]) if asked and server.honours_ranges else 0
        if start >= len(body) > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : server.break_after])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SOTTOVOCE_DATA", raising=False)
    monkeypatch.setenv("SOTTOVOCE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def plain(server: Server, name: str = "toy.bin", checksum: str | None = sha(BODY)) -> Source:
    """A data set of one file, served as it is."""
    return Source(
        "toy", "a toy", (Layout("one", "one file", {"toy.bin": checksum}),), (server.url(name),)
    )


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:bz2") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def content_of(found: Found) -> dict[str, bytes]:
    files = [path for path in found.folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(found.folder)): path.read_bytes() for path in files}


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_a_file_is_downloaded_checked_and_then_found(server: Server, cache: Path) -> None:
    server.files["toy.bin"] = BODY
    source, seen = plain(server), list[tuple[int, int | None]]()
    found = fetch(source, lambda done, total: seen.append((done, total)))
    assert content_of(found) == {"toy.bin": BODY}
    assert found == find(source)
    assert seen[0] == (0, len(BODY))
    assert seen[-1] == (len(BODY), len(BODY))
    assert names_in(cache) == {"toy", "toy.sha256"}


def test_what_is_there_is_not_downloaded_again(server: Server) -> None:
    server.files["toy.bin"] = BODY
    fetch(plain(server))
    fetch(plain(server))
    assert server.ranges == [None]


def test_a_download_that_broke_off_goes_on_from_there(server: Server, cache: Path) -> None:
    server.files["toy.bin"], server.break_after = BODY, 300_000
    with pytest.raises(StorageError, match=r"300,000 of 1,024,000 bytes; run the command again"):
        fetch(plain(server))
    assert names_in(cache) == {"toy-toy.bin.part"}
    server.break_after = None
    assert content_of(fetch(plain(server))) == {"toy.bin": BODY}
    assert server.ranges == [None, "bytes=300000-"]
    assert names_in(cache) == {"toy", "toy.sha256"}


def test_a_server_that_knows_no_ranges_is_asked_from_the_start(server: Server, cache: Path) -> None:
    server.files["toy.bin"], server.honours_ranges = BODY, False
    cache.mkdir()
    (cache / "toy-toy.bin.part").write_bytes(b"something else")
    assert content_of(fetch(plain(server))) == {"toy.bin": BODY}


def test_a_part_that_is_already_whole_is_used(server: Server, cache: Path) -> None:
    server.files["toy.bin"] = BODY
    cache.mkdir()
    (cache / "toy-toy.bin.part").write_bytes(BODY)
    assert content_of(fetch(plain(server))) == {"toy.bin": BODY}
    assert server.ranges == [f"bytes={len(BODY)}-"]


def test_a_part_longer_than_the_file_is_thrown_away(server: Server, cache: Path) -> None:
    server.files["toy.bin"] = BODY
    cache.mkdir()
    (cache / "toy-toy.bin.part").write_bytes(BODY + b"more")
    assert content_of(fetch(plain(server))) == {"toy.bin": BODY}


def test_an_interrupted_download_leaves_its_part_and_nothing_else(
    server: Server, cache: Path
) -> None:
    server.files["toy.bin"] = BODY

    def interrupt(done: int, total: int | None) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(plain(server), interrupt)
    assert names_in(cache) == {"toy-toy.bin.part"}
    assert 0 < (cache / "toy-toy.bin.part").stat().st_size < len(BODY)
    assert content_of(fetch(plain(server))) == {"toy.bin": BODY}


def test_a_wrong_checksum_leaves_nothing(server: Server, cache: Path) -> None:
    server.files["toy.bin"] = b"tampered"
    with pytest.raises(StorageError) as caught:
        fetch(plain(server))
    assert sha(BODY) in str(caught.value)
    assert sha(b"tampered") in str(caught.value)
    assert names_in(cache) == set()


@pytest.mark.parametrize("status", [404, 500, 503])
def test_a_server_error_is_told_with_the_address(server: Server, cache: Path, status: int) -> None:
    server.status = status
    with pytest.raises(StorageError, match=rf"{server.url('toy.bin')} answered {status}"):
        fetch(plain(server))
    assert names_in(cache) == set()


def test_a_server_that_is_not_there_is_told(server: Server) -> None:
    gone = replace(plain(server), addresses=("http://127.0.0.1:9/toy.bin",))
    with pytest.raises(StorageError, match="could not be reached"):
        fetch(gone)


def test_the_next_address_is_tried_when_the_first_fails(server: Server) -> None:
    server.files["toy.bin"] = BODY
    source = replace(plain(server), addresses=(server.url("gone.zip"), server.url("toy.bin")))
    assert content_of(fetch(source)) == {"toy.bin": BODY}
    del server.files["toy.bin"]
    with pytest.raises(StorageError, match=r"gone\.zip answered 404.*toy\.bin answered 404"):
        fetch(replace(source, name="again"))


def test_a_cache_that_cannot_be_written_is_told(server: Server, cache: Path) -> None:
    server.files["toy.bin"] = BODY
    cache.write_text("in the way")
    with pytest.raises(StorageError, match="could not be stored"):
        fetch(plain(server))


def test_only_the_wanted_members_of_a_zip_are_taken(server: Server, cache: Path) -> None:
    files = {"deep/toy.bin": BODY, "readme.txt": b"no", "../../evil.txt": b"no"}
    server.files["toy.zip"] = zipped({**files, "__MACOSX/deep/toy.bin": b"no"})
    assert content_of(fetch(plain(server, "toy.zip"))) == {"toy.bin": BODY}
    assert not (cache.parent / "evil.txt").exists()
    assert names_in(cache) == {"toy", "toy.sha256"}


def test_a_member_with_the_wanted_name_cannot_leave_the_folder(server: Server, cache: Path) -> None:
    server.files["toy.zip"] = zipped({"../../../toy.bin": BODY})
    assert content_of(fetch(plain(server, "toy.zip"))) == {"toy.bin": BODY}
    assert names_in(cache.parent) == {"cache"}


def test_a_zip_within_a_zip_is_opened(server: Server) -> None:
    inner = zipped({"UCI/toy.bin": BODY})
    server.files["toy.zip"] = zipped({"UCI.zip": inner, "UCI.names": b"no"})
    assert content_of(fetch(plain(server, "toy.zip"))) == {"toy.bin": BODY}


def test_a_tar_is_unpacked(server: Server) -> None:
    server.files["toy.tar.bz2"] = tarred({"toy.bin": BODY, "other": b"no"})
    assert content_of(fetch(plain(server, "toy.tar.bz2"))) == {"toy.bin": BODY}


def test_a_link_in_a_tar_is_not_followed(server: Server, cache: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:bz2") as archive:
        link = tarfile.TarInfo("toy.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    server.files["toy.tar.bz2"] = made.getvalue()
    with pytest.raises(StorageError, match=r"must hold toy\.bin"):
        fetch(plain(server, "toy.tar.bz2", None))
    assert names_in(cache) == set()


@pytest.mark.parametrize("name", ["toy.zip", "toy.tar.bz2"])
def test_an_archive_that_is_none_leaves_nothing(server: Server, cache: Path, name: str) -> None:
    server.files[name] = b"<html>sorry</html>"
    with pytest.raises(StorageError, match="could not be unpacked"):
        fetch(plain(server, name))
    assert names_in(cache) == set()


@pytest.mark.parametrize("name", ["toy.zip", "toy.tar.bz2"])
def test_an_archive_damaged_within_leaves_nothing(server: Server, cache: Path, name: str) -> None:
    pack = zipped if name.endswith("zip") else tarred
    whole = bytearray(pack({"toy.bin": BODY}))
    whole[len(whole) // 2 : len(whole) // 2 + 40] = bytes(40)
    server.files[name] = bytes(whole)
    with pytest.raises(StorageError, match="could not be unpacked"):
        fetch(plain(server, name, None))
    assert names_in(cache) == set()


def test_without_a_published_checksum_the_first_one_is_kept_and_compared_to(
    server: Server, cache: Path
) -> None:
    first = zipped({"toy.bin": BODY})
    server.files["toy.zip"] = first
    source = plain(server, "toy.zip", None)
    folder = fetch(source).folder
    record = (cache / "toy.sha256").read_text()
    assert record == f"{sha(first)}  toy.zip\n{sha(BODY)}  toy.bin\n"
    (folder / "toy.bin").unlink()
    server.files["toy.zip"] = zipped({"toy.bin": b"another"})
    with pytest.raises(StorageError, match=r"remove .*toy\.sha256 to accept another"):
        fetch(source)
    assert (cache / "toy.sha256").read_text() == record
    (cache / "toy.sha256").unlink()
    assert content_of(fetch(source)) == {"toy.bin": b"another"}


def test_a_damaged_file_in_the_cache_is_replaced(server: Server, cache: Path) -> None:
    server.files["toy.bin"] = BODY
    fetch(plain(server))
    (cache / "toy" / "toy.bin").write_bytes(b"damaged")
    assert content_of(fetch(plain(server))) == {"toy.bin": BODY}
    assert names_in(cache) == {"toy", "toy.sha256"}


def test_a_damaged_file_of_the_users_is_left_alone(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOTTOVOCE_DATA", str(tmp_path / "data"))
    path = tmp_path / "data" / "toy" / "toy.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"damaged")
    with pytest.raises(StorageError, match=str(path)):
        fetch(plain(server))
    assert path.read_bytes() == b"damaged"
    assert server.ranges == []
