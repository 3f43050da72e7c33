"""Pages of a real federation: live ones, and what a study came to. All of it stays on its disk."""
