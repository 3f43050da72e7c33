"""For the site's reference: the docstrings of public names with the docs of their fields.

mkdocstrings reads sources and cannot see what a dataclass has in its fields' metadata;
`tools/reference.py` can, and the tests hold it to every parameter.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import griffe

import sottovoce

DOC_OF = runpy.run_path(str(Path(__file__).with_name("reference.py")))["doc_of"]
PUBLIC = {
    f"{item.__module__}.{item.__qualname__}": item
    for name in sottovoce.__all__
    if hasattr(item := getattr(sottovoce, name), "__qualname__")
}


class Whole(griffe.Extension):  # type: ignore[misc]
    """Gives every public name its whole docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe for everything that it has read."""
        item = PUBLIC.get(obj.path)
        if item is not None and obj.docstring is not None:
            whole = DOC_OF(item).whole
            # `a, b: told` tells of both
            obj.docstring.value = "\n".join(_apart(line) for line in whole.splitlines())


def _apart(line: str) -> str:
    names, found, told = line.partition(": ")
    each = [name.strip() for name in names.split(",")]
    if not found or not line.startswith("    ") or not all(name.isidentifier() for name in each):
        return line
    return "\n".join(f"    {name}: {told}" for name in each)
