"""One mathematics: a run on PyTorch is the run on NumPy, given the same draws.

Skipped where PyTorch is not installed. Device "cpu" shows all but speed; where there is a GPU, it
is tried too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.given import Floats, GivenProblem, waves

from sottovoce.device import DeviceStream, device_named
from sottovoce.errors import InvalidInput
from sottovoce.federation.methods import METHODS, Method
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp.kernel import Kernel
from sottovoce.lab.problems import Problem
from sottovoce.lab.problems.synthetic import Synthetic
from sottovoce.privacy.release import Mechanism
from sottovoce.simulation import Draws, Outcome, simulate
from sottovoce.space import Category, Float, Integer, Space

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # the arrays are small: more threads only get in each other's way

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
LIST = Space([Float("x", 0.0, 1.0, steps=15), Integer("n", 1, 4)])
MIXED = Space([Float("x", 0.0, 1.0), Integer("n", 1, 4), Category("c", ("a", "b"))])
FIXED, FITTED = Surrogate(Kernel(0.3, 1.0, 0.01)), Surrogate(refit=2)


def hard(points: Floats) -> Floats:
    """Steep, and with pits in which trials fail."""
    total = points.sum(axis=-1)
    return np.where(np.floor(7 * total) % 4 == 1, np.nan, 100 * total)


def small(method: Method, **changes: Any) -> Method:
    if method.basis != "effects":  # whose number follows from the space
        changes["features"] = 24
    return replace(method, lengthscale=0.3, **changes)


def agree(method: Method, problem: Problem, device: str, agents: int = 20) -> Outcome:
    study = FederatedStudy(problem.setting.space, replace(method, initial=4), agents, 5)
    here = simulate(study, problem, Draws(3, 1, chunk=8))
    there = simulate(study, problem, Draws(3, 1, chunk=8), device=device, batch=7)
    for name in ("points", "truth", "observed", "optimum"):
        one, two = getattr(here, name), getattr(there, name)
        assert type(two) is np.ndarray
        assert np.allclose(one, two, rtol=0, atol=1e-8, equal_nan=True), name
    assert here.broadcasts.keys() == there.broadcasts.keys()
    for number, vectors in here.broadcasts.items():
        assert np.allclose(there.broadcasts[number], vectors, rtol=0, atol=1e-8)
    assert here.events == there.events
    for a, b in zip(here.diagnostics, there.diagnostics, strict=True):
        assert a.clipped == pytest.approx(b.clipped)  # a mean, which a GPU sums in another order
        assert a.signal_to_noise == pytest.approx(b.signal_to_noise)
    return here


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", METHODS)
def test_a_device_does_what_numpy_does_on_the_synthetic_problem(name: str, device: str) -> None:
    agree(METHODS[name], Synthetic(), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["ts", "gp", "fts", "dp-fts-de", "pooled-ts", "sottovoce"])
@pytest.mark.parametrize(
    ("space", "surrogate"),
    [(LIST, FIXED), (MIXED, FIXED), (MIXED, FITTED)],
    ids=["list", "mixed", "mixed-fitted"],
)
def test_a_device_does_what_numpy_does_on_any_problem(
    space: Space, surrogate: Surrogate, name: str, device: str
) -> None:
    method = small(METHODS[name])
    agree(method, GivenProblem(space, surrogate, waves), device, agents=9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("space", "name"),
    [(LIST, "ts"), (LIST, "dp-fts-de"), (MIXED, "ts"), (LIST, "pooled-ts"), (MIXED, "pooled-ts")],
    ids=["list-ts", "list-dp-fts-de", "mixed-ts", "list-pooled-ts", "mixed-pooled-ts"],
)
def test_a_device_does_what_numpy_does_when_trials_fail_and_repeats_are_replaced(
    space: Space, name: str, device: str
) -> None:
    problem = GivenProblem(space, Surrogate(Kernel(1.0, 1.0, 0.01), standardise=False), hard)
    method = small(METHODS[name])
    allowed = agree(method, problem, device)
    replaced = agree(replace(method, repeats="replace"), problem, device)
    assert 0 < np.isnan(replaced.truth).sum() < replaced.truth.size
    assert not np.array_equal(allowed.points, replaced.points)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["ts", "gp", "pooled-ts", "sottovoce"])
def test_each_agents_fitted_kernel_works_on_a_device_too(name: str, device: str) -> None:
    # eigenvectors may differ by more than rounding, so other points of the same posterior are drawn
    problem = GivenProblem(LIST, FITTED, waves)
    study = FederatedStudy(LIST, replace(METHODS[name], initial=4), 5, 3)
    outcome = simulate(study, problem, Draws(0, 0), device=device)
    assert np.allclose(LIST.snap(outcome.points), outcome.points)


def on_device(method: Method, device: str, run: int, **sizes: Any) -> Outcome:
    problem = Synthetic()
    study = FederatedStudy(problem.setting.space, method, 300, 6)
    return simulate(study, problem, Draws(0, run, on_device=True), device=device, **sizes)


@pytest.mark.parametrize("device", DEVICES)
def test_a_devices_own_draws_repeat_and_do_not_depend_on_the_group(device: str) -> None:
    private = METHODS["dp-fts-de"]
    first = on_device(private, device, 0)
    for again in (on_device(private, device, 0), on_device(private, device, 0, batch=70)):
        assert np.allclose(first.points, again.points, rtol=0, atol=1e-9)
        assert np.allclose(first.observed, again.observed, rtol=0, atol=1e-9)
    assert not np.allclose(first.observed, on_device(private, device, 1).observed)


@pytest.mark.parametrize("device", DEVICES)
def test_a_devices_own_draws_give_the_same_regret_on_average(device: str) -> None:
    # without noise in the sum, agents' own draws are all that is left to chance
    method = replace(METHODS["dp-fts-de"], mechanism=Mechanism(participation=1.0, noise=0.0))
    study = FederatedStudy(Synthetic().setting.space, method, 300, 6)
    for run in range(3):
        there = on_device(method, device, run)
        here = simulate(study, Synthetic(), Draws(0, run))
        for t in (0, 3, 6):
            a, b = here.simple_regret[:, t], there.simple_regret[:, t]
            assert abs(a.mean() - b.mean()) < 5 * np.sqrt((a.var() + b.var()) / 300) + 0.02
        assert np.std(there.observed - there.truth) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["gp", "fts", "dp-fts-de", "pooled-ts", "sottovoce"])
@pytest.mark.parametrize("space", [LIST, MIXED], ids=["list", "mixed"])
def test_a_devices_own_draws_do_for_problems_that_live_in_numpy(
    space: Space, name: str, device: str
) -> None:
    method = small(METHODS[name], initial=4)
    study, draws = FederatedStudy(space, method, 6, 3), Draws(0, 0, on_device=True)
    outcome = simulate(study, GivenProblem(space, FIXED, waves), draws, device=device)
    assert np.allclose(space.snap(outcome.points), outcome.points)
    assert np.all(np.isfinite(outcome.observed))


@pytest.mark.parametrize("device", DEVICES)
def test_a_devices_stream_has_the_distributions_it_names(device: str) -> None:
    place = device_named(device)
    stream = DeviceStream(place, 7)
    normal = place.numpy(stream.standard_normal((40, 500)))
    uniform = place.numpy(stream.random((40, 500)))
    whole = place.numpy(stream.integers(5, size=20000))
    assert normal.dtype == uniform.dtype == np.float64
    assert abs(normal.mean()) < 0.04
    assert normal.std() == pytest.approx(1, abs=0.03)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert uniform.mean() == pytest.approx(0.5, abs=0.02)
    assert np.bincount(whole, minlength=5) == pytest.approx(np.full(5, 4000), rel=0.1)


@pytest.mark.parametrize("name", ["nonsense", "cuda:99", "meta"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"device must be one that PyTorch finds.*{name!r}"):
        device_named(name)
