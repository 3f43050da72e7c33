"""Writes docs/reference.md, which lists the public names: `make reference`.

    python tools/reference.py [--check]

The site shows each name's docstring there (`tools/docstrings.py`). A docstring has a text, then
`Args:` and `Example:`, each if there is any. A field of a dataclass may have its doc in its
metadata instead.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import sottovoce
from sottovoce import errors

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference.md"
OPENING = """# Reference

Every public name; `make docs` makes a page of their docstrings, which `help(sottovoce.Agent)` shows
too. Words are those of the [glossary](glossary.md). The examples are run by the tests; they begin
with

```pycon
>>> import numpy as np
>>> from sottovoce import *
```
"""
TITLES = {  # by folder, in this order
    "federation": "A federation",
    "space": "What is searched",
    "gp": "How it is modelled",
    "privacy": "What it costs",
    "simulation": "Simulation",
    "errors": "Errors",
}


@dataclasses.dataclass(frozen=True)
class Doc:
    """A docstring taken apart."""

    text: str
    args: dict[str, str]
    example: str

    @property
    def whole(self) -> str:
        """Put together again, as tools of the field read it: `Examples:` are code."""
        args = "\n".join(f"    {names}: {told}" for names, told in self.args.items())
        example = "\n".join(f"    {line}" for line in self.example.splitlines())
        parts = [
            self.text,
            f"Args:\n{args}" if args else "",
            f"Examples:\n{example}" if example else "",
        ]
        return "\n\n".join(filter(None, parts))


def doc_of(item: Any) -> Doc:
    """What its docstring says, with the docs of its fields."""
    text = inspect.cleandoc(item.__doc__ or "")
    text, _, example = text.partition("\nExample:\n")
    text, _, listed = text.partition("\nArgs:\n")
    args = {}
    for entry in re.split(r"\n(?=    \S)", f"\n{listed.rstrip()}")[1:]:
        names, _, told = " ".join(entry.split()).partition(": ")
        args[names] = told
    if dataclasses.is_dataclass(item):
        args |= {f.name: f"{f.metadata['doc']}." for f in dataclasses.fields(item) if f.metadata}
    order = [parameter.name for parameter in parameters_of(item)]
    listed_as = sorted(args, key=lambda names: order.index(names.split(", ")[0]))
    return Doc(text.strip(), {k: args[k] for k in listed_as}, inspect.cleandoc(example))


def parameters_of(item: Any) -> list[inspect.Parameter]:
    """What it is called with."""
    is_error = inspect.isclass(item) and issubclass(item, Exception)
    if is_error or getattr(item, "_is_protocol", False):
        return []
    return list(inspect.signature(item).parameters.values())


def public(kind: str) -> dict[str, Any]:
    """The public names of a folder, or with "" the constants."""
    found = {name: getattr(sottovoce, name) for name in sorted(sottovoce.__all__)}
    return {n: item for n, item in found.items() if _folder(item) == kind and n != "__version__"}


def _folder(item: Any) -> str:
    documented = inspect.isclass(item) or inspect.isfunction(item)
    return item.__module__.split(".")[1] if documented else ""


def _methods() -> list[str]:
    """A line for each method."""
    constants = {id(value): name for name, value in public("").items()}
    lines = [
        "### METHODS",
        "",
        "The methods there are, by name; those with a name of their own in Python have it beside.",
        "",
        "| name | in Python | initial design | message | shared model | acquisition | protection |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, method in sottovoce.METHODS.items():
        constant = constants.get(id(method))
        own = f"`{constant}`" if constant else ""
        parts = (method.initial_design, method.message, method.shared_model, method.acquisition)
        if method.shared_model == "none":
            parts = (method.initial_design, "–", "none", method.acquisition)
        m = method.mechanism
        guard = "–" if m is None else f"S = {m.clip:g}, q = {m.participation:g}, z = {m.noise:g}"
        guard += "; noise only" if method.noise_only else ""
        cells = [f"`{name}`", own, *(f"`{p}`" if p != "–" else p for p in parts), guard]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def page() -> str:
    """The page as it should be."""
    lines = [OPENING]
    for folder, title in TITLES.items():
        lines += [f"## {title}", ""]
        for name in public(folder):
            lines += [f"::: sottovoce.{name}", ""]
        if folder == "federation":
            lines += _methods()
        if folder == "errors":
            tree = inspect.cleandoc(errors.__doc__ or "").partition("\n\n")[2]
            lines += ["All of them, in `sottovoce.errors`:", "", "```text", tree, "```", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> int:
    """Write the page, or check that it is as it should be."""
    wanted = page()
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    if "--check" in sys.argv:
        print(f"{PAGE} is not what `make reference` writes")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
