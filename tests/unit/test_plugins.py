"""Methods and problems of one's own, from files and from installed packages."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import method_named
from sottovoce.lab.experiments.config import RunConfig, with_objective
from sottovoce.lab.experiments.runner import run_all
from sottovoce.lab.problems import problem_label, problem_named

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = {"agents": 3, "rounds": 2, "runs": 2}
OWN = {"problem": f"{EXAMPLES}/bowl.py:Bowl", "method": f"{EXAMPLES}/greedy.py:GREEDY"}


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as a person runs it there, with what lies in the folder `installed`."""
    path = os.pathsep.join([str(folder / "installed"), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "sottovoce.cli", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder where a package that offers both examples is installed."""
    module = tmp_path / "installed" / "hills"
    module.mkdir(parents=True)
    (module / "__init__.py").touch()
    for name in ("bowl.py", "greedy.py"):
        shutil.copy(EXAMPLES / name, module / name)
    info = module.parent / "hills-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hills\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[sottovoce.problems]\nhill = hills.bowl:Bowl\nbranin = hills.bowl:Bowl\n"
        "gone = hills.gone:Bowl\n"
        "[sottovoce.methods]\ngreedy = hills.greedy:GREEDY\n"
    )
    return tmp_path


def test_several_processes_run_what_files_hold_as_one_does(tmp_path: Path) -> None:
    config = RunConfig(**OWN, **SMALL)  # type: ignore[arg-type]
    one, two = (run_all(config, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.points, b.points)


def test_several_processes_run_what_an_installed_package_offers(package: Path) -> None:
    words = "run --problem hill:apart=0.1 --method greedy --agents 3 --rounds 2 --runs 2"
    one, two = (command(package, *words.split(), "--jobs", jobs, "--out", jobs) for jobs in "12")
    assert (one.returncode, two.returncode) == (0, 0), two.stderr
    tables = [text.partition("Results:")[0] for text in (one.stdout, two.stdout)]
    assert "greedy" in tables[0]
    assert tables[0] == tables[1]


def test_an_installed_problem_is_labelled_by_what_it_is_offered_as(package: Path) -> None:
    words = "run --problem hill:steps=none,apart=0.10 --method ts --agents 2 --rounds 1 --runs 1"
    done = command(package, *words.split(), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["problem"] == "hill:apart=0.1"


def test_a_package_cannot_take_the_name_of_a_shipped_problem(package: Path) -> None:
    words = "run --problem branin:noise=0 --agents 2 --rounds 1 --json"
    done = command(package, *words.split())
    assert done.returncode == 0, done.stderr
    names = [p["name"] for p in json.loads(done.stdout)["study"]["space"]["parameters"]]
    assert names != ["x", "y"]


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ("gone", "'gone' of an installed package cannot be imported: ModuleNotFoundError"),
        ("hil", "unknown problem 'hil'; did you mean 'hill'?"),
        ("hill:height=2", "bowl: unknown option 'height'"),
    ],
)
def test_what_a_package_offers_wrongly_is_said_in_one_line(
    package: Path, problem: str, text: str
) -> None:
    done = command(package, "run", "--problem", problem)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_is_one_file_by_whatever_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(EXAMPLES / "greedy.py", tmp_path / "own.py")
    text = (EXAMPLES / "greedy.py").read_text().replace('"greedy"', '"greedy-by-path"')
    (tmp_path / "own.py").write_text(text)
    (tmp_path / "link.py").symlink_to(tmp_path / "own.py")
    monkeypatch.chdir(tmp_path)
    paths = ("own.py", "./own.py", f"{tmp_path}/own.py", f"../{tmp_path.name}/own.py", "link.py")
    first, *others = (method_named(f"{path}:GREEDY") for path in paths)
    assert all(other is first for other in others)


def test_a_label_of_a_files_problem_is_a_name_of_it_again() -> None:
    label = problem_label(f"{EXAMPLES}/bowl.py:Bowl:steps=9,apart=0.050")
    assert label == f"{EXAMPLES}/bowl.py:Bowl:steps=9"
    assert problem_named(label) == problem_named(f"{EXAMPLES}/bowl.py:Bowl: steps = 9")


def test_an_objective_can_be_chosen_for_a_files_problem(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("from sottovoce.lab.problems.landmine import Landmine\nMines = Landmine\n")
    config = with_objective(RunConfig(problem=f"{own}:Mines", method="ts"), "live")
    assert config.problem == f"{own}:Mines:objective=live"


FILES = {
    "bad.py": "def f(:\n",
    "raises.py": "x = 1\nprint(1 / 0)\n",
    "leaves.py": "import sys\nsys.exit()\n",
    "binary.py": "\0\0",
    "verbose.py": "raise ValueError('one\\n\\ntwo')\n",
    "empty.py": "",
    "things.py": """
from dataclasses import dataclass
import numpy as np
from sottovoce import METHODS, Method, Space
from sottovoce.lab.problems import NamedProblem, Setting
FTS = METHODS["fts"]
TABLE = {"name": "ts"}
class Plain: ...
class Thing:
    name, setting = "thing", None
    def draw(self, agents, random): ...
THING = Thing()
@dataclass(frozen=True)
class Half(NamedProblem):
    kind = "half"
    size: int = 1
    @property
    def setting(self): ...
@dataclass(frozen=True)
class Nameless(Half):
    kind = None
    def draw(self, agents, random): ...
@dataclass(frozen=True)
class Whole(Half):
    def draw(self, agents, random): ...
""",
    "one.py": """
from sottovoce.federation.parts import MESSAGES
MESSAGES.register("said-twice")(print)
""",
    "two.py": """
from sottovoce.federation.parts import MESSAGES
MESSAGES.register("said-twice")(print)
""",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder.py").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


WRONG = [
    ("missing.py:X", "missing.py must be a Python file, got no such file"),
    ("folder.py:X", "folder.py must be a Python file, got a directory"),
    ("bad.py:X", "bad.py cannot be run: SyntaxError: invalid syntax (line 1)"),
    ("raises.py:X", "raises.py cannot be run: ZeroDivisionError: division by zero (line 2)"),
    ("leaves.py:X", "leaves.py cannot be run: SystemExit (line 2)"),
    ("binary.py:X", "binary.py cannot be run: "),
    ("verbose.py:X", "verbose.py cannot be run: ValueError: one two (line 1)"),
    ("empty.py:X", "empty.py has no 'X'; there are none"),
    ("things.py:plain", "has no 'plain'; did you mean 'Plain'?"),
    ("things.py:FT", "known are METHODS, FTS, TABLE, Plain, Thing, THING, Half, Nameless, Whole"),
    ("things.py", "must be said which name is meant: FILE.py:NAME, got reference='things.py'"),
    ("things.py:", "FILE.py:NAME, got reference='things.py:'"),
    ("things.py:1st", "FILE.py:NAME"),
    ("things.py:FTS and more", "FILE.py:NAME"),
]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_a_wrong_reference_is_told_in_one_line(files: Path, name: str, text: str) -> None:
    for named in (method_named, problem_named):
        with pytest.raises(InvalidInput, match=re.escape(text)) as caught:
            named(name)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("things.py:TABLE", "things.py:TABLE must be a Method, got dict"),
        ("things.py:Method", "things.py:Method must be a Method, got type"),
        ("things.py:FTS:regions=2", "takes no options: its settings are those of the command"),
    ],
)
def test_what_is_no_method_is_refused(files: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(text)):
        method_named(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("things.py:FTS", "must be a NamedProblem, or an object with name, setting and draw"),
        ("things.py:Plain", "setting and draw, got the class Plain"),
        ("things.py:Thing", "setting and draw, got the class Thing"),
        ("things.py:THING:size=1", "only a NamedProblem takes options, got options='size=1'"),
        ("things.py:Half", "things.py:Half cannot be made: TypeError: Can't instantiate abstract"),
        ("things.py:NamedProblem", "must have a kind, the word that it is known by, got kind=None"),
        ("things.py:Nameless", "must have a kind, the word that it is known by, got kind=None"),
        ("things.py:Whole:sise=2", "half: unknown option 'sise'; did you mean 'size'?"),
        ("things.py:Whole:size", "half: options must be written option=value"),
        ("things.py:Whole:size=big", "half: size must be a whole number, got size='big'"),
    ],
)
def test_what_is_no_problem_is_refused(files: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(text)):
        problem_named(name)


def test_two_files_with_parts_of_one_name_do_not_go_together(files: Path) -> None:
    with pytest.raises(InvalidInput, match=r"one.py has no 'X'"):
        method_named("one.py:X")
    rule = r"two.py cannot be run: each message needs a name of its own: .* got name='said-twice'"
    with pytest.raises(InvalidInput, match=rule):
        method_named("two.py:X")


def test_results_of_two_methods_of_one_file_go_to_two_folders(files: Path) -> None:
    text = (EXAMPLES / "greedy.py").read_text()
    (files / "greedy.py").write_text(text + "OTHER = replace(GREEDY, initial=3)\n")
    for name in ("GREEDY", "OTHER"):
        words = f"run --problem branin --method greedy.py:{name} --agents 2 --rounds 1 --runs 1"
        done = command(files, *words.split())
        assert done.returncode == 0, done.stderr
    assert len(list((files / "results").iterdir())) == 2


PAGE = (EXAMPLES.parent / "docs" / "plugins.md").read_text()


def code(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_page_shows_the_examples_as_they_are_and_is_short() -> None:
    files = [(EXAMPLES / name).read_text() for name in ("bowl.py", "greedy.py")]
    assert code("python") == files
    assert all(text.count("\n") < 30 for text in files)
    assert PAGE.count("\n") < 120


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    lines = [line for block in code("sh") for line in block.splitlines()]
    assert lines.pop(0) == "cd examples"
    assert len(lines) == 5
    for line in lines:
        name, *words = line.split()
        small = ["--agents", "2", "--rounds", "1", "--runs", "2"] if words[0] == "run" else []
        done = command(tmp_path / "examples", *words, *small)
        assert (name, done.returncode) == ("sottovoce", 0), done.stderr


def test_the_entry_points_of_the_page_are_found(package: Path) -> None:
    (table,) = code("toml")
    offers = tomllib.loads(table)["project"]["entry-points"]
    lines = [f"[{group}]\n{n} = {v}\n" for group, own in offers.items() for n, v in own.items()]
    (package / "installed" / "hills-1.0.dist-info" / "entry_points.txt").write_text("".join(lines))
    for name in ("hill:steps=9", "greedy"):
        done = command(package, "check", name)
        assert done.returncode == 0, done.stderr
