"""How well a consensus knows what agents have in common, release by release.

Usage: python benchmarks/consensus.py [--agents 100] [--epsilon 1] [--runs 4] [--problems few,levy]
       [--entry sottovoce/flat]

The correlation, over points of the whole space, of what all know after each release with the mean
of all agents' functions (each standardised; what fails counts as the worst), which nobody in a
federation can know; the mean over runs. *read as expected*: the same releases, with the variances
of effects that are expected before anything is heard in place of those that the releases bear out.
*basis*: the best that any weights of the effects could do. DESIGN problems of the suite, and no
TEST problem.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import check
from sottovoce.federation.parts.messages import with_failures
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.warp import warped
from sottovoce.lab.peers.together import Federation, study_of
from sottovoce.lab.problems import problem_named
from sottovoce.lab.problems.suite import names_in, problems
from sottovoce.simulation import Draws, simulate

Floats = NDArray[np.float64]
POINTS = 400
SEED = 3000  # nothing reported elsewhere was measured on it


def common_function(problem: str, study: FederatedStudy, run: int) -> tuple[Floats, Floats]:
    """Points of the cube (S, D), and the mean there of all agents' standardised functions (S,)."""
    random = np.random.default_rng(run)
    points = np.asarray(study.space.snap(random.random((POINTS, study.space.dims))))
    objectives = problem_named(problem).draw(study.agents, Draws(SEED, run).stream("objectives"))
    everywhere = np.ascontiguousarray(np.broadcast_to(points, (study.agents, *points.shape)))
    values = np.asarray(with_failures(objectives.values(everywhere)))
    mask = np.isfinite(values)
    y = np.where(mask, np.asarray(warped(values, mask)), 0.0)
    return points, y.sum(axis=0) / np.maximum(mask.sum(axis=0), 1)


def likeness(problem: str, entry: str, size: Federation, run: int) -> tuple[Floats, float, float]:
    """Correlations: after each release (k,), after the last read as expected, of the basis."""
    study, _ = study_of(problem, entry, size)
    study = replace(study, rounds=study.release_rounds[-1] + 1)
    outcome = simulate(study, problem_named(problem), Draws(SEED, run))
    study = replace(study, feature_seed=study.feature_seed + run)
    points, truth = common_function(problem, study, run)
    phi = np.asarray(study.effects(points))

    def like(weights: Floats) -> float:
        with np.errstate(invalid="ignore"):  # of what is the same everywhere: nothing is known
            return float(np.nan_to_num(np.corrcoef(phi @ weights, truth)[0, 1]))

    model = study.method.shared(study)
    model.hear(np.concatenate([vectors for _, vectors in sorted(outcome.broadcasts.items())]))
    states = [model.state(k + 1) for k in range(len(outcome.broadcasts))]
    last, expected = states[-1], study.consensus.before.variance
    as_expected = study.consensus.known(last.information, last.evidence, expected)
    best = np.linalg.solve(phi.T @ phi + 1e-6 * np.eye(phi.shape[1]), phi.T @ truth)
    return np.array([like(s.mean) for s in states]), like(as_expected.mean), like(best)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a consensus knows.")
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--problems", help="with commas between; default: all that have so many")
    parser.add_argument("--entry", default="sottovoce", help="or sottovoce/flat")
    asked = parser.parse_args()
    size = Federation(asked.agents, 30, asked.epsilon)
    design = problems("design")
    chosen = (
        names_in(asked.problems)
        if asked.problems
        else [
            name
            for name in design
            if (problem_named(name).setting.agents or asked.agents) >= asked.agents
        ]
    )
    for name in chosen:
        check(
            name.partition(":")[0] in {d.partition(":")[0] for d in design}, f"{name}: not DESIGN"
        )
    head = f"{'problem':<28} {'after 1':>8} {'2':>6} {'3':>6} {'4':>6}"
    print(f"{head} {'as expected':>12} {'basis':>6}")
    means = []
    for name in chosen:
        found = [likeness(name, asked.entry, size, run) for run in range(asked.runs)]
        after = np.mean([each[0] for each in found], axis=0)
        expected, basis = np.mean([each[1:] for each in found], axis=0)
        means.append([*after, expected, basis])
        _show(name, means[-1])
    _show("mean", list(np.mean(means, axis=0)))


def _show(name: str, row: list[float]) -> None:
    *after, expected, basis = row
    words = " ".join(f"{one:>6.3f}" for one in after)
    print(f"{name:<28}   {words} {expected:>12.3f} {basis:>6.3f}", flush=True)


if __name__ == "__main__":
    main()
