"""The suite's split never changes, and covers what it must."""

from __future__ import annotations

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.lab.problems import PROBLEMS
from sottovoce.lab.problems.suite import (
    DATA,
    FUNCTIONS,
    LEARNERS,
    check_design,
    names_in,
    problems,
    split_of,
)


def test_the_split_is_the_one_that_was_fixed_before_anything_was_measured() -> None:
    """A problem that has been looked at must not come back as one that has not."""
    assert FUNCTIONS["test"] == (
        *("camel", "shekel", "michalewicz", "griewank", "cliff", "ridge", "memory", "pipeline"),
    )
    assert LEARNERS["test"] == ("sgd", "mlp")
    assert DATA["test"] == ("cancer", "lines")
    for side in ("design", "test"):
        assert all(split_of(problem) == side for problem in problems(side))


@pytest.mark.parametrize("families", [FUNCTIONS, LEARNERS, DATA])
def test_no_family_is_on_both_sides_and_a_third_is_for_tests(
    families: dict[str, tuple[str, ...]],
) -> None:
    assert not set(families["design"]) & set(families["test"])
    assert 3 * len(families["test"]) >= len(families["design"]) + len(families["test"])


def test_every_function_of_the_suite_is_a_problem() -> None:
    assert {*FUNCTIONS["design"], *FUNCTIONS["test"]} <= set(PROBLEMS)


@pytest.mark.parametrize(
    ("problem", "side"),
    [
        ("bowl", "design"),
        ("bowl:shift=0.02", "design"),
        ("gp:dims=3", "design"),
        ("memory:noise=0", "test"),
        ("svm:data=wine", "design"),
        ("svm:data=cancer", "test"),
        ("mlp:data=digits,sites=10", "test"),
        ("landmine", None),
    ],
)
def test_a_problem_is_for_tests_if_any_of_its_families_is(problem: str, side: str | None) -> None:
    assert split_of(problem) == side


def test_a_test_problem_is_refused_where_methods_are_made() -> None:
    check_design("svm:data=wine")
    with pytest.raises(InvalidInput, match="final figures"):
        check_design("elasticnet:data=lines")


def test_commas_are_between_problems_and_between_options() -> None:
    text = "bowl,gp:dims=3,lengthscale=0.4,svm:data=wine,steep"
    assert names_in(text) == ["bowl", "gp:dims=3,lengthscale=0.4", "svm:data=wine", "steep"]
