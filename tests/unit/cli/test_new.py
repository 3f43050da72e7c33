from __future__ import annotations

import json
import re
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.terminal import exit_status

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.flower.deploy.commands import Link, environment, supernode, tool
from sottovoce.flower.deploy.keys import make_keys, sealing_keys
from sottovoce.flower.deploy.project import copy_project, make_project, with_settings, with_space
from sottovoce.flower.deploy.roster import enrolled
from sottovoce.flower.sites import write_sites
from sottovoce.flower.studyfile import read_study

Terminal = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sottovoce(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Terminal:
    """The command line through `main`, as the console script does: status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def ran(*words: str) -> tuple[int, str, str]:
        status = exit_status(monkeypatch, *words)
        out, err = capsys.readouterr()
        return status, out, " ".join(err.split())

    return ran


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "study", agents=5, rounds=2, epsilon=2.0)
    return tmp_path / "study"


def test_a_new_project_is_a_flower_app_with_a_study_that_can_be_read(sottovoce: Terminal) -> None:
    status, out, _ = sottovoce("new", "my-study", "--agents=7", "--rounds=4", "--epsilon=2")
    assert status == 0
    assert "rehearse" in out
    app = tomllib.loads(Path("my-study/pyproject.toml").read_text())
    assert app["project"]["name"] == "my-study"
    assert app["tool"]["flwr"]["app"]["components"] == {
        "serverapp": "sottovoce.flower.coordinator.app:app",
        "clientapp": "sottovoce.flower.site.app:app",
    }
    config = app["tool"]["flwr"]["app"]["config"]
    assert config == {"project": "", "folder": "", "seed": -1, "join-limit": 600}
    study = read_study("my-study/study.toml")
    assert (study.study.agents, study.study.rounds, study.epsilon) == (7, 4, 2.0)
    assert study.study.sums is not None  # from 5 sites up nobody need be trusted
    assert sottovoce("new", "small", "--agents=4", "--epsilon=2")[0] == 0
    assert read_study("small/study.toml").study.sums is None
    text = Path("my-study/README.md").read_text()
    assert "num-supernodes=7" in text
    for path in Path("my-study").iterdir():
        assert not re.search("@[A-Z]+@", path.read_text()), path


def test_flower_takes_only_the_public_files_of_a_project_along(project: Path) -> None:
    for name in ("coordinator/journal.jsonl", "rehearsal/hub/objective.py", "keys/site-1.key"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("secret")
    (project / "sites.toml").write_text("[sites]\n")
    (project / ".gitignore").unlink()  # Flower heeds it, but a consortium may have its own
    command = [tool("flwr"), "build", "--app", str(project)]
    subprocess.run(command, cwd=project.parent, env=environment(project), check=True)
    (bundle,) = project.parent.glob("*.fab")
    with zipfile.ZipFile(bundle) as files:
        assert set(files.namelist()) == {"pyproject.toml", "study.toml", ".info/CONTENT"}


def test_two_projects_draw_different_features(tmp_path: Path) -> None:
    seeds = {
        make_project(tmp_path / name, agents=3, epsilon=2.0).study.feature_seed
        for name in ("a", "b")
    }
    assert len(seeds) == 2


def test_the_objective_of_a_new_project_asks_for_the_space_of_its_study(
    sottovoce: Terminal, project: Path
) -> None:
    before = (project / "study.toml").read_text()
    status, out, _ = sottovoce("space", str(project))
    assert status == 0
    assert tomllib.loads(out)["space"] == tomllib.loads(before)["space"]
    assert sottovoce("space", str(project), "--write")[0] == 0
    assert (project / "study.toml").read_text() == before


def test_a_changed_objective_changes_the_space_and_nothing_else(
    sottovoce: Terminal, project: Path
) -> None:
    before = (project / "study.toml").read_text()
    (project / "objective.py").write_text(
        "def objective(trial):\n    return trial.suggest_int('depth', 1, 9)\n"
    )
    assert sottovoce("space", str(project), "--write")[0] == 0
    after = (project / "study.toml").read_text()
    names = [p["name"] for p in tomllib.loads(after)["space"]["parameters"]]
    assert names == ["depth"]
    assert after.partition("[[space")[0] == before.partition("[[space")[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def objective(trial:\n", ["objective.py, line 1: SyntaxError"]),
        (
            "import json\nimport ghost_module\n",
            ["objective.py, line 2: ModuleNotFoundError", "ghost"],
        ),
        (
            "def objective(trial):\n    x = trial.suggest_float('x', 0, 1)\n    return {}[x]\n",
            ["objective.py, line 3: KeyError"],
        ),
        (
            "import beside\n\ndef objective(trial):\n    return beside.broken()\n",
            ["beside.py, line 2: ZeroDivisionError: division by zero"],
        ),
        (
            "import json\n\ndef objective(trial):\n    return json.loads('{')\n",
            ["objective.py, line 4: JSONDecodeError"],  # where the site's own code called it
        ),
        ("def objective(trial):\n    raise ValueError('a\\nb')\n", ["line 2: ValueError: a b"]),
        ("import sys\nsys.exit(3)\n", ["objective.py, line 2: SystemExit: 3"]),
        ("def objective(trial):\n    raise AssertionError\n", ["line 2: AssertionError"]),
        ("x = 'nul\0'\n", ["objective.py", "null bytes"]),
        (
            "def objective(trial):\n    return trial.suggest_int('x', 2, 1)\n",
            ["line 2: ValueError"],
        ),
    ],
)
def test_a_broken_objective_is_one_line_with_the_file_the_line_and_the_error(
    sottovoce: Terminal, project: Path, text: str, words: list[str]
) -> None:
    (project / "beside.py").write_text("def broken():\n    return 1 / 0\n")
    (project / "objective.py").write_text(text)
    status, out, err = sottovoce("space", str(project))
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    for word in words:
        assert word in err


@pytest.mark.parametrize("name", ["Study", "a b", "1st", "-x", "x-", "ü", "a" * 33, "a_b"])
def test_a_name_that_flower_would_not_take_is_refused(sottovoce: Terminal, name: str) -> None:
    status, _, err = sottovoce("new", "--", name)
    assert status == 2
    assert "must be lower-case letters" in err
    assert not list(Path().iterdir())


def test_an_existing_folder_is_refused_and_left_alone(sottovoce: Terminal) -> None:
    Path("study").mkdir()
    status, _, err = sottovoce("new", "study")
    assert status == 2
    assert "must not exist yet" in err
    assert not list(Path("study").iterdir())


@pytest.mark.parametrize("option", ["--agents=0", "--rounds=-1", "--epsilon=0", "--epsilon=nan"])
def test_a_study_that_cannot_be_leaves_no_folder(sottovoce: Terminal, option: str) -> None:
    assert sottovoce("new", "study", option)[0] == 2
    assert not list(Path().iterdir())


def test_a_folder_that_cannot_be_made_is_named(sottovoce: Terminal) -> None:
    status, _, err = sottovoce("new", "nowhere/study")
    assert status == 2
    assert "nowhere must be a folder" in err


def test_what_was_made_can_be_had_as_json(sottovoce: Terminal) -> None:
    status, out, _ = sottovoce("new", "study", "--agents=3", "--epsilon=2", "--json")
    assert status == 0
    found = json.loads(out)
    assert found["constants"]["agents"] == 3
    assert "objective.py" in found["files"]


def test_numbers_of_a_study_change_in_place(project: Path) -> None:
    text = (project / "study.toml").read_text()
    changed = with_settings(text, agents=9, rounds=11)
    assert tomllib.loads(changed)["study"]["agents"] == 9
    assert tomllib.loads(changed)["study"]["rounds"] == 11
    assert changed.count("\n") == text.count("\n")
    with pytest.raises(InvalidInput, match=r"a line `regions = ...`"):
        with_settings(text, regions=2)


def test_a_space_in_the_middle_of_a_study_file_is_not_replaced_blindly() -> None:
    text = '[[space.parameters]]\ntype = "float"\nname = "x"\nlow = 0.0\nhigh = 1.0\n\n[study]\n'
    with pytest.raises(InvalidInput, match="must be the last"):
        with_space(text, text.partition("\n\n")[0])


def test_a_partys_copy_has_its_own_files_and_nobodys_state(project: Path, tmp_path: Path) -> None:
    for name in ("site", "coordinator", "keys", "data"):
        (project / name).mkdir()
        (project / name / "file").write_text(name)
    copy_project(project, tmp_path / "copy", agents=3)
    copied = {path.name for path in (tmp_path / "copy").iterdir()}
    assert {"objective.py", "study.toml", "data"} <= copied
    assert not {"site", "coordinator", "keys"} & copied
    assert (tmp_path / "copy" / "data" / "file").read_text() == "data"
    assert read_study(tmp_path / "copy" / "study.toml").study.agents == 3
    assert read_study(project / "study.toml").study.agents == 5


def test_the_template_is_in_a_wheel() -> None:
    root = Path(__file__).resolve().parents[3]
    config = tomllib.loads((root / "pyproject.toml").read_text())
    wheel = config["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/sottovoce"]}  # every file, but for those git ignores
    template = root / "src" / "sottovoce" / "flower" / "template"
    ignored = subprocess.run(
        ["git", "check-ignore", *template.iterdir()], cwd=root, capture_output=True, text=True
    )
    assert ignored.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ["rehearse"],
        ["serve"],
        ["space"],
        ["start"],
        ["join", "hub:443", "--key=k"],
        ["register", "a.pub"],
    ],
    ids=lambda words: words[0],
)
def test_a_folder_that_is_no_project_is_refused_and_nothing_written(
    sottovoce: Terminal, words: list[str]
) -> None:
    status, _, err = sottovoce(*words)
    assert status == 2
    assert "must be a project that `sottovoce new` made" in err
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["serve"], "authority's certificate must be a file"),
        (["serve", "--host=192.0.2.1", "--insecure"], "its address must be loopback"),
        (["join", "hub.example.org:443", "--insecure"], "its address must be loopback"),
        (["join", "localhost:443"], "a site needs its private key"),
        (["join", "localhost:443", "--key=none.key"], "authority's certificate must be a file"),
        (["start"], "sites.toml cannot be read"),
        (["start", "--insecure", "--host=192.0.2.1"], "sites.toml cannot be read"),
        (["rehearse", "--sites=0"], "sites must be in [1, "),
        (["rehearse", "--sites=2", "--rounds=-1"], "rounds must be"),
    ],
)
def test_what_a_deployment_cannot_be_is_said_before_a_process_starts(
    sottovoce: Terminal,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    reason: str,
) -> None:
    monkeypatch.chdir(project)
    status, _, err = sottovoce(*words)
    assert status == 2
    assert reason in err
    assert not {"rehearsal", "coordinator"} & {path.name for path in project.iterdir()}


def test_a_link_that_others_could_command_has_to_be_asked_for(
    sottovoce: Terminal, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert sottovoce("keys", "keys")[0] == 0
    status, _, err = sottovoce("serve", "--host=192.0.2.1")
    assert status == 2
    assert "whoever reaches a SuperLink can submit and stop runs" in err
    assert not (project / "coordinator").exists()


def test_a_rehearsal_removes_only_what_a_rehearsal_left(
    sottovoce: Terminal, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / "rehearsal").mkdir()
    (project / "rehearsal" / "thesis.txt").write_text("years of work")
    status, _, err = sottovoce("rehearse", "--sites=3")
    assert status == 2
    assert "must be what a rehearsal left" in err
    assert (project / "rehearsal" / "thesis.txt").read_text() == "years of work"


def test_a_site_looks_at_the_list_of_keys_before_it_joins(project: Path, tmp_path: Path) -> None:
    make_keys(tmp_path / "keys", ["5"], server=False)
    make_keys(tmp_path / "other", ["x"], server=False)
    names = [f"site-{n}" for n in range(1, 6)]
    keys = {name: sealing_keys(tmp_path / "keys" / f"{name}.pub") or "" for name in names}
    write_sites(project / "sites.toml", {name: str(7 + n) for n, name in enumerate(names)}, keys)
    file = read_study(project / "study.toml")
    assert file.roster is not None
    words = enrolled(file, tmp_path / "keys" / "site-2.key")
    assert words.startswith("This site is site-2, agent 1 of 5.")
    assert file.roster.digest in words
    with pytest.raises(InvalidInput, match="must have this site's own keys, those of x"):
        enrolled(file, tmp_path / "other" / "x.key")
    with pytest.raises(InvalidInput, match="a site needs its keys"):
        enrolled(file, None)
    with pytest.raises(StorageError, match=r"missing.seal cannot be read"):
        enrolled(file, tmp_path / "keys" / "missing.key")
    command = supernode(project, Link(root=project / "study.toml"), tmp_path / "keys/site-2.key")
    assert f'seal="{tmp_path}/keys/site-2.seal"' in " ".join(command)
