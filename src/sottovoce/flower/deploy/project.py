"""The folder that every party of a federation holds a copy of: making it, changing its study."""

from __future__ import annotations

import re
import secrets
import shutil
import tomllib
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from sottovoce.errors import InvalidInput, StorageError, check
from sottovoce.files import write_text
from sottovoce.flower.studyfile import COORDINATOR, NOBODY, StudyFile, study_from
from sottovoce.flower.studyfile import STUDY as STUDY

FILES = {name: name for name in ("pyproject.toml", "objective.py", "study.toml", "README.md")}
FILES[".gitignore"] = "gitignore"  # under its own name it would hide files of ours
OBJECTIVE = "objective.py"
AGENTS, ROUNDS, EPSILON = 30, 15, 4.0
ENOUGH = 5  # sites for sums that nobody can open alone, unless said otherwise
OWN = (".flwr", "coordinator", "keys", "rehearsal", "simulation", "site", "sites.toml")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 32  # Flower's limit of an app's name


def make_project(
    folder: Path,
    *,
    agents: int = AGENTS,
    rounds: int = ROUNDS,
    epsilon: float = EPSILON,
    publisher: str = "consortium",
) -> StudyFile:
    """Make a new project folder; its last part is the app's name. Whole or not at all."""
    name = folder.name
    for what, word in {"name": name, "publisher": publisher}.items():
        ok = _NAME.fullmatch(word) is not None and len(word) <= _LONGEST
        rule = (
            f"{what} must be lower-case letters, digits and -, a letter first, at most {_LONGEST}"
        )
        check(ok, rule, **{what: word})
    check(agents >= 2, "a federation needs at least 2 agents", agents=agents)
    check(not folder.exists() and not folder.is_symlink(), f"{folder} must not exist yet")
    check(folder.parent.is_dir(), f"{folder.parent} must be a folder")
    words = {
        "NAME": name,
        "PUBLISHER": publisher,
        "AGENTS": str(agents),
        "ROUNDS": str(rounds),
        "EPSILON": repr(float(epsilon)),
        "SEED": str(secrets.randbelow(2**31)),
        "TRUST": NOBODY if agents >= ENOUGH else COORDINATOR,
    }
    texts = {to: _filled(_template(source), words) for to, source in FILES.items()}
    study = study_from(tomllib.loads(texts[STUDY]))  # refused before a file is written
    part = folder.with_name(f".part-{name}")
    try:
        part.mkdir()
        try:
            for to, text in texts.items():
                (part / to).write_text(text, encoding="utf-8")
            part.rename(folder)
        except BaseException:
            with suppress(OSError):
                shutil.rmtree(part)
            raise
    except OSError as error:
        raise StorageError(f"{folder} could not be made: {error}") from error
    return study


def check_project(folder: Path) -> None:
    """A project folder must have all that a party needs."""
    needed = ("pyproject.toml", OBJECTIVE, STUDY)
    missing = [name for name in needed if not (folder / name).is_file()]
    rule = f"{folder.absolute()} must be a project that `sottovoce new` made"
    check(not missing, rule, missing=missing)


def with_settings(text: str, **settings: int | float) -> str:
    """The text of a study.toml with numbers of its table [study] changed, comments kept."""
    for key, value in settings.items():
        text, count = re.subn(rf"(?m)^({key}[ \t]*=[ \t]*)[^\s#]+", rf"\g<1>{value}", text, count=1)
        ok = count == 1 and _tables(text).get("study", {}).get(key) == value
        check(ok, f"study.toml must have a line `{key} = ...` in [study]")
    return text


def study_with(folder: Path, **settings: int | float) -> StudyFile:
    """The study of a project, with numbers of its table [study] changed."""
    return study_from(_tables(with_settings(_text(folder / STUDY), **settings)))


def with_space(text: str, space: str) -> str:
    """The text of a study.toml with its tables of the space replaced by others."""
    head = re.split(r"(?m)^[ \t]*\[+[ \t]*space\b", text, maxsplit=1)[0]
    new = f"{head.rstrip()}\n\n{space.strip()}\n"
    if head.rstrip().rpartition("\n")[2].startswith("#"):
        new = f"{head.rstrip()}\n{space.strip()}\n"  # a comment of the tables stays with them
    rest, kept = (
        {key: value for key, value in _tables(each).items() if key != "space"}
        for each in (text, new)
    )
    check(rest == kept, "the tables of [space] must be the last of study.toml")
    study_from(_tables(new))
    return new


def write_space(path: Path, space: str) -> None:
    """Replace the space in a study.toml."""
    write_text(path, with_space(_text(path), space))


def copy_project(source: Path, target: Path, **settings: int | float) -> None:
    """A party's own copy: files of its own, links to folders such as data; no one's state."""
    try:
        target.mkdir(parents=True)
        for path in sorted(source.iterdir()):
            if path.name in OWN or path.name in (".git", ".venv", "__pycache__"):
                continue
            if path.is_dir():
                (target / path.name).symlink_to(path.resolve(), target_is_directory=True)
            else:
                shutil.copy2(path, target / path.name)
        study = target / STUDY
        study.write_text(with_settings(_text(study), **settings), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{source} could not be copied to {target}: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def _tables(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"study.toml is not valid TOML: {error}") from error


def _template(name: str) -> str:
    return (resources.files("sottovoce.flower") / "template" / name).read_text(encoding="utf-8")


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text
