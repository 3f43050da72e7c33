"""Other ways to search, to be compared with: samplers of Optuna's, HEBO, DP-Hype."""
