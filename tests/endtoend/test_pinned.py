"""Whoever submits a run can send sites any app; a site runs none but its own, and says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.endtoend.federation import Federation, Plan

from sottovoce.flower.deploy import commands, executor, superlink
from sottovoce.flower.deploy.project import make_project

EVIL = '''\
"""Leaves a file in the project of whoever imports it."""

import os
from pathlib import Path

(Path(os.environ["FLWR_HOME"]).parent / "{file}").touch()
'''
CLIENT = """
from flwr.clientapp import ClientApp

app = ClientApp()
"""
SERVER = '''\
"""Asks all sites once, which is enough for Flower to load what the run brought along."""

import time

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import ServerApp

app = ServerApp()


@app.main()
def main(grid, context):
    while len(set(grid.get_node_ids())) < 2:
        time.sleep(0.5)
    ask = [Message(RecordDict(), node, MessageType.TRAIN) for node in grid.get_node_ids()]
    assert all(reply.has_error() for reply in grid.send_and_receive(ask, timeout=120))
'''


def hostile(folder: Path, client: str, module: str) -> Path:
    """A project that the consortium never agreed on; its module leaves a file when imported."""
    make_project(folder, publisher="mallory")
    path = folder / "pyproject.toml"
    text = path.read_text().replace("sottovoce.flower.coordinator.app:app", "evil_server:app")
    text = text.replace('"sottovoce.flower.site.app:app"', f'"{client}"')
    text = text.replace('fab-include = ["study.toml"]', 'fab-include = ["**/*.py", "study.toml"]')
    path.write_text(text)
    (folder / "evil_server.py").write_text(SERVER)
    (folder / ".gitignore").unlink()  # it would keep a folder `site` out
    target = folder / module
    target.parent.mkdir(parents=True, exist_ok=True)
    for inner in target.relative_to(folder).parents[:-1]:
        (folder / inner / "__init__.py").touch()
    target.write_text(EVIL.format(file=f"owned-by-{folder.name}") + CLIENT)
    return folder


def attack(fed: Federation, project: Path) -> None:
    """Have a project run to its end, against all sites."""
    run = superlink.submit(project, fed.stage.link)
    fed.wait(lambda: superlink.outcome(project, run).over, f"the run of {project.name} is over")


@pytest.mark.slow
def test_another_app_is_refused_by_name_before_any_of_it_runs_and_the_study_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = hostile(tmp_path / "thief", "evil_client:app", "evil_client.py")
    ours = "sottovoce.flower.site.app"
    shadow = hostile(tmp_path / "shadow", f"{ours}:app", f"{ours.replace('.', '/')}.py")
    with Federation(tmp_path / "federation", Plan(rounds=1, sites=2)) as fed:
        pinned, plain = fed.stage.sites
        fed.clear_party(plain)
        with monkeypatch.context() as patch:
            patch.setattr(executor, "command", lambda address, secret, node: [*node])
            fed.start_site(plain)  # with Flower's own executor: the control
        fed.wait(lambda: all(map(fed.connected, fed.stage.sites)), "both are connected")
        for project in (mine, shadow):
            attack(fed, project)
            file = f"owned-by-{project.name}"
            assert (fed.folder(plain) / file).exists()  # the attack works where Flower runs it
            assert not (fed.folder(pinned) / file).exists()
        assert not (fed.folder(pinned) / commands.HOME / "apps").exists()  # nothing was unpacked
        told = [line for line in fed.printed(pinned).splitlines() if "is refused" in line]
        assert len(told) == 2
        assert re.search(r"the app 'mallory/thief 1.0.0' with the SHA-256 [0-9a-f]{64}", told[0])
        assert "it would run 'evil_client:app'" in told[0]
        assert "the app 'mallory/shadow 1.0.0'" in told[1]
        assert (
            "it brings 'evil_server.py', 'objective.py', 'sottovoce/__init__.py' and 3 more"
            in told[1]
        )

        fed.clear_party(plain)
        fed.start_site(plain)
        fed.submit()
        assert fed.finish().well
        assert fed.journal[-1]["done"] == 2
        assert fed.released == 1
