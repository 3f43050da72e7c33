"""Configs and the runner that turns them into results on disk."""
