"""Numerical optimisation: many small bounded maximisations at once."""
