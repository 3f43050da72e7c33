"""Every public name is told of: what it takes, an example that runs, and a page of them all."""

from __future__ import annotations

import doctest
import inspect
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = runpy.run_path(str(ROOT / "tools" / "reference.py"))
PUBLIC = {name: getattr(sottovoce, name) for name in sottovoce.__all__}
TOLD = [name for name, item in PUBLIC.items() if inspect.isclass(item) or inspect.isfunction(item)]


def test_the_page_is_what_the_tool_writes() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert page == WRITTEN["page"](), "make reference writes it anew"


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - {"__version__"}))
def test_every_public_name_is_on_the_page(name: str) -> None:
    page = WRITTEN["page"]()
    ways = (f"\n::: sottovoce.{name}\n", f"\n### {name}\n", f"| `{name}` |")
    assert any(way in page for way in ways)


@pytest.mark.parametrize("name", TOLD)
def test_every_parameter_is_told_of_and_no_other(name: str) -> None:
    doc = WRITTEN["doc_of"](PUBLIC[name])
    told = [word for names in doc.args for word in names.split(", ")]
    assert told == [parameter.name for parameter in WRITTEN["parameters_of"](PUBLIC[name])]
    assert all(doc.args.values())


@pytest.mark.parametrize("name", TOLD)
def test_the_example_of_a_public_name_runs_and_gives_what_it_says(name: str) -> None:
    names: dict[str, Any] = {**PUBLIC, "np": np}
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(PUBLIC[name], name, globs=names)
    assert len(example.examples) >= 1
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    assert runner.run(example, out=said.append).failed == 0, "".join(said)
