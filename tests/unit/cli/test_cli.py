from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.terminal import exit_status
from typer.testing import CliRunner

from sottovoce import __version__, cli
from sottovoce.federation.methods import METHODS
from sottovoce.federation.settings import SETTINGS
from sottovoce.lab.experiments.figure import known_figures
from sottovoce.lab.problems import PROBLEMS


@dataclass
class Answer:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        found: dict[str, Any] = json.loads(self.out)
        return found


class Terminal:
    """Runs commands in this process through `main`, as the console script does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> Answer:
        status = exit_status(self._monkeypatch, *arguments)
        return Answer(status, *self._capsys.readouterr())


@pytest.fixture
def sottovoce(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Terminal:
    monkeypatch.chdir(tmp_path)
    return Terminal(monkeypatch, capsys)


def options(**given: object) -> list[str]:
    words = []
    for name, value in given.items():
        option = name.replace("_", "-")
        flag = {False: [f"--no-{option}"], True: [f"--{option}"]}
        words += flag[value] if isinstance(value, bool) else [f"--{option}", str(value)]
    return words


def budget(**changes: object) -> list[str]:
    """A cheap question; None leaves an option out."""
    given: dict[str, object] = {
        "agents": 29,
        "rounds": 60,
        "participation": 0.35,
        "noise": 2.0,
        "delta": 1e-3,
        "accountant": "moments",
        **changes,
    }
    return ["budget", *options(**{k: v for k, v in given.items() if v is not None})]


SMALL = {"agents": 4, "rounds": 2, "runs": 1, "features": 8}

# the whole


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(cli.app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"sottovoce {__version__}\n"


def test_help_names_the_commands() -> None:
    result = CliRunner().invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    assert all(word in result.stdout for word in ("demo", "budget", "run"))


def test_the_module_and_the_script_answer_from_another_process(tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "200"}
    script = Path(sys.executable).with_name("sottovoce")
    good = subprocess.run(
        [sys.executable, "-m", "sottovoce.cli", *budget(), "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    assert json.loads(good.stdout)["epsilon"]["moments"] > 0
    assert good.stderr == ""
    bad = subprocess.run(
        [script, *budget(participation=1.3)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr == "error: participation must be in (0, 1], got participation=1.3\n"


# budget


def test_a_budget_as_json_has_these_keys() -> None:
    result = CliRunner().invoke(cli.app, [*budget(), "--json"])
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert set(data) == {
        "epsilon",
        "replace_one",
        "noise",
        "delta",
        "agents",
        "rounds",
        "participation",
        "sampling",
        "adjacency",
    }
    assert (data["agents"], data["rounds"], data["participation"]) == (29, 60, 0.35)
    assert (data["noise"], data["delta"], data["sampling"]) == (2.0, 1e-3, "poisson")
    assert data["adjacency"] == "zero-out"
    assert result.stderr == ""


def test_a_published_figure_comes_out_with_a_warning_that_its_delta_is_weak() -> None:
    arguments = budget(delta=None)
    result = CliRunner().invoke(cli.app, [*arguments, "--json"])
    assert json.loads(result.stdout)["epsilon"]["moments"] == pytest.approx(5.14, abs=0.005)
    warning = " ".join(result.stderr.split())
    assert warning.startswith("warning: δ = N^-1.1 = 0.025")
    assert "is weak" in warning
    assert "at δ = 1e-05" in warning


def test_the_warning_has_costs_to_tell_or_is_not_given() -> None:
    result = CliRunner().invoke(cli.app, budget(agents=1_000_000, delta=None, rounds=1))
    assert result.exit_code == 0
    assert "costs (" not in " ".join(result.stderr.split())


def test_a_budget_as_text_says_the_adjacency_and_which_is_a_bound() -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, budget(accountant="gdp"))
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "zero-out" in text
    assert "approximation, not a bound" in text
    assert "zero in every round" in text


def test_a_budget_as_text_says_which_epsilon_covers_what() -> None:
    question = budget(agents=50, rounds=4, participation=1, noise=1.1111, accountant="pld")
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, question)
    data = json.loads(CliRunner().invoke(cli.app, [*question, "--json"]).stdout)
    text = " ".join(result.stdout.split())
    assert (
        f"ε = {data['epsilon']['pld']:.2f} (pld): a site's whole contribution is hidden against "
        f"its absence (zero-out)."
    ) in text
    assert (
        f"ε = {data['replace_one']['pld']:.2f} (pld): one record at a site is hidden against its "
        f"replacement by another, which can move the site's vector twice as far (replace-one)."
    ) in text


def test_which_epsilon_covers_what_is_said_by_the_least_bound() -> None:
    from sottovoce.cli.show import meanings

    site, record = meanings({"gdp": 1.0, "rdp": 3.0, "pld": None}, {"pld": None})
    assert site.startswith("ε = 3.00 (rdp): a site's")
    assert record.startswith("ε = ∞ (pld): one record")
    site, _ = meanings({"gdp": 1.0}, {})
    assert site.startswith("ε = 1.00 (gdp)")
    assert meanings({}, {})[0].startswith("ε = ∞: a site's")


def test_a_budget_as_text_says_when_nothing_is_known_of_a_record() -> None:
    question = budget(rounds=10**6, noise=1000, accountant="all")
    text = " ".join(CliRunner().invoke(cli.app, question).stdout.split())
    assert "No bound is known here for one record at a site replaced by another." in text


def test_a_noise_is_found_for_an_epsilon() -> None:
    arguments = budget(noise=None, epsilon=3.0)
    data = json.loads(CliRunner().invoke(cli.app, [*arguments, "--json"]).stdout)
    assert 2.9 < data["epsilon"]["moments"] <= 3.0
    again = budget(noise=data["noise"])
    same = json.loads(CliRunner().invoke(cli.app, [*again, "--json"]).stdout)
    assert same["epsilon"] == data["epsilon"]


def test_no_protection_to_speak_of_is_null_and_never_invalid_json() -> None:
    result = CliRunner().invoke(cli.app, [*budget(noise=1e-3, accountant="gdp"), "--json"])
    assert json.loads(result.stdout)["epsilon"] == {"gdp": None}


def test_hardly_any_noise_is_answered_by_every_accountant() -> None:
    question = budget(rounds=3, participation=0.3, noise=0.05, delta=1e-5, accountant="all")
    result = CliRunner().invoke(cli.app, [*question, "--json"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)["epsilon"]
    assert set(found) == {"moments", "rdp", "pld", "gdp"}
    assert all(value is None or value > 100 for value in found.values())


def test_a_hundred_million_rounds_need_no_memory_for_each() -> None:
    result = CliRunner().invoke(cli.app, [*budget(rounds=10**8, accountant="all"), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["epsilon"]["rdp"] > 1e6


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"participation": 0}, "participation must be in (0, 1], got participation=0"),
        ({"participation": 1.3}, "participation must be in (0, 1], got participation=1.3"),
        ({"participation": "nan"}, "participation must be in (0, 1], got participation=nan"),
        ({"noise": -1}, "z must be finite"),
        ({"noise": 0}, "z must be finite and above 0, got z=0.0"),
        ({"noise": "inf"}, "z must be finite"),
        ({"noise": 1, "epsilon": 1}, "not both and not neither"),
        ({"noise": None}, "not both and not neither"),
        ({"noise": None, "epsilon": 0}, "epsilon must be finite and above 0"),
        ({"noise": None, "epsilon": "nan"}, "epsilon must be finite and above 0"),
        ({"delta": 0}, "delta must be in (0, 1), got delta=0.0"),
        ({"delta": 1}, "delta must be in (0, 1)"),
        ({"agents": 0}, "agents must be"),
        ({"agents": 1, "delta": None}, "needs at least 2 agents"),
        ({"rounds": 0}, "rounds must be"),
        ({"rounds": 10**400}, "rounds must be"),
        ({"accountant": "magic"}, "accountant must be one of moments, rdp, pld, gdp, all"),
        ({"accountant": "moments", "sampling": "fixed"}, "no sound bound for fixed-size"),
        ({"sampling": "stratified"}, "sampling must be one of ('poisson', 'fixed')"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_a_wrong_question_gets_one_line_and_status_two(
    changes: dict[str, object], text: str, more: list[str], sottovoce: Terminal
) -> None:
    answer = sottovoce(*budget(**changes), *more)
    assert answer.status == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert text in answer.err
    assert answer.err.count("\n") == 1
    assert answer.err.endswith("\n")


def test_an_option_that_is_no_number_is_refused(sottovoce: Terminal) -> None:
    answer = sottovoce(*budget(agents="many"))
    assert answer.status == 2
    assert answer.out == ""
    assert "agents" in answer.err


# run


def test_a_run_saves_its_results_and_prints_one_json_object(
    sottovoce: Terminal, tmp_path: Path
) -> None:
    answer = sottovoce("run", *options(method="ts", **SMALL, out=tmp_path / "out"), "--json")
    assert answer.status == 0
    assert answer.data == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert answer.data["method"] == "ts"
    assert answer.out.count("\n") == 1


def test_a_run_goes_to_a_folder_of_its_own_by_default(sottovoce: Terminal, tmp_path: Path) -> None:
    answer = sottovoce("run", *options(method="control", **SMALL))
    assert answer.status == 0
    assert (tmp_path / "results" / "synthetic-control" / "summary.json").exists()
    text = " ".join(answer.out.split())
    assert "control on synthetic: simple regret, mean over agents" in text
    assert "Nothing of any agent is sent: ε = 0." in text


def test_an_unprotected_run_says_so(sottovoce: Terminal) -> None:
    answer = sottovoce("run", *options(method="fts-de", **SMALL))
    assert "No privacy" in answer.out


def test_a_protected_run_says_epsilon_with_all_that_belongs_to_it(sottovoce: Terminal) -> None:
    answer = sottovoce("run", *options(**SMALL, delta=1e-4, clip=9, participation=0.5, noise=2))
    text = " ".join(answer.out.split())
    assert "ε = " in text
    assert "(pld" in text
    assert "δ = 0.0001" in text
    assert "zero-out adjacency" in text
    assert "protects nobody" in text
    assert "Vectors clipped: " in text


def test_every_option_of_a_run_reaches_the_config(sottovoce: Terminal) -> None:
    given: dict[str, object] = {
        "problem": "synthetic",
        "method": "dp-fts-de",
        **SMALL,
        "regions": 3,
        "clip": 9.5,
        "participation": 0.5,
        "noise": 2.5,
        "sampling": "fixed",
        "sensitivity": "tight",
        "delta": 0.001,
        "seed": 3,
        "starts": 1,
        "lengthscale": 0.05,
        "weights": "non-adaptive",
        "solo": "inverse",
        "initial_design": "uniform",
        "message": "posterior-mean",
        "shared_model": "broadcast",
        "acquisition": "thompson",
        "trust_gate": True,
        "regularisation": 0.02,
        "basis": "quasirandom",
        "shared_variance": 0.5,
        "initial": 4,
        "every": 2,
        "last": 2,
        "settings": "synthetic",
        "repeats": "replace",
    }
    data = sottovoce("run", *options(**given), "--json").data
    assert set(SETTINGS) <= given.keys()
    assert data["config"] == {**given, "epsilon": None, "device": None}
    assert data["study"]["method"]["mechanism"]["sensitivity"] == "tight"
    assert data["accountant"] == "rdp"


def test_a_run_can_be_given_an_epsilon_in_place_of_a_noise(sottovoce: Terminal) -> None:
    small = {name: value for name, value in SMALL.items() if name != "features"}
    given = options(method="sottovoce", **small, epsilon=2.0, delta=0.01)
    data = sottovoce("run", *given, "--json").data
    assert data["config"]["epsilon"] == 2.0
    assert "noise" not in data["config"]
    assert data["epsilon_by_accountant"]["pld"] == pytest.approx(2.0, rel=2e-3)
    assert data["epsilon_by_accountant"]["pld"] <= 2.0
    answer = sottovoce("run", *given, "--noise", "1")
    assert answer.status == 2
    assert "either a noise or an epsilon" in answer.err


def test_a_toml_file_is_run_and_options_overrule_it(sottovoce: Terminal, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'method = "ts"\nagents = 4\nrounds = 2\nruns = 2\nfeatures = 8\nseed = 5\n'
    )
    plain = sottovoce("run", "mine.toml", "--json").data
    assert (plain["method"], plain["runs"], plain["config"]["seed"]) == ("ts", 2, 5)
    changed = sottovoce("run", "mine.toml", *options(runs=1, seed=6, out="other"), "--json").data
    assert (changed["method"], changed["runs"], changed["config"]["seed"]) == ("ts", 1, 6)


def test_two_processes_run_what_one_would(sottovoce: Terminal) -> None:
    command = ("run", *options(method="control", **{**SMALL, "runs": 2}), "--json")
    one = sottovoce(*command, "--out", "one").data
    two = sottovoce(*command, "--out", "two", "--jobs", "2").data
    assert two["regret"]["mean"] == pytest.approx(one["regret"]["mean"], abs=1e-6)


def test_a_device_that_is_not_there_is_refused(sottovoce: Terminal) -> None:
    answer = sottovoce("run", *options(method="ts", **SMALL, device="abacus"))
    assert answer.status == 2
    assert "abacus" in answer.err or "sottovoce[torch]" in answer.err


@pytest.mark.parametrize("command", [["run", "--method", "ts"], ["reproduce", "beyond-synthetic"]])
def test_a_device_that_is_not_there_leaves_no_folder(
    sottovoce: Terminal, tmp_path: Path, command: list[str]
) -> None:
    out = tmp_path / "out"
    answer = sottovoce(*command, "--device", "abacus", "--out", str(out))
    assert answer.status == 2
    assert not out.exists()


def test_the_same_command_again_computes_nothing(sottovoce: Terminal, tmp_path: Path) -> None:
    command = ("run", *options(method="control", **SMALL, out="out"), "--json")
    first = sottovoce(*command).data
    stamp = (tmp_path / "out" / "run-0000.npz").stat().st_mtime_ns
    assert sottovoce(*command).data == first
    assert (tmp_path / "out" / "run-0000.npz").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--method", "tss"], "did you mean 'ts'?"),
        (["--problem", "sinthetic"], "did you mean 'synthetic'?"),
        (["--method", "ts", "--clip", "3"], "takes no clip"),
        (["--rounds", "0"], "rounds must be"),
        (["--runs", "0"], "runs must be at least 1"),
        (["--noise", "-1"], "z must be finite"),
        (["missing.toml"], "missing.toml cannot be read"),
        (["[missing].toml"], "[missing].toml cannot be read"),
        (["[/missing].toml"], "[/missing].toml cannot be read"),
    ],
)
def test_a_wrong_run_gets_one_line_and_leaves_nothing(
    arguments: list[str], text: str, sottovoce: Terminal, tmp_path: Path
) -> None:
    answer = sottovoce("run", *arguments, "--json")
    assert answer.status == 2
    assert answer.out == ""
    assert text in answer.err
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_run_is_refused(sottovoce: Terminal) -> None:
    sottovoce("run", *options(method="control", **SMALL, out="out"))
    answer = sottovoce("run", *options(method="control", **SMALL, out="out", seed=1))
    assert answer.status == 2
    assert "seed is 0 there and 1 here" in answer.err
    assert answer.err.count("\n") == 1
    assert answer.out == ""


def test_a_mechanism_without_noise_can_be_run(sottovoce: Terminal) -> None:
    answer = sottovoce("run", *options(**SMALL, noise=0), "--json")
    assert answer.status == 0
    assert answer.data["epsilon"] is None


def test_an_interrupted_run_says_that_it_can_be_resumed(
    sottovoce: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sottovoce.lab.experiments.runner.run_and_save", interrupted)
    answer = sottovoce("run", *options(method="ts", **SMALL, out="out"))
    assert answer.status == 130
    assert "finished runs are in out, the same command resumes" in " ".join(answer.err.split())


# demo


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration with few agents and trials."""
    demonstration = "sottovoce.lab.experiments.demo"
    monkeypatch.setattr(f"{demonstration}.AGENTS", 4)
    monkeypatch.setattr(f"{demonstration}.TRIALS", 12)
    monkeypatch.setattr(f"{demonstration}.MILESTONES", (10, 12))


@pytest.mark.usefixtures("small_demo")
def test_the_demonstration_prints_one_json_object_and_draws_a_figure(
    sottovoce: Terminal, tmp_path: Path
) -> None:
    answer = sottovoce("demo", "--runs", "1", "--json")
    assert answer.status == 0
    assert answer.out.count("\n") == 1
    names = ["sottovoce", "gp", "sottovoce-control", "dp-fts-de"]
    assert [m["method"] for m in answer.data["methods"]] == names
    assert answer.data["figure"] == "sottovoce-demo.png"
    assert (tmp_path / "sottovoce-demo.png").read_bytes()[:4] == b"\x89PNG"
    ours, alone, control, paper = answer.data["methods"]
    assert 1.9 < ours["epsilon_by_accountant"]["pld"] <= 2.0
    assert ours["delta"] == 1e-5
    assert (alone["epsilon"], control["epsilon"]) == (0.0, 0.0)
    assert paper["epsilon"] > 2.0  # it has the noise that was published


@pytest.mark.usefixtures("small_demo")
def test_the_demonstration_as_text_is_a_table_with_its_guarantee(
    sottovoce: Terminal, tmp_path: Path
) -> None:
    answer = sottovoce("demo", "--runs", "2", "--seed", "3", "--out", "mine.svg")
    assert answer.status == 0
    text = " ".join(answer.out.split())
    assert all(words in text for words in ("gp", "dp-fts-de", "sottovoce-control"))
    assert "after so many trials in all" in text
    assert "zero-out adjacency" in text
    assert "mine.svg" in text
    assert b"<svg" in (tmp_path / "mine.svg").read_bytes()


def test_a_demonstration_of_no_runs_is_refused(sottovoce: Terminal) -> None:
    answer = sottovoce("demo", "--runs", "0")
    assert answer.status == 2
    assert "runs must be at least 1" in answer.err


@pytest.mark.parametrize("out", ["missing/figure.png", "figure.xyz"])
def test_a_figure_that_cannot_be_drawn_is_said_before_the_work(
    out: str, sottovoce: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked(*_: object) -> None:
        pytest.fail("the work was done before the figure was found impossible")

    monkeypatch.setattr("sottovoce.lab.experiments.demo.run_curve", worked)
    answer = sottovoce("demo", "--runs", "1", "--out", out)
    assert answer.status == 2
    assert out in answer.err


TINY = """
title = "Tiny"
[common]
agents = 4
rounds = 2
features = 8
[[curves]]
label = "alone"
method = "ts"
[[curves]]
label = "together"
method = "dp-fts-de"
[[claims]]
claim = "it helps"
paper = "yes"
better = "together"
than = "alone"
"""


@pytest.fixture
def figure(tmp_path: Path) -> str:
    (tmp_path / "tiny.toml").write_text(TINY)
    return "tiny.toml"


def test_a_figure_is_reproduced_and_reported(
    figure: str, sottovoce: Terminal, tmp_path: Path
) -> None:
    answer = sottovoce("reproduce", figure, *options(runs=2, jobs=1, out="r"))
    assert answer.status == 0
    assert "it helps" in answer.out
    assert "1 claims:" in " ".join(answer.out.split())
    for ending in ("json", "png", "svg", "pdf"):
        assert (tmp_path / "r" / "figures" / f"tiny.{ending}").exists()
    page = sottovoce("report", "r", "--markdown", "verdicts.md", "--json").data
    assert (tmp_path / page["page"]).read_text().startswith("<!DOCTYPE html>")
    assert "it helps" in (tmp_path / "verdicts.md").read_text()
    assert "report.html" in sottovoce("report", "r").out


def test_runs_are_reported_side_by_side_and_drawn(sottovoce: Terminal, tmp_path: Path) -> None:
    size = options(agents=4, rounds=2, runs=1)
    alone = sottovoce("run", *size, *options(method="ts", out="r/alone"))
    assert "±" not in alone.out  # one run has no error to show
    assert sottovoce("run", *size, *options(features=8, out="r/first")).status == 0
    assert "r/report.html" in sottovoce("report", "r").out
    both = ("report", "r/first", "r/alone", "--page", "both.html", "--figures", "paper", "--json")
    data = sottovoce(*both).data
    assert data["page"] == "both.html"
    page = (tmp_path / "both.html").read_text()
    assert "dp-fts-de is better than ts" in page
    assert "paper’s" not in page
    assert "take several runs" in page
    endings = sorted(path.suffix for path in (tmp_path / "paper").iterdir())
    assert endings == [".pdf", ".png", ".svg"]


def test_a_figure_of_ones_own_is_run_again_by_its_file(
    figure: str, sottovoce: Terminal, tmp_path: Path
) -> None:
    (tmp_path / figure).write_text(TINY.replace('paper = "yes"\n', ""))
    said = sottovoce("reproduce", figure, *options(runs=2, jobs=1, out="r")).out
    assert "paper" not in said
    made = json.loads((tmp_path / "r" / "figures" / "tiny.json").read_text())
    assert made["command"].startswith("sottovoce reproduce tiny.toml")


def test_the_help_of_run_says_defaults_methods_and_problems(sottovoce: Terminal) -> None:
    words = " ".join(sottovoce("run", "--help").out.replace("│", " ").split())
    for said in ("(default: synthetic)", "(default: dp-fts-de)", "(default: 5)", "(dp-fts-de: 1)"):
        assert said in words
    for name in (*METHODS, *PROBLEMS):
        assert name in words


def test_reproduce_prints_claims_as_json(figure: str, sottovoce: Terminal) -> None:
    data = sottovoce("reproduce", figure, *options(runs=2, jobs=1, out="r"), "--json").data
    assert set(data) == {"seconds", "figures"}
    (found,) = data["figures"]
    assert found["name"] == "tiny"
    keys = {"claim", "paper", "measured", "stderr", "interval", "verdict", "needs", "hint"}
    assert set(found["claims"][0]) == keys
    assert found["claims"][0]["verdict"] in {"holds", "does not hold", "within noise"}


def test_the_figures_are_listed(sottovoce: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = sottovoce("reproduce", "--list").out
    assert "…" not in listed
    assert all(name in listed for name in known_figures())
    names = [f["name"] for f in sottovoce("reproduce", "--list", "--json").data["figures"]]
    assert "benefit-of-de" in names


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["reproduce"], "name a figure"),
        (["reproduce", "impact-of-w"], "did you mean 'impact-of-"),
        (["reproduce", "missing.toml"], "cannot be read"),
        (["reproduce", "tiny.toml", "--runs", "0"], "runs must be at least 1"),
        (["reproduce", "tiny.toml", "--jobs", "-1"], "jobs must be at least 1"),
        (["reproduce", "tiny.toml", "--out", "tiny.toml"], "cannot be used for results"),
        (["report", "nowhere"], "sottovoce reproduce"),
    ],
)
def test_wrong_figures_and_folders_get_one_line(
    arguments: list[str], text: str, figure: str, sottovoce: Terminal
) -> None:
    answer = sottovoce(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert text in answer.err
    assert answer.err.count("\n") == 1


def test_an_interrupted_reproduction_says_how_to_go_on(
    figure: str, sottovoce: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sottovoce.lab.experiments.tasks.run_study", interrupted)
    answer = sottovoce("reproduce", figure, *options(runs=1, jobs=1, out="r"))
    assert answer.status == 130
    assert "the same command resumes" in answer.err
