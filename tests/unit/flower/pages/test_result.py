from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.flower.pages.elements import Elements, words
from tests.unit.flower.pages.made_up import HOSTILE, coordinator, site, whole_site, with_earlier

from sottovoce.flower.pages.result import result_page, write_page
from sottovoce.flower.result.data import CoordinatorResult, SiteResult


@pytest.mark.parametrize("result", [site(), whole_site(), coordinator()])
def test_a_page_is_whole_asks_for_nothing_and_runs_nothing(
    result: SiteResult | CoordinatorResult,
) -> None:
    page = result_page(result)
    seen = Elements(page).seen
    assert "script" not in [tag for tag, _ in seen]
    assert not any(key in found for _, found in seen for key in ("src", "style", "onclick"))
    links = [found["href"] for _, found in seen if "href" in found]
    assert all(str(link).startswith(("#", "data:")) for link in links)
    assert "default-src 'none'" in page
    assert "script-src" not in page
    assert page == result_page(result)


@pytest.mark.parametrize("result", [site(), whole_site(), coordinator()])
def test_headings_go_down_step_by_step_and_drawings_have_words(
    result: SiteResult | CoordinatorResult,
) -> None:
    seen = Elements(result_page(result)).seen
    levels = [int(tag[1]) for tag, _ in seen if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert set(levels[1:]) == {2}
    for tag, found in seen:
        if tag == "svg":
            assert found.get("aria-hidden") == "true" or found.get("aria-label")


def test_a_site_sees_its_best_its_trials_what_mattered_and_both_epsilons() -> None:
    text = words(result_page(whole_site()))
    assert "The lowest value was 0.179, in trial 16; 16 trials, 1 of them without a value." in text
    assert "penalty 1.6 depth 16" in text
    assert "61 %" in text
    assert "ValueError: no patient 7 & " + HOSTILE in text  # as text, not as an element
    assert "A site 2.34 4.00" in text
    assert "A person 5.01" in text
    assert "δ = 1e-05" in text
    assert "ε = 1.66 is left" in text


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        (0.5, "is better than alone would have been expected to give: 0.5 after as many"),
        (0.1, "is worse than alone would have been expected to give"),
        (0.18, "is about what alone would have been expected to give"),
    ],
)
def test_beside_going_alone_nothing_is_claimed_that_one_study_cannot_tell(
    end: float, verdict: str
) -> None:
    found = whole_site()
    assert found.alone is not None
    ends = {"mean": end, "low": end - 0.02, "high": end + 0.02}
    curves: dict[str, Any] = {
        key: (*getattr(found.alone, key)[:-1], value) for key, value in ends.items()
    }
    text = words(result_page(replace(found, alone=replace(found.alone, **curves))))
    assert verdict in text
    assert f"between {end - 0.02:g} and {end + 0.02:g} in four of five cases" in text
    assert ("One study cannot tell whether sharing helped" in text) == ("about" in verdict)
    upside_down = replace(found, direction="maximize", alone=replace(found.alone, **curves))
    now, then = ("worse", "better") if "better" in verdict else ("better", "worse")
    opposite = verdict.partition(":")[0].replace(then, now)
    assert opposite in words(result_page(upside_down))


def test_trials_from_before_the_study_are_counted_drawn_at_the_edge_and_listed_apart() -> None:
    found = with_earlier(whole_site())
    page = result_page(found)
    text = words(page)
    assert "16 trials, 1 of them without a value, and 3 trials from before the study." in text
    assert "of 16, 1 failed; 3 from before" in text
    assert page.count("<title>before the study: ") == 3
    assert "none of them is a trial of the study" in text
    assert "The lowest value was 0.179, in trial 16" in text
    listed = page.partition("<details>")[2]
    assert listed.count("<tr") == 4
    assert HOSTILE not in page


def test_a_best_from_before_the_study_is_said_to_be_that() -> None:
    found = with_earlier(whole_site(), 0.1)
    page = result_page(found)
    assert "The lowest value was 0.1, in a trial from before the study" in words(page)
    assert "<td" in page
    assert "<b>" not in page.partition('id="trials"')[2]
    assert "before the study" not in result_page(whole_site())


def test_before_its_first_trial_a_site_sees_what_it_brought_along() -> None:
    page = result_page(with_earlier(site(())))
    assert page.count("<title>before the study: ") == 3
    assert "The best value so far goes from 0.25 to 0.25" in page


def test_without_values_the_page_says_so() -> None:
    text = words(result_page(site((None, None))))
    assert "no best parameters yet" in text
    assert "No trial has given a value yet." in text
    assert "Not told: it takes 5 values" in text
    empty = words(result_page(replace(site(()), best=None)))
    assert "0 of 16 trials so far" in empty


def test_a_far_off_trial_does_not_flatten_the_curve_and_stands_at_the_edge() -> None:
    page = result_page(site())
    assert page.count('class="trial hollow') == 1
    ticks = [float(t) for t in re.findall(r'class="tick y"[^>]*>([\d.]+)<', page)]
    assert max(ticks) < 1


def test_a_coordinator_sees_who_took_part_and_no_value_of_anybody() -> None:
    found = coordinator()
    text = words(result_page(found))
    assert "The study is not over." in text
    assert "2 2 2026-11-18 16:09 UTC 3 1 0 1 –" in text
    assert "best" not in text.lower().replace("best parameters", "")
    stopped = replace(found, stopped=f"nobody came {HOSTILE}", over=True, done=4)
    text = words(result_page(stopped))
    assert "4 of 5 sites have run all trials" in text
    assert f"Stopped: nobody came {HOSTILE}" in text


def test_noise_without_bound_is_said_to_be_infinite_and_a_simulation_to_protect_nobody() -> None:
    found = replace(site(), epsilon=float("inf"), replace_one=float("inf"), simulation=True)
    text = words(result_page(found))
    assert "ε for a site ∞" in text
    assert "A person ∞" in text
    assert "its seeded noise protects nobody" in text


def test_the_file_is_for_its_user_alone_and_a_lone_surrogate_does_not_stop_it(
    tmp_path: Path,
) -> None:
    path = write_page(replace(site(), study="\ud800"), tmp_path)
    assert path == tmp_path / "result.html"
    assert path.stat().st_mode & 0o077 == 0
    assert b"?" in path.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["result.html"]
