"""The notebooks in examples/ run from top to bottom, as a stranger would run them."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
MISSING = [name for name in ("nbclient", "ipykernel") if importlib.util.find_spec(name) is None]


def test_there_are_three_notebooks_and_none_has_an_output_typed_by_hand() -> None:
    assert [book.stem for book in BOOKS] == ["federation", "rehearsal", "solo"]
    for book in BOOKS:
        cells = json.loads(book.read_text())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason="pip install 'sottovoce[notebooks]'")
@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_notebook_runs(book: Path, tmp_path: Path) -> None:
    mine = tmp_path / book.name
    shutil.copy(book, mine)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    env |= {"IPYTHONDIR": str(tmp_path / "ipython"), "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-c", "from nbclient.cli import main; main()"]
    words = [*run, "--inplace", "--timeout=900", "--kernel_name=python3", str(mine)]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]  # a cell that fails ends it
    cells = json.loads(mine.read_text())["cells"]
    said = [out for cell in cells for out in cell.get("outputs", [])]
    assert any("text" in out for out in said)
