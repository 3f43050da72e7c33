"""What a study promises, in numbers and in words, for each trust mode."""

from __future__ import annotations

import math
import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scipy.special import ndtr
from tests.unit.flower.secured import AGENTS, study_file

from sottovoce.errors import InvalidInput, LedgerError
from sottovoce.federation.aggregate import planned_event
from sottovoce.federation.server import Server
from sottovoce.flower.deploy.project import make_project, study_with
from sottovoce.flower.site.paying import enter
from sottovoce.flower.statement.page import as_html, as_markdown, statement_of
from sottovoce.flower.statement.promise import (
    Promise,
    promise_of,
    revealed,
    stricter,
    study_in,
)
from sottovoce.flower.statement.words import Rows, bound, percent, sentences
from sottovoce.flower.studyfile import StudyFile, study_from
from sottovoce.privacy.accountant import epsilon, replace_one
from sottovoce.privacy.events import SharedGaussian
from sottovoce.privacy.purse import Limits
from sottovoce.privacy.pursefile import Purse

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Of four sites with a trusted coordinator."""
    make_project(tmp_path / "trial", agents=4, rounds=5, epsilon=2.0)
    return tmp_path / "trial"


def trusting(project: Path, **settings: Any) -> Promise:
    return promise_of(study_with(project, **settings))


def written(promise: Promise, folder: Path) -> str:
    return as_markdown(statement_of(promise, folder / "study.toml", NOW))


def test_the_numbers_are_the_accountants(project: Path) -> None:
    promise = trusting(project)
    events = [planned_event(promise.study, "")] * promise.releases
    assert promise.site.epsilon == epsilon(events, 1e-5)
    assert promise.record.epsilon == replace_one(events, 1e-5)
    assert promise.site.epsilon <= 2.0 < promise.record.epsilon


def test_how_often_a_guess_is_right_is_that_of_two_gaussians(project: Path) -> None:
    promise = trusting(project)
    apart = math.sqrt(promise.releases) / promise.noise
    assert promise.site.right == pytest.approx(ndtr(apart / 2), abs=1e-6)
    assert promise.site.right >= ndtr(apart / 2)  # never said to be less than it is
    assert promise.record.right == pytest.approx(ndtr(apart), abs=1e-6)


def test_of_sampled_sites_a_guess_is_bounded_by_what_epsilon_allows(project: Path) -> None:
    data = tomllib.loads((project / "study.toml").read_text())
    data["study"] |= {"method": "dp-fts", "participation": 0.5, "rounds": 2, "epsilon": 3.0}
    promise = promise_of(study_from(data, noise=2.0))
    assert promise.participation == 0.5
    e = promise.site.epsilon
    assert promise.site.right == pytest.approx((math.exp(e) + 1e-5) / (math.exp(e) + 1))


def test_who_would_have_to_collude_follows_from_the_terms_of_the_sum() -> None:
    file = study_file()
    promise = promise_of(file)
    league = promise.league
    assert league is not None
    assert (league.members, league.threshold) == (AGENTS, file.terms.committee.threshold)
    assert (league.twice, league.fewest) == (file.terms.committee.twice, file.terms.fewest)
    assert league.roster == (file.roster.digest if file.roster else None)
    assert isinstance(promise.event, SharedGaussian)
    alone = promise.event.counting_on(1)
    assert alone is not None
    assert league.opened[0].epsilon == epsilon([alone] * promise.releases, file.delta)
    assert league.opened[1].epsilon == replace_one([alone] * promise.releases, file.delta)
    assert league.opened[0].epsilon > promise.site.epsilon
    assert not promise.draft


def test_a_statement_where_the_coordinator_is_trusted_says_that_it_sees_everything(
    project: Path,
) -> None:
    text = written(trusting(project), project)
    assert "without noise, over TLS, to the coordinator" in text
    assert "who is **trusted**" in text
    assert "| the coordinator, alone or with anybody | reads this site's vectors" in text
    assert text.count("none holds") == 2
    assert "are seen by the coordinator" in text
    for word in ("committee", "shares", "sealed", "not trusted", "in league"):
        assert word not in text


def test_a_statement_where_nobody_is_trusted_says_who_could_open_what(tmp_path: Path) -> None:
    (tmp_path / "study.toml").touch()
    promise = promise_of(study_file())
    text = written(promise, tmp_path)
    assert promise.league is not None
    opened = bound(promise.league.opened[0].epsilon)
    assert "who are **not trusted**" in text
    assert "the coordinator and 4 of the 5 members of the committee | open single" in text
    assert f"| {opened} |" in text
    assert "the coordinator and 3 members that answer twice" in text
    assert "A release needs 4 of 5 sites" in text
    assert promise.league.roster in text
    assert "seen by nobody but this site" in text
    for word in ("is **trusted**", "without noise, over TLS", "none holds", "draft"):
        assert word not in text


def test_a_coordinator_may_leave_out_others_and_their_noise_is_not_promised_twice(
    tmp_path: Path,
) -> None:
    (tmp_path / "study.toml").touch()
    promise = promise_of(study_file())  # of five sites two are not counted on
    league, event = promise.league, promise.event
    assert league is not None
    assert isinstance(event, SharedGaussian)
    # a release needs four: one is left out, two of the four tell their noise, and two are left
    two = event.counting_on(AGENTS - (AGENTS - league.fewest) - league.unreliable)
    assert two is not None
    assert two.unreliable == 3
    assert league.left_out is not None
    site, record = league.left_out
    assert site.epsilon == epsilon({two: promise.releases}, 1e-5) > promise.site.epsilon
    assert record.epsilon == replace_one({two: promise.releases}, 1e-5) > promise.record.epsilon
    text = written(promise, tmp_path)
    within = f"{bound(promise.site.epsilon)} | {bound(promise.record.epsilon)}"
    beyond = f"{bound(site.epsilon)} | {bound(record.epsilon)}"
    without = r"sites?, while it leaves out 1 other [^\n]*"
    assert re.search(rf"the coordinator and up to 1 {without}{re.escape(within)}", text)
    assert re.search(rf"the coordinator and 2 {without}{re.escape(beyond)}", text)
    assert "or careless with their noise are 2 at most, all together" in text


def test_where_none_may_be_absent_none_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "study.toml").touch()
    promise = promise_of(study_file(unreliable=1))
    assert promise.league is not None
    assert (promise.league.absent, promise.league.fewest) == (0, AGENTS)
    assert promise.league.left_out is not None
    assert promise.league.left_out == (promise.site, promise.record)
    text = written(promise, tmp_path)
    assert "the coordinator and up to 1 site |" in text
    assert "leaves out" not in text


def test_the_three_questions_have_a_heading_each(project: Path) -> None:
    heads = re.findall(r"(?m)^## (.*)$", written(trusting(project), project))
    assert heads == [
        "Purpose",
        "What leaves the site",
        "Who sees it",
        "What is promised",
        "What if they collude",
        "What is not covered",
        "What is kept, and how long",
        "Versions and digests",
        "Decision",
    ]


def test_a_cadence_is_said_to_hide_time_and_without_one_time_is_not_covered(project: Path) -> None:
    data = tomllib.loads((project / "study.toml").read_text())
    assert "Timing: how long trials take" in written(promise_of(study_from(data)), project)
    data["study"]["cadence"] = 60
    text = written(promise_of(study_from(data)), project)
    assert "Timing:" not in text
    assert "whether trials took more than 60 seconds each" in text


def test_a_study_whose_keys_are_not_listed_is_a_draft(tmp_path: Path) -> None:
    make_project(tmp_path / "draft", agents=6, rounds=4, epsilon=2.0)
    file, path = study_in(tmp_path / "draft")
    promise = promise_of(file)
    assert promise.draft
    assert "**A draft:**" in as_markdown(statement_of(promise, path, NOW))


def test_what_was_spent_so_far_is_on_it_where_the_folder_knows(
    project: Path, tmp_path: Path
) -> None:
    file, path = study_in(project)
    (project / "coordinator").mkdir()
    (project / "site").mkdir()
    server = Server(file.study, project / "coordinator" / "ledger.db", file.budget)
    server.open_round()
    server.close_round()
    spent, head = epsilon(server.events, file.delta), server.chain[-1]
    server.close()
    purse = Purse.new(tmp_path / "purse.db", Limits(9.0, 1e-5))
    enter(file.study, project / "site", "trial", purse.path)
    text = as_markdown(statement_of(promise_of(file), path, NOW))
    assert f"spent so far, 1 of {len(file.study.release_rounds)} releases" in text
    assert f"ε = {bound(spent)} for a site" in text
    assert head in text
    assert purse.look()[1].digest in text
    purse.path.unlink()
    with pytest.raises(LedgerError, match="what the purse holds cannot be told"):
        statement_of(promise_of(file), path, NOW)


def test_the_page_is_safe_whatever_parameters_are_called(project: Path) -> None:
    data = tomllib.loads((project / "study.toml").read_text())
    data["space"]["parameters"][0]["name"] = "<script>alert(1)</script>"
    page = as_html(statement_of(promise_of(study_from(data)), project / "study.toml", NOW))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "Content-Security-Policy" in page
    assert "http" not in re.sub(r"http-equiv", "", page)


def test_the_page_and_the_text_say_the_same(project: Path) -> None:
    statement = statement_of(trusting(project), project / "study.toml", NOW)
    page, text = as_html(statement), as_markdown(statement)
    for section in statement.sections:
        assert f"<h2>{section.title}</h2>" in page
        for block in section.blocks:
            if isinstance(block, Rows):
                assert all(len(row) == len(block.heads) for row in block.rows)
                assert f"| {' | '.join(block.heads)} |" in text


def test_sentences_for_a_terminal_say_to_whom_and_against_whom(project: Path) -> None:
    words = sentences(trusting(project))
    starts = ["4 sites", "To a site", "To a person", "Against", "Not against"]
    assert [w[: len(s)] for w, s in zip(words, starts, strict=True)] == starts
    assert "the coordinator and the host of its link" in words[-1]
    assert "4 of the 5 members" in sentences(promise_of(study_file()))[-1]


def test_stricter_costs_noise_and_reveals_less(project: Path) -> None:
    rows = stricter(project / "study.toml")
    assert [row.epsilon for row in rows] == [2.0, 1.0, 0.5]
    assert rows[0].noise < rows[1].noise < rows[2].noise
    shares = [row.revealed for row in rows]
    assert all(share is not None for share in shares)
    assert shares == sorted(shares, key=lambda share: -(share or 0))


def test_what_is_revealed_is_what_the_plan_says(project: Path) -> None:
    from sottovoce.lab.experiments.forecast import forecast

    study = study_with(project).study
    found = forecast(study, 1e-5, 0)
    assert revealed(study) == pytest.approx(found["revealed"])


@pytest.mark.parametrize(("value", "shown"), [(1.991, "2.00"), (2.0, "2.00"), (math.inf, "∞")])
def test_an_epsilon_is_never_shown_below_what_it_is(value: float, shown: str) -> None:
    assert bound(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "50.0 %"), (0.9731, "97.4 %"), (0.99999, "more than 99.9 %")]
)
def test_a_share_is_never_shown_below_what_it_is(value: float, shown: str) -> None:
    assert percent(value) == shown


def test_a_path_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has no study\.toml"):
        study_in(tmp_path)
    with pytest.raises(InvalidInput, match="is not there"):
        study_in(tmp_path / "missing.toml")


def test_aggregators_take_the_committees_place_in_the_words(tmp_path: Path) -> None:
    make_project(tmp_path / "many", agents=12, rounds=4, epsilon=2.0)
    data = tomllib.loads((tmp_path / "many" / "study.toml").read_text())
    data["study"]["aggregators"] = 3
    file: StudyFile = study_from(data)
    text = written(promise_of(file), tmp_path / "many")
    assert "the coordinator and all 3 aggregators" in text
    assert "split into 3 shares" in text
    assert "answer twice" not in text
