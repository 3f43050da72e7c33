"""What a site makes of the apps that runs bring: only one that holds no code is let pass."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest

from sottovoce.errors import ProtocolError
from sottovoce.flower.deploy.project import make_project
from sottovoce.flower.site.bundle import APP, check_bundle

# Flower uses parts of Click and of pathspec which are on their way out
pytestmark = [
    pytest.mark.filterwarnings("ignore:'click.utils:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "study")
    return tmp_path / "study"


def built(project: Path) -> bytes:
    """The bundle of a project, as `flwr run` makes it."""
    from flwr.cli.build import build_fab_from_disk

    return build_fab_from_disk(project)


def zipped(**files: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in files.items():
            bundle.writestr(name.replace("__", "."), data)
    return content.getvalue()


def test_the_bundle_of_a_project_is_let_pass(project: Path) -> None:
    check_bundle(built(project))


def test_another_client_is_refused_by_the_name_and_the_hash_of_its_app(project: Path) -> None:
    path = project / "pyproject.toml"
    path.write_text(path.read_text().replace(APP, "thief:app"))
    (project / "thief.py").write_text("app = None")
    words = (
        r"the app 'consortium/study 1.0.0' with the SHA-256 [0-9a-f]{64} is refused: it would "
        r"run 'thief:app'; this site runs 'sottovoce.flower.site.app:app', and nothing else"
    )
    with pytest.raises(ProtocolError, match=words):
        check_bundle(built(project))


@pytest.mark.parametrize("name", ["sottovoce/__init__.py", "numpy.py", "README.md"])
def test_a_file_beside_the_study_is_refused_by_its_name(project: Path, name: str) -> None:
    path = project / "pyproject.toml"
    path.write_text(path.read_text().replace('["study.toml"]', f'["study.toml", "{name}"]'))
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("")
    with pytest.raises(ProtocolError, match=re.escape(f"it brings {name!r};")):
        check_bundle(built(project))


def test_of_many_files_only_some_are_named(project: Path) -> None:
    path = project / "pyproject.toml"
    path.write_text(path.read_text().replace('["study.toml"]', '["**/*.py"]'))
    for k in range(7):
        (project / f"a{k}.py").touch()
    with pytest.raises(
        ProtocolError, match=r"it brings 'a0.py', 'a1.py', 'a2.py' and 5 more files"
    ):
        check_bundle(built(project))


def test_what_is_to_be_run_as_an_agent_is_refused(project: Path) -> None:
    with pytest.raises(ProtocolError, match="it is to be run as 'flwr-agentapp'"):
        check_bundle(built(project), "flwr-agentapp")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no zip file",
        zipped(study__toml=b""),
        zipped(pyproject__toml=b"= not TOML"),
        zipped(pyproject__toml=b"\xff\xfe"),
        zipped(pyproject__toml=b"#" * (1 << 21)),
    ],
    ids=["empty", "no zip", "no pyproject", "no TOML", "no text", "too large"],
)
def test_what_cannot_be_read_is_refused(content: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"an app with the SHA-256 [0-9a-f]{64} is refused: it"):
        check_bundle(content)


@pytest.mark.parametrize("text", [b"", b"project = 1\ntool = [2]", b"[tool.flwr]\napp = 'x'"])
def test_a_project_without_what_flower_needs_is_refused(text: bytes) -> None:
    with pytest.raises(ProtocolError, match="it would run None"):
        check_bundle(zipped(pyproject__toml=text))
