"""What measurements say of a claim, by a paired test over runs.

Curves of one figure meet the same objectives, initial points and coins in each run, so they are
compared run by run: d_r is the difference in run r, and the claim is judged by the 95 % interval
of its mean (Student's t over runs). Where several runs in a row start anew on one function, the
interval is over functions, and each function has a verdict of its own, over its starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import t as student

from sottovoce.arrays import FloatArray
from sottovoce.errors import InvalidInput
from sottovoce.lab.experiments.figure import Claim
from sottovoce.lab.experiments.results import MOST, ClaimResult, Share, Summary, Verdict
from sottovoce.lab.experiments.store import RunResult

LEVEL = 0.95
POWER = 0.8  # the chance to settle a claim with as many runs as are said to be needed
FIRST = 5  # queries that count as the beginning


def measured(results: list[RunResult], measure: str | int) -> FloatArray:
    """One number a run, (R,): the regret averaged over agents, and over time as asked."""
    regret = np.asarray([result.regret.mean(axis=0) for result in results])
    if measure == "final":
        measure = regret.shape[1] - 1
    if isinstance(measure, int):
        return np.asarray(regret[:, measure])
    last = min(FIRST, regret.shape[1] - 1) if measure == "first" else regret.shape[1] - 1
    return np.asarray(regret[:, 1 : last + 1].mean(axis=1))


def judge(
    claim: Claim,
    results: Mapping[str, list[RunResult]],
    summaries: Mapping[str, Summary],
    starts: int = 1,
) -> ClaimResult:
    """Bear the claim out, refute it, or say that the runs cannot tell.

    starts: so many runs in a row are of one function.
    """
    judged = _judge_quantity if claim.quantity is not None else _judge_difference
    found = replace(judged(claim, results, summaries, starts), line=claim.line, cause=claim.cause)
    return (
        found if found.share is None else replace(found, text=f"{found.text}; {found.share.words}")
    )


def _judge_difference(
    claim: Claim,
    results: Mapping[str, list[RunResult]],
    _: Mapping[str, Summary],
    starts: int,
) -> ClaimResult:
    one, other = str(claim.better or claim.comparable), str(claim.than)
    ours, theirs = (measured(results[label], claim.measure) for label in (one, other))
    by_function = (claim.factor * theirs - ours).reshape(-1, starts)
    mean, error, reach = interval_of(by_function.mean(axis=1))
    rule = _compared if claim.better is not None else partial(_equal, margin=claim.margin)
    verdict = rule(mean, reach)
    text = f"{one}: {ours.mean():.4f}, {other}: {theirs.mean():.4f}"
    interval = (mean - reach, mean + reach) if math.isfinite(reach) else None
    share = None if starts == 1 else _share(by_function, rule)
    found = ClaimResult(claim.claim, claim.paper, mean, error, text, verdict, interval, share)
    if verdict != "within noise":
        return found
    away = abs(mean) if claim.better is not None else abs(claim.margin - abs(mean))
    return replace(found, needs=needed(by_function.mean(axis=1), away))


def needed(values: FloatArray, away: float) -> int | None:
    """So many runs would tell in four cases of five, if mean and spread are as they seem.

    values: what the runs there are have given; away: from their mean to where the verdict turns.
    None: more than anybody would ask for, or no spread to go by.
    """
    if len(values) < 2:
        return None
    spread = float(values.std(ddof=1))
    count = len(values) + 1
    while count <= MOST:
        quantiles = student.ppf((0.5 + LEVEL / 2, POWER), count - 1)
        if away >= float(quantiles.sum()) * spread / math.sqrt(count):
            return count
        count += max(1, count // 100)  # about: to the hundredth part
    return None


def _share(values: FloatArray, rule: Callable[[float, float], Verdict]) -> Share:
    """What each function by itself says, from its starts: (functions, starts)."""
    found = [rule(mean, reach) for mean, _, reach in map(interval_of, values)]
    towards = [rule(float(mean), 0.0) for mean in values.mean(axis=1)]
    counts = (found.count("holds"), towards.count("holds"), found.count("does not hold"))
    return Share(len(values), *counts)


def better_than(one: str, other: str, paper: str, measure: str = "mean") -> Claim:
    """The claim that one curve lies below another: on the whole, or at the end."""
    words = f"{one} is better than {other}" + (" at the end" if measure == "final" else "")
    return Claim(words, paper, better=one, than=other, measure=measure)


def interval_of(values: FloatArray) -> tuple[float, float, float]:
    """Mean, standard error, and half the width of the interval; infinite for a single run."""
    count = len(values)
    mean = float(values.mean())
    if count < 2:
        return mean, 0.0, math.inf
    error = float(values.std(ddof=1)) / math.sqrt(count)
    return mean, error, float(student.ppf(0.5 + LEVEL / 2, count - 1)) * error


def _compared(mean: float, reach: float) -> Verdict:
    if mean - reach > 0:
        return "holds"
    return "does not hold" if mean + reach < 0 else "within noise"


def _equal(mean: float, reach: float, margin: float) -> Verdict:
    if abs(mean) + reach < margin:
        return "holds"
    return "does not hold" if abs(mean) - reach > margin else "within noise"


def _judge_quantity(
    claim: Claim,
    results: Mapping[str, list[RunResult]],
    summaries: Mapping[str, Summary],
    starts: int,
) -> ClaimResult:
    label, quantity = str(claim.of), str(claim.quantity)
    error, each = 0.0, None  # one number a function, where it has several
    if quantity == "clipped_fraction":
        per_run = np.asarray([result.clipped.mean() for result in results[label]])
        each = per_run.reshape(-1, starts).mean(axis=1)
        value, error, _ = interval_of(each)
        # a rare draw of features has most vectors clipped, so the median tells more
        give = f" ± {error:.2%}" if len(each) > 1 else ""
        text = f"{value:.2%}{give}, median over runs {np.median(per_run):.2%}"
    elif quantity in ("final", "regret"):
        at = "final" if quantity == "final" else claim.measure
        each = measured(results[label], at).reshape(-1, starts).mean(axis=1)
        value, error, _ = interval_of(each)
        text = f"{value:.4f} ± {error:.4f}" if len(each) > 1 else f"{value:.4f}"
    else:
        spent = summaries[label].epsilon_by_accountant.get(quantity)
        if spent is None:
            raise InvalidInput(f"claim {claim.claim!r}: {label!r} has no {quantity!r}")
        value, text = spent, f"{spent:.2f}"
    near = abs(value - claim.value) <= claim.tolerance
    verdict: Verdict = "holds" if near else "does not hold"
    share = None
    if each is not None and starts > 1:
        count = int(np.sum(np.abs(each - claim.value) <= claim.tolerance))
        share = Share(len(each), count, count, len(each) - count)
    return ClaimResult(claim.claim, claim.paper, value, error, text, verdict, None, share)
