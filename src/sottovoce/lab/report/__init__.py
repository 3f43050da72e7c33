"""Figures and the page, from result files only; never computes a result."""

from sottovoce.lab.report.figures import check_figure, draw_convergence, draw_figure
from sottovoce.lab.report.files import read_figures
from sottovoce.lab.report.markdown import update_markdown
from sottovoce.lab.report.page import write_report

__all__ = [
    "check_figure",
    "draw_convergence",
    "draw_figure",
    "read_figures",
    "update_markdown",
    "write_report",
]
