"""Figures from results; never computes any."""

from sottovoce.report.convergence import check_figure, draw_convergence

__all__ = ["check_figure", "draw_convergence"]
