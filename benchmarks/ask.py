"""How long one agent thinks about its next query, ours against others, in one run on one thread.

    python benchmarks/ask.py [--repeats 30] [--seed 0] [--json FILE]

D = 2, M = 100 shared features, 70 observations. Three jobs: the agent's own posterior (draw from
the exact GP, maximise), the same with a warm-started kernel fit, and the server's broadcast φ(x)ᵀω
with P = 1 and P = 4 regions. Against

- a plain loop, the way the paper describes it: 1000 single-point evaluations, then 20 random
  starts of SciPy's L-BFGS-B with finite-difference gradients, each start bounded to its own box:
  "lean loop", with as little NumPy in an evaluation as there can be, and "same loop", where an
  evaluation is our own function at one point;
- BoTorch, where it can be imported: SingleTaskGP, draw_matheron_paths and
  optimize_posterior_samples (1024 raw points, 20 restarts), with and without fit_gpytorch_mll.

The loop maximises the very function ours does, and the maxima are compared.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sottovoce.acquisition.maximise import Drawn, RegionalDraw, over_boxes
from sottovoce.gp.features import Features, shared_features
from sottovoce.gp.fit import fit
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.posterior import PathwiseDraw, draw, pathwise_draw
from sottovoce.space.regions import Regions, equal_boxes

Floats = NDArray[Any]
Evaluate = Callable[[Floats], float]
D, M, SEEN, FREQUENCIES, CANDIDATES, STARTS = 2, 100, 70, 128, 1000, 20
LENGTHSCALE, NOISE = 0.2, 0.01
OTHERS = ("lean loop", "same loop")


def history(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """70 noisy observations of a random function: points (1, t, D), y (1, t), mask (1, t)."""
    points = rng.random((1, SEEN, D))
    K = covariance(Kernel(LENGTHSCALE), points, points) + NOISE * np.eye(SEEN)
    y = (np.linalg.cholesky(K) @ rng.standard_normal((1, SEEN, 1)))[..., 0]
    return points, y, np.ones((1, SEEN), bool)


def own_step(
    rng: np.random.Generator, kernel: Kernel, data: tuple[Floats, Floats, Floats]
) -> tuple[PathwiseDraw, float]:
    points, y, mask = data
    s, a = (rng.standard_normal((1, FREQUENCIES, n)) for n in (D, 2))
    drawn = pathwise_draw(kernel, points, y, mask, s, a, rng.standard_normal((1, SEEN)))
    return drawn, broadcast_step(rng, drawn, Regions((1,) * D))


def broadcast_step(rng: np.random.Generator, drawn: Drawn, regions: Regions) -> float:
    _, value = over_boxes(drawn, rng.random((1, CANDIDATES, D)), regions, STARTS)
    return float(value[0])


def loop(rng: np.random.Generator, evaluate: Evaluate, regions: Regions) -> float:
    """1000 evaluations one by one, then 20 random starts, each inside its own box."""
    best = max(evaluate(x) for x in rng.random((CANDIDATES, D)))
    lower, upper = regions.lower, regions.upper
    for start in rng.random((STARTS, D)):
        i = int(regions.index(start))
        bounds = list(zip(lower[i], upper[i], strict=True))
        result = minimize(lambda x: -evaluate(x), start, bounds=bounds, method="L-BFGS-B")
        best = max(best, -float(result.fun))
    return best


def plain_broadcast(features: Features, regions: Regions, weights: Floats) -> Evaluate:
    s, b, splits = features.frequencies, features.phases, regions.splits

    def evaluate(x: Floats) -> float:
        i = 0
        for value, slices in zip(x, splits, strict=True):
            i = i * slices + min(int(value * slices), slices - 1)
        wave = np.cos(s @ x + b)
        return float(weights[i] @ wave / np.sqrt(wave @ wave))

    return evaluate


def plain_own(drawn: PathwiseDraw) -> Evaluate:
    s, b, c = drawn.frequencies[0], drawn.phases[0], drawn.amplitudes[0]
    points, v, length = drawn.points[0], drawn.coefficients[0], drawn.kernel.lengthscale

    def evaluate(x: Floats) -> float:
        near = np.exp(-0.5 * np.sum(((x - points) / length) ** 2, axis=1))
        return float(c @ np.cos(s @ x + b) + v @ near)

    return evaluate


class Row:
    """Times of ours and of one other for the same job, and by how much ours reached higher."""

    def __init__(self, job: str, other: str) -> None:
        self.job, self.other = job, other
        self.times: tuple[list[float], list[float]] = ([], [])
        self.gains: list[float] = []

    def summary(self) -> dict[str, Any]:
        """Medians, their ratio, and how often ours reached higher or as high."""
        ours, other = (1e3 * float(np.median(t)) for t in self.times)
        result = {"job": self.job, "other": self.other, "ours_ms": ours, "other_ms": other}
        result["ratio"] = other / ours
        if self.gains:
            gains = np.array(self.gains)
            result["mean_gain"] = float(gains.mean())
            result["better"] = float(np.mean(gains > 1e-6))
            result["equal"] = float(np.mean(np.abs(gains) <= 1e-6))
        return result


def timed(into: list[float], job: Callable[..., Any], *arguments: Any) -> Any:
    begun = time.perf_counter()
    result = job(*arguments)
    into.append(time.perf_counter() - begun)
    return result


def one_by_one(drawn: Drawn) -> Evaluate:
    """Our own function, asked for one point at a time."""
    return lambda x: float(drawn.values(x[None, None])[0, 0])


def loops(repeats: int, seed: int) -> list[Row]:
    """The jobs that have a plain loop to compare with."""
    rng = np.random.default_rng(seed)
    kernel, everywhere = Kernel(LENGTHSCALE, 1.0, NOISE), Regions((1,) * D)
    rows = [Row("own posterior", other) for other in OTHERS]
    for _ in range(repeats):
        data = history(rng)
        drawn, ours = timed(rows[0].times[0], own_step, rng, kernel, data)
        rows[1].times[0].append(rows[0].times[0][-1])
        for row, evaluate in zip(rows, (plain_own(drawn), one_by_one(drawn)), strict=True):
            row.gains.append(ours - timed(row.times[1], loop, rng, evaluate, everywhere))
    for regions in (equal_boxes(1, D), equal_boxes(4, D)):
        pair = [Row(f"broadcast, P = {regions.count}", other) for other in OTHERS]
        for i in range(repeats):
            features, weights = shared_features(i, M, D, LENGTHSCALE), sent(rng, regions, i)
            regional = RegionalDraw(features, regions, weights[None])
            ours = timed(pair[0].times[0], broadcast_step, rng, regional, regions)
            pair[1].times[0].append(pair[0].times[0][-1])
            ways = plain_broadcast(features, regions, weights), one_by_one(regional)
            for row, evaluate in zip(pair, ways, strict=True):
                row.gains.append(ours - timed(row.times[1], loop, rng, evaluate, regions))
        rows += pair
    return rows


def sent(rng: np.random.Generator, regions: Regions, i: int) -> Floats:
    """One agent's draw ω for each region, (P, M)."""
    points, y, _ = history(rng)
    phi = shared_features(i, M, D, LENGTHSCALE)(points)
    normals = rng.standard_normal((regions.count, M)), rng.standard_normal((regions.count, SEEN))
    return np.asarray(draw(phi, y, NOISE, *normals))


def against_botorch(repeats: int, seed: int) -> list[Row]:
    """Our step and BoTorch's on the same observations, without and with a fit."""
    try:
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.sampling.pathwise import draw_matheron_paths
        from botorch.utils.sampling import optimize_posterior_samples
        from gpytorch.mlls import ExactMarginalLogLikelihood
    except ImportError:
        return []
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    rows = [Row("own posterior", "BoTorch"), Row("own posterior, with fit", "BoTorch")]
    bounds = torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)
    warm: Kernel | None = None

    def theirs(data: tuple[Floats, Floats, Floats], with_fit: bool) -> None:
        model = SingleTaskGP(torch.tensor(data[0][0]), torch.tensor(data[1][0])[:, None])
        if with_fit:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        paths = draw_matheron_paths(model, sample_shape=torch.Size([1]))
        optimize_posterior_samples(paths, bounds, raw_samples=1024, num_restarts=STARTS)

    def ours(data: tuple[Floats, Floats, Floats], with_fit: bool) -> None:
        kernel = fit(*data, warm) if with_fit else Kernel(LENGTHSCALE, 1.0, NOISE)
        own_step(rng, kernel, data)

    for i in range(repeats + 1):
        data = history(rng)
        # the fit of a few observations ago, as an agent would have it
        warm = fit(data[0][:, :-5], data[1][:, :-5], data[2][:, :-5])
        for row, with_fit in zip(rows, (False, True), strict=True):
            times = row.times if i else ([], [])  # the first, with all its imports, is dropped
            timed(times[0], ours, data, with_fit)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                timed(times[1], theirs, data, with_fit)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Time one agent's next query.")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    rows = loops(arguments.repeats, arguments.seed)
    rows += against_botorch(arguments.repeats, arguments.seed)
    summaries = [row.summary() for row in rows]
    print(f"{'job':<22}{'against':<10}{'ours':>9}{'other':>11}{'ratio':>8}  maxima reached")
    for s in summaries:
        line = f"{s['job']:<22}{s['other']:<10}{s['ours_ms']:>6.2f} ms{s['other_ms']:>8.1f} ms"
        line += f"{s['ratio']:>7.0f}x"
        if "better" in s:
            line += (
                f"  better {s['better']:.0%}, equal {s['equal']:.0%}, mean {s['mean_gain']:+.1e}"
            )
        print(line)
    if arguments.json:
        arguments.json.write_text(json.dumps(summaries, indent=2) + "\n")


if __name__ == "__main__":
    main()
