from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.federation.methods import method_named
from sottovoce.lab.experiments.figure import (
    chosen_figures,
    figure_from,
    figure_from_toml,
    known_figures,
)

SMALL: dict[str, Any] = {
    "title": "Mine",
    "common": {"agents": 4, "rounds": 2, "clip": 5.0, "regions": 2},
    "curves": [
        {"label": "alone", "method": "ts", "role": "reference"},
        {"label": "together", "method": "dp-fts-de", "noise": 2.0},
    ],
    "claims": [{"claim": "it helps", "paper": "yes", "better": "together", "than": "alone"}],
}


def test_common_parameters_reach_the_curves_to_which_they_mean_something() -> None:
    figure = figure_from(SMALL, "mine")
    alone, together = figure.curves
    assert (alone.config.changes, alone.config.agents) == ({}, 4)
    assert together.config.changes == {"clip": 5.0, "noise": 2.0, "regions": 2}
    assert together.given == ("noise",)
    assert figure.group == "own"


def test_every_figure_of_the_synthetic_section_is_known_and_of_the_papers_scale() -> None:
    known = known_figures()
    assert set(known) >= {
        "benefit-of-de",
        "impact-of-clip",
        "impact-of-q",
        "impact-of-z",
        "de-with-privacy",
        "parts-of-de",
        "tradeoff-of-p",
        "heterogeneous-mild",
        "heterogeneous-extreme",
        "adaptive-weights",
        "theorem",
    }
    for figure in known.values():
        if figure.group == "synthetic":
            agents = 50 if "heterogeneous" in figure.name else 200
            for curve in figure.curves:
                method = curve.config.resolved_method()
                assert (curve.config.agents, curve.config.rounds) == (agents, 40)
                assert (method.features, method.initial) == (50, 10)


def test_every_private_figure_carries_ts_and_the_noise_only_control() -> None:
    for figure in known_figures().values():
        methods = [method_named(curve.config.method) for curve in figure.curves]
        if any(method.private and not method.noise_only for method in methods) and not figure.vary:
            assert any(method.name == "ts" for method in methods), figure.name
            assert any(method.noise_only for method in methods), figure.name


FILES = resources.files("sottovoce.lab.experiments") / "figures"
BEYOND = sorted(f.name[:-5] for f in FILES.iterdir() if f.name.startswith("beyond-"))


def test_the_figures_beyond_the_paper_are_known_and_are_no_figures_of_it() -> None:
    named = {figure.name for figure in chosen_figures(["beyond"])}
    assert set(BEYOND) == named
    assert len(named) >= 13
    for figure in chosen_figures(["beyond"]):
        assert figure.paper == ""
        assert all(claim.paper == "not in the paper" for claim in figure.claims), figure.name
        assert figure.claims
    for group in ("synthetic", "real", "theory"):
        assert not named & {figure.name for figure in chosen_figures([group])}


@pytest.mark.parametrize("name", BEYOND)
def test_each_figure_beyond_the_paper_has_ts_and_a_control_with_the_same_noise(name: str) -> None:
    (figure,) = chosen_figures([name])
    found = [(curve.role, curve.config.resolved_method()) for curve in figure.curves]
    assert any(method.name == "ts" and role == "reference" for role, method in found)
    controls = [method for role, method in found if role == "control"]
    assert controls
    for control in controls:
        assert control.noise_only
        assert control.name.endswith("-control")
        twin = replace(control, name=control.name.removesuffix("-control"), noise_only=False)
        assert twin in [method for _, method in found]


@pytest.mark.parametrize("name", BEYOND)
def test_no_two_curves_beyond_the_paper_are_the_same_search(name: str) -> None:
    (figure,) = chosen_figures([name])
    configs = [curve.config for curve in figure.curves]
    assert all(configs.count(config) == 1 for config in configs)
    assert len({(c.problem, c.runs, c.seed, c.study().agents) for c in configs}) == 1


def test_a_claim_may_ask_for_a_part_of_anothers_regret() -> None:
    claim = {"claim": "half", "paper": "", "better": "together", "than": "alone", "factor": 0.5}
    figure = figure_from({**SMALL, "claims": [claim]}, "mine")
    assert figure.claims[0].factor == 0.5
    assert figure_from(SMALL, "mine").claims[0].factor == 1.0


def test_a_figure_can_be_simulated_on_a_device() -> None:
    figure = figure_from(SMALL, "mine")
    there = figure.on_device("cuda")
    assert {curve.config.device for curve in there.curves} == {"cuda"}
    assert {curve.config.device for curve in figure.curves} == {None}
    assert [replace(curve.config, device=None) for curve in there.curves] == [
        curve.config for curve in figure.curves
    ]


def test_figures_are_chosen_by_name_by_group_and_all_at_once(tmp_path: Path) -> None:
    assert [f.name for f in chosen_figures(["impact-of-q"])] == ["impact-of-q"]
    synthetic = {f.name for f in chosen_figures(["synthetic"])}
    assert "theorem" not in synthetic
    assert "theorem" in {f.name for f in chosen_figures(["all"])}
    twice = chosen_figures(["impact-of-q", "synthetic", "impact-of-q"])
    assert len(twice) == len(synthetic)


def test_a_figure_of_ones_own_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "Mine"\n[[curves]]\nlabel = "alone"\nmethod = "ts"\n')
    assert chosen_figures([str(path)])[0].name == "mine"
    assert figure_from_toml(path).curves[0].label == "alone"


def test_an_unknown_figure_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="unknown figure 'impact-of-x'; did you mean 'impact-of"):
        chosen_figures(["impact-of-x"])
    with pytest.raises(InvalidInput, match=r"known are .*benefit-of-de"):
        chosen_figures(["zzz"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"titel": "x"}, "unknown key 'titel'; did you mean 'title'"),
        ({"curves": []}, "must have curves"),
        ({"curves": {}}, r"\[\[curves\]\]"),
        ({"common": 3}, "common must be a table"),
        ({"curves": [{"method": "ts"}]}, "needs a label"),
        ({"curves": [{"label": "a"}]}, "needs a method"),
        ({"curves": [{"label": "a", "method": "tss"}]}, "did you mean 'ts'"),
        ({"curves": [{"label": "a", "method": "ts", "role": "hero"}]}, "role must be one of"),
        ({"curves": [{"label": "a", "method": "ts", "agent": 3}]}, "did you mean 'agents'"),
        ({"curves": [{"label": "a", "method": "ts"}] * 2}, "labels of curves must differ"),
        ({"claims": [{"claim": "x", "paper": "y", "bettr": "a"}]}, "did you mean 'better'"),
        (
            {"claims": [{"paper": "y", "better": "alone", "than": "together"}]},
            "lacks claim",
        ),
        (
            {"claims": [{"claim": "x", "paper": "", "better": "alon", "than": "together"}]},
            "unknown curve 'alon'; did you mean 'alone'",
        ),
        (
            {"claims": [{**SMALL["claims"][0], "measure": 3}]},
            "'together' ends at t = 2, got measure",
        ),
        (
            {"vary": [{"symbol": "z", "parameter": "noise", "direction": "up", "paper": ""}]},
            "noise",
        ),
    ],
)
def test_a_figure_that_does_not_fit_is_refused_naming_what(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        figure_from({**SMALL, **changes}, "mine")


def test_a_figure_needs_a_title() -> None:
    with pytest.raises(InvalidInput, match="title"):
        figure_from({key: SMALL[key] for key in ("common", "curves")}, "mine")


def test_files_that_are_missing_or_no_toml_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        figure_from_toml(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("title = ")
    with pytest.raises(InvalidInput, match="not valid TOML"):
        figure_from_toml(tmp_path / "bad.toml")


def test_the_number_of_runs_and_the_seed_are_set_for_all_curves() -> None:
    figure = figure_from(SMALL, "mine").with_runs(7, 3)
    assert {(c.config.runs, c.config.seed) for c in figure.curves} == {(7, 3)}
    assert figure.curve("alone").config.method == "ts"


def test_a_group_may_have_parts_and_each_word_of_it_chooses_the_figure() -> None:
    real = {f.name for f in chosen_figures(["real"])}
    landmine, har = ({f.name for f in chosen_figures([word])} for word in ("landmine", "har"))
    assert landmine
    assert har
    assert landmine < real
    assert har < real
    assert not landmine & har
    assert not real & {f.name for f in chosen_figures(["synthetic"])}


def test_every_real_figure_has_the_papers_settings() -> None:
    for figure in chosen_figures(["landmine", "har", "digits"]):
        for curve in figure.curves:
            method, study = curve.config.resolved_method(), curve.config.study()
            assert study.rounds == 60
            assert (method.features, method.lengthscale, method.initial) == (100, 0.01, 10)
            assert method.solo(2) == 0.5
            assert curve.config.runs == 10


def test_a_figure_says_its_own_number_of_runs_which_can_be_overruled() -> None:
    figure = figure_from({**SMALL, "runs": 7}, "mine")
    assert {curve.config.runs for curve in figure.curves} == {7}
    assert {c.config.runs for c in figure.with_runs(None, 3).curves} == {7}
    changed = figure.with_runs(2, 3).curves
    assert {(c.config.runs, c.config.seed) for c in changed} == {(2, 3)}
    assert {curve.config.runs for curve in figure_from(SMALL, "mine").curves} == {5}


def test_a_tradeoff_joins_points_in_series_and_other_kinds_are_unknown() -> None:
    curves = [SMALL["curves"][0], {**SMALL["curves"][1], "series": "z varies"}]
    figure = figure_from({**SMALL, "curves": curves, "kind": "tradeoff"}, "mine")
    assert figure.kind == "tradeoff"
    assert [curve.series for curve in figure.curves] == [None, "z varies"]
    assert figure.curves[1].given == ("noise",)
    with pytest.raises(InvalidInput, match=r"kind must be one of .*got kind='pie'"):
        figure_from({**SMALL, "kind": "pie"}, "mine")


def test_real_objectives_of_a_figure_can_all_be_trained_live() -> None:
    (figure,) = chosen_figures(["landmine-convergence"])
    problems = {curve.config.problem for curve in figure.with_objective("live").curves}
    assert problems == {"landmine:objective=live"}


def test_figures_of_made_up_problems_keep_their_objectives_when_others_go_live() -> None:
    (figure,) = chosen_figures(["impact-of-q"])
    assert figure.with_objective("live") == figure


def test_a_figure_may_be_like_another_with_common_parameters_changed() -> None:
    again = {
        "like": "mine",
        "variant": "more noise",
        "common": {"clip": 7.0},
        "claims": [{"claim": "too", "paper": "yes", "better": "alone", "than": "together"}],
    }
    figure = figure_from(again, "again", {"mine": SMALL})
    assert (figure.name, figure.title, figure.like) == ("again", "Mine", "mine")
    assert figure.variant == "more noise"
    assert figure.curve("together").config.changes == {"clip": 7.0, "noise": 2.0, "regions": 2}
    assert [claim.claim for claim in figure.claims] == ["it helps", "too"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"like": "yours", "variant": "v"}, "unknown figure to be like 'yours'"),
        ({"like": "mine"}, "must say its variant"),
        ({"like": "again", "variant": "v"}, "like must name a figure of its own"),
    ],
)
def test_a_figure_that_is_like_nothing_is_refused(data: dict[str, Any], problem: str) -> None:
    others = {"mine": SMALL, "again": {"like": "mine", "variant": "v"}}
    with pytest.raises(InvalidInput, match=problem):
        figure_from(data, "mine too", others)


def test_by_function_a_figure_has_its_runs_as_starts_of_each() -> None:
    figure = figure_from({**SMALL, "runs": 5}, "mine").by_function(20)
    assert {(c.config.runs, c.config.starts) for c in figure.curves} == {(100, 5)}
    assert (figure.name, figure.like, figure.variant) == (
        "mine-by-function",
        "mine",
        "20 functions",
    )
    (centred,) = chosen_figures(["de-with-privacy-centred"])
    found = centred.by_function(10)
    assert (found.like, found.variant) == ("de-with-privacy", "centred, 10 functions")
    with pytest.raises(InvalidInput, match="functions must be at least 2"):
        centred.by_function(1)
    (theorem,) = chosen_figures(["theorem"])
    with pytest.raises(InvalidInput, match="theorem varies constants"):
        theorem.by_function(10)


def test_synthetic_figures_are_there_centred_and_landmine_ones_with_the_authors_score() -> None:
    for group, variant, changed in (
        ("synthetic", "centred", "level=0.5"),
        ("landmine", "the authors' score", "score=probability"),
    ):
        figures = chosen_figures([group])
        again = {f.like: f for f in figures if f.variant == variant}
        plain = {f.name: f for f in figures if not f.variant and "drivers" not in f.group}
        assert set(again) == set(plain)
        for name, figure in again.items():
            assert all(changed in str(curve.config.problem) for curve in figure.curves)
            assert figure.claims == plain[str(name)].claims
            assert [c.label for c in figure.curves] == [c.label for c in plain[str(name)].curves]
