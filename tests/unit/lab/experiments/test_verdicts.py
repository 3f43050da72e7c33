from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.figure import Claim
from sottovoce.lab.experiments.results import ClaimResult, Share, Summary
from sottovoce.lab.experiments.runner import summarise
from sottovoce.lab.experiments.store import RunResult
from sottovoce.lab.experiments.verdicts import better_than, interval_of, judge, measured, needed


def run(regret: NDArray[np.float64], clipped: float = 0.0) -> RunResult:
    """A run of one agent with the given regret after 0..T queries."""
    nothing = np.zeros((1, 1))
    cut = np.full(3, clipped)
    return RunResult(regret[None], nothing[..., None], nothing, cut, cut, np.asarray(0.1))


def runs(level: float, spread: float = 0.0, count: int = 8, rounds: int = 10) -> list[RunResult]:
    """Runs that share their luck across curves and add a little of their own."""
    luck = np.random.default_rng(0).standard_normal(count)
    own = np.random.default_rng(int(1000 * level)).standard_normal(count)
    return [run(np.full(rounds + 1, level + 0.5 * luck[k] + spread * own[k])) for k in range(count)]


def verdict(claim: Claim, **results: list[RunResult]) -> ClaimResult:
    return judge(claim, results, {})


def test_a_difference_beyond_the_noise_holds_or_does_not_according_to_its_sign() -> None:
    claim = better_than("one", "two", "better")
    low, high = runs(1.0, 0.01), runs(1.2, 0.01)
    found = verdict(claim, one=low, two=high)
    assert found.verdict == "holds"
    assert found.measured == pytest.approx(0.2, abs=0.02)
    assert 0 < found.stderr < 0.02
    assert verdict(claim, one=high, two=low).verdict == "does not hold"


def test_a_factor_asks_for_a_regret_below_so_much_of_the_others() -> None:
    low, high = runs(10.0, 0.01), runs(20.0, 0.01)  # half, but for luck
    for factor, expected in ((1.0, "holds"), (0.6, "holds"), (0.4, "does not hold")):
        claim = Claim("so much better", "-", better="one", than="two", factor=factor)
        found = verdict(claim, one=low, two=high)
        assert found.verdict == expected
        assert found.measured == pytest.approx(factor * 20.0 - 10.0, abs=0.4)
    even = Claim("half", "-", better="one", than="two", factor=0.5)
    assert verdict(even, one=low, two=high).verdict == "within noise"


def test_without_a_factor_a_claim_asks_for_a_regret_below_the_others() -> None:
    assert better_than("one", "two", "better").factor == 1.0


def test_runs_are_compared_one_by_one_so_that_shared_luck_cancels() -> None:
    # the luck of a run is far larger than the difference; only pairing can see it
    claim = better_than("one", "two", "better")
    one, two = runs(1.0, 0.01), runs(1.05, 0.01)
    assert verdict(claim, one=one, two=two).verdict == "holds"
    assert verdict(claim, one=one, two=list(reversed(two))).verdict == "within noise"


def test_a_difference_inside_the_noise_is_said_to_be_so() -> None:
    claim = better_than("one", "two", "better")
    assert verdict(claim, one=runs(1.0, 0.3), two=runs(1.01, 0.3)).verdict == "within noise"


def test_a_single_run_can_settle_nothing() -> None:
    claim = better_than("one", "two", "better")
    found = verdict(claim, one=runs(1.0, count=1), two=runs(9.0, count=1))
    assert (found.verdict, found.stderr) == ("within noise", 0.0)


def test_comparable_means_within_a_margin_beyond_doubt() -> None:
    near = Claim("alike", "similar", comparable="one", than="two", margin=0.1)
    assert verdict(near, one=runs(1.0, 0.01), two=runs(1.02, 0.01)).verdict == "holds"
    assert verdict(near, one=runs(1.0, 0.01), two=runs(1.5, 0.01)).verdict == "does not hold"
    assert verdict(near, one=runs(1.0, 0.3), two=runs(1.02, 0.3)).verdict == "within noise"


def test_the_interval_covers_as_often_as_it_says() -> None:
    random, claim = np.random.default_rng(5), better_than("one", "two", "")
    wrong = 0
    for _ in range(1000):
        one, two = ([run(np.full(3, v)) for v in random.standard_normal(5)] for _ in range(2))
        wrong += verdict(claim, one=one, two=two).verdict != "within noise"
    assert 20 <= wrong <= 85  # 5 % of 1000, with room for chance


def test_measures_look_at_the_whole_the_end_the_beginning_or_one_moment() -> None:
    falling = [run(np.asarray([9.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]))]
    assert measured(falling, "mean") == pytest.approx(2.5)
    assert measured(falling, "final") == pytest.approx(0.0)
    assert measured(falling, "first") == pytest.approx(3.0)
    assert measured(falling, 0) == pytest.approx(9.0)
    assert measured(falling, 4) == pytest.approx(2.0)


def test_a_number_is_held_against_the_papers() -> None:
    claim = Claim("ε", "9.91", quantity="moments", of="one", value=9.91, tolerance=0.005)
    config = RunConfig(agents=4, rounds=2)
    summary = summarise(config, [run(np.ones(3))])

    def spent(**epsilon: float | None) -> dict[str, Summary]:
        return {"one": replace(summary, epsilon_by_accountant=epsilon)}

    assert judge(claim, {"one": []}, spent(moments=9.908)).verdict == "holds"
    assert judge(claim, {"one": []}, spent(moments=9.95)).verdict == "does not hold"
    for nothing in (spent(), spent(moments=None)):
        with pytest.raises(InvalidInput, match="has no 'moments'"):
            judge(claim, {"one": []}, nothing)


def test_the_share_of_clipped_vectors_comes_from_the_runs() -> None:
    claim = Claim(
        "few", "0.8 %", quantity="clipped_fraction", of="one", value=0.008, tolerance=0.002
    )
    few = [run(np.ones(3), clipped=c) for c in (0.007, 0.008, 0.009)]
    found = judge(claim, {"one": few}, {})
    assert found.verdict == "holds"
    assert found.text == "0.80% ± 0.06%, median over runs 0.80%"
    many = [run(np.ones(3), clipped=0.2)] * 3
    assert judge(claim, {"one": many}, {}).verdict == "does not hold"


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"better": "one"},
        {"better": "one", "comparable": "one", "than": "two"},
        {"quantity": "moments"},
        {"better": "one", "than": "two", "measure": "middle"},
        {"better": "one", "than": "two", "measure": -1},
        {"better": "one", "than": "two", "measure": 2.5},
        {"better": "one", "than": "two", "measure": True},
    ],
)
def test_a_claim_that_says_too_little_or_too_much_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Claim("something", "somewhere", **parts)


def test_a_difference_comes_with_its_interval_and_a_single_run_has_none() -> None:
    claim = better_than("one", "two", "better")
    found = verdict(claim, one=runs(1.0, 0.01), two=runs(1.2, 0.01))
    assert found.interval is not None
    low, high = found.interval
    assert 0 < low < found.measured < high
    # 2.365 is Student's t for 8 runs at 95 %
    assert high - found.measured == pytest.approx(2.365 * found.stderr, rel=1e-3)
    assert verdict(claim, one=runs(1.0, count=1), two=runs(9.0, count=1)).interval is None


def test_the_regret_at_the_end_can_be_compared_to_a_published_number() -> None:
    falling = [run(np.linspace(1.0, 0.25 + 0.01 * k, 11)) for k in (-1, 0, 1)]
    for value, expected in ((0.252, "holds"), (0.28, "does not hold")):
        claim = Claim("it ends there", "x", quantity="final", of="a", value=value, tolerance=0.005)
        found = verdict(claim, a=falling)
        assert found.verdict == expected
        assert found.measured == pytest.approx(0.25)
        assert found.stderr == pytest.approx(0.01 / 3**0.5)


def on_functions(*levels: tuple[float, ...]) -> list[RunResult]:
    """Runs of a constant regret: for each function its starts, in a row."""
    return [run(np.full(4, level)) for starts in levels for level in starts]


def test_by_function_each_has_a_verdict_over_its_starts() -> None:
    claim = better_than("one", "two", "better")
    zero = on_functions(*[(0.0, 0.0)] * 3)
    other = on_functions((1.0, 1.1), (0.5, -0.3), (-1.0, -1.1))  # holds, points that way, does not
    found = judge(claim, {"one": zero, "two": other}, {}, starts=2)
    assert found.share == Share(of=3, holds=1, towards=2, against=1)
    assert found.measured == pytest.approx(0.1 / 3)
    assert found.verdict == "within noise"
    assert "holds for 1 of 3 functions, does not for 1" in found.text
    assert judge(claim, {"one": zero, "two": other}, {}).share is None


def test_by_function_the_interval_is_over_functions_not_over_starts() -> None:
    claim = better_than("one", "two", "better")
    zero = on_functions(*[(0.0,) * 50] * 3)
    other = on_functions((1.0,) * 50, (0.5,) * 50, (-0.4,) * 50)
    assert judge(claim, {"one": zero, "two": other}, {}).verdict == "holds"
    assert judge(claim, {"one": zero, "two": other}, {}, starts=50).verdict == "within noise"


def test_by_function_likeness_and_numbers_have_shares_too() -> None:
    alike = Claim("alike", "-", comparable="one", than="two", margin=0.2)
    zero, other = on_functions((0.0, 0.0), (0.0, 0.0)), on_functions((0.1, 0.1), (0.5, 0.5))
    found = judge(alike, {"one": zero, "two": other}, {}, starts=2)
    assert found.share == Share(of=2, holds=1, towards=1, against=1)
    number = Claim("0.1", "-", quantity="final", of="two", value=0.1, tolerance=0.05)
    found = judge(number, {"two": other}, {}, starts=2)
    assert found.share == Share(of=2, holds=1, towards=1, against=1)


def test_regret_at_a_moment_is_held_against_the_papers() -> None:
    falling = [run(np.asarray([0.9, 0.5, 0.4]))] * 2
    for moment, value, expected in ((0, 0.9, "holds"), (1, 0.9, "does not hold")):
        claim = Claim(
            "then", "-", quantity="regret", measure=moment, of="one", value=value, tolerance=0.01
        )
        assert judge(claim, {"one": falling}, {}).verdict == expected


def test_what_a_summary_says_and_the_cause_go_with_the_verdict() -> None:
    claim = replace(better_than("one", "two", "better"), line="both", cause="the noise")
    found = verdict(claim, one=runs(1.0), two=runs(1.2))
    assert (found.line, found.cause) == ("both", "the noise")


def test_accounted_as_another_kind_of_sampling_the_loss_is_that_ones() -> None:
    fixed = RunConfig(agents=29, rounds=60, changes={"participation": 0.35, "sampling": "fixed"})
    poisson = replace(fixed, changes={"participation": 0.35})
    some = [run(np.ones(61))]
    sound, as_if, other = (
        summarise(fixed, some).epsilon_by_accountant["rdp"],
        summarise(fixed, some, "poisson").epsilon_by_accountant["rdp"],
        summarise(poisson, some).epsilon_by_accountant["rdp"],
    )
    assert sound is not None
    assert as_if is not None
    assert as_if == other
    assert as_if == pytest.approx(13.78, abs=0.005)
    assert sound > 10 * as_if


def test_as_many_runs_as_are_said_to_be_needed_settle_a_claim_four_times_in_five() -> None:
    random = np.random.default_rng(0)
    scale, shift = 1.0, 0.5
    # a sample whose mean and spread are those of what it is drawn from
    sample = np.asarray([-1.0, 1.0, -1.0, 1.0])
    count = needed(shift + scale * sample / sample.std(ddof=1), shift)
    assert count is not None
    told = [
        mean - reach > 0
        for mean, _, reach in map(interval_of, random.normal(shift, scale, (2000, count)))
    ]
    assert 0.77 < np.mean(told) < 0.85


def test_what_more_runs_would_hardly_tell_has_no_number() -> None:
    assert needed(np.asarray([1.0, -1.0]), 0.0) is None
    assert needed(np.asarray([1.0]), 1.0) is None


def each(levels: list[float]) -> list[RunResult]:
    """Runs whose regret is the same throughout."""
    return [run(np.full(4, level)) for level in levels]


def test_an_open_verdict_says_how_many_runs_would_settle_it_and_a_settled_one_nothing() -> None:
    claim = Claim("a", "", better="us", than="them")
    apart = np.asarray([0.01, 0.06, -0.02])
    open_one = judge(claim, {"us": each([0.5 - d for d in apart]), "them": each([0.5] * 3)}, {})
    assert open_one.verdict == "within noise"
    assert f"about {open_one.needs} runs would settle it" in open_one.hint
    clear = judge(claim, {"us": each([0.1, 0.11, 0.1]), "them": each([0.5] * 3)}, {})
    assert (clear.needs, clear.hint) == (None, "")
    single = judge(claim, {"us": each([0.1]), "them": each([0.5])}, {})
    assert "take several runs" in single.hint
    same = judge(claim, {"us": each([0.4, 0.6]), "them": each([0.5] * 2)}, {})
    assert "more than 10,000 runs" in same.hint


def test_likeness_needs_runs_by_the_distance_to_its_margin() -> None:
    claim = Claim("a", "", comparable="us", than="them", margin=0.03)
    us, them = each([0.5, 0.54, 0.5]), each([0.5] * 3)
    near = judge(claim, {"us": us, "them": them}, {})
    far = judge(replace(claim, margin=0.02), {"us": us, "them": them}, {})
    assert near.needs is not None
    assert far.needs is not None
    assert near.needs < far.needs
