"""What a run sends to a site, looked at without unpacking it or importing anything of it.

Flower hands every site the bundle of a run (its app, as a zip file), and its own executor imports
what that names. A site of ours runs only the package that it has installed, and takes nothing out
of a bundle; one that is not of our app is refused, so that its sender and the operator know.
"""

from __future__ import annotations

import hashlib
import io
import tomllib
import zipfile
from collections.abc import Mapping
from typing import Any

from sottovoce.errors import ProtocolError

APP = "sottovoce.flower.site.app:app"  # what a site runs
KIND = "flwr-clientapp"  # Flower's word for what sites are asked to run
FILES = frozenset({"pyproject.toml", "study.toml", ".info/CONTENT"})
_LARGEST = 1 << 20  # bytes of a pyproject.toml; a larger one is not read
_NAMED = 3  # files that are named; there may be thousands


def check_bundle(content: bytes, kind: str = KIND) -> None:
    """Refuse a bundle, by its name, unless it is that of a project of ours and holds no code."""
    digest = hashlib.sha256(content).hexdigest()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as bundle:
            files = {each.filename for each in bundle.infolist()}
            project = _project(bundle)
    except Exception as error:  # whatever its sender made of it
        what = f"it cannot be read ({type(error).__name__})"
        raise _refused(f"an app with the SHA-256 {digest}", what) from error
    name = f"the app {_name(project)!r} with the SHA-256 {digest}"
    client = _table(project, "tool", "flwr", "app", "components").get("clientapp")
    if kind != KIND:
        raise _refused(name, f"it is to be run as {kind!r}")
    if client != APP:
        raise _refused(name, f"it would run {client!r}")
    strange = sorted(files - FILES)
    if strange:
        more = f" and {len(strange) - _NAMED} more files" if len(strange) > _NAMED else ""
        raise _refused(name, f"it brings {', '.join(map(repr, strange[:_NAMED]))}{more}")


def _project(bundle: zipfile.ZipFile) -> Mapping[str, Any]:
    with bundle.open("pyproject.toml") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError("its pyproject.toml is too large")
    return tomllib.loads(text.decode())


def _name(project: Mapping[str, Any]) -> str:
    """As Flower names an app."""
    own, publisher = _table(project, "project"), _table(project, "tool", "flwr", "app")
    return f"{publisher.get('publisher')}/{own.get('name')} {own.get('version')}"


def _table(data: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = data.get(key)
        data = inner if isinstance(inner, Mapping) else {}
    return data


def _refused(name: str, why: str) -> ProtocolError:
    return ProtocolError(f"{name} is refused: {why}; this site runs {APP!r}, and nothing else")
