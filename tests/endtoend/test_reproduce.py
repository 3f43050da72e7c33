"""Figures from a bare folder to files, resumed, extended, and with a method of one's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sottovoce import DP_FTS_DE, METHODS, Mechanism
from sottovoce.errors import InvalidInput, StorageError
from sottovoce.lab.experiments.figure import Figure, chosen_figures, figure_from
from sottovoce.lab.experiments.reproduce import missing_tasks, reproduce
from sottovoce.lab.experiments.results import FigureResult
from sottovoce.lab.experiments.tasks import run_tasks
from sottovoce.lab.report.figures import draw_figure
from sottovoce.lab.report.page import write_report

TINY: dict[str, Any] = {
    "title": "Tiny",
    "paper": "none",
    "about": "Two rounds of five agents.",
    "common": {"agents": 5, "rounds": 2, "features": 8},
    "curves": [
        {"label": "alone", "method": "ts", "role": "reference"},
        {"label": "together", "method": "dp-fts-de"},
        {"label": "noise", "method": "control", "role": "control"},
    ],
    "claims": [{"claim": "it helps", "paper": "yes", "better": "together", "than": "alone"}],
}


def tiny(runs: int = 2, **changes: Any) -> Figure:
    return figure_from({**TINY, **changes}, "tiny").with_runs(runs, 0)


def stamps(folder: Path) -> dict[str, int]:
    return {str(f): f.stat().st_mtime_ns for f in folder.rglob("run-*.npz")}


def test_a_figure_is_run_judged_and_written(tmp_path: Path) -> None:
    (content,) = reproduce([tiny()], tmp_path)
    written = json.loads((tmp_path / "figures" / "tiny.json").read_text())
    assert written["schema"] == 1
    assert FigureResult.from_dict(written, "tiny") == content
    claims = {claim.claim: claim for claim in content.claims}
    assert set(claims) == {"it helps", "together is better than noise"}
    assert claims["together is better than noise"].paper == ""  # a figure of one's own
    alone, private, _ = content.curves
    assert private.epsilon is not None
    assert (private.epsilon["moments"] or 0) > (private.epsilon["pld"] or 0) >= 0
    assert private.adjacency == "zero-out"
    assert alone.epsilon is not None
    assert alone.epsilon["pld"] == 0.0
    assert content.settings["agents"] == 5
    assert content.command == "sottovoce reproduce tiny --runs 2 --seed 0"


def test_what_is_there_is_not_run_again_and_more_runs_are_added(tmp_path: Path) -> None:
    first = reproduce([tiny()], tmp_path)
    before = stamps(tmp_path)
    assert len(before) == 6
    assert missing_tasks([tiny()], tmp_path) == []
    assert reproduce([tiny()], tmp_path) == first
    reproduce([tiny(runs=3)], tmp_path)
    after = stamps(tmp_path)
    assert len(after) == 9
    assert all(after[name] == stamp for name, stamp in before.items())


def test_runs_that_two_curves_share_have_an_epsilon_for_the_delta_of_each(tmp_path: Path) -> None:
    weak = {"label": "weak", "method": "dp-fts-de", "delta": 0.1}
    strict = {"label": "strict", "method": "dp-fts-de", "delta": 1e-6}
    one = tiny(curves=[weak, strict], claims=[])
    other = replace(tiny(curves=[strict, weak], claims=[]), name="other")
    contents = reproduce([one, other], tmp_path)
    assert len(stamps(tmp_path)) == 2
    for content in contents:
        found = {curve.label: curve for curve in content.curves}
        assert (found["weak"].delta, found["strict"].delta) == (0.1, 1e-6)
        spent = [(found[label].epsilon or {})["pld"] or 0.0 for label in ("weak", "strict")]
        assert spent == sorted(set(spent))
        assert len(spent) == 2


def test_curves_that_two_figures_share_are_run_once(tmp_path: Path) -> None:
    other = replace(tiny(), name="other", curves=tiny().curves[:2], claims=())
    assert len(missing_tasks([tiny(), other], tmp_path)) == 6


def test_several_processes_give_what_one_gives(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    one = reproduce([tiny()], tmp_path / "one")
    two = reproduce(
        [tiny()], tmp_path / "two", 2, lambda done, total, _: seen.append((done, total))
    )
    for here, there in zip(one[0].curves, two[0].curves, strict=True):
        # not to the last bit: the processes compute on one thread, this one perhaps on more
        assert here.regret.mean == pytest.approx(there.regret.mean, abs=1e-6)
    assert seen == [(k, 6) for k in range(1, 7)]


def test_an_interruption_loses_only_the_run_it_hit(tmp_path: Path) -> None:
    def interrupt(done: int, total: int, said: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce([tiny()], tmp_path, 1, interrupt)
    assert len(stamps(tmp_path)) == 3
    assert len(missing_tasks([tiny()], tmp_path)) == 3
    reproduce([tiny()], tmp_path)
    assert len(stamps(tmp_path)) == 6


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    commands = {int(c): Path(f"/proc/{c}/cmdline").read_bytes() for c in children}
    return [child for child, command in commands.items() if b"spawn_main" in command]


def is_running(pid: int) -> bool:
    try:  # it may end between two looks
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, f"in a minute it did not come to pass: {what}"
        time.sleep(0.1)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_a_command_that_was_killed(tmp_path: Path, how: signal.Signals) -> None:
    words = ["reproduce", "beyond-synthetic", "--runs", "9", "--jobs", "2", "--out", str(tmp_path)]
    command = subprocess.Popen(
        [sys.executable, "-m", "sottovoce.cli", *words], stdout=subprocess.DEVNULL
    )
    workers: list[int] = []
    try:
        until(lambda: len(stamps(tmp_path)) > 0, "a first run is done")
        workers += workers_of(command.pid)
        assert len(workers) == 2
        command.send_signal(how)
        assert command.wait() == -how
        until(lambda: not any(is_running(worker) for worker in workers), "the workers have ended")
    finally:
        for process in filter(is_running, [command.pid, *workers]):
            os.kill(process, signal.SIGKILL)
        command.wait()


def test_a_folder_of_another_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"version": "0.0.1"}')
    with pytest.raises(StorageError, match=r"made by version 0.0.1.*use another folder"):
        reproduce([tiny()], tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '"0.1.0"'])
def test_a_folder_whose_marker_is_damaged_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(StorageError, match="cannot be used for results"):
        reproduce([tiny()], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (taken := tmp_path / "results").write_text("mine")
    with pytest.raises(StorageError, match=f"{taken} cannot be used.* not a folder"):
        reproduce([tiny()], taken)
    assert taken.read_text() == "mine"


def test_a_folder_that_cannot_even_be_looked_at_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be used for results"):
        reproduce([tiny()], tmp_path / ("x" * 300))


def test_jobs_must_be_at_least_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="jobs"):
        run_tasks([], 0)


def test_the_theorem_gives_a_figure_of_the_bound_and_one_of_what_was_measured(
    tmp_path: Path,
) -> None:
    common = {"problem": "synthetic", "method": "dp-fts-de", "agents": 6, "rounds": 2}
    vary = [
        {"symbol": "z", "parameter": "noise", "direction": "up", "paper": "worse"},
        {"symbol": "q", "parameter": "participation", "direction": "down", "paper": "better"},
    ]
    data = {"title": "T", "common": {**common, "noise": 1.0, "participation": 0.4}, "vary": vary}
    bound, measured = reproduce([figure_from(data, "t").with_runs(2, 0)], tmp_path)
    assert (bound.name, measured.name) == ("t-bound", "t-measured")
    assert [claim.verdict for claim in bound.claims] == ["holds", "holds"]
    assert [curve.label for curve in measured.curves] == ["z", "q"]
    assert measured.curves[0].regret.t == (0.5, 1.0, 2.0)
    assert measured.curves[0].regret.mean[1] == pytest.approx(1.0)


def test_a_new_method_in_one_file_appears_in_figures_and_report(tmp_path: Path) -> None:
    quiet = replace(DP_FTS_DE, name="quiet", mechanism=Mechanism(6.0, 1.0, 3.0, "poisson", "tight"))
    METHODS[quiet.name] = quiet
    try:
        path = tmp_path / "mine.toml"
        path.write_text(
            'title = "Mine"\n[common]\nagents = 5\nrounds = 2\n'
            '[[curves]]\nlabel = "alone"\nmethod = "ts"\n'
            '[[curves]]\nlabel = "my quiet one"\nmethod = "quiet"\n'
            '[[claims]]\nclaim = "quiet helps"\npaper = "none"\n'
            'better = "my quiet one"\nthan = "alone"\n'
        )
        figures = [figure.with_runs(2, 0) for figure in chosen_figures([str(path)])]
        (content,) = reproduce(figures, tmp_path / "out", jobs=2)
        draw_figure(content, tmp_path / "out" / "figures")
        page = write_report(tmp_path / "out").read_text()
    finally:
        del METHODS[quiet.name]
    assert "my quiet one" in page
    assert "quiet helps" in page
    assert (tmp_path / "out" / "figures" / "mine.png").stat().st_size > 1000


def test_a_tradeoff_carries_series_and_is_judged_at_the_end_and_on_the_whole(
    tmp_path: Path,
) -> None:
    curves = [dict(curve) for curve in TINY["curves"]]
    curves[1]["series"] = "z varies"
    (content,) = reproduce([tiny(kind="tradeoff", curves=curves, group="a/b")], tmp_path)
    assert (content.kind, content.group) == ("tradeoff", "a/b")
    assert [curve.series for curve in content.curves] == [None, "z varies", None]
    assert "after 2 rounds" in content.x_label
    claims = {claim.claim: claim for claim in content.claims}
    assert {"together is better than noise", "together is better than noise at the end"} <= set(
        claims
    )
    found = claims["together is better than noise"]
    assert found.interval is not None
    assert found.interval[0] < found.measured < found.interval[1]


def test_the_axis_of_a_tradeoff_admits_that_a_curve_has_another_delta(tmp_path: Path) -> None:
    curves = [dict(curve) for curve in TINY["curves"]]
    curves[1]["series"] = "z varies"
    (alike,) = reproduce([tiny(kind="tradeoff", curves=curves)], tmp_path)
    curves.append({**curves[1], "label": "strict", "delta": 1e-5, "series": "δ = 1e-5"})
    (mixed,) = reproduce([tiny(kind="tradeoff", curves=curves)], tmp_path)
    assert "unless said" not in alike.x_label
    assert mixed.x_label == f"{alike.x_label} unless said"


def test_a_control_with_other_features_is_no_control(tmp_path: Path) -> None:
    curves = [*TINY["curves"], {"label": "other noise", "method": "control", "role": "control"}]
    curves[-1] |= {"lengthscale": 0.7}
    (content,) = reproduce([tiny(curves=curves)], tmp_path)
    claims = [claim.claim for claim in content.claims]
    assert "together is better than noise" in claims
    assert "together is better than other noise" not in claims


def test_a_real_figure_says_where_its_scores_come_from(tmp_path: Path) -> None:
    small = {**TINY["common"], "problem": "landmine", "agents": 4}
    (content,) = reproduce([tiny(runs=1, common=small)], tmp_path)
    assert content.objective == "interpolated in a table of trained models"
    assert content.measure == "1 − AUC"
    assert content.y_label == "1 − AUC, mean over agents"
    assert 0 < content.curves[0].regret.mean[-1] < 0.6
