"""Methods, problems and parts of one's own: from a Python file, or from an installed package.

`FILE.py:NAME` means what NAME is in the file, which is run once a process; options of a problem may
follow after another colon. An installed package offers its own as entry points of the groups
`sottovoce.methods` and `sottovoce.problems`. Loading a file runs it: name only files you trust.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
import zlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from sottovoce.errors import InvalidInput, SottovoceError, check, suggestion

_REFERENCE = re.compile(r"(?P<file>.+\.py):(?P<name>[^\W\d]\w*)(?::(?P<options>.*))?", re.DOTALL)
_FILE = re.compile(r".*\.py(:.*)?", re.DOTALL)


class Reference(NamedTuple):
    """What a text of the form FILE.py:NAME or FILE.py:NAME:options says."""

    file: Path
    name: str
    options: str


class Offer(NamedTuple):
    """An entry point of an installed package."""

    group: str
    name: str


_LOADED: list[Path | Offer] = []  # by this process, in order


def reference_in(text: str) -> Reference | None:
    """The reference that a text is; None if it is a plain name."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        rule = "of a file must be said which name is meant: FILE.py:NAME"
        check(_FILE.fullmatch(text) is None, rule, reference=text)
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
    """Whether a name may be meant: public, and no module, class or function of somebody else's."""
    if name[0] == "_" or isinstance(value, ModuleType) or type(value).__module__ == "__future__":
        return False
    return not callable(value) or getattr(value, "__module__", "") == module.__name__


def all_loaded() -> list[Path | Offer]:
    """What this process has loaded, for those that it starts: `load_all` is theirs to call."""
    return list(_LOADED)


def load_all(plugins: Iterable[Path | Offer]) -> None:
    """Load what another process has, so that its objects and their parts are known here."""
    for plugin in plugins:
        if isinstance(plugin, Offer):
            from_package(*plugin)
        else:
            _module(plugin)


@cache
def _module(path: Path) -> ModuleType:
    if not path.is_file():
        came = "a directory" if path.is_dir() else "no such file"
        raise InvalidInput(f"{path} must be a Python file, got {came}")
    name = f"sottovoce_plugin_{path.stem}_{zlib.crc32(str(path).encode()):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InvalidInput(f"{path} cannot be run: {told(error, path)}") from error
    _LOADED.append(path)
    return module


def told(error: BaseException, path: Path | None = None) -> str:
    """What an error of somebody's code says, in one line; with the line of the file, if any."""
    words = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    ours = isinstance(error, SottovoceError)
    what = ": ".join(word for word in ("" if ours else type(error).__name__, words) if word)
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    lines = [line for name, line in frames if name == str(path) and line]
    return f"{what} (line {lines[-1]})" if lines else what


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """What installed packages offer under a group of entry points, by name, not yet imported."""
    return {entry.name: entry for entry in entry_points(group=group)}


def from_package(group: str, name: str) -> Any:
    """What an installed package offers under that name; one that cannot be imported is refused."""
    try:
        found = installed(group)[name].load()
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"{name!r} of an installed package cannot be imported: {told(error)}"
        ) from error
    if Offer(group, name) not in _LOADED:
        _LOADED.append(Offer(group, name))
    return found
