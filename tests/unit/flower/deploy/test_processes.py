from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput, SottovoceError, StorageError
from sottovoce.flower.deploy import commands, superlink
from sottovoce.flower.deploy.commands import Link
from sottovoce.flower.deploy.keys import CA, make_keys
from sottovoce.flower.deploy.processes import MARK, Processes, run_until_ended

# a process whose child has a session of its own and takes no notice of being asked to end
STUBBORN = """
import signal, subprocess, sys, time
inner = '''
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
'''
subprocess.Popen([sys.executable, "-c", inner, sys.argv[1]], start_new_session=True)
time.sleep(600)
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def until(path: Path) -> str:
    end = time.monotonic() + 20
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end, f"{path} was not written"
        time.sleep(0.02)
    return path.read_text()


@needs_proc
def test_stopping_ends_also_what_a_process_left_in_another_session(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with Processes(patience=0.3) as processes:
        command = [sys.executable, "-c", STUBBORN, str(note)]
        outer = processes.start("outer", command, env=os.environ, cwd=tmp_path)
        inner = int(until(note))
        assert is_alive(inner)
    assert outer.returncode == -signal.SIGTERM
    assert not is_alive(inner)


@needs_proc
def test_stopping_finds_what_a_killed_process_left_behind(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with Processes(patience=0.3) as processes:
        command = [sys.executable, "-c", STUBBORN, str(note)]
        outer = processes.start("outer", command, env=os.environ, cwd=tmp_path)
        inner = int(until(note))
        outer.kill()
        outer.wait()
        assert processes.ended() == {"outer": -signal.SIGKILL}
    assert not is_alive(inner)


def test_what_a_process_prints_goes_to_its_log(tmp_path: Path) -> None:
    with Processes() as processes:
        processes.start(
            "talker",
            [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)"],
            env=os.environ,
            cwd=tmp_path,
            log=tmp_path / "log",
        ).wait()
    assert {"out", "err"} == set((tmp_path / "log").read_text().split())


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with Processes() as processes, pytest.raises(StorageError, match="ghost could not be started"):
        processes.start("ghost", [str(tmp_path / "ghost")], env={}, cwd=tmp_path)


def test_the_exit_status_of_a_process_in_the_foreground_is_ours(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit(7)"]
    assert run_until_ended(command, os.environ, tmp_path) == 7


def test_a_process_in_the_foreground_is_ended_when_it_is_said_to_be_over(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; open('up', 'w'); time.sleep(60)"]
    began = time.monotonic()
    status = run_until_ended(command, os.environ, tmp_path, 0.3, over=(tmp_path / "up").exists)
    assert (status, time.monotonic() - began < 30) == (0, True)


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_wrapper_started_deaf_to_interrupts_still_ends_with_all_it_started(
    tmp_path: Path, number: signal.Signals
) -> None:
    note = tmp_path / "pid"
    script = f"""
        import os, sys
        from pathlib import Path
        from sottovoce.flower.deploy.processes import run_until_ended
        command = [sys.executable, "-c", {STUBBORN!r}, {str(note)!r}]
        sys.exit(run_until_ended(command, os.environ, Path({str(tmp_path)!r}), patience=0.3))
    """
    wrapper = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as a shell's & does
    )
    inner = int(until(note))
    wrapper.send_signal(number)
    assert wrapper.wait(timeout=20) == 130
    assert not is_alive(inner)


def test_the_mark_of_a_group_is_its_own(tmp_path: Path) -> None:
    print_mark = [sys.executable, "-c", f"import os; print(os.environ['{MARK}'])"]
    for name in ("a", "b"):
        with Processes() as processes:
            process = processes.start(
                name, print_mark, env=os.environ, cwd=tmp_path, log=tmp_path / name
            )
            assert process.wait() == 0
    marks = {(tmp_path / name).read_text().strip() for name in ("a", "b")}
    assert len(marks) == 2


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    make_keys(tmp_path / "keys", ["a"])
    return tmp_path / "keys"


def test_a_link_is_an_address_and_an_authority(keys: Path) -> None:
    assert Link.parse("hub.example.org:443", keys / CA).address == "hub.example.org:443"
    assert Link.parse("[::1]:8000", None) == Link("::1", 8000)
    assert Link("::1", 8000).address == "[::1]:8000"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_an_insecure_link_may_be_on_loopback(host: str) -> None:
    assert Link(host).root is None


@pytest.mark.parametrize(
    "host", ["192.168.0.1", "::", "192.0.2.1", "hub.example.org", "localhost.x"]
)
def test_an_insecure_link_beyond_loopback_is_refused(host: str) -> None:
    with pytest.raises(InvalidInput, match="must be loopback"):
        Link(host)


@pytest.mark.parametrize("address", ["hub", "hub:", ":443", "hub:x", "hub:70000", "a b:1", "x/y:1"])
def test_an_address_that_is_none_is_refused(keys: Path, address: str) -> None:
    with pytest.raises(InvalidInput):
        Link.parse(address, keys / CA)


def test_the_superlink_has_tls_and_node_keys_and_lasting_registrations(
    keys: Path, tmp_path: Path
) -> None:
    command = commands.superlink(tmp_path, Link(root=keys / CA), keys)
    assert "--enable-supernode-auth" in command
    assert "--insecure" not in command
    assert "--disable-runtime-dependency-installation" in command
    at = command.index("--database")
    assert command[at + 1] == str(tmp_path / "coordinator" / "superlink.db")
    assert command[command.index("--host") + 1] == "127.0.0.1"
    plain = commands.superlink(tmp_path, Link(), None)
    assert "--insecure" in plain
    assert "--enable-supernode-auth" not in plain


def test_a_site_checks_the_coordinator_and_shows_its_own_key(keys: Path, tmp_path: Path) -> None:
    link = Link("hub.example.org", 443, keys / CA)
    command = commands.supernode(tmp_path, link, keys / "a.key", 9100)
    assert command[command.index("--root-certificates") + 1] == str(keys / CA)
    assert command[command.index("--auth-supernode-private-key") + 1] == str(keys / "a.key")
    seal = tmp_path / "keys" / "a.seal"
    config = f'project="{tmp_path}" seal="{seal}"'
    assert command[command.index("--node-config") + 1] == config
    assert command[command.index("--host") + 1] == "127.0.0.1"  # its own processes, nobody else


def test_how_many_trials_a_site_runs_at_once_is_told_to_its_own_node(tmp_path: Path) -> None:
    command = commands.supernode(tmp_path, Link(), None, 9100, workers=4)
    config = f'project="{tmp_path}" workers=4'
    assert command[command.index("--node-config") + 1] == config
    with pytest.raises(InvalidInput, match="workers must be at least 1, got workers=0"):
        commands.supernode(tmp_path, Link(), None, 9100, workers=0)


def test_a_key_without_encryption_or_encryption_without_a_key_is_refused(
    keys: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="another needs one"):
        commands.supernode(tmp_path, Link(root=keys / CA), None)
    with pytest.raises(InvalidInput, match="insecure link has no key"):
        commands.supernode(tmp_path, Link(), keys / "a.key")
    with pytest.raises(InvalidInput, match="another needs them"):
        commands.superlink(tmp_path, Link(root=keys / CA), None)


def test_files_that_are_missing_are_named(keys: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="authority's certificate must be a file"):
        Link(root=tmp_path / "none.crt")
    link = Link(root=keys / CA)
    with pytest.raises(InvalidInput, match="site's private key must be a file"):
        commands.supernode(tmp_path, link, keys / "b.key")
    (keys / "server.key").unlink()
    with pytest.raises(InvalidInput, match="coordinator's private key must be a file"):
        commands.superlink(tmp_path, link, keys)


@pytest.mark.parametrize("name", ['a"b', "a'b", "a\\b", "a\nb"])
def test_a_path_that_flower_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="no quote or backslash"):
        commands.run(tmp_path / name)


def test_nothing_is_reported_and_nothing_fetched(tmp_path: Path) -> None:
    env = commands.environment(tmp_path)
    assert env["FLWR_TELEMETRY_ENABLED"] == "0"
    assert env["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert env["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] == "1"
    assert env["RAY_USAGE_STATS_ENABLED"] == "0"
    assert env["FLWR_HOME"] == str(tmp_path / ".flwr")


def test_a_link_that_nobody_answers_is_not_up(keys: Path) -> None:
    assert not superlink.is_up(Link(port=1))
    assert not superlink.is_up(Link(port=1, root=keys / CA))


def test_a_command_that_flower_refuses_is_an_error_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(SottovoceError, match="Flower refused `flwr supernode`"):
        superlink.node_status(tmp_path)  # there is no connection of that name


@pytest.mark.parametrize("name", ["a.txt", "a b.pub", ".pub"])
def test_a_public_key_whose_file_names_no_site_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(InvalidInput, match=r"must be in a file NAME\.pub"):
        superlink.register_sites(tmp_path, Link(), [tmp_path / name])
    assert not (tmp_path / "sites.toml").exists()


def test_flowers_answers_are_plain_even_where_everything_is_told_to_be_coloured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"):  # a notebook sets them
        monkeypatch.setenv(name, "1")
    printed = "from rich import print_json; print_json('{\"success\": true}')"
    words = [sys.executable, "-c", printed]
    done = subprocess.run(words, env=commands.environment(tmp_path), capture_output=True, text=True)
    assert json.loads(done.stdout) == {"success": True}
