from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def test_a_server_killed_at_fifty_random_moments_never_loses_or_changes_a_round(
    tmp_path: Path,
) -> None:
    script = Path(__file__).with_name("serve_and_kill.py")
    result = subprocess.run(
        [sys.executable, script, tmp_path / "served", "50", "0"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    counts = json.loads(result.stdout)
    assert counts["kills"] == 50
    assert counts["sent"] > 5  # it did get work done between the kills, however slow the machine
    assert counts["sendings"] > counts["sent"]  # and sent some rounds again, with the same bytes
    assert counts["rounds"] >= counts["sent"]
