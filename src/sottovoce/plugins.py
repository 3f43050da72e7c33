"""Methods, problems and parts of one's own: from a Python file, or from an installed package.

`FILE.py:NAME` means what NAME is in the file, which is run once a process; options of a problem may
follow after another colon. An installed package offers its own as entry points of the groups
`sottovoce.methods` and `sottovoce.problems`. Loading a file runs it: name only files you trust.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import zlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from sottovoce.errors import InvalidInput, suggestion

_REFERENCE = re.compile(r"(?P<file>.+\.py):(?P<name>[^\W\d]\w*)(?::(?P<options>.*))?", re.DOTALL)

_LOADED: list[Path] = []


class Reference(NamedTuple):
    """What a text of the form FILE.py:NAME or FILE.py:NAME:options says."""

    file: Path
    name: str
    options: str


def reference_in(text: str) -> Reference | None:
    """The reference that a text is; None if it is a plain name."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return None
    return Reference(Path(found["file"]), found["name"], found["options"] or "")


def loaded(reference: Reference) -> Any:
    """What the reference means; a file that cannot be run, or lacks the name, is refused."""
    module = _module(reference.file.expanduser().resolve())
    if not hasattr(module, reference.name):
        names = [n for n, value in vars(module).items() if _made_in(module, n, value)]
        raise InvalidInput(
            f"{reference.file} has no {reference.name!r}; {suggestion(reference.name, names)}"
        )
    return getattr(module, reference.name)


def _made_in(module: ModuleType, name: str, value: object) -> bool:
    """Whether a name is the module's own, not imported into it."""
    return name[0] != "_" and getattr(value, "__module__", module.__name__) == module.__name__


def files_loaded() -> list[Path]:
    """The files that this process has loaded, for those that it starts."""
    return list(_LOADED)


def load_files(paths: Iterable[Path]) -> None:
    """Load these files, as another process has."""
    for path in paths:
        _module(path)


@cache
def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidInput(f"{path} must be a Python file")
    name = f"sottovoce_plugin_{path.stem}_{zlib.crc32(str(path).encode()):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InvalidInput(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    _LOADED.append(path)
    return module


@cache
def installed(group: str) -> dict[str, Any]:
    """What installed packages offer under a group of entry points, by name, not yet imported."""
    return {entry.name: entry for entry in entry_points(group=group)}


def from_package(group: str, name: str) -> Any:
    """What an installed package offers under that name; one that cannot be imported is refused."""
    try:
        return installed(group)[name].load()
    except Exception as error:
        raise InvalidInput(
            f"{name!r} of an installed package cannot be imported: {type(error).__name__}: {error}"
        ) from error
