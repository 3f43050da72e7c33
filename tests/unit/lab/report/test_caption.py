from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

from sottovoce.lab.experiments.results import FigureResult
from sottovoce.lab.report.caption import note, privacy

ROOT = Path(__file__).resolve().parents[4]
MADE_UP = runpy.run_path(str(ROOT / "tests" / "made_up_figures.py"))
FIGURES: dict[str, FigureResult] = {f["name"]: MADE_UP["read"](f) for f in MADE_UP["figures"]()}


def test_a_caption_has_epsilon_with_its_delta_and_adjacency() -> None:
    said = privacy(FIGURES["synthetic-private"])
    assert said.startswith("ε = 7.04 (pld), 9.91 (moments); δ = 0.0029, zero-out adjacency.")
    assert said.endswith("its seeded noise protects nobody.")
    assert note(FIGURES["synthetic-private"]).endswith(said)


def test_one_of_ones_own_is_told_by_the_tightest_bound_alone() -> None:
    mine = replace(FIGURES["synthetic-private"], paper="", group="own")
    assert privacy(mine).startswith("ε = 7.04 (pld); δ")


def test_several_are_told_each_with_its_curve_and_many_as_a_range() -> None:
    figure = FIGURES["synthetic-private"]
    one = figure.curves[1]
    other = replace(one, label="stricter", epsilon={"pld": 1.0, "moments": 2.0})
    said = privacy(replace(figure, curves=(one, other)))
    assert "ε = 7.04 (pld), 9.91 (moments) for DP-FTS-DE, ε = 9.91; ε = 1.00 (pld)" in said
    assert "2.00 (moments) for stricter; δ" in said
    assert "ε from 1.13 to 10.38 (pld), 2.16 to 15.17 (moments)" in privacy(
        FIGURES["landmine-tradeoff"]
    )


def test_what_is_sent_unprotected_is_named() -> None:
    assert "ε = ∞ for FTS, FTS-DE." in privacy(FIGURES["landmine-tradeoff"])


def test_where_nothing_is_private_nothing_is_said_of_privacy() -> None:
    assert privacy(FIGURES["terms-of-the-bound"]) == ""


def test_bands_are_named_only_where_there_are_any() -> None:
    assert "standard error" in note(FIGURES["benefit-of-de"])
    assert "standard error" not in note(FIGURES["terms-of-the-bound"])
