from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import DP_FTS_DE, FTS, FTS_DE, METHODS, TS, Method
from sottovoce.federation.schedule import Exploration, ReleaseSchedule, SoloProbability
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.weights import Weights
from sottovoce.privacy.release import Mechanism
from sottovoce.space import Category, Float, Integer, Space

SPACE = Space([Float("x", 0, 1), Float("y", 1e-3, 1.0, log=True)])
STUDY = FederatedStudy(SPACE, DP_FTS_DE, agents=6, rounds=4)


def again(space: Space = SPACE) -> FederatedStudy:
    """The same constants, built from scratch."""
    method = Method("dp-fts-de", mechanism=Mechanism(clip=11.0), regions=2)
    return FederatedStudy(Space(list(space.parameters)), method, 6, 4, 0)


def test_studies_with_the_same_constants_have_the_same_fingerprint() -> None:
    assert again() == STUDY
    assert again().fingerprint == STUDY.fingerprint
    assert len(STUDY.fingerprint) == 64


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    code = (
        "from sottovoce.federation.methods import TS;"
        "from sottovoce.space import Category, Float, Space;"
        "from sottovoce.federation.study import FederatedStudy;"
        "space = Space([Float('x', 0.0, 1.0), Category('c', ('a', 'b'))]);"
        "print(FederatedStudy(space, TS, 2, 3).fingerprint)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    space = Space([Float("x", 0.0, 1.0), Category("c", ("a", "b"))])
    assert found.stdout.strip() == FederatedStudy(space, TS, 2, 3).fingerprint


SPACES = {
    "name": Space([Float("z", 0, 1), Float("y", 1e-3, 1.0, log=True)]),
    "order": Space([Float("y", 1e-3, 1.0, log=True), Float("x", 0, 1)]),
    "bound": Space([Float("x", 0, 2), Float("y", 1e-3, 1.0, log=True)]),
    "scale": Space([Float("x", 0, 1), Float("y", 1e-3, 1.0)]),
    "steps": Space([Float("x", 0, 1, steps=9), Float("y", 1e-3, 1.0, log=True)]),
    "kind": Space([Integer("x", 0, 1), Float("y", 1e-3, 1.0, log=True)]),
}


@pytest.mark.parametrize("what", SPACES)
def test_the_space_is_in_the_fingerprint(what: str) -> None:
    assert replace(STUDY, space=SPACES[what]).fingerprint != STUDY.fingerprint


@pytest.mark.parametrize("change", [{"agents": 7}, {"rounds": 5}, {"feature_seed": 1}])
def test_the_numbers_are_in_the_fingerprint(change: dict[str, Any]) -> None:
    assert replace(STUDY, **change).fingerprint != STUDY.fingerprint


OTHER_METHODS: dict[str, dict[str, Any]] = {
    "name": {"name": "other"},
    "initial_design": {"initial_design": "uniform"},
    "message": {"message": "posterior-mean"},
    "shared_model": {"shared_model": "peer", "mechanism": None},
    "acquisition": {
        **{"initial_design": "public", "message": "residual", "regions": 1},
        **{"shared_model": "pooled", "acquisition": "joint-thompson"},
    },
    "mechanism": {"mechanism": None},
    "noise_only": {"noise_only": True},
    "trust_gate": {"trust_gate": True},
    "regions": {"regions": 3},
    "weights": {"weights": Weights(hold=6)},
    "solo": {"solo": SoloProbability("inverse")},
    "exploration": {"exploration": Exploration("theorem")},
    "releases": {"releases": ReleaseSchedule(last=2)},
    "features": {"features": 51},
    "lengthscale": {"lengthscale": 0.031},
    "repeats": {"repeats": "replace"},
    "basis": {"basis": "quasirandom"},
    "shared_variance": {"shared_variance": 0.5},
    "regularisation": {"regularisation": 0.02},
    "initial": {"initial": 11},
}


def test_every_field_of_a_method_is_tried_below() -> None:
    assert set(OTHER_METHODS) == {field.name for field in dataclasses.fields(Method)}


@pytest.mark.parametrize("what", OTHER_METHODS)
def test_every_field_of_the_method_is_in_the_fingerprint(what: str) -> None:
    method = replace(DP_FTS_DE, **OTHER_METHODS[what])
    assert replace(STUDY, method=method).fingerprint != STUDY.fingerprint


def test_each_part_alone_is_in_the_fingerprint() -> None:
    pooled = METHODS["pooled-ts"]
    for change in ({"acquisition": "thompson"}, {"trust_gate": False}):
        other = FederatedStudy(SPACE, replace(pooled, **change), 6, 4)
        assert other.fingerprint != FederatedStudy(SPACE, pooled, 6, 4).fingerprint


PARTS: list[tuple[str, Any, dict[str, Any]]] = [
    (
        "mechanism",
        DP_FTS_DE.mechanism,
        {
            "clip": 12.0,
            "participation": 0.3,
            "noise": 1.1,
            "sampling": "fixed",
            "sensitivity": "tight",
        },
    ),
    (
        "weights",
        DP_FTS_DE.weights,
        {"kind": "ratio", "strength": 16.0, "hold": 1, "decay": 1, "adaptive": False},
    ),
    ("solo", DP_FTS_DE.solo, {"kind": "constant", "value": 0.5}),
    (
        "exploration",
        DP_FTS_DE.exploration,
        {"kind": "theorem", "norm": 2.0, "noise": 0.2, "failure": 0.2},
    ),
    ("releases", DP_FTS_DE.releases, {"every": 2, "last": 9}),
]


@pytest.mark.parametrize(
    ("part", "value", "field"),
    [(part, value, field) for part, value, changes in PARTS for field in changes],
)
def test_every_field_of_the_methods_parts_is_in_the_fingerprint(
    part: str, value: Any, field: str
) -> None:
    changes = next(changes for name, _, changes in PARTS if name == part)
    assert set(changes) == {f.name for f in dataclasses.fields(value)}
    method = replace(DP_FTS_DE, **{part: replace(value, **{field: changes[field]})})
    assert replace(STUDY, method=method).fingerprint != STUDY.fingerprint


def test_a_whole_number_written_as_a_float_is_the_same_constant() -> None:
    # 11 from one party's TOML and 11.0 from another's command line are the same study
    method = replace(DP_FTS_DE, mechanism=Mechanism(clip=11, noise=1), weights=Weights(strength=15))
    other = replace(STUDY, method=method)
    assert other == STUDY
    assert other.fingerprint == STUDY.fingerprint


@pytest.mark.parametrize("name", METHODS)
def test_a_study_is_plain_data(name: str) -> None:
    study = FederatedStudy(SPACE, METHODS[name], 5, 3, 7)
    text = json.dumps(study.to_dict(), allow_nan=False)
    assert json.loads(text) == study.to_dict()
    assert study.to_dict()["method"]["name"] == name
    assert study.to_dict()["schema"] == (3 if study.method.shared.consensus else 2)


def test_a_study_whose_messages_were_of_an_earlier_kind_is_refused() -> None:
    data = FederatedStudy(SPACE, METHODS["sottovoce"], 5, 3).to_dict()
    assert FederatedStudy.from_dict(data).to_dict() == data
    with pytest.raises(InvalidInput, match="must be of this version's"):
        FederatedStudy.from_dict({**data, "schema": 2})


def test_an_infinite_clip_can_be_written_down() -> None:
    open_door = replace(DP_FTS_DE, mechanism=Mechanism(clip=math.inf, noise=0.0))
    study = replace(STUDY, method=open_door)
    json.dumps(study.to_dict(), allow_nan=False)
    assert study.fingerprint != STUDY.fingerprint


def test_more_regions_than_agents_are_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="regions=2, agents=1"):
        FederatedStudy(SPACE, FTS_DE, agents=1, rounds=3)


def test_regions_on_a_space_that_cannot_be_cut_are_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="needs a numeric parameter"):
        FederatedStudy(Space([Category("c", ("a", "b"))]), FTS_DE, agents=4, rounds=3)


@pytest.mark.parametrize("agents", [0, -1, 2.5])
def test_a_study_needs_a_whole_number_of_agents(agents: Any) -> None:
    with pytest.raises(InvalidInput):
        FederatedStudy(SPACE, TS, agents=agents, rounds=3)


@pytest.mark.parametrize("rounds", [0, -1, 2.5])
def test_a_study_needs_a_whole_number_of_rounds(rounds: Any) -> None:
    with pytest.raises(InvalidInput):
        FederatedStudy(SPACE, TS, agents=3, rounds=rounds)


@pytest.mark.parametrize("seed", [-1, 0.5, "0", None])
def test_the_feature_seed_must_be_a_whole_number(seed: Any) -> None:
    with pytest.raises(InvalidInput, match="feature_seed must be a whole number"):
        FederatedStudy(SPACE, TS, 3, 3, feature_seed=seed)


def test_peers_need_at_least_one_other() -> None:
    with pytest.raises(InvalidInput, match="at least 2 agents, got agents=1"):
        FederatedStudy(SPACE, FTS, agents=1, rounds=3)
    assert FederatedStudy(SPACE, TS, agents=1, rounds=3).agents == 1


def test_categories_are_never_cut() -> None:
    space = Space([Category("c", ("a", "b", "d")), Float("x", 0, 1), Integer("n", 1, 8)])
    study = FederatedStudy(space, replace(FTS_DE, regions=4), 8, 2)
    assert study.regions.splits == (1, 1, 1, 2, 2)


def test_agents_that_know_the_seed_share_the_features() -> None:
    x = np.random.default_rng(0).random((5, 2))
    assert np.array_equal(STUDY.features(x), again().features(x))
    assert STUDY.features(x).shape == (5, 50)
    assert not np.allclose(STUDY.features(x), replace(STUDY, feature_seed=1).features(x))


def test_a_studys_weights_are_its_methods() -> None:
    assert np.array_equal(STUDY.weights(8), Weights()(8, np.arange(6) % 2, 2))
    assert STUDY.assignment.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("name", METHODS)
def test_a_study_is_made_again_from_its_constants(name: str) -> None:
    space = Space([Float("x", 1e-3, 1.0, log=True), Category("c", ("a", "b"))])
    whole = FederatedStudy(space, METHODS[name], 6, 9, 3)
    again = FederatedStudy.from_dict(json.loads(json.dumps(whole.to_dict())))
    assert again.fingerprint == whole.fingerprint
    assert again.method == whole.method


def test_constants_that_are_no_study_are_refused() -> None:
    good = FederatedStudy(Space([Float("x", 0.0, 1.0)]), METHODS["dp-fts"], 6, 9).to_dict()
    method = good["method"]
    for bad in (
        {},
        {**good, "agents": 0},
        {**good, "method": None},
        {**good, "method": {**method, "newer": 1}},
        {**good, "method": {**method, "weights": 3}},
        {**good, "space": {}},
    ):
        with pytest.raises(InvalidInput):
            FederatedStudy.from_dict(bad)
    for other in ({**good, "schema": 1}, {**good, "more": 1}):
        with pytest.raises(InvalidInput, match="of this version's"):
            FederatedStudy.from_dict(other)


def test_a_method_by_its_bare_name_is_refused_at_once() -> None:
    space = Space([Float("x", 0.0, 1.0)])
    with pytest.raises(InvalidInput, match=r"method must be a Method, .*got method='dp-fts-de'"):
        FederatedStudy(space, "dp-fts-de", agents=2, rounds=2)  # type: ignore[arg-type]
