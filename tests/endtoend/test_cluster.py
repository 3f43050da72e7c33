"""Runs on a Ray cluster of two nodes are those of this process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.experiments.runner import run_all

# a network, and processes, of their own: Ray listens on all interfaces, and leaves no one behind
ALONE = ["unshare", "-rnpf", "--kill-child", "--mount-proc", "sh", "-c"]
ENVIRONMENT = {
    **{"RAY_USAGE_STATS_ENABLED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
}
FIGURE = """
title = "Two methods"
paper = "none"
runs = 2

[common]
problem = "branin"
agents = 4
rounds = 3

[[curves]]
label = "TS"
method = "ts"

[[curves]]
label = "DP-FTS-DE"
method = "dp-fts-de"

[[claims]]
claim = "TS is better"
paper = "not said"
better = "TS"
than = "DP-FTS-DE"
"""


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*ALONE, "true"]).returncode != 0,
    reason="needs namespaces",
)
def test_runs_and_figures_on_two_nodes_are_those_of_one_process_and_resume(tmp_path: Path) -> None:
    out, figure = tmp_path / "out", tmp_path / "two.toml"
    figure.write_text(FIGURE)
    size = ["--agents", "4", "--rounds", "3", "--runs", "3"]
    run = ["sottovoce", "run", "--problem", "failing", "--method", "sottovoce", *size]
    run += ["--cluster", "ADDRESS", "--out", str(out), "--json"]
    reproduce = ["sottovoce", "reproduce", str(figure), "--cluster", "ADDRESS"]
    reproduce += ["--out", str(tmp_path / "figures"), "--json"]
    script = Path(__file__).with_name("two_nodes.py")
    command = [sys.executable, str(script), json.dumps([run, run, reproduce])]
    result = subprocess.run(
        [*ALONE, 'ip link set lo up && exec "$@"', "sh", *command],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    config = RunConfig("failing", "sottovoce", 4, 3, runs=3)
    there, here = run_all(config, out), run_all(config)  # what is in the folder is only read
    for one, other in zip(there, here, strict=True):
        assert np.array_equal(one.points, other.points)
        assert np.array_equal(one.regret, other.regret)
    written = json.loads((tmp_path / "figures" / "figures" / "two.json").read_text())
    assert len(written["claims"]) == 1
