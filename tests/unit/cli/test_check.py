from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from sottovoce import cli
from sottovoce.lab.contracts import METHOD_PROMISES, PROBLEM_PROMISES

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def check(
    name: str, *options: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["sottovoce", "check", name, *options])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [
        (f"{EXAMPLES}/bowl.py:Bowl", "problem", len(PROBLEM_PROMISES)),
        (f"{EXAMPLES}/bowl.py:Bowl:steps=9", "problem", len(PROBLEM_PROMISES)),
        (f"{EXAMPLES}/greedy.py:GREEDY", "method", len(METHOD_PROMISES)),
        ("ts", "method", len(METHOD_PROMISES)),
        ("branin:noise=0", "problem", len(PROBLEM_PROMISES)),
    ],
)
def test_what_holds_is_printed_promise_by_promise(
    name: str,
    kind: str,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, err = check(name, monkeypatch=monkeypatch, capsys=capsys)
    assert (status, err) == (0, "")
    *lines, last = out.splitlines()
    assert [line[:7] for line in lines] == ["holds  "] * count
    assert last == f"The {kind} {name} keeps all {count} promises."
    _, out, _ = check(name, "--json", monkeypatch=monkeypatch, capsys=capsys)
    data = json.loads(out)
    assert (data["name"], data["kind"], len(data["holds"])) == (name, kind, count)


def test_a_name_is_printed_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(EXAMPLES / "bowl.py", tmp_path / "[red]bowl.py")
    monkeypatch.chdir(tmp_path)
    _, out, _ = check("[red]bowl.py:Bowl", monkeypatch=monkeypatch, capsys=capsys)
    assert "The problem [red]bowl.py:Bowl keeps" in out


def test_a_broken_promise_ends_it_with_one_line_after_what_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (EXAMPLES / "bowl.py").read_text().replace("noise=0.01", "noise=-1")
    (tmp_path / "bowl.py").write_text(text)
    name = f"{tmp_path}/bowl.py:Bowl"
    status, out, err = check(name, monkeypatch=monkeypatch, capsys=capsys)
    assert status == 2
    assert out.count("holds") == 3
    assert "broken promise: The noise is a standard deviation" in err
    assert "noise must be in [0, ∞), got noise=-1" in err
    assert err.count("\n") == 1
    status, out, err = check(name, "--json", monkeypatch=monkeypatch, capsys=capsys)
    assert (status, out) == (2, "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("brannin", "unknown method or problem 'brannin'; did you mean 'branin'?"),
        ("missing.py:X", "must be a Python file, got no such file"),
        ("bowl.py", "FILE.py:NAME"),
        ("bowl.py:np", "must be a NamedProblem, or an object with name, setting and draw"),
        ("branin:nose=1", "branin: unknown option 'nose'"),
    ],
)
def test_what_cannot_be_checked_is_said_in_one_line(
    name: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copy(EXAMPLES / "bowl.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    status, out, err = check(name, monkeypatch=monkeypatch, capsys=capsys)
    assert (status, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1
