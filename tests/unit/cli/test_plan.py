from __future__ import annotations

import json
from collections.abc import Callable

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
    for words in ("ε spent (pld)", "zero-out", "noise z", "clip S", "features M", "12", "revealed"):
        assert words in out
    assert "(pld): a site's whole contribution is hidden against its absence (zero-out)." in out
    assert "(pld): one record at a site is hidden against its replacement by another" in out
    assert "Expected gain" not in out  # nothing was rehearsed


def test_a_rehearsals_gain_is_told(plan: Plan) -> None:
    status, out, _ = plan(agents=4, runs=2)
    assert status == 0
    assert "Expected gain over going alone" in out
    assert "over t = 1..3 (2 simulations on made-up functions" in out


def test_json_has_all_of_it_and_nothing_else(plan: Plan) -> None:
    status, out, _ = plan("--json", agents=4, runs=2)
    assert status == 0
    found = json.loads(out)
    assert (found["agents"], found["dims"], found["rounds"], found["releases"]) == (4, 1, 3, 2)
    assert found["epsilon"] <= 2.0
    assert found["replace_one"]["pld"] > 2 * found["epsilon"]
    assert found["gain"]["runs"] == 2
    assert json.loads(plan("--json", delta=0.01)[1])["delta"] == 0.01


def test_too_few_agents_are_warned(plan: Plan) -> None:
    status, _, err = plan(agents=3, dims=3, epsilon=0.1)
    assert status == 0
    assert "warning: 3 agents are too few for ε = 0.1" in err
    assert "going alone costs nothing" in err


def test_enough_agents_are_not(plan: Plan) -> None:
    assert "warning" not in plan(agents=2000)[2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"agents": 1}, "a federation needs at least 2 agents, got agents=1"),
        ({"agents": 1, "delta": 0.01}, "a federation needs at least 2 agents"),
        ({"epsilon": 0}, "epsilon must be finite and above 0"),
        ({"epsilon": -1}, "epsilon must be finite and above 0"),
        ({"epsilon": "nan"}, "epsilon must be finite and above 0"),
        ({"dims": 0}, "dims must be at least 1"),
        ({"dims": 7, "runs": 2}, "at most 6 dimensions; 0 runs do without one"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"rounds": 10**8}, "rounds must be at most 1000000"),
        ({"rounds": -5}, "rounds must be at least 1, got rounds=-5"),
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
