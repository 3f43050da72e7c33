from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.federation.methods import (
    DP_FTS,
    DP_FTS_DE,
    METHODS,
    POOLED_TS,
    SOTTOVOCE,
    for_real_world,
)
from sottovoce.federation.planning import sized
from sottovoce.federation.schedule import ReleaseSchedule
from sottovoce.lab.experiments.config import (
    RunConfig,
    config_from,
    config_from_toml,
    with_objective,
)
from sottovoce.lab.experiments.runner import planned_events
from sottovoce.lab.problems import problem_named
from sottovoce.privacy.accountant import epsilon as spent_by
from sottovoce.privacy.events import DataFree, NonPrivate, SubsampledGaussian
from sottovoce.privacy.release import Mechanism


def test_the_defaults_are_the_papers_synthetic_experiment() -> None:
    config = RunConfig()
    study = config.study()
    assert (study.agents, study.rounds) == (200, 40)
    assert study.method == DP_FTS_DE
    assert config.resolved_delta() == pytest.approx(200**-1.1)


def test_a_delta_that_is_given_is_used() -> None:
    assert RunConfig(delta=1e-6).resolved_delta() == 1e-6


def test_what_is_given_changes_the_method_and_the_rest_stays() -> None:
    config = RunConfig().changed(
        regions=3,
        features=20,
        clip=5.0,
        participation=0.5,
        noise=2.0,
        sampling="fixed",
        sensitivity="tight",
    )
    wanted = Mechanism(5.0, 0.5, 2.0, "fixed", "tight")
    method = config.resolved_method()
    assert method == replace(DP_FTS_DE, regions=3, features=20, mechanism=wanted)
    one = RunConfig().changed(noise=2.0).resolved_method().mechanism
    assert one == Mechanism(clip=11.0, noise=2.0)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_configured_by_name(name: str) -> None:
    method, setting = METHODS[name], problem_named("synthetic").setting
    if method.shared_model == "pooled" or method.acquisition == "log-ei":
        method = sized(method, setting.space.dims, setting.surrogate.kernel)
    assert RunConfig(method=name).resolved_method() == method


def test_a_method_that_learns_is_planned_for_the_problem_and_what_is_given_stays() -> None:
    known = RunConfig(method="pooled-ts").resolved_method()
    assert known.lengthscale == 0.03  # the problem's own, which its agents know
    for method in (POOLED_TS, SOTTOVOCE):
        real = RunConfig(method=method.name, problem="landmine").resolved_method()
        assert real == sized(for_real_world(method), 2)
    given = RunConfig().changed(method="pooled-ts", features=20, lengthscale=0.7).resolved_method()
    assert (given.features, given.lengthscale) == (20, 0.7)
    assert RunConfig(method="dp-fts").resolved_method() == DP_FTS  # nothing is planned for others


@pytest.mark.parametrize(
    ("method", "epsilon", "delta"),
    [("sottovoce", 1.0, None), ("sottovoce", 0.2, 1e-5), ("dp-fts-de", 6.0, None)],
)
def test_an_epsilon_sets_the_least_noise_that_keeps_within_it(
    method: str, epsilon: float, delta: float | None
) -> None:
    everybody = RunConfig().changed(
        method=method, agents=60, rounds=5, participation=1.0, delta=delta
    )
    config = replace(everybody, epsilon=epsilon)
    study = config.study()
    spent = spent_by(planned_events(study), config.resolved_delta(), "pld")
    assert spent <= epsilon
    mechanism = study.method.mechanism
    assert mechanism is not None
    less = replace(mechanism, noise=0.999 * mechanism.noise)
    events = [less.event(60, "test")] * study.method.releases.count(5)
    assert spent_by(events, config.resolved_delta(), "pld") > epsilon
    unchanged = everybody.resolved_method().mechanism
    assert unchanged is not None
    assert replace(mechanism, noise=unchanged.noise) == unchanged


def test_an_epsilon_with_samples_of_a_fixed_size_is_kept_by_rdp() -> None:
    config = RunConfig().changed(agents=40, rounds=3, epsilon=3.0, sampling="fixed")
    spent = spent_by(planned_events(config.study()), config.resolved_delta(), "rdp")
    assert 0.99 * 3.0 < spent <= 3.0


def test_a_controls_noise_is_that_of_the_method_it_stands_beside() -> None:
    mechanisms = [
        RunConfig(method=name, agents=60, epsilon=1.0).resolved_method().mechanism
        for name in ("sottovoce", "sottovoce-control")
    ]
    assert mechanisms[0] == mechanisms[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 1.0, "noise": 2.0}, "either a noise or an epsilon, not both, got noise=2.0"),
        ({"epsilon": 1.0, "method": "ts"}, "'ts' protects nothing, so it takes no epsilon"),
        ({"epsilon": 1.0, "method": "fts-de"}, "'fts-de' protects nothing"),
        ({"epsilon": 0.0}, "epsilon must be finite and above 0, got epsilon=0.0"),
        ({"epsilon": -1.0}, "epsilon must be finite and above 0"),
        ({"epsilon": math.nan}, "epsilon must be finite and above 0"),
        ({"epsilon": math.inf}, "epsilon must be finite and above 0"),
        ({"epsilon": "1"}, "epsilon must be a number, got epsilon='1'"),
        ({"epsilon": True}, "epsilon must be a number"),
        ({"message": "sum"}, "unknown message 'sum'; known are posterior-draw, posterior-mean"),
        ({"message": 3}, "message must be a word"),
        ({"shared_model": "pool"}, "unknown shared_model 'pool'; did you mean 'pooled'"),
        ({"shared_model": "pooled"}, "a pooled model is of residuals over a public design"),
        ({"acquisition": "oracle"}, "unknown acquisition 'oracle'"),
        ({"acquisition": "joint-thompson"}, "the joint posterior needs a pooled model"),
        ({"initial_design": "dealt"}, "unknown initial_design 'dealt'"),
        ({"initial_design": True}, "initial_design must be a word"),
        ({"trust_gate": "no"}, "trust_gate must be true or false, got trust_gate='no'"),
        ({"trust_gate": 1}, "trust_gate must be true or false"),
        ({"basis": "sobol"}, "basis must be one of"),
        ({"last": -1}, "the last round must be at least 0"),
        ({"last": 1.5}, "last must be a whole number"),
        ({"method": "pooled-ts", "regions": 2}, "in one region"),
        ({"method": "pooled-ts", "features": 15}, "features must be even"),
        ({"method": "sottovoce", "regions": 2}, "a consensus is of effects"),
        ({"method": "sottovoce", "message": "posterior-mean"}, "a consensus is of effects"),
    ],
)
def test_wrong_values_of_what_goes_beyond_the_paper_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        RunConfig().changed(**changes)


def test_what_agents_say_and_hear_reaches_the_method() -> None:
    changed = (
        RunConfig()
        .changed(message="posterior-mean", initial_design="public", basis="quasirandom", last=4)
        .resolved_method()
    )
    wanted = replace(
        DP_FTS_DE,
        message="posterior-mean",
        initial_design="public",
        basis="quasirandom",
        releases=ReleaseSchedule(last=4),
    )
    assert changed == wanted
    learns = RunConfig().changed(
        method="fts-server",
        message="residual",
        shared_model="pooled",
        acquisition="joint-thompson",
        initial_design="public",
        last=0,
    )
    assert learns.resolved_method().shared_model == "pooled"
    follows = RunConfig().changed(
        method="pooled-ts",
        message="posterior-draw",
        shared_model="broadcast",
        acquisition="thompson",
        initial_design="uniform",
    )
    method = follows.resolved_method()
    assert (method.message, method.shared_model) == ("posterior-draw", "broadcast")
    assert (method.acquisition, method.initial_design) == ("thompson", "uniform")
    assert (
        not RunConfig().changed(method="pooled-ts", trust_gate=False).resolved_method().trust_gate
    )


def test_few_rounds_that_speak_need_less_noise_for_the_same_epsilon() -> None:
    noises = []
    for last in (0, 4):
        config = RunConfig().changed(agents=60, rounds=5, epsilon=2.0, participation=1.0, last=last)
        method = config.resolved_method()
        assert method.mechanism is not None
        noises.append(method.mechanism.noise)
    assert noises[0] < noises[1]


@pytest.mark.parametrize("method", ["ts", "fts", "fts-server", "fts-de"])
@pytest.mark.parametrize("given", [{"clip": 3.0}, {"noise": 1.0}, {"sampling": "fixed"}])
def test_a_method_without_a_mechanism_takes_none_of_its_constants(
    method: str, given: dict[str, Any]
) -> None:
    name = next(iter(given))
    with pytest.raises(InvalidInput, match=f"'{method}' protects nothing, so it takes no {name}"):
        RunConfig().changed(method=method, **given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agents": 2.5}, "agents must be a whole number, got agents=2.5"),
        ({"agents": True}, "agents must be a whole number"),
        ({"agents": "5"}, "agents must be a whole number, got agents='5'"),
        ({"agents": 0}, "agents must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"rounds": 4.0}, "rounds must be a whole number"),
        ({"runs": 0}, "runs must be at least 1, got runs=0"),
        ({"runs": 1.5}, "runs must be a whole number"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\)"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\)"),
        ({"delta": math.nan}, r"delta must be in \(0, 1\)"),
        ({"delta": "small"}, "delta must be a number"),
        ({"regions": 0}, "regions must be"),
        ({"regions": 201}, "regions must not outnumber agents"),
        ({"features": 0}, "features must be"),
        ({"features": 10.5}, "features must be a whole number"),
        ({"clip": 0.0}, "S must be above 0"),
        ({"clip": math.nan}, "S must be above 0"),
        ({"clip": "11"}, "clip must be a number"),
        ({"clip": False}, "clip must be a number"),
        ({"participation": 1.3}, r"participation must be in \(0, 1\], got participation=1.3"),
        ({"participation": 0.0}, r"participation must be in \(0, 1\]"),
        ({"noise": -1.0}, "z must be finite and at least 0"),
        ({"noise": math.inf}, "z must be finite"),
        ({"sampling": "stratified"}, "sampling must be one of"),
        ({"sensitivity": "loose"}, "sensitivity must be one of"),
        ({"problem": "sinthetic"}, "did you mean 'synthetic'"),
        ({"method": "dpftsde"}, "did you mean 'dp-fts-de'"),
    ],
)
def test_a_wrong_value_is_said_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        RunConfig().changed(**changes)


def test_a_lone_agent_is_refused_at_once_or_can_be_summed_up() -> None:
    # δ = N^(−1.1) means nothing for N = 1; that must not come out after the runs
    try:
        config = RunConfig(method="ts", agents=1)
    except InvalidInput:
        return
    assert 0 < config.resolved_delta() < 1


def test_an_unknown_key_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        InvalidInput, match="here has an unknown key 'agent'; did you mean 'agents'"
    ):
        config_from({"agent": 3}, "here")


def test_a_key_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(InvalidInput, match="unknown key 'zzz'; known are problem, method, agents"):
        config_from({"zzz": 3}, "here")


@pytest.mark.parametrize("key", ["problem", "method", "sampling", "sensitivity"])
@pytest.mark.parametrize("value", [3, ["ts"], {"name": "ts"}, True])
def test_a_name_that_is_no_word_is_refused(key: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"here: {key} must be a word"):
        config_from({key: value}, "here")


def test_a_config_comes_back_from_its_own_data() -> None:
    config = RunConfig().changed(agents=7, rounds=3, regions=3, noise=0.5, delta=1e-4)
    said = {key: value for key, value in config.to_dict().items() if value is not None}
    assert config_from(said, "there") == config


def test_a_toml_file_gives_the_config_it_says(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('method = "dp-fts"\nagents = 12\nrounds = 3\nclip = 8\nparticipation = 0.5\n')
    assert config_from_toml(path) == RunConfig().changed(
        method="dp-fts", agents=12, rounds=3, clip=8, participation=0.5
    )


def test_an_empty_toml_file_is_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("")
    assert config_from_toml(str(tmp_path / "run.toml")) == RunConfig()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agents = ", "not valid TOML"),
        ("roundz = 3", "unknown key 'roundz'; did you mean 'rounds'"),
        ('agents = "many"', "agents must be a whole number"),
        ("method = 3", "method must be a word"),
        ("[method]\nname = 'ts'", "method must be a word"),
        ("agents = [1, 2]", "agents must be a whole number"),
        ("delta = 2024-01-01", "delta must be a number"),
    ],
)
def test_a_wrong_toml_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        config_from_toml(tmp_path / "run.toml")


def test_a_toml_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not valid TOML"):
        config_from_toml(tmp_path / "run.toml")


def test_a_toml_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(StorageError, match="cannot be read"):
            config_from_toml(path)


def test_what_a_study_will_release_is_known_beforehand() -> None:
    private = RunConfig().changed(agents=20, rounds=7, participation=0.5, noise=2.0).study()
    assert planned_events(private) == [SubsampledGaussian(2.0, 0.5, 20)] * 7
    assert planned_events(RunConfig(method="control", rounds=2).study()) == [DataFree()] * 2
    assert planned_events(RunConfig(method="fts", rounds=2).study()) == [NonPrivate()] * 2
    assert all(event == DataFree() for event in planned_events(RunConfig(method="ts").study()))


def test_a_real_problem_brings_its_agents_the_papers_settings_and_rounds() -> None:
    config = RunConfig(problem="landmine")
    study = config.study()
    assert (study.agents, study.rounds) == (29, 60)
    assert study.method == for_real_world(DP_FTS_DE)
    assert config.resolved_delta() == pytest.approx(29**-1.1)
    changed = RunConfig().changed(problem="landmine", regions=2, noise=3.0, agents=10, rounds=5)
    assert (changed.study().agents, changed.study().rounds) == (10, 5)
    assert changed.resolved_method().mechanism == Mechanism(22.0, 0.35, 3.0)


def test_settings_can_be_chosen_against_the_problems_own() -> None:
    real = RunConfig(settings="real-world")
    assert real.resolved_method() == for_real_world(DP_FTS_DE)
    assert (real.study().agents, real.study().rounds) == (200, 60)
    assert RunConfig(problem="landmine", settings="synthetic").resolved_method() == DP_FTS_DE
    with pytest.raises(InvalidInput, match=r"settings must be one of synthetic, real-world"):
        RunConfig(settings="unreal")


def test_no_more_agents_can_be_asked_for_than_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"landmine has 29 agents.*agents=30"):
        RunConfig(problem="landmine", agents=30)


def test_the_objective_of_a_real_problem_can_be_chosen_and_others_have_none() -> None:
    live = with_objective(RunConfig(problem="landmine"), "live")
    assert live.problem == "landmine:objective=live"
    assert with_objective(live, "table").problem == "landmine"
    with pytest.raises(InvalidInput, match=r"'synthetic' trains nothing, so it takes no objective"):
        with_objective(RunConfig(), "live")
    with pytest.raises(InvalidInput, match=r"objective must be one of table, live"):
        with_objective(live, "alive")
