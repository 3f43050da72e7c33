"""Downloading a data set: only when asked, resumed where it stopped, checked, put in place whole.

What has arrived lies beside the data set's folder in a file that ends in .part. It stays there
if the download stops, and the next attempt goes on from its end.
"""

from __future__ import annotations

import http.client
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from sottovoce.errors import StorageError
from sottovoce.files import write_text
from sottovoce.lab.problems.datasets import (
    Found,
    Layout,
    Source,
    cache_folder,
    find_in,
    given_folder,
    read_record,
    record_path,
    sha256_of,
)

CHUNK = 1 << 18
PATIENCE = 60.0  # seconds without a byte
GO_ON = "run the command again to go on from there"
Watch = Callable[[int, int | None], None]  # bytes so far, and in all where the server says


def unwatched(done: int, total: int | None) -> None:
    """Nobody looks on."""


def fetch(source: Source, watch: Watch = unwatched) -> Found:
    """The data set: where it lies if it is there and sound, else downloaded to the cache.

    A damaged one in the cache is replaced; one in SOTTOVOCE_DATA is the user's, and is an error.
    """
    given, cache = given_folder(source), cache_folder(source)
    if given is not None and (found := find_in(source, given)) is not None:
        return found
    try:
        found = find_in(source, cache)
    except StorageError:
        found = None
    return found or _download(source, cache, watch)


def _download(source: Source, folder: Path, watch: Watch) -> Found:
    failures = []
    for address in source.addresses:
        try:
            return _download_from(address, source, folder, watch)
        except StorageError as error:
            failures.append(str(error))
        except OSError as error:
            failures.append(f"{address} could not be stored in {folder.parent}: {error}")
    raise StorageError("; ".join(failures))


def _download_from(address: str, source: Source, folder: Path, watch: Watch) -> Found:
    """Download, check, unpack aside, check again, move into place."""
    name = address.rpartition("/")[2]
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f"{source.name}-{name}.part")
    _receive(address, part, watch)
    aside = Path(tempfile.mkdtemp(prefix=f".{source.name}-", dir=folder.parent))
    try:
        try:
            sums = _checked_files(address, source, part, aside)
        except StorageError:
            part.unlink(missing_ok=True)  # to go on from it would only fail again
            raise
        lines = "".join(f"{checksum}  {file}\n" for file, checksum in sums.items())
        write_text(record_path(source, folder), lines)
        _move_whole(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    part.unlink()
    found = find_in(source, folder)
    if found is None:  # someone else removed it meanwhile
        raise StorageError(f"{folder} vanished while it was checked")
    return found


def _checked_files(address: str, source: Source, part: Path, aside: Path) -> dict[str, str]:
    """Unpack the files wanted; the checksums of what came and of each file in it."""
    layout, name = source.layouts[0], address.rpartition("/")[2]
    sums = {name: sha256_of(part)}
    _compare(source, name, sums)
    _unpack(address, part, layout, aside)
    for file in (*layout.files, *layout.extra):
        if (aside / file).is_file():
            sums[file] = sha256_of(aside / file)
            _compare(source, file, sums)
    return sums


def _compare(source: Source, file: str, sums: Mapping[str, str]) -> None:
    """What came must be what is published or, where nothing is, what came the first time."""
    folder, published = cache_folder(source), source.layouts[0].files.get(file)
    expected = published or read_record(source, folder).get(file)
    if expected not in (None, sums[file]):
        accept = "" if published else f"; remove {record_path(source, folder)} to accept another"
        raise StorageError(
            f"the SHA-256 of the downloaded {file} must be {expected}, got {sums[file]}{accept}"
        )


def _receive(address: str, part: Path, watch: Watch) -> None:
    """Bring the part file to its full length, from where it ends."""
    start = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "sottovoce"} | ({"Range": f"bytes={start}-"} if start else {})
    wanted = urllib.request.Request(address, headers=headers)  # noqa: S310 - addresses are ours
    try:
        with urllib.request.urlopen(wanted, timeout=PATIENCE) as answer:  # noqa: S310
            resumed = (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-")
            _append(answer, part, start if resumed else 0, watch)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise StorageError(f"{address} answered {error.code} {error.reason}") from error
        if error.headers.get("Content-Range") != f"bytes */{start}":  # else it is all there
            part.unlink()
            _receive(address, part, watch)
    except urllib.error.URLError as error:
        raise StorageError(f"{address} could not be reached: {error.reason}") from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise StorageError(f"{address} broke off: {error!r}; {GO_ON}") from error


def _append(answer: Any, part: Path, start: int, watch: Watch) -> None:
    """Write what comes after the first `start` bytes of the part file."""
    length = answer.headers.get("Content-Length")
    total, done = (start + int(length) if length else None), start
    with part.open("r+b" if start else "wb") as file:
        file.seek(start)
        watch(done, total)
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            done += len(chunk)
            watch(done, total)
    if total is not None and done < total:
        raise StorageError(f"{answer.url} broke off after {done:,} of {total:,} bytes; {GO_ON}")


def _unpack(address: str, part: Path, layout: Layout, aside: Path) -> None:
    """Put the layout's files into the folder `aside`; nothing else is taken from an archive."""
    wanted = [*layout.files, *layout.extra]
    try:
        if address.endswith(".zip"):
            with part.open("rb") as file:
                _unzip(file, wanted, aside)
        elif address.endswith(".tar.bz2"):
            _untar(part, wanted, aside)
        else:
            (only,) = layout.files
            shutil.copyfile(part, aside / only)
    except (zipfile.BadZipFile, zlib.error, tarfile.TarError, EOFError, RuntimeError) as error:
        raise StorageError(f"what came from {address} could not be unpacked: {error}") from error
    except OSError as error:
        if error.errno is not None:  # the disk's
            raise
        raise StorageError(f"what came from {address} could not be unpacked: {error}") from error
    missing = [file for file in layout.files if not (aside / file).is_file()]
    if missing:
        raise StorageError(f"what came from {address} must hold {', '.join(missing)}")


def _untar(part: Path, wanted: list[str], aside: Path) -> None:
    with tarfile.open(part, mode="r:bz2") as archive:
        for member in archive:
            name = _wanted(member.name, wanted) if member.isfile() else None
            content = archive.extractfile(member) if name else None
            if name and content is not None:
                _copy(content, aside / name)


def _unzip(file: IO[bytes], wanted: list[str], aside: Path, within: bool = False) -> None:
    """The wanted files of a zip, or of a zip within it, as the official one of `har` is packed."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = _wanted(member.filename, wanted)
            with archive.open(member) as content:
                if name:
                    _copy(content, aside / name)
                elif member.filename.endswith(".zip") and not within:
                    with tempfile.TemporaryFile(dir=aside) as inner:
                        shutil.copyfileobj(content, inner, CHUNK)
                        _unzip(inner, wanted, aside, within=True)


def _wanted(member: str, wanted: list[str]) -> str | None:
    """Which wanted file a member of an archive is, whatever folders it is packed in."""
    parts = PurePosixPath(member).parts
    for file in wanted:
        own = PurePosixPath(file).parts
        if parts[-len(own) :] == own and not any(part.startswith("__MACOSX") for part in parts):
            return file
    return None


def _copy(content: IO[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(content, file, CHUNK)


def _move_whole(aside: Path, folder: Path) -> None:
    """Put a complete folder in place of what was there."""
    old = None
    if folder.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
        folder.rename(old / folder.name)
    aside.rename(folder)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
