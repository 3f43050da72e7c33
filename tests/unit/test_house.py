"""The shape of the project: who imports whom, what is public, what the README shows."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import sottovoce
from sottovoce import errors

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "sottovoce"

DRAWN = runpy.run_path(str(ROOT / "tools" / "architecture.py"))
LAYERS, rooms_imported, room_of = (DRAWN[k] for k in ("LAYERS", "rooms_imported", "room_of"))
MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", [p for p in MODULES if room_of(p) != "__init__"], ids=room_of)
def test_imports_point_one_way(path: Path) -> None:
    room = room_of(path)
    before = set(LAYERS[: LAYERS.index(room)])
    assert rooms_imported(path) - {room} <= before


@pytest.mark.parametrize("path", sorted((PACKAGE / "privacy").glob("*.py")), ids=lambda p: p.name)
def test_privacy_stands_alone(path: Path) -> None:
    assert rooms_imported(path) <= {"privacy", "errors"}


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "secure_sum").glob("*.py")), ids=lambda p: p.name
)
def test_sums_that_nobody_can_open_stand_on_privacy_alone(path: Path) -> None:
    assert rooms_imported(path) <= {"privacy", "errors", "secure_sum"}


def test_every_folder_has_its_place_in_the_order() -> None:
    assert {room_of(path) for path in MODULES} - {"__init__"} == set(LAYERS)


def test_only_the_command_line_imports_the_laboratory() -> None:
    imports = DRAWN["imports_by_room"]()
    assert {room for room, others in imports.items() if "lab" in others} == {"cli"}


def test_the_drawing_of_the_architecture_is_true() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert page == DRAWN["page_with_drawing"](), "make architecture draws it anew"


@pytest.mark.parametrize("entry", ["sottovoce.flower.site.app", "sottovoce.flower.coordinator.app"])
def test_what_a_deployment_runs_loads_nothing_of_the_laboratory(entry: str) -> None:
    script = f"import sys, {entry}; print(*(m for m in sys.modules if m.startswith('sottovoce')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert entry in loaded
    assert not [name for name in loaded if name.split(".")[1:2] in (["lab"], ["cli"])]


def test_the_public_names_are_these() -> None:
    assert " ".join(sorted(sottovoce.__all__)) == (
        "Agent Broadcast Budget Category DP_FTS_DE Draws FederatedStudy Float Integer Kernel "
        "METHODS Mechanism Message Method Outcome Problem SOTTOVOCE Server Setting SottovoceError "
        "Space Surrogate TS __version__ epsilon every_epsilon noise_for plan_study read_ledger "
        "replace_one simulate"
    )
    assert all(hasattr(sottovoce, name) for name in sottovoce.__all__)


def test_the_error_tree_in_the_docstring_is_the_real_one() -> None:
    drawn = re.findall(r"[├└│ ─]*\b([A-Z]\w+)\b(?: \((\w+)\))?  +\S", errors.__doc__ or "")
    classes = {
        name: cls
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, errors.SottovoceError)
    }
    assert {name for name, _ in drawn} | {"SottovoceError"} == set(classes)
    for name, other in drawn:
        if other:
            assert other in {base.__name__ for base in classes[name].__bases__}


def test_the_package_imports_without_any_extra() -> None:
    script = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {*"opendp matplotlib torch flwr optuna sklearn ray".split()}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import sottovoce, sottovoce.cli, sottovoce.simulation
import sottovoce.lab.experiments, sottovoce.lab.report
print(sottovoce.__version__)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == sottovoce.__version__


def readme_code(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_example_in_the_readme_runs_and_prints_what_it_says() -> None:
    (code,) = readme_code("python")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "'depth': " in result.stdout
    assert "ε =" in result.stdout


def test_files_and_functions_keep_to_the_size_of_the_house() -> None:
    for path in MODULES:
        text = path.read_text()
        assert text.count("\n") <= 350, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno
                assert length <= 60, f"{path.name}: {node.name}"


def test_no_word_of_an_assertion_stands_for_validation() -> None:
    for path in MODULES:
        assert not any(isinstance(n, ast.Assert) for n in ast.walk(ast.parse(path.read_text())))


def test_every_mutant_of_the_privacy_code_still_finds_its_line() -> None:
    assert runpy.run_path(str(ROOT / "tests" / "mutants.py"))["strays"]() == []


def test_the_tests_that_mutants_are_shown_to_exist() -> None:
    shown = runpy.run_path(str(ROOT / "tests" / "mutants.py"))["TESTS"]
    assert all((ROOT / path).is_file() for paths in shown.values() for path in paths)


def test_folders_of_unit_tests_are_those_of_the_package() -> None:
    for folder in (ROOT / "tests" / "unit").rglob("*/"):
        if folder.name != "__pycache__":
            assert (PACKAGE / folder.relative_to(ROOT / "tests" / "unit")).is_dir(), folder
