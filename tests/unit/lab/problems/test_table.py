from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.terminal import exit_status

from sottovoce.device import Device, device_named
from sottovoce.errors import InvalidInput, StorageError, TrialError
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.problems import PROBLEMS, maketable
from sottovoce.lab.problems.design import design, held_out_design, powers_of
from sottovoce.lab.problems.maketable import make_table
from sottovoce.lab.problems.real import RealProblem
from sottovoce.lab.problems.table import (
    Table,
    TableObjectives,
    held_out_error,
    known_tables,
    load_table,
    read_table,
    rounded,
)
from sottovoce.lab.problems.training import Trainer
from sottovoce.lab.problems.workers import Here
from sottovoce.simulation.problem import Setting
from sottovoce.space import Category, Float, Integer, Space

Array = NDArray[np.float64]
SQUARE = Space([Float("x", 1.0, 2.0), Float("y", -5.0, 5.0)])
MIXED = Space([Integer("k", 128, 512), Float("x", 1e-6, 10.0, log=True), Float("y", 1.0, 2.0)])
WIDE = Space([Float("c", 1e-4, 10.0), Float("y", 1.0, 2.0)])


def plane(agents: NDArray[Any], points: Array) -> Array:
    """Scores that a linear interpolation knows exactly."""
    slopes = 0.5 / points.shape[-1] * np.arange(1, points.shape[-1] + 1) / points.shape[-1]
    return np.asarray(0.1 + agents / 10 + points @ slopes)


def bowl(agents: NDArray[Any], points: Array) -> Array:
    """Scores that it does not."""
    return np.asarray(1 - np.mean((points - 0.3 - agents[..., None] / 10) ** 2, axis=-1))


@dataclass(frozen=True)
class Formula:
    """A trainer that computes instead of training."""

    formula: Any
    fingerprint: str = "formula"
    agents: int = 3
    batch: int = 50

    def scores(self, agents: NDArray[np.int64], points: Array) -> Array:
        return np.asarray(self.formula(agents, points))


@dataclass(frozen=True)
class Computed(RealProblem):
    """A problem that is trained in an instant."""

    kind: ClassVar[str] = "computed"
    shape: int = 2

    @property
    def setting(self) -> Setting:
        return Setting(SQUARE if self.shape == 2 else MIXED, Surrogate(), 3)

    def trainer(self, device: Device) -> Trainer:
        return Formula(bowl)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOTTOVOCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        maketable, "Workers", lambda problem, batch, jobs: Here(problem.trainer(device_named(None)))
    )
    return tmp_path / "cache"


def table_of(formula: Any, space: Space = SQUARE, inside: int = 64) -> Table:
    points, held = design(space, inside), held_out_design(space, 40)
    agents = np.arange(3)[:, None]
    values, others = formula(agents, points[None]), formula(agents, held[None])
    return Table(points, values, held, others, powers_of(space), {"problem": "made up"})


@pytest.mark.parametrize("space", [SQUARE, MIXED])
def test_a_design_fills_the_cube_and_all_its_sides(space: Space) -> None:
    points = design(space, 512)
    np.testing.assert_array_equal(points, design(space, 512))
    assert len(np.unique(points, axis=0)) == len(points)
    low, high = points.min(axis=0), points.max(axis=0)
    np.testing.assert_allclose(low, space.snap(np.zeros(space.dims)), atol=1e-7)
    np.testing.assert_allclose(high, space.snap(np.ones(space.dims)), atol=1e-7)
    corners = np.all((points == low) | (points == high), axis=1)
    assert corners.sum() == 2**space.dims
    for d in range(space.dims):
        for end in low[d], high[d]:
            side = np.delete(points[points[:, d] == end], d, axis=1)
            assert len(side) >= 512 ** (1 - 1 / space.dims)
            middle = np.abs(side - 0.5).max(axis=1) < 0.25
            assert middle.any()
    quarters = (points[:512] > 0.5) @ 2 ** np.arange(space.dims)
    np.testing.assert_allclose(np.bincount(quarters), 512 / 2**space.dims, rtol=0.1)


def test_points_held_out_are_others_and_some_lie_on_the_sides() -> None:
    points, held = design(MIXED, 512), held_out_design(MIXED, 256)
    assert held.shape == (256, 3)
    assert not set(map(tuple, points)) & set(map(tuple, held))
    ends = MIXED.snap(np.zeros(3)), MIXED.snap(np.ones(3))
    sides = sum(np.isclose(held, end, rtol=0, atol=1e-7) for end in ends)
    assert 60 <= np.any(sides, axis=1).sum() <= 70


def test_integers_of_a_design_decode_to_themselves() -> None:
    for points in design(MIXED, 64), held_out_design(MIXED, 64):
        np.testing.assert_allclose(MIXED.snap(points), points, rtol=0, atol=1e-7)
        again = [MIXED.decode(MIXED.snap(point))["k"] for point in points]
        assert again == [MIXED.decode(point)["k"] for point in points]


def test_a_design_of_nothing_or_of_categories_is_refused() -> None:
    with pytest.raises(InvalidInput, match="points must be at least 1, got points=0"):
        design(SQUARE, 0)
    with pytest.raises(InvalidInput, match="held-out points must be at least 1"):
        held_out_design(SQUARE, 0)
    with pytest.raises(InvalidInput, match="must all be numbers"):
        design(Space([Category("a", ("b", "c"))]), 4)


@pytest.mark.parametrize("space", [SQUARE, MIXED])
def test_values_between_the_points_are_linear_up_to_the_very_boundary(space: Space) -> None:
    objectives = TableObjectives(table_of(plane, space), 3)
    random = np.random.default_rng(0)
    points = random.random((3, 400, space.dims))
    points[:, ::2] = np.where(random.random((3, 200, space.dims)) < 0.5, points[:, ::2], 0.0)
    points[:, ::3] = np.where(random.random((3, 134, space.dims)) < 0.5, points[:, ::3], 1.0)
    points = np.asarray(space.snap(points))
    wanted = plane(np.arange(3)[:, None], points)
    np.testing.assert_allclose(objectives.values(points), wanted, atol=1e-7)
    assert objectives.noise == 0
    np.testing.assert_array_equal(objectives.optimum, np.ones(3))


def test_a_range_of_many_magnitudes_is_known_best_at_its_lower_end() -> None:
    np.testing.assert_array_equal(powers_of(WIDE), [3, 1])
    np.testing.assert_array_equal(powers_of(MIXED), [1, 1, 1])
    points = design(WIDE, 512)[:512]
    assert np.mean(points[:, 0] < 1 / 64) == pytest.approx(0.25, abs=0.01)
    assert np.mean(points[:, 1] < 1 / 4) == pytest.approx(0.25, abs=0.01)
    for half, least in (slice(0, None, 2), 0.02), (slice(1, None, 2), 0.25):
        low = np.mean(held_out_design(WIDE, 4096)[half, 0] < 1 / 64)
        assert low == pytest.approx(least + 1 / 16 * (1 - least), abs=0.03)  # and on the sides

    def root(agents: NDArray[Any], points: Array) -> Array:
        return np.asarray(agents / 10 + np.cbrt(points[..., 0]) / 2 + points[..., 1] / 8)

    table, asked = table_of(root, WIDE), np.random.default_rng(0).random((3, 200, 2))
    asked[:, ::2] **= 6
    wanted = root(np.arange(3)[:, None], asked)
    np.testing.assert_allclose(TableObjectives(table, 3).values(asked), wanted, atol=1e-6)


def test_values_at_the_points_of_the_design_are_the_scores_themselves() -> None:
    table = table_of(bowl, MIXED)
    points = np.tile(table.points, (2, 1, 1))
    np.testing.assert_allclose(TableObjectives(table, 2).values(points), table.values[:2])


def test_points_beyond_the_design_take_its_outermost_values() -> None:
    table = table_of(plane, MIXED)  # integers sit within the cube, not on its sides
    outer = TableObjectives(table, 1).values(np.asarray([[[0.0, 0.5, 0.5], [1.0, 0.5, 0.5]]]))
    ends = np.asarray([[[0.5 / 385, 0.5, 0.5], [384.5 / 385, 0.5, 0.5]]])
    np.testing.assert_allclose(outer, plane(np.zeros((1, 1)), ends), atol=1e-7)


def test_a_call_for_all_agents_takes_about_a_millisecond() -> None:
    points, random = design(MIXED, 4096), np.random.default_rng(0)
    values = random.random((50, len(points)))
    objectives = TableObjectives(
        Table(points, values, points[:1], values[:, :1], np.ones(3), {}), 50
    )
    asked = random.random((50, 1, 3))
    objectives.values(asked)
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        objectives.values(asked)
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.003


def test_wrong_agents_and_wrong_points_are_refused() -> None:
    table = table_of(plane)
    with pytest.raises(InvalidInput, match="agents must be from 1 to 3"):
        TableObjectives(table, 4)
    with pytest.raises(InvalidInput, match=r"points must have shape \(2, s, 2\)"):
        TableObjectives(table, 2).values(np.zeros((3, 1, 2)))
    with pytest.raises(InvalidInput, match=r"points \(K, D\) and values \(N, K\)"):
        replace(table, values=table.values[:, 1:])
    with pytest.raises(InvalidInput, match=r"must be in \[0, 1\]"):
        replace(table, values=table.values * np.nan)
    with pytest.raises(InvalidInput, match="powers must be 2 numbers of 1 or more"):
        replace(table, powers=np.ones(3))
    with pytest.raises(InvalidInput, match="of the same cube and agents"):
        replace(table, held_values=table.held_values[1:])


def test_the_error_is_that_of_the_points_held_out() -> None:
    exact = held_out_error(table_of(plane))
    assert exact.mean < 1e-9
    assert exact.most < 1e-9
    assert exact.rank > 0.999
    assert exact.lost == 0
    table = table_of(plane)
    moved = held_out_error(replace(table, held_values=table.held_values - 0.01))
    alike = [moved.mean, moved.rms, moved.most, moved.best, moved.bias]
    assert alike == pytest.approx([0.01] * 5)
    assert moved.spread == pytest.approx(np.std(table.held_values, axis=1).mean())
    coarse, fine = (held_out_error(table_of(bowl, inside=n)) for n in (16, 256))
    assert fine.rms < coarse.rms / 4
    upside_down = held_out_error(replace(table, held_values=1 - table.held_values))
    assert upside_down.rank < -0.999
    assert upside_down.lost == pytest.approx(np.ptp(table.held_values, axis=1).mean())
    flat = replace(table, values=np.full_like(table.values, 0.5))
    assert held_out_error(flat).rank == 1.0  # there is nothing to rank


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = table_of(bowl, MIXED)
    table = replace(table, values=rounded(table.values), held_values=rounded(table.held_values))
    table.save(tmp_path / "t.npz")
    again = read_table(tmp_path / "t.npz", "make it")
    for name in ("points", "values", "held_points", "held_values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name))
    assert again.about == table.about
    assert np.abs(rounded(table.values) - table.values).max() <= 0.5 / 65535


def damaged(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "flipped":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    elif how == "text":
        path.write_text("no table\n")
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "other arrays":
        np.savez(path, a=np.zeros(3))
    elif how == "one array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif how == "pickle":
        np.savez(path, about=np.asarray([{}], dtype=object))
    elif how == "other format":
        with np.load(path) as old:
            arrays = dict(old)
        arrays["about"] = np.frombuffer(json.dumps({"format": 9}).encode(), np.uint8)
        np.savez_compressed(path, allow_pickle=False, **arrays)


@pytest.mark.parametrize(
    "how",
    ["cut", "flipped", "text", "empty", "other arrays", "one array", "pickle", "other format"],
)
def test_a_damaged_table_is_named_with_the_command_to_make_it(cache: Path, how: str) -> None:
    path = cache / "tables" / "computed-3.npz"
    path.parent.mkdir(parents=True)
    table_of(bowl).save(path)
    assert load_table("computed-3").agents == 3
    damaged(path, how)
    os.utime(path, (1, 1))  # files may be changed faster than clocks tick
    with pytest.raises(StorageError, match=f"{path}.* sottovoce table make computed:shape=3"):
        load_table("computed-3", "computed:shape=3")


def test_a_table_that_is_not_there_is_answered_with_the_command() -> None:
    with pytest.raises(StorageError, match="sottovoce table make computed"):
        load_table("computed")


def test_a_table_is_read_once_and_anew_when_it_has_changed(cache: Path) -> None:
    path = cache / "tables" / "computed.npz"
    path.parent.mkdir(parents=True)
    table_of(bowl).save(path)
    first = load_table("computed")
    assert load_table("computed") is first
    assert known_tables().count("computed") == 1
    table_of(bowl, inside=16).save(path)
    os.utime(path, (1, 1))
    assert len(load_table("computed").points) < len(first.points)


def test_a_table_is_made_of_every_agent_at_every_point_and_resumes() -> None:
    seen = list[tuple[int, int]]()
    table = make_table(
        Computed(), device_named(None), points=16, held_out=8, advance=lambda *n: seen.append(n)
    )
    assert table.values.shape == (3, 16 + 4 * 4 + 4)
    np.testing.assert_allclose(
        table.values, bowl(np.arange(3)[:, None], table.points[None]), atol=1e-5
    )
    np.testing.assert_array_equal(rounded(table.values), table.values)
    total = 3 * (len(table.points) + 8)
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    assert table.about["trained"] == total
    assert table.about["problem"] == "computed"
    again = make_table(Computed(), device_named(None), points=16, held_out=8)
    assert again.about["trained"] == 0
    np.testing.assert_array_equal(again.values, table.values)


def test_on_a_device_models_are_trained_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="a device needs the extra `torch`")
    monkeypatch.delattr(maketable, "Workers")
    table = make_table(Computed(), device_named("cpu"), points=4, held_out=2)
    assert table.about["command"].endswith("--points 4 --held-out 2 --device cpu")


def test_no_table_is_made_of_trials_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Formula(lambda agents, points: np.where(agents == 2, np.nan, 0.5))
    monkeypatch.setattr(Computed, "trainer", lambda self, device: broken)
    with pytest.raises(TrialError, match=r"24 of 72 models.*agent 2, .*got nan"):
        make_table(Computed(), device_named(None), points=4, held_out=8)


def asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    monkeypatch.setitem(PROBLEMS, "computed", Computed)
    status = exit_status(monkeypatch, "table", *words)
    return status, *capsys.readouterr()


def test_the_command_makes_a_table_and_checks_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    few = ("--points", "64", "--held-out", "16")
    status, out, _ = asked(monkeypatch, capsys, "make", "computed", *few)
    assert status == 0
    assert "mean |error|" in out
    path = cache / "tables" / "computed.npz"
    assert str(path) in out.replace("\n", "")
    status, out, _ = asked(monkeypatch, capsys, "check", "computed", "--json")
    (shown,) = json.loads(out)["tables"]
    assert (shown["agents"], shown["held_out"]) == (3, 16)
    assert 0 < shown["error"]["mean"] < 0.01
    assert shown["about"]["command"] == "sottovoce table make computed --points 64 --held-out 16"
    assert "computed" in asked(monkeypatch, capsys, "check")[1]


def test_the_command_writes_where_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    few = ("--points", "4", "--held-out", "2", "--json")
    path = tmp_path / "mine.npz"
    status, out, _ = asked(
        monkeypatch, capsys, "make", "computed:shape=3", *few, "--out", str(path)
    )
    assert status == 0
    assert json.loads(out)["tables"][0]["file"] == str(path)
    assert read_table(path, "").about["problem"] == "computed:shape=3"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("make", "synthetic"), "a table must be of a real problem, got problem='synthetic'"),
        (("make", "nothing"), "unknown problem 'nothing'"),
        (("make", "computed", "--out", "nowhere/t.npz"), "out must be in a folder that exists"),
        (("make", "computed", "--out", "t.csv"), "out must end in .npz"),
        (("make", "computed", "--points", "0"), "points must be at least 1"),
        (("check", "computed"), "sottovoce table make computed"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    status, out, err = asked(monkeypatch, capsys, *words)
    assert (status, out) == (2, "")
    assert message in err.replace("\n", " ")


def test_the_command_needs_no_library_of_privacy() -> None:
    script = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"dp_accounting", "opendp", "matplotlib", "torch", "pebble"}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
sys.argv = ["sottovoce", "table", "make", "synthetic"]
import sottovoce.lab.problems.maketable
from sottovoce.cli import main
main()
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 2
    assert "a table must be of a real problem" in result.stderr.replace("\n", " ")


def test_shipped_tables_can_be_read_and_are_small() -> None:
    folder = Path(maketable.__file__).parent / "tables"
    for path in folder.glob("*.npz"):
        table = read_table(path, "")
        assert path.stat().st_size < 400_000, path
        assert held_out_error(table).rms < held_out_error(table).spread, path


def noisy_table(trainings: int = 6) -> Table:
    """A plane, and at each point as many trainings that are a little above or below it."""
    plain = table_of(lambda agents, points: 0.5 + 0 * plane(agents, points))
    random = np.random.default_rng(0)
    trained, held = (
        values + random.choice([-0.2, 0.2], size=(trainings, *values.shape))
        for values in (plain.values, plain.held_values)
    )
    means = trained.mean(axis=0), held.mean(axis=0)
    about = {"problem": "made up"}
    return Table(
        plain.points, means[0], plain.held_points, means[1], plain.powers, about, trained, held
    )


def test_at_a_point_of_the_design_chance_chooses_one_of_its_trainings() -> None:
    table = noisy_table()
    points = np.broadcast_to(table.points, (3, *table.points.shape))
    assert table.trained is not None
    for training in range(4):
        values = table.at(points, training)
        distance = np.abs(table.trained - values).min(axis=0)
        assert np.quantile(distance, 0.9) < 1e-9  # rounding may choose a neighbour's


def test_a_query_asked_again_has_the_same_score_alone_or_among_others() -> None:
    table, points = noisy_table(), np.random.default_rng(1).random((3, 40, 2))
    once = table.at(points, 5)
    np.testing.assert_array_equal(once, table.at(points, 5))
    np.testing.assert_array_equal(once[:, 7:8], table.at(points[:, 7:8], 5))
    assert np.any(once != table.at(points, 6))


def test_over_trainings_the_mean_is_the_interpolated_one_and_the_spread_is_theirs() -> None:
    table, points = noisy_table(), np.random.default_rng(1).random((3, 40, 2))
    draws = np.stack([table.at(points, training) for training in range(400)])
    assert np.abs(draws.mean(axis=0) - table.at(points)).mean() < 0.03
    error = held_out_error(table)
    assert error.noise == pytest.approx(0.2, rel=0.2)
    assert error.drawn == pytest.approx(error.noise, rel=0.15)
    plain = held_out_error(table_of(plane))
    assert (plain.noise, plain.drawn) == (0.0, 0.0)


def test_trainings_are_kept_in_the_file(tmp_path: Path) -> None:
    table = noisy_table()
    table.save(tmp_path / "noisy.npz")
    again = read_table(tmp_path / "noisy.npz", "again")
    assert again.trainings == table.trainings == 6
    assert again.trained is not None
    assert table.trained is not None
    np.testing.assert_allclose(again.trained, table.trained, atol=1e-5)
    np.testing.assert_allclose(again.values, table.values, atol=1e-5)
    assert table_of(plane).trainings == 1


def test_trainings_that_do_not_fit_the_table_are_refused() -> None:
    table = noisy_table()
    with pytest.raises(InvalidInput, match="trainings must be"):
        replace(table, held_trained=None)
    with pytest.raises(InvalidInput, match="trainings must be"):
        replace(table, trained=np.zeros((2, 3, 4)))
