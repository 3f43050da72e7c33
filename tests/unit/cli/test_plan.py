from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.terminal import exit_status

Plan = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plan:
    """`sottovoce plan` through `main`, as the console script does: status, output, errors."""

    def ran(*flags: str, **given: object) -> tuple[int, str, str]:
        options = {"agents": 30, "dims": 1, "rounds": 3, "epsilon": 2.0, "runs": 0, **given}
        words = [f"--{name}={value}" for name, value in options.items() if value is not None]
        status = exit_status(monkeypatch, "plan", *words, *flags)
        out, err = capsys.readouterr()
        return status, flowing(out), flowing(err)

    return ran


def flowing(text: str) -> str:
    """The text as one line, however wide the terminal."""
    return " ".join(text.split())


def test_the_settings_are_told_in_words(plan: Plan) -> None:
    status, out, _ = plan(agents=200, dims=2, rounds=10)
    assert status == 0
    assert "sottovoce for 200 agents, 2 parameters" in out
    for words in ("ε spent (pld)", "zero-out", "noise z", "clip S", "features M", "28", "revealed"):
        assert words in out
    assert "(pld): a site's whole contribution is hidden against its absence (zero-out)." in out
    assert "(pld): one record at a site is hidden against its replacement by another" in out
    assert "less regret" not in out  # nothing was rehearsed
    assert "Is sharing worth it here? Unclear: nothing was simulated." in out


def test_a_rehearsals_gain_is_told_and_what_of_it_comes_from_the_others(plan: Plan) -> None:
    status, out, _ = plan(agents=4, runs=2)
    assert status == 0
    assert "less regret than the best solo search" in out
    assert "less than with noise alone, which is what comes from the others" in out
    assert "2 simulations of 4 agents with the noise of 4, on made-up functions" in out
    assert "Is sharing worth it here?" in out


def test_json_has_all_of_it_and_nothing_else(plan: Plan) -> None:
    status, out, _ = plan("--json", agents=4, runs=2)
    assert status == 0
    found = json.loads(out)
    assert (found["agents"], found["dims"], found["rounds"], found["releases"]) == (4, 1, 3, 2)
    assert found["epsilon"] <= 2.0
    assert found["replace_one"]["pld"] > 2 * found["epsilon"]
    assert found["gain"]["runs"] == 2
    assert json.loads(plan("--json", delta=0.01)[1])["delta"] == 0.01


@pytest.mark.parametrize("agents", [3, 200])
def test_with_next_to_no_epsilon_the_answer_is_not_to_join(plan: Plan, agents: int) -> None:
    status, out, _ = plan(agents=agents, dims=3, epsilon=0.001)
    assert status == 0
    assert "Is sharing worth it here? Do not join: all releases together are to reveal" in out
    assert "going alone costs nothing" in out


def test_delta_is_1e_5_and_a_weak_one_is_warned_of(plan: Plan) -> None:
    assert json.loads(plan("--json")[1])["delta"] == 1e-5
    assert "warning" not in plan()[2]
    err = plan(delta=0.02)[2]
    assert "warning: δ = 0.02 is weak for 30 agents" in err
    assert "1/N = 0.033" in err


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose space has a number, an integer and a choice."""
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


STUDY = """
[study]
agents = 12
rounds = 4
epsilon = 3.0
delta = 1e-6
trust = "nobody"
direction = "minimize"
[[space.parameters]]
type = "float"
name = "rate"
low = 1e-5
high = 0.1
log = true
[[space.parameters]]
type = "integer"
name = "depth"
low = 1
high = 2
[[space.parameters]]
type = "category"
name = "kind"
choices = ["a", "b", "c"]
"""
HERE: dict[str, object] = {"agents": None, "dims": None, "rounds": None, "epsilon": None}


def test_a_study_file_says_what_is_not_given(
    plan: Plan, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ([str(project)], [str(project / "study.toml")]):
        status, out, _ = plan("--json", *words, **{**HERE, "runs": 2})
        found = json.loads(out)
        assert status == 0
        assert (found["agents"], found["parameters"], found["dims"]) == (12, 3, 5)
        assert (found["delta"], found["unreliable"]) == (1e-6, 2)
        assert found["gain"]["agents"] == 12
    monkeypatch.chdir(project)
    changed = json.loads(plan("--json", **{**HERE, "agents": 20, "epsilon": 1.0})[1])
    assert (changed["agents"], changed["rounds"]) == (20, 4)
    assert 0.99 < changed["epsilon"] <= 1.0
    assert "12 agents, 3 parameters" in plan(**HERE)[1]


def test_a_wrong_study_file_is_named(plan: Plan, project: Path) -> None:
    status, out, err = plan(str(project / "none"), **HERE)
    assert (status, out) == (2, "")
    assert "there is no" in err
    assert "either a project or --dims" in plan(str(project))[2]
    (project / "study.toml").write_text("[study]\nagents = 3\n")
    status, _, err = plan(str(project), **HERE)
    assert status == 2
    assert "study.toml: a table [space] is needed" in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"agents": 1}, "a federation needs at least 2 agents, got agents=1"),
        ({"agents": 1, "delta": 0.01}, "a federation needs at least 2 agents"),
        ({"epsilon": 0}, "epsilon must be finite and above 0"),
        ({"epsilon": -1}, "epsilon must be finite and above 0"),
        ({"epsilon": "nan"}, "epsilon must be finite and above 0"),
        ({"dims": 0}, "dims must be at least 1"),
        ({"rounds": 0}, "rounds must be a whole number above 0"),
        ({"rounds": 10**8}, "rounds must be at most 1000000"),
        ({"rounds": -5}, "rounds must be a whole number above 0, got rounds=-5"),
        ({"delta": 2}, "delta must be in (0, 1)"),
        ({"delta": 0}, "delta must be in (0, 1)"),
        ({"runs": 1}, "runs must be 0, or 2 and more"),
    ],
)
def test_a_wrong_option_is_answered_with_one_error(
    plan: Plan, given: dict[str, object], said: str
) -> None:
    status, out, err = plan(**given)
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert said in err


@pytest.mark.parametrize("name", ["agents", "dims", "rounds", "epsilon"])
def test_what_is_needed_must_be_given(plan: Plan, name: str) -> None:
    status, _, err = plan(**{name: None})
    assert status == 2
    assert f"--{name}" in err


def test_dimensions_beyond_a_rehearsal_can_be_planned_without_one(plan: Plan) -> None:
    status, out, _ = plan(dims=9)
    assert status == 0
    assert " 180" in out  # 9 · 4 main effects, and 36 pairs with 2 · 2 each
