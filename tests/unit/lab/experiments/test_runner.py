from __future__ import annotations

import json
import math
import resource
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.errors import InvalidInput, StorageError, TrialError
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.demo import by_trials, demo_curves, run_curve
from sottovoce.lab.experiments.results import Summary
from sottovoce.lab.experiments.runner import run_all, run_and_save, run_one, summarise
from sottovoce.lab.experiments.store import RunResult, Store
from sottovoce.lab.experiments.tasks import run_study
from sottovoce.lab.problems.synthetic import Synthetic

CONFIG = RunConfig().changed(method="control", agents=4, rounds=3, runs=2, features=8)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def as_json(summary: Summary) -> Any:
    return json.loads(json.dumps(summary.to_dict(), allow_nan=False))


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("run-*.npz")}


def test_a_run_keeps_regret_points_and_observations() -> None:
    result = run_one(CONFIG, 0)
    assert result.regret.shape == (4, 4)
    assert result.points.shape == (4, 13, 1)
    assert result.observed.shape == (4, 13)
    assert result.seconds > 0
    again = run_one(CONFIG, 0)
    assert np.array_equal(result.regret, again.regret)
    assert not np.array_equal(result.regret, run_one(CONFIG, 1).regret)


def test_without_a_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(run_all(CONFIG)) == 2
    assert names(tmp_path) == []


def test_a_folder_holds_a_manifest_the_runs_and_a_summary(tmp_path: Path) -> None:
    summary = run_and_save(CONFIG, tmp_path / "deep" / "out")
    folder = tmp_path / "deep" / "out"
    assert names(folder) == ["manifest.json", "run-0000.npz", "run-0001.npz", "summary.json"]
    assert json.loads((folder / "summary.json").read_text()) == as_json(summary)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["study"]["method"]["name"] == "control"
    assert "runs" not in manifest


def test_what_is_read_back_is_what_was_computed(tmp_path: Path) -> None:
    fresh, kept = run_all(CONFIG), run_all(CONFIG, tmp_path)
    for one, two in zip(fresh, kept, strict=True):
        for name in ("regret", "points", "observed", "clipped", "signal_to_noise"):
            assert np.array_equal(getattr(one, name), getattr(two, name))


def test_resuming_computes_nothing_again(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []

    def watcher(run: int, t: int, events: Any) -> None:
        calls.append((run, t))

    first = run_and_save(CONFIG, tmp_path, watcher)
    assert calls == [(run, t) for run in (0, 1) for t in (1, 2, 3)]
    before = stamps(tmp_path)
    calls.clear()
    second = run_and_save(CONFIG, tmp_path, watcher)
    assert calls == []
    assert stamps(tmp_path) == before
    assert second == first


def test_a_run_that_is_missing_is_computed_and_is_the_same(tmp_path: Path) -> None:
    first = run_and_save(CONFIG, tmp_path)
    before = stamps(tmp_path)
    (tmp_path / "run-0000.npz").unlink()
    second = run_and_save(CONFIG, tmp_path)
    after = stamps(tmp_path)
    assert after["run-0001.npz"] == before["run-0001.npz"]
    assert after["run-0000.npz"] != before["run-0000.npz"]
    assert second.regret == first.regret


def test_more_runs_are_added_to_those_there_are(tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path)
    before = stamps(tmp_path)
    summary = run_and_save(replace(CONFIG, runs=3), tmp_path)
    after = stamps(tmp_path)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"run-0002.npz"}
    assert summary.runs == 3


def test_an_interrupted_command_keeps_the_runs_it_finished(tmp_path: Path) -> None:
    def interrupt(run: int, t: int, events: Any) -> None:
        if (run, t) == (1, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_and_save(CONFIG, tmp_path, interrupt)
    assert names(tmp_path) == ["manifest.json", "run-0000.npz"]
    before = stamps(tmp_path)
    summary = run_and_save(CONFIG, tmp_path)
    assert stamps(tmp_path)["run-0000.npz"] == before["run-0000.npz"]
    assert summary.regret == summarise(CONFIG, run_all(CONFIG)).regret


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"method": "ts"}, "method.initial_design is 'region' there and 'uniform' here"),
        ({"agents": 5}, "agents is 4 there and 5 here"),
        ({"noise": 2.0}, "noise is 1 there and 2 here"),
    ],
)
def test_another_configs_folder_is_refused_naming_the_difference(
    change: dict[str, Any], text: str, tmp_path: Path
) -> None:
    run_and_save(CONFIG, tmp_path)
    before = stamps(tmp_path)
    with pytest.raises(StorageError, match=text):
        run_and_save(CONFIG.changed(**change), tmp_path)
    assert stamps(tmp_path) == before


def test_another_versions_folder_is_refused(tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": "0.0.1"}))
    with pytest.raises(StorageError, match=r"version is '0\.0\.1' there"):
        run_and_save(CONFIG, tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "7"])
def test_a_manifest_that_is_damaged_is_refused(content: str, tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path)
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(StorageError):
        run_and_save(CONFIG, tmp_path)


def test_runs_without_a_manifest_are_refused(tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(StorageError, match="holds runs but no manifest"):
        run_and_save(CONFIG, tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.99])
def test_half_a_run_file_is_refused(share: float, tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path)
    path = tmp_path / "run-0001.npz"
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(StorageError, match=r"run-0001.npz is damaged .* delete it to run it again"):
        run_and_save(CONFIG, tmp_path)


@pytest.mark.parametrize("content", [b"nothing of the kind", b"\x93NUMPY\x01\x00", b"PK\x03\x04"])
def test_a_run_file_that_is_something_else_is_refused(content: bytes, tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path)
    (tmp_path / "run-0000.npz").write_bytes(content)
    with pytest.raises(StorageError, match="is damaged"):
        run_and_save(CONFIG, tmp_path)


def test_a_flipped_bit_in_a_run_file_is_noticed(tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path)
    path = tmp_path / "run-0000.npz"
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(StorageError, match="is damaged"):
        run_and_save(CONFIG, tmp_path)


def test_a_run_file_with_other_arrays_is_refused(tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path)
    np.savez(tmp_path / "run-0000.npz", regret=np.zeros((4, 4)))
    with pytest.raises(StorageError, match="is damaged"):
        run_and_save(CONFIG, tmp_path)


def test_a_run_file_of_another_study_is_refused(tmp_path: Path) -> None:
    run_and_save(CONFIG, tmp_path / "mine")
    run_and_save(replace(CONFIG, agents=5, rounds=2), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "run-0000.npz", tmp_path / "mine" / "run-0000.npz")
    with pytest.raises(StorageError):
        run_and_save(CONFIG, tmp_path / "mine")


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match="cannot be used for results"):
            run_and_save(CONFIG, folder)
    assert (tmp_path / "file").read_text() == "mine"
    assert names(tmp_path) == ["file"]


def test_a_summary_that_cannot_be_written_leaves_no_half_of_it(tmp_path: Path) -> None:
    (tmp_path / "summary.json").mkdir()
    with pytest.raises(StorageError, match=r"summary.json could not be written"):
        run_and_save(CONFIG, tmp_path)
    assert names(tmp_path) == ["manifest.json", "run-0000.npz", "run-0001.npz", "summary.json"]


def test_a_run_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "out"

    def vanish(run: int, t: int, events: Any) -> None:
        if t == 3:
            shutil.rmtree(folder)

    with pytest.raises(StorageError, match=r"run-0000.npz could not be written"):
        run_and_save(CONFIG, folder, vanish)
    assert names(tmp_path) == []


def test_a_folder_that_turns_into_a_file_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "out"

    def turn(run: int, t: int, events: Any) -> None:
        if t == 3:
            shutil.rmtree(folder)
            folder.write_text("")

    with pytest.raises(StorageError, match=r"run-0000.npz could not be written"):
        run_and_save(CONFIG, folder, turn)


def test_a_rename_that_fails_leaves_no_half_written_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(StorageError, match="No space left on device"):
        run_and_save(CONFIG, tmp_path)
    assert names(tmp_path) == []


# the summary

KEYS = {
    "problem",
    "method",
    "agents",
    "rounds",
    "runs",
    "epsilon",
    "delta",
    "accountant",
    "regret",
    "clipped_fraction",
    "seconds",
}


def test_a_summary_has_what_a_reader_looks_for() -> None:
    config = RunConfig().changed(agents=4, rounds=2, runs=2, features=8, delta=1e-5)
    summary = summarise(config, run_all(config))
    assert set(summary.to_dict()) >= KEYS
    assert (summary.problem, summary.method) == ("synthetic", "dp-fts-de")
    assert (summary.agents, summary.rounds, summary.runs) == (4, 2, 2)
    assert summary.accountant == "pld"
    assert summary.epsilon == summary.epsilon_by_accountant["pld"]
    spent = [summary.epsilon_by_accountant[name] or 0.0 for name in ("pld", "moments")]
    assert 0 < spent[0] < spent[1]
    assert summary.delta == 1e-5
    assert summary.adjacency == "zero-out"
    assert summary.clipped_fraction is not None
    assert 0 <= summary.clipped_fraction <= 1
    assert len(summary.signal_to_noise) == 2
    assert summary.seconds > 0
    assert as_json(summary)["regret"]["mean"] == list(summary.regret.mean)


def test_regret_is_the_mean_over_agents_and_runs_with_its_standard_error() -> None:
    config = replace(CONFIG, runs=3)
    results = run_all(config)
    regret = summarise(config, results).regret
    means = np.stack([result.regret.mean(axis=0) for result in results])
    assert list(regret.t) == [0, 1, 2, 3]
    assert np.allclose(regret.mean, means.mean(axis=0))
    assert np.allclose(regret.errors, means.std(axis=0, ddof=1) / math.sqrt(3))


def test_a_single_run_has_no_standard_error() -> None:
    summary = summarise(replace(CONFIG, runs=1), run_all(replace(CONFIG, runs=1)))
    assert summary.regret.stderr is None


@pytest.mark.parametrize(
    ("method", "epsilon"), [("ts", 0.0), ("control", 0.0), ("fts", None), ("fts-de", None)]
)
def test_epsilon_is_zero_for_silence_and_null_for_no_protection(
    method: str, epsilon: float | None
) -> None:
    config = RunConfig(method=method, agents=4, rounds=1, runs=1)
    summary = summarise(config, run_all(config))
    assert summary.epsilon == epsilon
    assert summary.clipped_fraction is None
    assert summary.signal_to_noise == ()


def test_fixed_size_samples_are_accounted_for_by_rdp() -> None:
    config = RunConfig().changed(agents=4, rounds=1, runs=1, sampling="fixed", participation=0.5)
    summary = summarise(config, run_all(config))
    assert summary.accountant == "rdp"
    assert set(summary.epsilon_by_accountant) == {"rdp"}
    assert summary.epsilon is not None
    assert summary.epsilon > 0


def test_a_mechanism_without_noise_can_be_run_and_saved(tmp_path: Path) -> None:
    config = RunConfig().changed(agents=4, rounds=1, runs=1, noise=0.0)
    summary = run_and_save(config, tmp_path)
    assert summary.epsilon is None


def test_an_infinite_clip_can_be_run_saved_and_resumed(tmp_path: Path) -> None:
    config = RunConfig().changed(agents=4, rounds=1, runs=1, noise=0.0, clip=math.inf)
    summary = run_and_save(config, tmp_path)
    assert summary.clipped_fraction == 0.0
    assert run_and_save(config, tmp_path).regret == summary.regret


def test_a_lone_agent_is_refused_before_it_runs_or_is_saved(tmp_path: Path) -> None:
    try:
        config = RunConfig(method="ts", agents=1, rounds=1, runs=1)
    except InvalidInput:
        return
    assert run_and_save(config, tmp_path).epsilon == 0.0


def test_a_full_disk_is_said_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    store = Store(tmp_path, CONFIG.study(), CONFIG.problem, CONFIG.seed)
    store.prepare()
    result = run_one(CONFIG, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # no file may grow beyond 100 bytes
    try:
        with pytest.raises(StorageError, match="could not be written"):
            store.write(0, result)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert names(tmp_path) == ["manifest.json"]


def test_a_result_is_made_of_arrays_alone() -> None:
    result = run_one(replace(CONFIG, rounds=1), 0)
    assert isinstance(result, RunResult)
    assert all(isinstance(value, np.ndarray) for value in vars(result).values())


# the demonstration


def test_the_demonstration_compares_together_alone_noise_and_the_papers() -> None:
    curves = demo_curves(runs=3, seed=7)
    names = ["sottovoce", "gp", "sottovoce-control", "dp-fts-de"]
    assert [c.config.method for c in curves] == names
    assert all((c.config.runs, c.config.seed) == (3, 7) for c in curves)
    methods = [c.config.resolved_method() for c in curves]
    lengths = {m.initial + c.config.study().rounds for m, c in zip(methods, curves, strict=True)}
    assert len(lengths) == 1  # as many trials in all
    assert methods[0].mechanism == methods[2].mechanism
    paper = methods[3].mechanism
    assert paper is not None
    assert (paper.noise, paper.clip, methods[3].regions) == (1.0, 11.0, 2)
    small = replace(curves[1], config=replace(curves[1].config, agents=3, rounds=1, runs=1))
    summary = run_curve(small)
    assert summary.method == "gp"
    initial = methods[1].initial
    assert by_trials(small, summary).t == (initial, initial + 1)


def test_failed_trials_are_counted_and_the_run_goes_on(tmp_path: Path) -> None:
    class Failing(Synthetic):
        """Fails wherever the first agent looks."""

        def draw(self, agents: int, random: np.random.Generator) -> Any:
            made = super().draw(agents, random)

            class Half:
                noise, optimum = made.noise, made.optimum

                def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
                    found = made.values(points)
                    found[0] = np.nan
                    return found

            return Half()

    config = RunConfig().changed(method="dp-fts-de", agents=4, rounds=2, features=8)
    result = run_study(config.study(), Failing(), 0, 0)
    assert np.all(np.isfinite(result.regret))
    assert summarise(config, [result]).failed_trials == 12


def test_a_run_without_a_single_value_is_refused() -> None:
    class Broken(Synthetic):
        """Every trial fails."""

        def draw(self, agents: int, random: np.random.Generator) -> Any:
            made = super().draw(agents, random)

            class Nothing:
                noise, optimum = made.noise, made.optimum

                def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
                    return np.full(points.shape[:2], np.nan)

            return Nothing()

    study = RunConfig(method="ts", agents=3, rounds=1).study()
    with pytest.raises(TrialError, match="every initial trial of every agent failed"):
        run_study(study, Broken(), 0, 0)
