"""The pages are true: what they name is there."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from sottovoce.cli import app
from sottovoce.federation.methods import PLUGINS as METHOD_PLUGINS
from sottovoce.lab.problems import PLUGINS as PROBLEM_PLUGINS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "sottovoce"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *DOCS])
HISTORY = ("CHANGELOG.md",)  # it may name what is gone
POINTING = (  # into the code
    *("algorithm.md", "method.md", "pooled-ts.md"),
    *("privacy.md", "threat-model.md"),
)
FOLDERS = ("src", "tests", "benchmarks", "docs", "tools")
PLACEHOLDERS = ("FILE.py",)
ENTRY_POINTS = (METHOD_PLUGINS, PROBLEM_PLUGINS)  # names of groups, not of modules
OTHERS = ("--trusted-entities", "--node-config", "--isolation")  # options of Flower's
SPAN = re.compile(r"`((?:[^`\n]|\n(?!\s*\n))+)`")  # over a line's end, not a paragraph's
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FAMILY = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
OF_THE_SITE = pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
NOT_ON_THE_SITE = ("release-checklist.md",)


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def spans(page: Path) -> list[str]:
    """What stands in backticks."""
    return [" ".join(span.split()) for span in SPAN.findall(prose(page))]


def blocks(page: Path, *languages: str) -> list[str]:
    """Blocks of code in these languages."""
    return [code for kind, code in FENCE.findall(page.read_text()) if kind in languages]


@cache
def tree() -> tuple[str, ...]:
    """All files of the project."""
    listed = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    files = [*listed, *(path for path in ROOT.iterdir() if path.is_file())]
    return tuple(str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts)


def files_named(path: str) -> list[str]:
    """The files whose path ends so, whole parts of it."""
    return [file for file in tree() if f"/{file}".endswith(f"/{path}")]


@FAMILY
def test_a_python_file_that_a_page_names_is_one_file_of_the_tree(page: Path) -> None:
    for span in spans(page):
        for path in re.findall(r"[\w./-]*\w\.py\b", span):
            if path not in PLACEHOLDERS and page.name not in HISTORY:
                assert len(files_named(path)) == 1, f"{path} is {files_named(path)}"


@FAMILY
def test_a_folder_or_file_of_the_project_that_a_page_names_is_there(page: Path) -> None:
    for span in spans(page):
        first, *rest = span.split("/")
        if rest and first in FOLDERS and " " not in span:
            assert list(ROOT.glob(span)), span
        elif rest and (PACKAGE / first).is_dir() and re.fullmatch(r"(\w+/)+", span):
            assert (PACKAGE / span).is_dir(), span


@FAMILY
def test_a_dotted_name_of_the_package_is_there(page: Path) -> None:
    code = [*spans(page), *blocks(page, "python")]
    for name in re.findall(r"\bsottovoce(?:\.[A-Za-z_]\w*)+", "\n".join(code)):
        if name not in ENTRY_POINTS and not name.endswith(".py"):
            imported(name)


def imported(name: str) -> Any:
    """What a dotted name means: a module, or a name in one."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for k, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:k]))
        found = getattr(found, part)
    return found


@cache
def modules() -> dict[str, list[str]]:
    """The modules of the package by their last name."""
    found: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.stem not in ("__init__", "__main__") and "template" not in path.parts:
            dotted = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            found.setdefault(path.stem, []).append(dotted)
    return found


def meanings(name: str) -> Iterator[Any]:
    """What `module.name`, or `Class.name`, means in the package."""
    first, *rest = name.split(".")
    owners: list[Any] = [importlib.import_module(module) for module in modules().get(first, [])]
    if first[0].isupper():
        defined = re.compile(rf"^class {first}\b", re.MULTILINE)
        every = [module for names in modules().values() for module in names]
        holders = [m for m in every if defined.search(source(m))]
        owners = [getattr(importlib.import_module(module), first) for module in holders]
    for owner in owners:
        for part in rest:
            owner = getattr(owner, part, getattr(owner, "__dataclass_fields__", {}).get(part))
        if owner is not None:
            yield owner


@cache
def source(module: str) -> str:
    return (PACKAGE.parent / f"{module.replace('.', '/')}.py").read_text()


@pytest.mark.parametrize("name", POINTING)
def test_a_pointer_into_the_code_points_to_something(name: str) -> None:
    pointers = [
        span
        for span in spans(ROOT / "docs" / name)
        if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", span)
        and span.split(".")[-1] not in ("py", "toml", "md", "db", "txt")
        and span.split(".")[0] != "sottovoce"
    ]
    assert [pointer for pointer in pointers if not list(meanings(pointer))] == []


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    lines = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\[(.+?)\]\(.*?\)", r"\1", line)) for line in lines]
    return {text.strip().lower().replace(" ", "-") for text in plain}


@FAMILY
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), target
            assert not anchor or anchor in slugs(there), target


@cache
def commands() -> dict[str, set[str]]:
    """Every command, such as `table check`, with its options."""
    found: dict[str, set[str]] = {}

    def walk(command: Any, name: str) -> None:
        found[name] = {
            word
            for option in command.params
            for word in (*option.opts, *option.secondary_opts)
            if word.startswith("-")
        } | {"--help"}
        for sub, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {sub}".strip())

    walk(get_command(app), "")
    return found


def shown(page: Path) -> Iterator[list[str]]:
    """The words of each command of ours that a page shows, without `sottovoce`."""
    lines = "\n".join(blocks(page, "", "sh", "ini", "console")).replace("\\\n", " ").split("\n")
    for line in [*spans(page), *lines]:
        for part in re.split(r"&&|;|\|| # ", line.removeprefix("$ ")):
            try:
                words = shlex.split(part)
            except ValueError:  # a quote that is not one of the shell's
                continue
            ours = [k for k, word in enumerate(words) if re.fullmatch(r"(.*/)?sottovoce", word)]
            if ours and ours[0] <= 1 and words[ours[0] + 1 :]:
                yield words[ours[0] + 1 :]
            elif words and words[0] in commands() and any(w.startswith("--") for w in words):
                yield words


@FAMILY
def test_every_command_that_a_page_shows_is_there_with_its_options(page: Path) -> None:
    for words in shown(page):
        name = " ".join(words[:2]) if " ".join(words[:2]) in commands() else words[0]
        if name.startswith("-"):
            name, words = "", ["", *words]
        assert name in commands(), words
        options = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert options <= commands()[name], words


@FAMILY
def test_an_option_that_a_page_names_is_one_of_some_command(page: Path) -> None:
    known = set().union(*commands().values()) | set(OTHERS)
    named = {span.split()[0].split("=")[0] for span in spans(page) if span.startswith("--")}
    assert named <= known


@FAMILY
def test_every_script_that_a_page_runs_is_there_and_knows_its_options(page: Path) -> None:
    for line in [*spans(page), *"\n".join(blocks(page, "", "sh")).split("\n")]:
        ran = re.match(r"python (-m (?=tests\.))?([\w./]+)(.*)", line)
        if ran:
            path = f"{ran[2].replace('.', '/')}.py" if ran[1] else ran[2]
            script = (ROOT / path).read_text()
            for option in re.findall(r"--[a-z-]+", ran[3].split(" #")[0]):
                assert f'"{option}"' in script, line


@OF_THE_SITE
def test_every_python_example_of_a_page_runs(page: Path) -> None:
    for code in blocks(page, "python"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@OF_THE_SITE
def test_a_page_of_the_site_links_to_no_file_outside_it(page: Path) -> None:
    if page.name in NOT_ON_THE_SITE:
        return
    for target in re.findall(r"\]\(([^)#\s]+)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).resolve().is_relative_to(ROOT / "docs"), target


def test_every_page_of_the_site_is_in_its_menu() -> None:
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2])
    there = [page.relative_to(ROOT / "docs").as_posix() for page in DOCS]
    assert sorted(listed) == sorted(set(there) - set(NOT_ON_THE_SITE))


WALKED = [page for page in DOCS if page.parent.name == "guides" or page.name == "index.md"]


@pytest.mark.slow
@pytest.mark.parametrize("page", WALKED, ids=lambda page: page.name)
def test_every_shell_block_of_a_guide_runs(page: Path, tmp_path: Path) -> None:
    for toml in blocks(page, "toml"):
        (tmp_path / "mine.toml").write_text(toml)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for code in blocks(page, "sh"):
        words = ["bash", "-euc", code]
        env = {**os.environ, "PATH": path, "XDG_DATA_HOME": str(tmp_path / "share")}
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, code + done.stdout + done.stderr
        assert done.stdout.strip(), code
