"""Figures and the page, from result files only; never computes a result."""

from sottovoce.report.figures import check_figure, draw_convergence, draw_figure
from sottovoce.report.files import read_figures
from sottovoce.report.markdown import update_markdown
from sottovoce.report.page import write_report

__all__ = [
    "check_figure",
    "draw_convergence",
    "draw_figure",
    "read_figures",
    "update_markdown",
    "write_report",
]
