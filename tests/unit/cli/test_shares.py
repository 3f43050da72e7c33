"""`sottovoce budget` and `plan` where sites add the noise in shares."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app

BUDGET = ["budget", "--agents=200", "--rounds=4", "--participation=1", "--delta=1e-5"]


def test_budget_prints_the_price_and_what_other_failures_cost() -> None:
    words = [*BUDGET, "--epsilon=0.99", "--unreliable=20"]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    assert "1.05 times a trusted server's noise" in " ".join(result.output.split())
    for row in ("0.93", "20 (planned)", "1.06"):
        assert row in result.output
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert found["price"] == pytest.approx(1.0541, abs=1e-4)
    assert [each["failing"] for each in found["if_failing"]] == [0, 20, 40, 60, 199]
    assert found["if_failing"][1]["epsilon"] == found["epsilon"]["pld"]
    assert found["if_failing"][-1]["replace_one"] is None  # infinite


def test_shares_of_noise_and_sampling_do_not_go_together() -> None:
    words = ["budget", "--agents=10", "--rounds=4", "--participation=0.5", "--noise=2"]
    result = CliRunner().invoke(app, [*words, "--unreliable=2"])
    assert result.exit_code != 0


def test_plan_knows_the_price_and_what_less_is_revealed_for_it() -> None:
    words = ["plan", "--agents=10", "--dims=2", "--rounds=8", "--epsilon=4", "--delta=1e-5"]
    trusted, shared = (
        json.loads(CliRunner().invoke(app, [*words, "--runs=0", "--json", *more]).output)
        for more in ([], ["--unreliable=2"])
    )
    assert "price" not in trusted
    assert shared["price"] == pytest.approx(1.118, abs=1e-3)
    assert shared["noise"] == trusted["noise"]
    assert shared["revealed"] < trusted["revealed"]
    shown = CliRunner().invoke(app, [*words, "--runs=0", "--unreliable=2"]).output
    assert "2 of 10 sites may be absent, careless or in league" in " ".join(shown.split())
