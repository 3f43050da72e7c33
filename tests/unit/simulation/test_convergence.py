from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput, MissingExtra, StorageError
from sottovoce.lab.report.figures import check_figure, draw_convergence
from sottovoce.pages.trace import Trace


def curve(height: float, length: int = 4) -> Trace:
    means = tuple(height / (t + 1) for t in range(length))
    return Trace(tuple(range(length)), means, (0.01,) * length)


def test_a_figure_is_written_with_all_its_words(tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    draw_convergence([("alone", curve(1.0)), ("together", curve(0.5))], path, "Title", "A note")
    assert path.stat().st_size > 5000
    draw_convergence([("alone", curve(1.0))], tmp_path / "figure.png", "Title", "A note")
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"


def test_more_curves_than_styles_can_be_drawn(tmp_path: Path) -> None:
    curves = [(f"method {k}", curve(1.0 + k)) for k in range(9)]
    draw_convergence(curves, tmp_path / "figure.png", "Many", "")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_two_different_results_are_two_different_figures(tmp_path: Path) -> None:
    for name, height in (("a.png", 1.0), ("b.png", 3.0), ("c.png", 1.0)):
        draw_convergence([("alone", curve(height))], tmp_path / name, "Title", "")
    a, b, c = ((tmp_path / name).read_bytes() for name in ("a.png", "b.png", "c.png"))
    assert a == c
    assert a != b


def test_a_figure_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    for path in (tmp_path / "missing" / "figure.png", tmp_path / "folder.png"):
        with pytest.raises(StorageError, match="could not be written"):
            draw_convergence([("alone", curve(1.0))], path, "Title", "")


def test_a_figure_is_written_exactly_where_it_was_asked_for(tmp_path: Path) -> None:
    # Matplotlib adds .png to a bare name; whoever asked must be able to find the file
    try:
        draw_convergence([("alone", curve(1.0))], tmp_path / "figure", "Title", "")
    except (StorageError, InvalidInput):
        assert list(tmp_path.iterdir()) == []
    else:
        assert (tmp_path / "figure").exists()


def test_a_figure_of_an_unknown_kind_is_refused_in_our_words(tmp_path: Path) -> None:
    with pytest.raises((StorageError, InvalidInput)):
        draw_convergence([("alone", curve(1.0))], tmp_path / "figure.xyz", "Title", "")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_line_to_install_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sottovoce\[figures\]'"):
        check_figure(Path("figure.png"))
    with pytest.raises(MissingExtra):
        draw_convergence([("alone", curve(1.0))], Path("never.png"), "Title", "")
