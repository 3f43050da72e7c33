"""The proxy of docs/deploy.md: sites come through it, and nothing else does."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sottovoce.flower.deploy import commands, superlink
from sottovoce.flower.deploy.commands import Link
from sottovoce.flower.deploy.keys import CA, make_keys
from sottovoce.flower.deploy.processes import Processes
from sottovoce.flower.deploy.project import make_project
from sottovoce.flower.deploy.rehearsal import free_port

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "deploy.md"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx")


def configuration(folder: Path, keys: Path, outside: int, inside: int) -> str:
    (block,) = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    server = block.replace("listen 443 ssl", f"listen 127.0.0.1:{outside} ssl")
    server = server.replace("127.0.0.1:8000", f"127.0.0.1:{inside}")
    server = server.replace("/srv/my-study/keys", str(keys))
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{server} }}"
    )


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Link, Link]]:
    """A SuperLink, and the proxy in front of it."""
    folder = tmp_path_factory.mktemp("proxy")
    project, keys = folder / "study", folder / "study" / "keys"
    make_project(project, agents=2, rounds=1, epsilon=2.0)
    make_keys(keys, ["2"])
    (project / "coordinator").mkdir()
    link, proxy = Link(port=free_port(), root=keys / CA), Link(port=free_port(), root=keys / CA)
    settings = folder / "nginx.conf"
    settings.write_text(configuration(folder, keys, proxy.port, link.port))
    env = commands.environment(project)
    with Processes() as processes:
        serve = commands.superlink(project, link, keys)
        processes.start("link", serve, env=env, cwd=project, log=folder / "link.log")
        nginx = [str(NGINX), "-c", str(settings), "-e", str(folder / "error.log")]
        processes.start("proxy", nginx, env=env, cwd=folder, log=folder / "proxy.log")
        end = time.monotonic() + 60
        while not (superlink.is_up(link) and status(proxy, "/health") == 403):
            assert time.monotonic() < end, (folder / "proxy.log").read_text()
            time.sleep(0.1)
        yield link, proxy


def status(link: Link, path: str, method: str = "POST") -> int | None:
    trust = ssl.create_default_context(cafile=link.root)
    connection = http.client.HTTPSConnection(link.host, link.port, timeout=10, context=trust)
    try:
        connection.request(method, path, b"", {"content-type": "application/protobuf"})
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def test_the_operators_paths_ask_nobody_who_they_are(proxied: tuple[Link, Link]) -> None:
    link, _ = proxied
    assert status(link, "/v1/control/list-runs") == 200  # which is why there is a proxy
    assert status(link, "/v1/runtime/acquire-task") == 200
    assert status(link, "/v1/fleet/pull-messages") == 401


@pytest.mark.parametrize(
    "path",
    [
        "/v1/control/list-runs",
        "/v1/control/register-node",
        "/v1/runtime/acquire-task",
        "/v1/fleet/../control/list-runs",
        "/v1/fleet/%2e%2e/control/list-runs",
        "/v1/fleet/..%2fcontrol/list-runs",
        "/v1/fleet//../control/list-runs",
        "/V1/control/list-runs",
        "/docs",
        "/openapi.json",
        "/",
    ],
)
def test_the_proxy_lets_nothing_but_the_sites_paths_through(
    proxied: tuple[Link, Link], path: str
) -> None:
    _, proxy = proxied
    assert status(proxy, path) in (400, 403, 404)
    assert status(proxy, path, "GET") in (400, 403, 404)


def test_a_site_registers_with_the_link_and_comes_in_through_the_proxy(
    proxied: tuple[Link, Link], tmp_path: Path
) -> None:
    link, proxy = proxied
    assert link.root is not None
    keys = link.root.parent
    project = keys.parent
    assert status(proxy, "/v1/fleet/pull-messages") == 401  # the link's answer, not the proxy's
    sites = superlink.register_sites(project, link, [keys / "site-1.pub"])
    env = commands.environment(tmp_path)
    with Processes() as processes:
        node = commands.supernode(tmp_path, proxy, keys / "site-1.key", free_port())
        processes.start("node", node, env=env, cwd=tmp_path, log=tmp_path / "log")
        end = time.monotonic() + 60
        while superlink.node_status(project).get(sites["site-1"]) != "online":
            assert time.monotonic() < end, (tmp_path / "log").read_text()


def test_a_site_whose_key_nobody_registered_is_turned_away(
    proxied: tuple[Link, Link], tmp_path: Path
) -> None:
    _, proxy = proxied
    make_keys(tmp_path / "keys", ["stranger"], server=False)
    node = commands.supernode(tmp_path, proxy, tmp_path / "keys" / "stranger.key", free_port())
    env = commands.environment(tmp_path)
    with Processes() as processes:
        turned_away = processes.start("node", node, env=env, cwd=tmp_path, log=tmp_path / "log")
        assert turned_away.wait(120) != 0
    assert "Failed to activate SuperNode" in (tmp_path / "log").read_text()
