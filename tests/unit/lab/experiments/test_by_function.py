from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sottovoce.lab.experiments.figure import figure_from
from sottovoce.lab.experiments.reproduce import reproduce
from sottovoce.lab.report.files import read_figures

SMALL: dict[str, Any] = {
    "title": "Mine",
    "paper": "Fig. 1",
    "runs": 2,
    "common": {"agents": 4, "rounds": 2, "initial": 3, "features": 10, "participation": 0.5},
    "curves": [
        {"label": "alone", "method": "ts", "role": "reference"},
        {"label": "together", "method": "dp-fts-de", "regions": 2, "clip": 11.0},
        {
            "label": "as Poisson",
            "method": "dp-fts-de",
            "regions": 2,
            "clip": 11.0,
            "sampling": "fixed",
            "accounted": "poisson",
        },
    ],
    "claims": [
        {"claim": "it helps", "paper": "yes", "better": "together", "than": "alone"},
        {"claim": "few", "paper": "1 %", "quantity": "clipped_fraction", "of": "together"},
    ],
}


def test_each_function_is_met_from_several_starts_and_its_share_is_told(tmp_path: Path) -> None:
    figure = figure_from(SMALL, "mine").with_runs(None, 7).by_function(3)
    (result,) = reproduce([figure], tmp_path)
    assert (result.name, result.like, result.runs) == ("mine-by-function", "mine", 6)
    assert result.command == "sottovoce reproduce mine --functions 3 --runs 2 --seed 7"
    helps, few = result.claims[:2]
    for claim in (helps, few):
        assert claim.share is not None
        assert claim.share.of == 3
        assert claim.share.words in claim.text
    assert helps.interval is not None
    assert read_figures(tmp_path) == [result]
    manifests = [json.loads(p.read_text()) for p in tmp_path.glob("curves/*/manifest.json")]
    assert {manifest["starts"] for manifest in manifests} == {2}


def test_runs_of_one_function_share_it_and_differ_in_their_starts(tmp_path: Path) -> None:
    figure = figure_from(SMALL, "mine").by_function(2)
    reproduce([figure], tmp_path)
    (plain,) = reproduce([figure_from({**SMALL, "runs": 4}, "mine")], tmp_path)
    assert len(list(tmp_path.glob("curves/ts-*"))) == 2  # kept apart from runs that share nothing
    assert plain.claims[0].share is None


def test_a_curve_accounted_otherwise_has_that_loss_and_no_claims_of_its_own(
    tmp_path: Path,
) -> None:
    (result,) = reproduce([figure_from({**SMALL, "runs": 1}, "mine")], tmp_path)
    together, other = result.curves[1:]
    assert other.epsilon == together.epsilon
    assert other.parameters["accounted"] == "poisson"
    assert not [claim for claim in result.claims if claim.claim.startswith("as Poisson")]
