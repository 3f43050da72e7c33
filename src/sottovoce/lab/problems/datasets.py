"""The data sets of the real problems: what they are, and where they lie on this machine.

A data set is looked for in its own folder ("landmine", "har", "digits") of SOTTOVOCE_DATA, then
of the cache: SOTTOVOCE_CACHE, or `sottovoce` in XDG_CACHE_HOME or ~/.cache. Looking never
downloads: that takes `sottovoce data NAME`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sottovoce.errors import InvalidInput, StorageError, suggestion


@dataclass(frozen=True)
class Layout:
    """Files that together hold a data set.

    files: paths within the data set's folder, each with its SHA-256, or None where none is
    published. extra: files that are used if they are there.
    """

    kind: str
    title: str
    files: Mapping[str, str | None]
    extra: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A data set: the layouts it may have, the first preferred, and where to get the first.

    addresses: tried in order; an archive (.zip, .tar.bz2) that holds the files, or the one file.
    """

    name: str
    title: str
    layouts: tuple[Layout, ...]
    addresses: tuple[str, ...]

    @property
    def command(self) -> str:
        """What a user types to get it."""
        return f"sottovoce data {self.name}"


@dataclass(frozen=True)
class Found:
    """A data set on this machine.

    checksum: the file's SHA-256, or that of the list of the files' own.
    """

    source: Source
    layout: Layout
    folder: Path
    checksum: str = field(repr=False)

    def path(self, file: str) -> Path:
        """Where one of the layout's files lies."""
        return self.folder / file


_UCI = "UCI HAR Dataset"
_UCI_PARTS = tuple(
    f"{_UCI}/{part}/{what}_{part}.txt" for part in ("train", "test") for what in ("X", "y")
) + tuple(f"{_UCI}/{part}/subject_{part}.txt" for part in ("train", "test"))
_UCI_SIGNALS = tuple(
    f"{_UCI}/{part}/Inertial Signals/total_acc_x_{part}.txt" for part in ("train", "test")
)

LANDMINE = Source(
    "landmine",
    "landmine detection (Xue et al. 2007), 29 fields",
    (
        Layout(
            "mat",
            "the file the paper used",
            {
                "LandmineData.mat": (
                    "2163ab20a80e33a8b65593c48cf283c540599dcb291105e63fa4af2ce24c2bea"
                )
            },
        ),
    ),
    (
        "http://www.ee.duke.edu/~lcarin/LandmineData.zip",
        "https://www.cs.columbia.edu/~jebara/code/multisparse/LandmineData.mat",
    ),
)
HAR = Source(
    "har",
    "human activity recognition (Anguita et al. 2013), 30 subjects",
    (
        Layout("uci", "the official files", dict.fromkeys(_UCI_PARTS), _UCI_SIGNALS),
        Layout(
            "npz",
            "features re-derived from the official raw signals",
            {
                "ucihar_derived561.npz": (
                    "406b5d56f747646e9dc1e497873bfda1113c5c3e9b29a4707827432f7a28b04d"
                )
            },
        ),
    ),
    (
        "https://archive.ics.uci.edu/static/public/240/"
        "human+activity+recognition+using+smartphones.zip",
    ),
)
DIGITS = Source(
    "digits",
    "handwritten digits by writer, 50 writers",
    (
        Layout(
            "tff",
            "EMNIST digits of TensorFlow Federated, the paper's",
            dict.fromkeys(("fed_emnist_digitsonly_train.h5", "fed_emnist_digitsonly_test.h5")),
        ),
        Layout(
            "npz",
            "MNIST by writer",
            {
                "mnist_50writers.npz": (
                    "6cc07164999c2858e48673c6d4ce93b389821abb40726ea11c964e30ac9e008d"
                )
            },
        ),
    ),
    ("https://storage.googleapis.com/tff-datasets-public/fed_emnist_digitsonly.tar.bz2",),
)
SOURCES: dict[str, Source] = {source.name: source for source in (LANDMINE, HAR, DIGITS)}


def source_named(name: str) -> Source:
    """The data set of that name; an unknown one is answered with the nearest."""
    if name not in SOURCES:
        raise InvalidInput(f"unknown data set {name!r}; {suggestion(name, SOURCES)}")
    return SOURCES[name]


def given_folder(source: Source) -> Path | None:
    """Where the user keeps the data set, if SOTTOVOCE_DATA says so."""
    given = os.environ.get("SOTTOVOCE_DATA")
    return Path(given).expanduser() / source.name if given else None


def cache_home() -> Path:
    """The folder for what can be had again: SOTTOVOCE_CACHE, or the system's."""
    own, shared = os.environ.get("SOTTOVOCE_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return Path(own).expanduser() if own else Path(shared or "~/.cache").expanduser() / "sottovoce"


def cache_folder(source: Source) -> Path:
    """Where the data set goes when it is downloaded."""
    return cache_home() / source.name


def find(source: Source) -> Found:
    """The data set, checked; StorageError says how to get it, or which file is damaged."""
    given = given_folder(source)
    folders = [folder for folder in (given, cache_folder(source)) if folder is not None]
    for folder in folders:
        if (found := find_in(source, folder)) is not None:
            return found
    looked = " nor in ".join(str(folder) for folder in folders)
    raise StorageError(
        f"the {source.name} data are not in {looked}; get them with `{source.command}` "
        f"(from {source.addresses[0]}), or set SOTTOVOCE_DATA to a folder that has them "
        f"in {source.name}/"
    )


def find_in(source: Source, folder: Path) -> Found | None:
    """The data set in that folder, checked, or None where it is not there."""
    for layout in source.layouts:
        if all((folder / file).is_file() for file in layout.files):
            return Found(source, layout, folder, _checked(source, layout, folder))
    return None


def _checked(source: Source, layout: Layout, folder: Path) -> str:
    """The checksum of the layout's files, each compared to what is known or recorded of it."""
    recorded, sums = read_record(source, folder), dict[str, str]()
    for file, published in layout.files.items():
        expected = published or recorded.get(file)
        sums[file] = sha256_of(folder / file)
        if expected is not None and sums[file] != expected:
            raise StorageError(
                f"{folder / file} is damaged or another file: its SHA-256 must be {expected}, "
                f"got {sums[file]}; remove it and get it with `{source.command}`"
            )
    if len(sums) == 1:
        return next(iter(sums.values()))
    lines = "".join(f"{sums[file]}  {file}\n" for file in sorted(sums))
    return hashlib.sha256(lines.encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """A file's SHA-256."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"{path} could not be read: {error}") from error


def record_path(source: Source, folder: Path) -> Path:
    """Where the checksums seen at the first download are kept, beside the data set's folder."""
    return folder.with_name(f"{source.name}.sha256")


def read_record(source: Source, folder: Path) -> dict[str, str]:
    """The checksums seen at the first download, by file; none where none were kept."""
    path = record_path(source, folder)
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} could not be read: {error}") from error
    pairs = [line.partition("  ") for line in lines]
    if any(len(checksum) != 64 or not file for checksum, _, file in pairs):
        raise StorageError(f"{path} must have lines of a SHA-256, two blanks and a name; remove it")
    return {file: checksum for checksum, _, file in pairs}
