"""The laboratory: problems, experiments and reports. Nothing that a deployment runs is here."""
