"""Figures and the page, from result files only; never computes a result."""
