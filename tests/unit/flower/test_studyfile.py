from __future__ import annotations

import copy
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.sites import read_roster, simulated_identity, write_sites
from sottovoce.flower.studyfile import CHANGES, KEYS, Step, difference, read_study, study_from
from sottovoce.privacy.accountant import epsilon
from sottovoce.secure_sum.terms import SecureSum

TEXT = """
[study]
agents = 5
rounds = 8
epsilon = 2.0
direction = "maximize"

[[space.parameters]]
name = "x"
type = "float"
low = 1e-4
high = 1.0
log = true

[[space.parameters]]
name = "depth"
type = "integer"
low = 1
high = 9
"""
NOISE = 2.5  # given, so that it need not be looked for


def data(**study: Any) -> dict[str, Any]:
    """The tables of a file; None takes a key out."""
    tables = tomllib.loads(TEXT)
    tables["study"] |= study
    tables["study"] = {key: value for key, value in tables["study"].items() if value is not None}
    return tables


def test_a_study_is_read_with_the_noise_that_its_epsilon_needs(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TEXT)
    file = read_study(path)
    study = file.study
    assert (study.agents, study.rounds, study.feature_seed) == (5, 8, 0)
    assert (study.method.name, study.space.names) == ("sottovoce", ("x", "depth"))
    assert (file.direction, file.trial_limit) == ("maximize", 600.0)
    assert (file.budget.epsilon, file.budget.delta, file.budget.accountant) == (2.0, 1e-5, "pld")
    releases = [planned_event(study, "x")] * study.method.releases.count(study.rounds)
    assert 1.9 < epsilon(releases, 1e-5) <= 2.0


def test_the_same_file_gives_the_same_constants_and_another_reading_takes_its_noise() -> None:
    first = study_from(data())
    mechanism = first.study.method.mechanism
    assert mechanism is not None
    again = study_from(data(), mechanism.noise)
    assert again.study.fingerprint == first.study.fingerprint
    assert again.constants == first.constants


def test_constants_hold_the_promise_and_the_direction_but_no_time_limit() -> None:
    constants = study_from(data(trial_limit=5), NOISE).constants
    assert (constants["epsilon"], constants["delta"]) == (2.0, 1e-5)
    assert constants["direction"] == "maximize"
    assert "trial_limit" not in constants
    assert json.loads(json.dumps(constants)) == constants


def test_a_cadence_is_agreed_on_by_all_and_takes_the_place_of_the_time_limit() -> None:
    plain, timed = (study_from(data(trial_limit=5, **more), NOISE) for more in ({}, {"cadence": 9}))
    assert "cadence" not in plain.constants
    assert timed.constants == {**plain.constants, "cadence": 9.0}
    assert timed.study.fingerprint == plain.study.fingerprint
    step = plain.steps[0]
    assert (plain.seconds(step), timed.seconds(step)) == (5 * step.trials, 9 * step.trials)


def test_every_setting_reaches_the_study() -> None:
    settings = {
        "method": "dp-fts-de",
        "direction": "minimize",
        "delta": 1e-3,
        "feature_seed": 7,
        "regions": 2,
        "features": 30,
        "lengthscale": 0.2,
        "clip": 3.0,
        "participation": 0.5,
        "trial_limit": 2.5,
        "cadence": 3,
        "trust": "coordinator",
    }
    file = study_from(data(**settings), NOISE)
    method = file.study.method
    assert method.mechanism is not None
    assert (method.name, method.regions, method.features) == ("dp-fts-de", 2, 30)
    assert method.lengthscale == 0.2
    assert (method.mechanism.clip, method.mechanism.participation) == (3.0, 0.5)
    assert (method.mechanism.noise, file.delta, file.trial_limit) == (NOISE, 1e-3, 2.5)
    assert (file.study.feature_seed, file.direction) == (7, "minimize")
    known = {"agents", "rounds", "epsilon", "unreliable", "aggregators", *settings}
    assert known - set(CHANGES) == set(KEYS)


def test_where_nobody_is_trusted_the_keys_of_all_sites_are_of_the_studys_constants(
    tmp_path: Path,
) -> None:
    bare = study_from(data(agents=5, trust="nobody"), NOISE)
    assert bare.study.sums == SecureSum(unreliable=2)
    with pytest.raises(InvalidInput, match=r"sites.toml with the keys of all 5 sites must lie"):
        _ = bare.terms
    keys = {f"s{n}": simulated_identity(n).public.text for n in range(5)}
    write_sites(tmp_path / "sites.toml", {name: str(7 + n) for n, name in enumerate(keys)}, keys)
    roster = read_roster(tmp_path / "sites.toml")
    enrolled = study_from(data(agents=5, trust="nobody", unreliable=1), NOISE, roster)
    assert enrolled.study.sums == SecureSum(1, roster.digest)
    assert enrolled.terms.keys == roster.keys
    assert enrolled.study.fingerprint != bare.study.fingerprint
    assert enrolled.constants["sums"]["roster"] == roster.digest
    back = FederatedStudy.from_dict(enrolled.study.to_dict())
    assert back.fingerprint == enrolled.study.fingerprint
    moved = dict(reversed(keys.items()))
    write_sites(tmp_path / "sites.toml", {name: str(7 + n) for n, name in enumerate(moved)}, moved)
    assert read_roster(tmp_path / "sites.toml").digest != roster.digest


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trust": "us"}, "trust must be one of"),
        ({"unreliable": 2}, "unreliable is for trust = 'nobody'"),
        ({"trust": "nobody", "unreliable": 0}, r"unreliable must be in \[1, 2\], got unreliable=0"),
        ({"trust": "nobody", "unreliable": 3}, r"of 5 sites, unreliable must be in \[1, 2\]"),
        ({"trust": "nobody", "unreliable": 1.5}, "must be a whole number"),
        ({"trust": "nobody", "agents": 2}, "at least 3 sites"),
        (
            {"trust": "nobody", "participation": 0.5},
            "nobody can draw it in secret; participation must be 1, got participation=0.5",
        ),
    ],
)
def test_what_nobody_could_keep_is_refused_with_the_reason(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        study_from(data(**{"agents": 5, "method": "sottovoce", **changes}), NOISE)


def test_a_study_with_a_trusted_coordinator_is_the_same_as_before_there_was_another() -> None:
    said, unsaid = study_from(data(trust="coordinator"), NOISE), study_from(data(), NOISE)
    assert said.study.fingerprint == unsaid.study.fingerprint
    assert "sums" not in unsaid.constants


def test_a_study_file_that_names_a_python_file_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nMINE = None\n")
    with pytest.raises(InvalidInput, match="method must be an installed one"):
        study_from(data(method=f"{tmp_path / 'mine.py'}:MINE"), NOISE)
    assert not (tmp_path / "ran").exists()


def test_the_steps_lead_from_release_to_release_and_to_the_last_trial() -> None:
    steps = [Step(0, 4), Step(2, 2), Step(4, 2), Step(6, 2), Step(8, 2)]
    assert study_from(data(), NOISE).steps == steps
    once = study_from(data(rounds=2), NOISE).steps
    assert once == [Step(0, 4), Step(2, 2)]
    every = study_from(data(method="dp-fts", rounds=3), NOISE).steps
    assert every == [Step(0, 10), Step(1, 1), Step(2, 1), Step(3, 1)]


def test_the_steps_have_as_many_trials_as_the_study() -> None:
    for method in ("sottovoce", "dp-fts"):
        for rounds in (1, 2, 9):
            file = study_from(data(method=method, rounds=rounds), NOISE)
            trials = sum(step.trials for step in file.steps)
            assert trials == file.study.method.initial + rounds


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"agent": 5}, "unknown key 'agent'; did you mean 'agents'"),
    "no agents": ({"agents": None}, "must have agents, rounds, epsilon, direction"),
    "no direction": ({"direction": None}, "missing="),
    "no such direction": ({"direction": "up"}, "direction must be one of"),
    "a list of directions": ({"direction": ["minimize"]}, "direction must be one of"),
    "half an agent": ({"agents": 2.5}, "agents must be a whole number, got agents=2.5"),
    "agents yes or no": ({"agents": True}, "agents must be a whole number"),
    "nobody": ({"agents": 0}, "agents must be a whole number above 0"),
    "no rounds": ({"rounds": 0}, "rounds must be a whole number above 0"),
    "epsilon in words": ({"epsilon": "2"}, "epsilon must be a number"),
    "epsilon of 0": ({"epsilon": 0}, "epsilon must be finite and above 0"),
    "epsilon without end": ({"epsilon": math.inf}, "epsilon must be finite"),
    "epsilon not a number": ({"epsilon": math.nan}, "epsilon must be finite"),
    "delta of 0": ({"delta": 0}, "delta must be in"),
    "delta of 1": ({"delta": 1.0}, "delta must be in"),
    "unknown method": ({"method": "sotovoce"}, "unknown method 'sotovoce'; did you mean"),
    "method of a number": ({"method": 3}, "unknown method '3'"),
    "method without noise": ({"method": "fts"}, "protects nothing"),
    "method without a server": ({"method": "ts"}, "protects nothing"),
    "control": ({"method": "control"}, "says something of its agents"),
    "regions that cannot be": (
        {"regions": 4},
        "a consensus is of effects, from latin designs, and for an acquisition by log-ei",
    ),
    "features that do not fit": ({"features": 17}, "follows from the space: leave features at 1"),
    "odd features": ({"method": "pooled-ts", "features": 17}, "features must be even"),
    "features in words": ({"features": "many"}, "features must be a whole number"),
    "negative clip": ({"clip": -1.0}, "S must be above 0"),
    "clip without end": ({"clip": math.inf}, "finite clip"),
    "participation above 1": ({"participation": 1.5}, "participation must be in"),
    "participation of 0": ({"participation": 0}, "participation must be in"),
    "lengthscale of 0": ({"lengthscale": 0}, "lengthscale must be finite and above 0"),
    "negative seed": ({"feature_seed": -1}, "feature_seed must be"),
    "no time": ({"trial_limit": 0}, "trial_limit must be a finite number"),
    "all time": ({"trial_limit": math.inf}, "trial_limit must be a finite number"),
    "no cadence": ({"cadence": 0}, "cadence must be a finite number of seconds above 0"),
    "a cadence in words": ({"cadence": "daily"}, "cadence must be a number"),
    "time not a number": ({"trial_limit": math.nan}, "trial_limit must be a finite number"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_with_a_study_is_named(what: str) -> None:
    changes, words = BAD[what]
    given = None if "epsilon" in what or "delta" in what else NOISE
    with pytest.raises(InvalidInput, match=words):
        study_from(data(**changes), given)


def test_both_tables_and_no_other_are_needed() -> None:
    whole = data()
    for key in ("study", "space"):
        rest = {name: table for name, table in whole.items() if name != key}
        with pytest.raises(InvalidInput, match=rf"a table \[{key}\] is needed"):
            study_from(rest)
        with pytest.raises(InvalidInput, match=rf"a table \[{key}\] is needed"):
            study_from({**whole, key: 3})
    with pytest.raises(InvalidInput, match="its tables must be"):
        study_from({**whole, "sites": {}})


def test_a_space_that_is_none_is_refused() -> None:
    lists: list[Any] = [[], [{"name": "x"}], 3]
    for space in ({}, *({"parameters": each} for each in lists)):
        with pytest.raises(InvalidInput):
            study_from({**data(), "space": space}, NOISE)


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    with pytest.raises(StorageError, match=r"study\.toml cannot be read"):
        read_study(path)
    path.write_text("[study\n")
    with pytest.raises(InvalidInput, match=r"study\.toml is not valid TOML"):
        read_study(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match=r"study\.toml is not valid TOML"):
        read_study(path)
    path.write_text(TEXT.replace("agents = 5", "agents = 0"))
    with pytest.raises(InvalidInput, match=r"study\.toml: agents must be"):
        read_study(path)


# what two parties do not agree on


def test_the_difference_names_the_constant_and_both_values() -> None:
    ours, theirs = (study_from(data(epsilon=e), NOISE).constants for e in (2.0, 3))
    assert difference(ours, theirs) == "epsilon is 3.0 there and 2.0 here"
    other = copy.deepcopy(ours)
    other["space"]["parameters"][0]["high"] = 5.0
    assert difference(ours, other) == "space.parameters[0].high is 5.0 there and 1.0 here"
    del other["space"]["parameters"][0]["high"]
    assert difference(ours, other) == "space.parameters[0].high is missing there and 1.0 here"
    assert difference(ours, copy.deepcopy(ours)) is None


def test_a_value_of_that_name_is_not_a_missing_one() -> None:
    assert difference({"a": "missing"}, {}) == "a is missing there and 'missing' here"
    assert difference({}, {"a": "missing"}) == "a is 'missing' there and missing here"


LEAF = st.one_of(st.integers(-3, 3), st.text(max_size=3), st.none())
TREE = st.dictionaries(
    st.sampled_from("abcd"),
    st.recursive(
        LEAF,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, min_size=1)
        ),
        max_leaves=6,
    ),
)


@given(TREE, TREE)
def test_a_difference_is_found_exactly_when_there_is_one(
    ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    assert (difference(ours, theirs) is None) == (ours == theirs)
