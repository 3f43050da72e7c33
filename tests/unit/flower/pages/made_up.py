"""Results that nobody measured, for pages to show; one of them means ill."""

from __future__ import annotations

from dataclasses import replace

from sottovoce.flower.result.data import (
    Alone,
    Best,
    CoordinatorResult,
    EarlierTrial,
    RoundResult,
    SiteResult,
    TrialResult,
)
from sottovoce.flower.result.site import best_of, best_so_far, known_before

HOSTILE = "<script>alert('\"&')</script>"
VALUES = (0.31, 0.42, None, 0.28, 0.29, 0.21, 9.5, 0.2, 0.19, 0.195, 0.187, 0.1875)


def site(values: tuple[float | None, ...] = VALUES, name: str = "clinic-a") -> SiteResult:
    """Twelve of sixteen trials; the third failed, the seventh is far off."""
    trials = tuple(
        TrialResult(
            k,
            {"penalty": 0.1 * k, "depth": k, "kernel": HOSTILE},
            value,
            f"2026-11-18T16:{k:02}:00+00:00",
            0 if k < 5 else 2,
            "ValueError: no patient 7 & " + HOSTILE if value is None else None,
        )
        for k, value in enumerate(values, 1)
    )
    known = [(trial, trial.value) for trial in trials if trial.value is not None]
    best = min(known, key=lambda each: each[1], default=None)
    return SiteResult(
        study="ridge",
        fingerprint="29b775551f80" * 4,
        site=name,
        agent=0,
        method="sottovoce",
        direction="minimize",
        over=False,
        simulation=False,
        planned=16,
        initial=4,
        best=None if best is None else Best(best[0].params, best[1], best[0].number),
        trials=trials,
        failed=values.count(None),
        best_so_far=best_so_far(values, -1.0),
        alone=None,
        importance=None,
        importance_by="not told: it takes 5 values that are not all the same",
        epsilon=2.34,
        replace_one=5.01,
        delta=1e-5,
        granted=4.0,
        accountant="pld",
        adjacency="zero-out",
        releases=2,
        releases_planned=4,
    )


def whole_site() -> SiteResult:
    """A study that is over, with its model of going alone."""
    found = site((*VALUES, 0.18, 0.183, 0.18, 0.179))
    mean = tuple(0.3 - 0.004 * k for k in range(16))
    low, high = (tuple(each + by for each in mean) for by in (-0.03, 0.03))
    return replace(
        found,
        over=True,
        alone=Alone(mean, low, high, 24, "the search gp alone, on drawn functions"),
        importance={"penalty": 0.61, "depth": 0.3, HOSTILE: 0.09},
        importance_by="total Sobol' indices",
    )


def with_earlier(found: SiteResult, best: float = 0.25) -> SiteResult:
    """The same of a site that brought three trials along."""
    earlier = tuple(
        EarlierTrial(7 * k, {"penalty": 0.1 * k, "depth": k, "kernel": HOSTILE}, best + 0.1 * k)
        for k in range(3)
    )
    values = [trial.value for trial in found.trials]
    return replace(
        found,
        earlier=earlier,
        best=best_of(found.trials, -1.0, earlier),
        best_so_far=best_so_far(values, -1.0, known_before(earlier, -1.0)),
    )


def coordinator() -> CoordinatorResult:
    """Two of four releases; one site was absent, and one refused, in the second."""
    return CoordinatorResult(
        study="ridge",
        fingerprint="29b775551f80" * 4,
        method="sottovoce",
        agents=5,
        trials=16,
        over=False,
        stopped=None,
        done=None,
        rounds=(
            RoundResult(0, "2026-11-18T16:05:00+00:00", 5, 5, 0, 0, 0, 0),
            RoundResult(2, "2026-11-18T16:09:00+00:00", 4, 3, 1, 0, 1, None),
        ),
        releases=2,
        releases_planned=4,
        epsilon=2.34,
        replace_one=5.01,
        delta=1e-5,
        granted=4.0,
        accountant="pld",
        adjacency="zero-out",
    )
